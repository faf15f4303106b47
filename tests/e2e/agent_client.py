#!/usr/bin/python3
"""Replaces the real programs of the agents (claude, codex, openclaw, opencode) in the tests.

It runs under the name of the real program, appends to ~/calls how it was started, and keeps MCP
servers in the same file. Arguments, files, output and errors were copied from Claude Code 2.1.197,
Codex 0.166.0, OpenClaw 2026.9.2 and opencode 1.18.33; only Codex's file is JSON here. The tests in
tests/acceptance use the real programs. If ~/fail contains a word, each command that has this word
as an argument fails with status 3. If ~/ignore contains one, such a command changes nothing.
"""
import json
import os
import pathlib
import sys

NAME = pathlib.Path(sys.argv[0]).name
WORDS = sys.argv[1:]
HOME = pathlib.Path(os.environ["HOME"])


def end(code, text, stream=sys.stderr):
    print(text, file=stream)
    sys.exit(code)


def place():
    """Returns the configuration file and the keys that lead to the servers in it."""
    if NAME == "claude":
        scope = WORDS[WORDS.index("--scope") + 1]
        top = pathlib.Path(os.environ.get("CLAUDE_CONFIG_DIR", HOME))
        file = {"user": top / ".claude.json", "project": pathlib.Path(".mcp.json")}[scope]
        return file, ["mcpServers"]
    if NAME == "codex":
        return pathlib.Path(os.environ.get("CODEX_HOME", HOME / ".codex")) / "config.json", []
    if NAME == "openclaw":
        return pathlib.Path(os.environ.get("OPENCLAW_CONFIG_PATH",
                                           HOME / ".openclaw/openclaw.json")), ["mcp", "servers"]
    file = pathlib.Path(os.environ.get("XDG_CONFIG_HOME", HOME / ".config"))
    file = file / "opencode/opencode.json"
    return (file if file.exists() else file.with_suffix(".jsonc")), ["mcp"]


def main():
    with open(HOME / "calls", "a", encoding="utf-8") as calls:
        print(json.dumps({"argv": [NAME, *WORDS], "cwd": os.getcwd(), "env": dict(os.environ),
                          "stdin": sys.stdin.read()}), file=calls)
    ignore = HOME / "ignore"
    if ignore.exists() and ignore.read_text() in WORDS:
        end(0, "done", sys.stdout)
    fail = HOME / "fail"
    if fail.exists() and fail.read_text() in WORDS:
        end(3, "the client's own words")
    file, keys = place()
    config = json.loads(file.read_text()) if file.exists() else {}
    servers = config
    for key in keys:
        servers = servers.setdefault(key, {})
    if WORDS == ["mcp", "list", "--json"]:
        end(0, json.dumps([{"name": n, "enabled": True, "transport":
                            {"type": "stdio", **s, "env": s.get("env"), "env_vars": []},
                            "startup_timeout_sec": None, "auth_status": "unsupported"}
                           for n, s in servers.items()]), sys.stdout)
    if WORDS == ["mcp", "show", "--json"]:
        end(0, json.dumps(servers), sys.stdout)
    words = [w for w in WORDS if w not in ("--scope", "user", "project", "--")]
    verb, name, server = words[1], words[2], words[3:]
    if verb in ("remove", "unset"):
        if name not in servers:
            end(0 if NAME == "codex" else 1, f"No MCP server named {name}")
        del servers[name]
    elif NAME == "claude" and name in servers:
        end(1, f"MCP server {name} already exists in user config")
    elif NAME == "openclaw":
        servers[name] = json.loads(server[0])
    elif NAME == "opencode":
        servers[name] = {"type": "local", "command": server}
    else:
        kind = {"type": "stdio", "env": {}} if NAME == "claude" else {}
        servers[name] = {"command": server[0], "args": server[1:], **kind}
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = file.stat().st_mode & 0o7777 if file.exists() else 0o600
    file.write_text(json.dumps(config, indent=2))
    file.chmod(mode)
    print(f"{NAME} is done")


main()
