"""Where a skill runs: one file for each way, all with the interface of Worker.

    process    in the sandbox of this machine (the default)
    container  the same, with the files of an image
    wasm       Python in WebAssembly, itself in the sandbox
    trust      no sandbox at all

A tier says what is started (launch) and what is known of its end (ended). What it
starts reads requests from standard input and writes answers to standard output, lines
of JSON as in _worker.py, and anything to standard error.
"""
from __future__ import annotations

import importlib
from typing import Dict, Tuple, Type

from .base import End, Launch, Options, Worker

__all__ = ["End", "Launch", "Options", "TIERS", "Worker", "worker_class"]

# Name -> (module, class). Imported on use.
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
