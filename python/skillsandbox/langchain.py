"""A LangChain callback handler that applies a Session to an agent. If the session does not answer,
the agent stops.

    handler = SessionCallbackHandler(session)
    agent.invoke(question, config={"callbacks": [handler]})

Models and tools are checked before they start, and settled at their end with the tokens that
they used. A call that failed is settled with the reserved amount, because it may have cost that
much. Because of raise_error, LangChain passes on the exceptions of this handler instead of logging
them: if the session is killed or does not answer, the agent stops.

LangChain is not required. If it is installed, this class is one of its handlers; otherwise it
has methods with the same names.
"""
from __future__ import annotations

import threading
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._errors import SessionError
from .session import Reservation, Session

try:
    from langchain_core.callbacks import BaseCallbackHandler as _Base
except ImportError:
    _Base = object

BYTES_PER_TOKEN = 3     # a low number, so that the estimated number of tokens is high
TOKENS_OUT = 1024       # the estimate for an answer, if the call has no limit for it
# The names that libraries use for the numbers of input and output tokens.
USAGE_NAMES = (("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens"),
               ("prompt_token_count", "candidates_token_count"))


class SessionCallbackHandler(_Base):  # type: ignore[misc]
    raise_error = True
    run_inline = True       # methods run before the model or tool starts, also with asyncio
    ignore_llm = False
    ignore_chat_model = False
    ignore_agent = False
    ignore_chain = True
    ignore_retriever = True
    ignore_retry = True
    ignore_custom_event = True

    def __init__(self, session: Session, *, model: str = "", tool_cost: Any = "0.001",
                 llm_cost: Any = None) -> None:
        """`model` gives the price if a call does not name its model. `llm_cost` is reserved for a
        call whose model is not known, and `tool_cost` for each tool."""
        self.session = session
        self._model, self._tool_cost, self._llm_cost = model, tool_cost, llm_cost
        self._open: Dict[str, Tuple[Reservation, str]] = {}
        self._lock = threading.Lock()

    # ---- models ----

    def on_llm_start(self, serialized: Any, prompts: List[str], *, run_id: Any = None,
                     **kwargs: Any) -> None:
        size = sum(len(str(p).encode("utf-8", "replace")) for p in prompts)
        self._begin_llm(serialized, size, run_id, kwargs)

    def on_chat_model_start(self, serialized: Any, messages: List[List[Any]], *,
                            run_id: Any = None, **kwargs: Any) -> None:
        size = sum(len(str(getattr(m, "content", m)).encode("utf-8", "replace"))
                   for batch in messages for m in batch)
        self._begin_llm(serialized, size, run_id, kwargs)

    def on_llm_end(self, response: Any, *, run_id: Any = None, **_: Any) -> None:
        self._end(run_id, response)

    def on_llm_error(self, error: BaseException, *, run_id: Any = None, **kwargs: Any) -> None:
        self._end(run_id, kwargs.get("response"))

    def on_llm_new_token(self, *_: Any, **__: Any) -> None:
        """Tokens are counted at the end."""

    # ---- tools ----

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Any = None,
                      **kwargs: Any) -> None:
        name = _text(serialized, "name") or str(kwargs.get("name") or "unknown")
        self._hold(run_id, self.session.check(f"tool:{name}", self._tool_cost), "")

    def on_tool_end(self, output: Any, *, run_id: Any = None, **_: Any) -> None:
        self._end(run_id, None)

    def on_tool_error(self, error: BaseException, *, run_id: Any = None, **_: Any) -> None:
        self._end(run_id, None)

    # ---- required methods without effect ----

    def on_agent_action(self, *_: Any, **__: Any) -> None: ...

    def on_agent_finish(self, *_: Any, **__: Any) -> None: ...

    def on_text(self, *_: Any, **__: Any) -> None: ...

    def report_violation(self, type_: str, details: str = "") -> Dict[str, Any]:
        return self.session.violation(type_, details)

    # ---- open reservations ----

    def _begin_llm(self, serialized: Any, size: int, run_id: Any,
                   kwargs: Mapping[str, Any]) -> None:
        model = _model_of(serialized, kwargs) or self._model
        if model:
            held = self.session.check("llm_call", model=model,
                                      tokens_in=size // BYTES_PER_TOKEN + 1,
                                      tokens_out=_most_tokens(kwargs))
        elif self._llm_cost is not None:
            held = self.session.check("llm_call", self._llm_cost)
        else:
            raise SessionError("the call does not say its model; name one with "
                               "SessionCallbackHandler(model=...), or a llm_cost")
        self._hold(run_id, held, model)

    def _hold(self, run_id: Any, held: Reservation, model: str) -> None:
        with self._lock:
            if str(run_id) not in self._open:
                self._open[str(run_id)] = (held, model)
                return
        held.release()
        raise SessionError(f"run {run_id} has begun twice")

    def _end(self, run_id: Any, response: Any) -> None:
        with self._lock:
            found = self._open.pop(str(run_id), None)
        if found is None:
            raise SessionError(f"run {run_id} ends, and was never checked")
        held, model = found
        used = usage(response)
        if used is not None and model:
            # Uses the price of the model that was checked: the answer may name another one
            # ("gpt-4o-2024-08-06") without a price.
            held.settle(model=model, tokens_in=used[0], tokens_out=used[1])
        else:
            held.settle()   # charges what was reserved, because an unknown cost must not be free


def usage(response: Any) -> Optional[Tuple[int, int]]:
    """Returns (input tokens, output tokens) of all generations; None if the response does not
    contain them. They are in llm_output for a whole call, or in the usage_metadata of each
    message."""
    total = _counts(_field(response, "llm_output"))
    if total is not None:
        return total
    sums, found = [0, 0], False
    for message in _messages(response):
        counts = _counts({"usage": _field(message, "usage_metadata")}) or \
            _counts(_field(message, "response_metadata"))
        if counts is not None:
            sums, found = [sums[0] + counts[0], sums[1] + counts[1]], True
    return (sums[0], sums[1]) if found else None


def _messages(response: Any) -> Iterator[Any]:
    generations = _field(response, "generations")
    for batch in generations if isinstance(generations, list) else []:
        for g in batch if isinstance(batch, list) else [batch]:
            message = _field(g, "message")
            if message is not None:
                yield message


def _counts(holder: Any) -> Optional[Tuple[int, int]]:
    """Returns both numbers; None if they are missing or negative."""
    for place in ("token_usage", "usage", "usage_metadata"):
        said = _field(holder, place)
        for names in USAGE_NAMES:
            values = [_field(said, n) for n in names]
            if all(type(v) is int and v >= 0 for v in values):
                return values[0], values[1]
    return None


def _field(it: Any, name: str) -> Any:
    return it.get(name) if isinstance(it, Mapping) else getattr(it, name, None)


def _text(it: Any, name: str) -> str:
    value = _field(it, name)
    return value if isinstance(value, str) else ""


def _model_of(serialized: Any, kwargs: Mapping[str, Any]) -> str:
    """Returns the model of a call that begins; "" if it is not known."""
    for holder in (kwargs.get("invocation_params"), _field(serialized, "kwargs")):
        for name in ("model", "model_name", "model_id"):
            if _text(holder, name):
                return _text(holder, name)
    return _text(kwargs.get("metadata"), "ls_model_name")


def _most_tokens(kwargs: Mapping[str, Any]) -> int:
    params = kwargs.get("invocation_params")
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"):
        value = _field(params, name)
        if type(value) is int and value > 0:
            return value
    return TOKENS_OUT
