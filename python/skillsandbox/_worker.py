"""Runs inside the sandbox: loads a Skillware skill and answers calls to it.

    _worker.py --once DIR [PARAMS]   PARAMS, or standard input, is one JSON object. Writes one
                                     line of JSON: {"ok":true,"result":...} or
                                     {"ok":false,"error":{"type","message","traceback"}}
    _worker.py --serve DIR           lines of JSON until standard input ends: see serve()

This is one file that needs only the standard library, because it is the only file shown in the
sandbox. It protects nothing, as the skill runs in the same process. It separates the skill's
output from the answers, and gives the skill its usual environment: its directory is sys.path[0],
and it can write to a private copy of its data/.
"""
import atexit
import importlib.util
import json
import os
import re
import sys

# Modules that not every skill needs are imported where they are used, because each import makes
# the start slower.

PROTOCOL = 1
CHUNK = 512 * 1024              # bytes of a file in one line
MAX_DATA = 64 * 1024 * 1024     # most bytes of data/ that are copied
MAX_TEXT = 16 * 1024            # most bytes of a message, and of a traceback
MODULE = "skill_module"         # the name that Skillware's own loader uses
MODES = ("--once", "--serve")


class SkillwareParamValidationError(ValueError):
    """The parameters do not match the manifest."""


# ---- a replacement for skillware, if it is not installed ----

def _is(kind, value):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"object": isinstance(value, dict), "array": isinstance(value, list),
            "string": isinstance(value, str), "boolean": isinstance(value, bool),
            "null": value is None, "number": number,
            "integer": number and float(value).is_integer()}.get(kind, True)


# Keyword of JSON Schema -> (types of the values to which it applies, check).
CHECKS = {
    "enum": (object, lambda v, a: v in a),
    "const": (object, lambda v, a: v == a),
    "minimum": ((int, float), lambda v, a: v >= a),
    "maximum": ((int, float), lambda v, a: v <= a),
    "exclusiveMinimum": ((int, float), lambda v, a: v > a),
    "exclusiveMaximum": ((int, float), lambda v, a: v < a),
    "minLength": (str, lambda v, a: len(v) >= a),
    "maxLength": (str, lambda v, a: len(v) <= a),
    "pattern": (str, lambda v, a: re.search(a, v) is not None),
    "minItems": (list, lambda v, a: len(v) >= a),
    "maxItems": (list, lambda v, a: len(v) <= a),
}


def check_schema(value, schema, where="params"):
    """Checks the subset of JSON Schema that manifests use. Raises an error with the place."""
    if not isinstance(schema, dict):
        return
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(_is(k, value) for k in kinds):
        raise SkillwareParamValidationError(f"{where}: is not of type {' or '.join(kinds)}")
    for keyword, (about, holds) in CHECKS.items():
        if keyword in schema and isinstance(value, about) and not holds(value, schema[keyword]):
            raise SkillwareParamValidationError(f"{where}: {keyword} {schema[keyword]!r} "
                                                "does not hold")
    if isinstance(value, dict):
        _check_object(value, schema, where)
    if isinstance(value, list):
        for i, v in enumerate(value):
            check_schema(v, schema.get("items"), f"{where}[{i}]")


def _check_object(value, schema, where):
    known = schema.get("properties") or {}
    for name in schema.get("required") or []:
        if name not in value:
            raise SkillwareParamValidationError(f"{where}: '{name}' is missing")
    for name, v in value.items():
        if name in known:
            check_schema(v, known[name], f"{where}.{name}")
        elif schema.get("additionalProperties") is False:
            raise SkillwareParamValidationError(f"{where}: '{name}' is not known")
        else:
            check_schema(v, schema.get("additionalProperties"), f"{where}.{name}")


def validate(params, manifest):
    schema = (manifest or {}).get("parameters")
    if not isinstance(schema, dict):
        return
    try:
        import jsonschema
    except ImportError:
        check_schema(params, schema)
        return
    try:
        jsonschema.validate(params, schema)
    except jsonschema.ValidationError as e:
        raise SkillwareParamValidationError(e.message) from None


class BaseSkill:
    """The same interface as skillware.core.base_skill."""

    _declared = None    # the manifest, once it has been read
    _file = ""          # path of the manifest

    def __init__(self, config=None):
        self.config = dict(config or {})

    @property
    def manifest(self):
        if BaseSkill._declared is None:
            BaseSkill._declared = read_manifest(BaseSkill._file)
        return dict(BaseSkill._declared)

    def execute(self, params):
        if type(self).aexecute is BaseSkill.aexecute:
            raise NotImplementedError("a skill has execute() or aexecute()")
        import asyncio
        return asyncio.run(self.aexecute(params))

    async def aexecute(self, params):
        if type(self).execute is BaseSkill.execute:
            raise NotImplementedError("a skill has execute() or aexecute()")
        import asyncio
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self.execute, params)

    def validate_params(self, params):
        validate(params, self.manifest)

    def credential(self, key):
        value = (getattr(self, "config", None) or {}).get(key)
        return value if value is not None else os.environ.get(key)


def read_manifest(path):
    """Returns the manifest; {} without a YAML module, or if the file is not valid."""
    try:
        import yaml
        with open(path, encoding="utf-8") as f:
            found = yaml.safe_load(f)
    except Exception:  # pylint: disable=broad-except
        return {}
    return found if isinstance(found, dict) else {}


def base_skill():
    """Returns the real BaseSkill, or installs the replacement."""
    try:
        from skillware.core.base_skill import BaseSkill as real
        return real
    except ImportError:
        pass
    for name in ("skillware", "skillware.core", "skillware.core.base_skill"):
        module = type(sys)(name)
        module.BaseSkill = BaseSkill
        module.SkillwareParamValidationError = SkillwareParamValidationError
        module.__path__ = []
        sys.modules[name] = module
    sys.modules["skillware"].core = sys.modules["skillware.core"]
    sys.modules["skillware.core"].base_skill = sys.modules["skillware.core.base_skill"]
    return BaseSkill


# ---- the skill ----

def tree_size(top):
    return sum(os.lstat(os.path.join(d, f)).st_size
               for d, _, files in os.walk(top) for f in files)


def at_home(skill_dir):
    """Returns the directory from which the skill runs. Usually this is `skill_dir`. If the skill
    has a data/ that it cannot write, it is a new directory with copies of data/ and of the files
    beside data/, and with symlinks to the other entries."""
    data = os.path.join(skill_dir, "data")
    if not os.path.isdir(data) or os.access(data, os.W_OK):
        return skill_dir
    import shutil
    import tempfile
    if tree_size(data) > MAX_DATA:
        raise OSError(f"data/ of the skill has more than {MAX_DATA} bytes, too many to copy")
    place = tempfile.mkdtemp(prefix="skill-")
    for entry in os.scandir(skill_dir):
        target = os.path.join(place, entry.name)
        if entry.name == "data":
            shutil.copytree(entry.path, target)
        elif entry.is_file() and entry.stat().st_size <= MAX_DATA:
            shutil.copyfile(entry.path, target)
        else:
            os.symlink(entry.path, target)
    for d, _, files in os.walk(os.path.join(place, "data")):
        os.chmod(d, 0o700)
        for f in files:
            os.chmod(os.path.join(d, f), 0o600)
    return place


def load_module(skill_dir):
    path = os.path.join(skill_dir, "skill.py")
    sys.path[0] = skill_dir
    spec = importlib.util.spec_from_file_location(MODULE, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def find_class(module, base, name):
    """Returns the class `name`; without a name, the only subclass of BaseSkill that no other class
    extends."""
    own = [c for c in vars(module).values()
           if isinstance(c, type) and c.__module__ == MODULE]
    if name is not None:
        found = [c for c in own if c.__name__ == name]
    else:
        found = [c for c in own if issubclass(c, base)] or \
            [c for c in own if hasattr(c, "execute") or hasattr(c, "aexecute")]
        found = [c for c in found if not any(c is not d and issubclass(d, c) for d in found)]
    if len(found) != 1:
        names = ", ".join(c.__name__ for c in found) or "none"
        raise ImportError(f"skill.py has to have one class that extends BaseSkill; found {names}")
    return found[0]


class Skill:
    """One instance of the skill, and the calls to it."""

    def __init__(self, skill_dir, config=None, manifest=None, name=None):
        base = base_skill()
        BaseSkill._declared = manifest
        BaseSkill._file = os.path.join(skill_dir, "manifest.yaml")
        skill_dir = at_home(skill_dir)
        self.loop = None    # the event loop of all calls; created when the first call needs it
        self.declared = manifest
        cls = find_class(load_module(skill_dir), base, name)
        self.name = cls.__name__
        self.it = self._construct(cls, config or {})

    @staticmethod
    def _construct(cls, config):
        """Passes the configuration, unless __init__() takes no argument."""
        code = getattr(cls.__init__, "__code__", None)
        if cls.__init__ is object.__init__:
            return cls()
        takes = code is None or code.co_argcount > 1 or code.co_flags & 0x04
        return cls(config) if takes else cls()

    def _finish(self, result):
        if not hasattr(result, "__await__"):
            return result
        if self.loop is None:
            import asyncio
            self.loop = asyncio.new_event_loop()
        return self.loop.run_until_complete(result)

    def execute(self, params):
        return self._finish(self.it.execute(params))

    def aexecute(self, params):
        run = getattr(self.it, "aexecute", None) or self.it.execute
        return self._finish(run(params))

    def manifest(self, _params):
        it = getattr(self.it, "manifest", self.declared)
        return it() if callable(it) else it

    def validate_params(self, params):
        if hasattr(self.it, "validate_params"):
            return self._finish(self.it.validate_params(params))
        return validate(params, self.declared or read_manifest(BaseSkill._file))


CALLS = {"execute": Skill.execute, "aexecute": Skill.aexecute, "manifest": Skill.manifest,
         "validate_params": Skill.validate_params}


# ---- files of a call ----

def each_text(value, change):
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {k: each_text(v, change) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [each_text(v, change) for v in value]
    return value


class Files:
    """Copies of the caller's files in a private directory. If a parameter is the name that the
    caller gave to a file, it is replaced by the path of the copy. In the result, such a path is
    replaced by the name again."""

    def __init__(self, listed, inp):
        import base64
        import tempfile
        self.listed = listed
        self.place = tempfile.mkdtemp(prefix="call-")
        self.inside = {}
        for i, f in enumerate(listed):
            directory = os.path.join(self.place, str(i))
            os.mkdir(directory)
            path = os.path.join(directory, os.path.basename(f["path"]))
            self.inside[f["path"]] = path
            if f["parts"] is not None:
                with open(path, "wb") as out:
                    for _ in range(f["parts"]):
                        out.write(base64.b64decode(json.loads(inp.readline())["data"]))

    def go_in(self, params):
        return each_text(params, lambda s: self.inside.get(s, s))

    def come_out(self, value):
        def back(text):
            for host, inside in self.inside.items():
                text = text.replace(inside, host)
            return text
        return each_text(value, back)

    def results(self):
        """Returns [number, path, parts] for each writable file that exists."""
        found = []
        for i, f in enumerate(self.listed):
            path = self.inside[f["path"]]
            if f["mode"] != "w" or (f["parts"] is None and not os.path.lexists(path)):
                continue
            if os.path.islink(path) or not os.path.isfile(path):
                raise ValueError(f"{f['path']}: the skill left no regular file there")
            found.append((i, path, (os.path.getsize(path) + CHUNK - 1) // CHUNK))
        return found

    def done(self):
        import shutil
        shutil.rmtree(self.place, ignore_errors=True)


# ---- the protocol ----

def error_of(e):
    """Returns the description of an exception for the host."""
    import traceback
    tb = e.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    message = said(lambda: str(e))
    text = said(lambda: "".join(traceback.format_exception(type(e), e, tb)))
    return {"type": type(e).__name__, "message": message[:MAX_TEXT],
            "traceback": text[-MAX_TEXT:], "system": of_system(e)}


def said(text):
    """Returns the text of an exception, or "" if that fails. Lone surrogates, which are not valid
    JSON, are escaped."""
    try:
        return text().encode("utf-8", "backslashreplace").decode("utf-8")
    except Exception:  # pylint: disable=broad-except
        return ""


def of_system(e):
    """True if the exception is or was caused by an OSError."""
    seen = 0
    while e is not None and seen < 16 and not isinstance(e, OSError):
        e, seen = e.__cause__ or e.__context__, seen + 1
    return isinstance(e, OSError)


def answer_text(answer):
    """Returns the answer as JSON, and True. An answer that is not JSON becomes an error of the
    skill, and False is returned."""
    try:
        text = json.dumps(answer, allow_nan=False, separators=(",", ":"))
        if "\\ud" in text:
            json.dumps(answer, ensure_ascii=False).encode("utf-8")   # fails for a lone surrogate
        return text, True
    except (TypeError, ValueError, RecursionError) as e:
        bad = {"type": "TypeError", "message": f"the result is not JSON: {e}"[:MAX_TEXT],
               "traceback": ""}
        return json.dumps({**{k: answer[k] for k in ("id",) if k in answer},
                           "ok": False, "error": bad}), False


def attempt(call, *args):
    try:
        return {"ok": True, "result": call(*args)}
    except BaseException as e:  # pylint: disable=broad-except
        return {"ok": False, "error": error_of(e)}


def take_streams():
    """Returns the streams of the protocol, which were standard input and output. From now on,
    what the skill and its children print goes to standard error, and their standard input is
    empty."""
    inp, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1,
                      closefd=False)
    return inp, out


def say(out, answer):
    """Writes the answer as one line. Returns False if the answer is not JSON: then an error was
    written instead."""
    text, said = answer_text(answer)
    out.write(text.encode("ascii") + b"\n")
    out.flush()
    return said


def tell(out, answer, files):
    import base64
    written = attempt(files.results) if answer["ok"] else {"ok": True, "result": []}
    if not written["ok"]:
        answer = {"id": answer["id"], **written}
    written = written.get("result", [])
    answer = {**answer, **{k: files.come_out(answer[k]) for k in ("result", "error")
                           if k in answer}}
    if written:
        answer["files"] = [{"n": i, "parts": parts} for i, _, parts in written]
    if not say(out, answer):
        return
    for _, path, parts in written:
        with open(path, "rb") as f:
            for _ in range(parts):
                say(out, {"data": base64.b64encode(f.read(CHUNK)).decode("ascii")})


def begin(skill_dir, params):
    skill = Skill(skill_dir, with_credentials(params), params.get("manifest"),
                  params.get("class"))
    return skill, {"class": skill.name,
                   "env": [n for n in params.get("env") or [] if n in os.environ]}


def with_credentials(params):
    """Puts each credential both into the configuration and into the environment."""
    config = dict(params.get("config") or {})
    for name in params.get("env") or []:
        if name in config and isinstance(config[name], str):
            os.environ[name] = config[name]
        elif name in os.environ:
            config[name] = os.environ[name]
    return config


def answer_call(out, inp, request, call, skill):
    if not request.get("files"):
        say(out, {"id": request["id"], **attempt(call, skill, request.get("params"))})
        return
    files = Files(request["files"], inp)
    answer = attempt(call, skill, files.go_in(request.get("params")))
    tell(out, {"id": request["id"], **answer}, files)
    files.done()


def serve(skill_dir, inp, out):
    """Writes {"protocol":1}. Then answers requests one after the other; each has
    {"id","call","params"} and may have "files". The first call is "init". An answer has the id
    of its request, and the members that --once writes. Files follow in lines of {"data"}."""
    skill = None
    say(out, {"protocol": PROTOCOL})
    for line in inp:
        request = json.loads(line)
        call, params = request["call"], request.get("params")
        if call == "init":
            answer = attempt(begin, skill_dir, params or {})
            if answer["ok"]:
                skill, answer["result"] = answer["result"]
            say(out, {"id": request["id"], **answer})
        elif call not in CALLS or skill is None:
            say(out, {"id": request["id"], "ok": False,
                      "error": {"type": "LookupError", "message": f"no call '{call}'",
                                "traceback": ""}})
        else:
            answer_call(out, inp, request, CALLS[call], skill)


def once(skill_dir, inp, out, words):
    def run():
        try:
            params = json.loads(words[0] if words else inp.read() or b"{}")
        except (ValueError, RecursionError) as e:
            raise SkillwareParamValidationError(f"the parameters are not JSON: {e}") from None
        if not isinstance(params, dict):
            raise SkillwareParamValidationError("the parameters are not an object")
        return Skill(skill_dir).execute(params)
    answer = attempt(run)
    return 0 if say(out, answer) and answer["ok"] else 1


def main(argv):
    modes = [a for a in argv if a in MODES]
    # --tag: see tiers/process.py
    words = [a for a in argv if a not in MODES and not a.startswith("--tag=")]
    if not modes or not words:
        print("usage: _worker.py --once DIR [PARAMS] | --serve DIR", file=sys.stderr)
        return 2
    inp, out = take_streams()
    skill_dir = os.path.abspath(words[0])
    # If there are several modes, the last one counts. So a caller can append --serve to a command
    # with --once, and it then answers many calls.
    if modes[-1] == "--serve":
        serve(skill_dir, inp, out)
        return 0
    return once(skill_dir, inp, out, words[1:])


if __name__ == "__main__":
    status = main(sys.argv[1:])
    # os._exit() ends the worker even if threads of the skill are still running.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
