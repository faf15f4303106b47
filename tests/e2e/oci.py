"""Makes root file systems and OCI image layouts from Debian's files, valid and invalid ones."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import subprocess
import tarfile

BUSYBOX = "/bin/busybox"
APPLETS = "sh ls cat id stat touch echo find head".split()
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
KINDS = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE,
         "hard": tarfile.LNKTYPE, "device": tarfile.CHRTYPE, "fifo": tarfile.FIFOTYPE}


def member(name, kind="file", value=b"", mode=0o755):
    return (name, kind, value, mode)


def layer(*members, packed=True):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, value, mode in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = KINDS[kind], mode
            if kind == "file":
                info.size = len(value)
                t.addfile(info, io.BytesIO(value))
                continue
            if kind == "device":
                info.devmajor, info.devminor = 1, 3
            info.linkname = value if kind in ("link", "hard") else ""
            t.addfile(info)
    return gzip.compress(out.getvalue(), 1) if packed else out.getvalue()


def busybox_members():
    data = pathlib.Path(BUSYBOX).read_bytes()
    return [member("bin/busybox", value=data, mode=0o4755),
            *(member(f"bin/{a}", "link", "busybox") for a in APPLETS)]


class Layout:
    """An OCI image layout in a new directory."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        (self.dir / "blobs/sha256").mkdir(parents=True)
        self.manifests = []

    def blob(self, data):
        digest = hashlib.sha256(data).hexdigest()
        path = self.dir / "blobs/sha256" / digest
        path.write_bytes(data)
        return {"digest": "sha256:" + digest, "size": len(data)}

    def image(self, layers, config=None, ref="latest", **platform_of):
        found = [self.blob(data) for data in layers]
        c = self.blob(json.dumps({"architecture": ARCHITECTURE, "os": "linux",
                                  "config": config or {}}).encode())
        m = self.blob(json.dumps({"schemaVersion": 2, "config": c, "layers": found}).encode())
        m["annotations"] = {"org.opencontainers.image.ref.name": ref}
        if platform_of:
            m["platform"] = platform_of
        self.manifests.append(m)
        return self.index()

    def index(self):
        (self.dir / "index.json").write_text(
            json.dumps({"schemaVersion": 2, "manifests": self.manifests}), encoding="utf-8")
        return self


def busybox_root(directory):
    root = pathlib.Path(directory)
    (root / "bin").mkdir(parents=True)
    (root / "etc").mkdir()
    shutil.copy(BUSYBOX, root / "bin/busybox")
    for a in APPLETS:
        (root / "bin" / a).symlink_to("busybox")
    return root


def _copy(root, path):
    target = pathlib.Path(str(root) + path)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(path), target)


def python_root(directory, python="/usr/bin/python3"):
    """Makes a root file system that contains only Debian's Python and the libraries that it
    loads."""
    root = pathlib.Path(directory)
    lib = subprocess.run([python, "-c", "import os; print(os.path.dirname(os.__file__))"],
                         capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    _copy(root, python)
    shutil.copytree(lib, str(root) + lib, ignore=shutil.ignore_patterns(
        "test", "config-*", "*-packages", "ensurepip", "idlelib", "tkinter",
        "lib2to3", "sitecustomize.py", "pydoc_data", "unittest", "distutils"))
    native = [str(p) for p in pathlib.Path(lib, "lib-dynload").glob("*.so")]
    said = subprocess.run(["ldd", os.path.realpath(python), *native], capture_output=True,
                          text=True, check=True, timeout=30).stdout
    for word in said.split():
        if word.startswith("/") and not word.endswith(":"):
            _copy(root, word)
    return root
