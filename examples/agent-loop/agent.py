#!/usr/bin/env python3
"""An agent's loop with a sandboxed skill as its tool.

The loop is the same for every provider: the model is asked, it calls tools, each result goes back to
it, until it answers. Here `ask_model` is a stand-in that needs no key and no network; put the call of
your provider there. It gets the messages and the tools, and returns a message in the same form.

    python3 agent.py PROJECT FILE COLUMN
"""
import json
import pathlib
import sys

from skillsandbox import SkillDenied, SkillError, SkillLoader

HERE = pathlib.Path(__file__).resolve().parent


def ask_model(messages, tools):
    """A stand-in for a model: calls the tool once, then says what it returned."""
    last = messages[-1]
    if last["role"] == "user":
        file, column = last["content"].split()[-2:]
        return {"role": "assistant", "tool_calls": [
            {"name": tools[0]["function"]["name"], "arguments": {"path": file, "column": column}}]}
    return {"role": "assistant", "content": f"The tool says: {last['content']}"}


def call_tool(skill, arguments):
    """Runs the skill in its sandbox. What the model names is no grant: the skill reads what the loader was
    given, and nothing else."""
    try:
        return json.dumps(skill.execute(arguments))
    except SkillDenied as e:        # e.remedy is what you could add to SkillLoader(...)
        return f"denied: {e.path or e.host}"
    except SkillError as e:
        return f"failed: {e}"


def main(project, file, column):
    loader = SkillLoader(read=[project], timeout=30, memory="256M")
    bundle = loader.load_skill(HERE / "skills/csv-report")
    tools = [SkillLoader.to_openai_tool(bundle)]
    messages = [{"role": "user", "content": f"What is the sum in the CSV file, by column? {file} {column}"}]
    with bundle["class"]() as skill:
        for _ in range(10):         # an agent that never answers must not run for ever
            reply = ask_model(messages, tools)
            messages.append(reply)
            if "content" in reply:
                return reply["content"]
            for call in reply["tool_calls"]:
                messages.append({"role": "tool", "content": call_tool(skill, call["arguments"])})
    return "no answer in ten rounds"


if __name__ == "__main__":
    print(main(*sys.argv[1:4]))
