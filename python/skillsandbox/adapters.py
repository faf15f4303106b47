"""Converts bundles to the tool formats of language models. Pure functions: dict in, dict out."""
from __future__ import annotations

import re
from typing import Any, Dict, Mapping

MAX_NAME = 64


def tool_name(bundle: Mapping[str, Any]) -> str:
    """Returns a name that models accept."""
    name = str(bundle["manifest"].get("name") or bundle.get("registry_id") or "skill")
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:MAX_NAME]


def _description(bundle: Mapping[str, Any]) -> str:
    manifest = bundle["manifest"]
    return str(manifest.get("description") or manifest.get("short_description") or "").strip()


def _parameters(bundle: Mapping[str, Any]) -> Dict[str, Any]:
    given = bundle["manifest"].get("parameters")
    return dict(given) if isinstance(given, dict) else {"type": "object", "properties": {}}


def _upper_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_upper_types(v) for v in schema]
    if not isinstance(schema, dict):
        return schema
    # If the value of "type" is a text, "type" is the keyword of JSON Schema. A property with the
    # name "type" has a schema as its value.
    return {k: v.upper() if k == "type" and isinstance(v, str) else _upper_types(v)
            for k, v in schema.items()}


def to_gemini_tool(bundle: Mapping[str, Any]) -> Dict[str, Any]:
    return {"name": tool_name(bundle), "description": _description(bundle),
            "parameters": _upper_types(_parameters(bundle))}


def to_claude_tool(bundle: Mapping[str, Any]) -> Dict[str, Any]:
    return {"name": tool_name(bundle), "description": _description(bundle),
            "input_schema": _parameters(bundle)}


def to_openai_tool(bundle: Mapping[str, Any]) -> Dict[str, Any]:
    return {"type": "function",
            "function": {"name": tool_name(bundle), "description": _description(bundle),
                         "parameters": _parameters(bundle)}}


def to_deepseek_tool(bundle: Mapping[str, Any]) -> Dict[str, Any]:
    return to_openai_tool(bundle)


def to_ollama_prompt(bundle: Mapping[str, Any]) -> str:
    """Returns a text that describes the tool, for models without tools."""
    schema = _parameters(bundle)
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    properties = schema.get("properties")
    lines = [f"## Tool: {tool_name(bundle)}", "", _description(bundle), "", "### Parameters", ""]
    for name, p in (properties if isinstance(properties, dict) else {}).items():
        p = p if isinstance(p, dict) else {}
        must = "required" if name in needed else "optional"
        lines.append(f"- `{name}` ({p.get('type', 'any')}, {must}): {p.get('description', '')}")
    instructions = str(bundle.get("instructions") or "").strip()
    if instructions:
        lines += ["", "### Instructions", "", instructions]
    return "\n".join(lines) + "\n"
