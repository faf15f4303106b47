"""The ways to run a skill, one file for each. All have the interface of Worker.

    process    in the sandbox of this machine (the default)
    container  the same, with the files of an image
    wasm       Python in WebAssembly, itself in the sandbox
    trust      no sandbox at all

A tier says which command is started (launch) and how it ended (ended). The command reads
requests from standard input and writes answers to standard output, as lines of JSON (see
_worker.py). Its standard error may contain anything.
"""
from __future__ import annotations

import importlib
from typing import Dict, Tuple, Type

from .base import End, Launch, Options, Worker

__all__ = ["End", "Launch", "Options", "TIERS", "Worker", "worker_class"]

# Name -> (module, class). A module is imported when it is first used.
TIERS: Dict[str, Tuple[str, str]] = {
    "process": ("process", "PlannedWorker"),
    "trust": ("trust", "TrustWorker"),
    "wasm": ("wasm", "WasmWorker"),
    "container": ("container", "ContainerWorker"),
}


def worker_class(tier: str) -> Type[Worker]:
    if tier not in TIERS:
        raise ValueError(f"no tier '{tier}'; there are: {', '.join(TIERS)}")
    module, name = TIERS[tier]
    found: Type[Worker] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return found
