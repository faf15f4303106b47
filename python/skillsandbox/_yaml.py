"""Reads the YAML that manifests use, without its surprising features.

Supported are maps, lists, scalars (plain, quoted, | and >), flow [a, b] and {a: b}, comments,
and one document. Anchors, aliases, tags, merge keys and duplicate keys are errors with their
line: no manifest needs them, and each has been used to expand a small file to a large one, or to
disguise one value as another. Scalars have the same meaning as in PyYAML's safe loader, except
that dates stay text.
"""
from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple

MAX_DEPTH = 50

_NULL = {"", "~", "null", "Null", "NULL"}
_TRUE = {w for t in ("true", "yes", "on") for w in (t, t.capitalize(), t.upper())}
_FALSE = {w for t in ("false", "no", "off") for w in (t, t.capitalize(), t.upper())}
_INT = re.compile(r"[-+]?(0|[1-9][0-9_]{0,200})\Z")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]{1,9})?\Z")
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f",
            "r": "\r", "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85",
            "_": "\xa0", "L": "\u2028", "P": "\u2029"}
_HEX = {"x": 2, "u": 4, "U": 8}
_KEY = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#\[\]{},&*!|>'"%@`?:-][^#]{0,255}?|"""
                  r"""[-?:][^\s#][^#]{0,255}?)\s*:(?=\s|$)""")


class YamlError(ValueError):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"{line}: {text}")


def scalar(text: str) -> Any:
    """Returns the value of a plain scalar."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.match(text):
        return int(text.replace("_", ""))
    if _FLOAT.match(text):
        return float(text.replace("_", ""))
    return text


class _Line:
    def __init__(self, number: int, raw: str) -> None:
        self.number, self.raw = number, raw
        self.indent = len(raw) - len(raw.lstrip(" "))
        self.text = raw.strip()

    @property
    def blank(self) -> bool:
        return not self.text or self.text.startswith("#")


class _Reader:
    def __init__(self, text: str) -> None:
        raw = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.lines = [_Line(i + 1, line) for i, line in enumerate(raw)]
        self.at = 0

    def fail(self, text: str, line: Optional[_Line] = None) -> YamlError:
        line = line or (self.lines[min(self.at, len(self.lines) - 1)])
        return YamlError(line.number, text)

    def peek(self) -> Optional[_Line]:
        """Returns the next line that is not blank."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.blank:
                if "\t" in line.raw[:len(line.raw) - len(line.raw.lstrip())]:
                    raise self.fail("a tab in the indentation", line)
                return line
            self.at += 1
        return None

    def document(self) -> Any:
        line = self.peek()
        while line is not None and (line.text == "---" or line.text.startswith("%")):
            if line.text != "---":
                raise self.fail("directives are not supported", line)
            self.at += 1
            line = self.peek()
            break
        value = self.node(-1, 0) if line is not None else None
        line = self.peek()
        if line is not None and line.text == "...":
            self.at += 1
            line = self.peek()
        if line is not None:
            raise self.fail("a second document, or a line that fits nowhere", line)
        return value

    # ---- blocks ----

    def node(self, parent: int, depth: int) -> Any:
        """Reads the block that is indented more than `parent`."""
        line = self.peek()
        if line is None or line.indent <= parent or line.text in ("---", "..."):
            return None
        if depth > MAX_DEPTH:
            raise self.fail("nested too deeply", line)
        if _is_item(line.text):
            return self.sequence(line.indent, depth)
        if _KEY.match(line.text):
            return self.mapping(line.indent, depth)
        self.at += 1
        return self.value(line, line.text, parent, depth)

    def sequence(self, indent: int, depth: int) -> List[Any]:
        items: List[Any] = []
        while True:
            line = self.peek()
            if line is None or line.indent < indent or not _is_item(line.text):
                return items
            if line.indent > indent:
                raise self.fail("indented unlike the items before", line)
            rest = line.text[1:].lstrip()
            if not rest or rest.startswith("#"):
                self.at += 1
                items.append(self.node(indent, depth + 1))
            elif _is_item(rest) or _KEY.match(rest):
                # The text after the dash begins a new block at its own column.
                column = line.indent + len(line.text) - len(rest)
                line.raw = " " * column + rest
                line.indent, line.text = column, rest
                items.append(self.node(indent, depth + 1))
            else:
                self.at += 1
                items.append(self.value(line, rest, indent, depth + 1))

    def mapping(self, indent: int, depth: int) -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        while True:
            line = self.peek()
            if line is None or line.indent < indent or line.text in ("---", "..."):
                return found
            match = _KEY.match(line.text)
            if line.indent > indent or match is None:
                if line.indent == indent and _is_item(line.text):
                    raise self.fail("an item where a key is expected", line)
                raise self.fail("not 'key: value', or indented unlike the keys before", line)
            key = self.key(match.group(1), line)
            if key in found:
                raise self.fail(f"'{key}' is there twice", line)
            rest = line.text[match.end():].strip()
            self.at += 1
            found[key] = self.entry(line, rest, indent, depth)

    def entry(self, line: _Line, rest: str, indent: int, depth: int) -> Any:
        if rest and not rest.startswith("#"):
            return self.value(line, rest, indent, depth + 1)
        following = self.peek()
        # The items of a list may have the same column as its key.
        if following is not None and following.indent == indent and _is_item(following.text):
            return self.sequence(indent, depth + 1)
        return self.node(indent, depth + 1)

    def key(self, text: str, line: _Line) -> str:
        if text[0] in "\"'":
            value, _ = self.quoted(text, 0, line)
            return value
        if text == "<<":
            raise self.fail("merge keys are not supported", line)
        value = scalar(text)
        return text if not isinstance(value, str) else value

    # ---- values that begin on the line of their key ----

    def value(self, line: _Line, text: str, indent: int, depth: int) -> Any:
        first = text[0]
        if first in "&*!":
            raise self.fail("anchors, aliases and tags are not supported", line)
        if first in "%@`]},":
            raise self.fail(f"a value cannot begin with '{first}'", line)
        if first in "|>":
            return self.block(line, text, indent)
        if first in "\"'":
            return self.rest_quoted(line, text, indent)
        if first in "[{":
            return self.rest_flow(line, text, indent, depth)
        return self.plain(line, text, indent)

    def plain(self, line: _Line, text: str, indent: int) -> Any:
        cut = _uncomment(text)
        self.no_map(cut, line)
        words, ended, breaks = [cut], cut != text.rstrip(), 0
        while self.at < len(self.lines) and not ended:
            following = self.lines[self.at]
            if not following.text:
                breaks += 1
                self.at += 1
                continue
            if following.indent <= indent or following.text.startswith("#"):
                break
            cut = _uncomment(following.text)
            self.no_map(cut, following)
            ended = cut != following.text
            words += ["\n" * breaks if breaks else " ", cut]
            breaks = 0
            self.at += 1
        return scalar("".join(words))

    def no_map(self, text: str, line: _Line) -> None:
        if re.search(r":(\s|$)", text):
            raise self.fail("': ' inside of a value: put the value in quotes", line)

    def gather(self, text: str, indent: int, line: _Line) -> str:
        """Adds lines to `text` until the quote or bracket in it is closed. Each character is
        examined only once."""
        span = _Span()
        lines = [text]
        while not span.ends_in(lines[-1] + "\n"):
            following = self.lines[self.at] if self.at < len(self.lines) else None
            if following is None or (following.text and following.indent <= indent
                                     and following.text[0] not in "]}"):
                raise self.fail("it has no end", line)
            lines.append(following.text)
            self.at += 1
        return "\n".join(lines)

    def nothing_more(self, rest: str, line: _Line) -> None:
        if rest.strip() and not re.match(r"\s+#", rest):
            raise self.fail("something follows the value", line)

    def rest_quoted(self, line: _Line, text: str, indent: int) -> str:
        text = self.gather(text, indent, line)
        value, end = self.quoted(text, 0, line)
        self.nothing_more(text[end:], line)
        return value

    def rest_flow(self, line: _Line, text: str, indent: int, depth: int) -> Any:
        text = self.gather(text, indent, line)
        value, end = self.flow(text, 0, line, depth)
        self.nothing_more(text[end:], line)
        return value

    def quoted(self, text: str, at: int, line: _Line) -> Tuple[str, int]:
        """Reads a quoted scalar that begins at `at`. Returns (value, place of its end)."""
        quote, out = text[at], []
        at += 1
        while at < len(text):
            c = text[at]
            if c == quote == "'" and text[at + 1:at + 2] == "'":
                out.append("'")
                at += 2
            elif c == quote:
                return "".join(out), at + 1
            elif c == "\\" and quote == '"':
                piece, at = self.escape(text, at + 1, line)
                out.append(piece)
            elif c == "\n":
                while out and out[-1] in (" ", "\t"):
                    out.pop()
                begun = at
                while text[at:at + 1] == "\n":
                    at += 1
                out.append("\n" * (at - begun - 1) or " ")
            else:
                out.append(c)
                at += 1
        raise self.fail("it has no end", line)

    def escape(self, text: str, at: int, line: _Line) -> Tuple[str, int]:
        c = text[at:at + 1]
        if c == "\n":
            return "", at + 1
        if c in _ESCAPES:
            return _ESCAPES[c], at + 1
        digits = text[at + 1:at + 1 + _HEX.get(c, 0)]
        if c not in _HEX or not re.fullmatch(f"[0-9A-Fa-f]{{{_HEX[c]}}}", digits):
            raise self.fail(f"'\\{c}' is no escape", line)
        number = int(digits, 16)
        if number > 0x10ffff or 0xd800 <= number < 0xe000:
            raise self.fail(f"'\\{c}{digits}' is no character", line)
        return chr(number), at + 1 + len(digits)

    def block(self, line: _Line, head: str, indent: int) -> str:
        """Reads a block of text: | or >, with - or +, and an indentation."""
        match = re.match(r"([|>])(?:([-+])([1-9])?|([1-9])([-+])?)?\s*(?:#.*)?$", head)
        if match is None:
            raise self.fail("not the head of a block of text", line)
        style, chomp = match.group(1), match.group(2) or match.group(5) or ""
        given = match.group(3) or match.group(4)
        lines: List[str] = []
        depth = max(indent, 0) + int(given) if given else -1
        while self.at < len(self.lines):
            raw = self.lines[self.at]
            if raw.raw.strip(" ") and depth < 0:
                depth = raw.indent
                if depth <= indent:
                    break
            if raw.raw.strip(" ") and raw.indent < depth:
                break
            lines.append(raw.raw[depth:] if depth >= 0 else "")
            self.at += 1
        if self.at >= len(self.lines) and lines and not lines[-1]:
            lines.pop()     # this is the end of the last line, not another line
        return _chomped(_folded(lines) if style == ">" else lines, chomp)

    # ---- flow ----

    def flow(self, text: str, at: int, line: _Line, depth: int) -> Tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise self.fail("nested too deeply", line)
        at = _skip(text, at)
        if text[at] == "[":
            return self.flow_list(text, at + 1, line, depth)
        if text[at] == "{":
            return self.flow_map(text, at + 1, line, depth)
        if text[at] in "\"'":
            return self.quoted(text, at, line)
        if text[at] in "&*!|>%@`":
            raise self.fail(f"a value cannot begin with '{text[at]}' here", line)
        match = re.compile(r"(?:[^,\[\]{}\n#:]|(?<!\s)#|:(?![\s,\[\]{}]|$))*").match(text, at)
        assert match is not None
        return scalar(" ".join(match.group().split())), match.end()

    def flow_list(self, text: str, at: int, line: _Line, depth: int) -> Tuple[List[Any], int]:
        items: List[Any] = []
        while True:
            at = _skip(text, at)
            if text[at] == "]":
                return items, at + 1
            value, at = self.flow(text, at, line, depth + 1)
            items.append(value)
            at = self.comma(text, at, "]", line)

    def flow_map(self, text: str, at: int, line: _Line, depth: int) -> Tuple[Dict[str, Any], int]:
        found: Dict[str, Any] = {}
        while True:
            at = _skip(text, at)
            if text[at] == "}":
                return found, at + 1
            begun = at
            value, at = self.flow(text, at, line, depth + 1)
            key = value if isinstance(value, str) else text[begun:at].strip()
            at = _skip(text, at)
            if key in found or isinstance(value, (list, dict)):
                raise self.fail(f"'{key}' is there twice, or is no key", line)
            found[key] = None
            if text[at] == ":":
                at = _skip(text, at + 1)
                if text[at] not in ",}":
                    found[key], at = self.flow(text, at, line, depth + 1)
            at = self.comma(text, at, "}", line)

    def comma(self, text: str, at: int, end: str, line: _Line) -> int:
        at = _skip(text, at)
        if text[at] == ",":
            return at + 1
        if text[at] != end:
            raise self.fail(f"',' or '{end}' is missing", line)
        return at


class _Span:
    """Finds the place where opened quotes and brackets are closed."""

    def __init__(self) -> None:
        self.depth = 0
        self.quote = ""
        self.before = " "

    def ends_in(self, text: str) -> bool:
        at = 0
        while at < len(text):
            c = text[at]
            if self.quote:
                if c == "\\" and self.quote == '"':
                    at += 1
                elif c == self.quote == "'" and text[at + 1:at + 2] == "'":
                    at += 1
                elif c == self.quote:
                    self.quote = ""
                    if not self.depth:
                        return True
            elif c in "\"'" and (self.before.isspace() or self.before in "[{,:"):
                self.quote = c
            elif c == "#" and self.before.isspace():
                return False
            elif c in "[{":
                self.depth += 1
            elif c in "]}":
                self.depth -= 1
                if self.depth <= 0:
                    return True
            self.before = c
            at += 1
        return False


def _skip(text: str, at: int) -> int:
    """Skips white space and comments. Returns the new place."""
    while at < len(text):
        if text[at] == "#" and (at == 0 or text[at - 1].isspace()):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text[at].isspace():
            at += 1
        else:
            return at
    raise YamlError(0, "it has no end")


def _is_item(text: str) -> bool:
    return text == "-" or text.startswith("- ")


def _uncomment(text: str) -> str:
    match = re.search(r"\s#", text)
    return (text[:match.start()] if match else text).rstrip()


def _folded(lines: List[str]) -> List[str]:
    """Joins the lines of each paragraph in a > block."""
    out: List[str] = []
    joined = False      # True: the next plain line continues the last one
    empty = 0
    for line in lines:
        if not line:
            empty += 1
            continue
        spaced = line[0] in " \t"
        if joined and not spaced and not empty:
            out[-1] += " " + line
        elif joined and not spaced:
            out += [""] * (empty - 1) + [line]
        else:
            out += [""] * empty + [line]
        joined, empty = not spaced, 0
    return out + [""] * empty


def _chomped(lines: List[str], chomp: str) -> str:
    text = "\n".join(lines)
    if chomp == "+":
        return text + "\n" if lines else ""
    text = text.rstrip("\n")
    return text if chomp == "-" or not text else text + "\n"


def load(text: str) -> Any:
    """Parses a text to dicts, lists and scalars. Raises YamlError with the line."""
    if "\0" in text:
        raise YamlError(1, "a NUL byte")
    return _Reader(text).document()
