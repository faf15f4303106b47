"""Sessions: a budget for an agent, managed by `skillsandbox session`.

    session = Session.start(policy="session.yaml")
    with session.check("llm_call", model="gpt-4o", tokens_in=900, tokens_out=500) as paid:
        answer = ask_the_model()
        paid.settle(model="gpt-4o", tokens_in=912, tokens_out=377)

If the command fails in any way, it raises an exception, so nothing is allowed without an answer.
"""
from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from decimal import ROUND_UP, Context, Decimal
from typing import Any, Dict, Iterator, List, Mapping, Optional, Type, Union

from ._errors import SessionError, SessionKilled, SessionRefused
from .loader import find_binary

SECONDS = 60.0      # time limit of a command; it normally takes milliseconds
MAX_WORDS = 4000    # maximum bytes of details, and of a reason
MAX_PLACES = 18     # most digits of an amount in dollars
EXACT = Context(prec=MAX_PLACES + 8)
OVER = ("killed", "expired", "completed")
Word = Union[str, bytes]    # one argument of a command


def _dollars(cost: Any) -> str:
    """Formats a cost in dollars with six decimals, as skillsandbox expects it. The cost is rounded
    up, so that no cost becomes 0. Of a float, only twelve digits count: the others are inexact."""
    exact = Decimal(cost) if isinstance(cost, (int, Decimal)) else Decimal(f"{cost:.12g}")
    if not exact.is_finite() or exact.adjusted() >= MAX_PLACES:
        return str(exact)   # skillsandbox reports the error
    return format(exact.quantize(Decimal("0.000001"), ROUND_UP, EXACT), "f")


def _said(flag: str, text: str) -> List[Word]:
    """Returns an option with a text that a skill may have chosen. NUL and lone surrogates are
    escaped, and the text is cut to the maximum length, so that a violation or a kill never fails
    because of its text."""
    data = text.replace("\0", "\\0").encode("utf-8", "backslashreplace")
    return [flag, data[:MAX_WORDS].decode("utf-8", "ignore").encode("utf-8")] if text else []


def _told(e: BaseException) -> str:
    """Returns the type and the text of an exception; only the type if the text cannot be made."""
    try:
        return f"{type(e).__name__}: {e}"
    except Exception:  # pylint: disable=broad-except
        return type(e).__name__


def _amount(cost: Optional[Any], model: str, tokens_in: Optional[int],
            tokens_out: Optional[int]) -> List[str]:
    """Returns the options for an amount. The program checks their values."""
    if cost is not None and model:
        raise ValueError("a cost, or a model and tokens, not both")
    if cost is not None:
        return ["--cost", cost if isinstance(cost, str) else _dollars(cost)]
    if not model:
        return []
    return ["--model", model, "--tokens-in", str(tokens_in or 0),
            "--tokens-out", str(tokens_out or 0)]


class Reservation:
    """The amount that a check has reserved. It can be settled or released once."""

    def __init__(self, session: "Session", decision: Mapping[str, Any], amount: List[str]) -> None:
        self.session = session
        self.decision = dict(decision)
        self.number = decision.get("reservation")
        self._amount = amount
        self.settled = False

    def settle(self, cost: Optional[Any] = None, *, model: str = "",
               tokens_in: Optional[int] = None, tokens_out: Optional[int] = None) \
            -> Dict[str, Any]:
        """Reports the cost; without an amount, the cost is what was reserved. A report is never
        refused. Raises SessionKilled if the cost ended the session."""
        return self._once(_amount(cost, model, tokens_in, tokens_out) or self._amount
                          or ["--cost", "0"])

    def release(self) -> Dict[str, Any]:
        """Gives the reserved amount back, because the action did not happen."""
        return self._once(["--release"])

    def _once(self, words: List[str]) -> Dict[str, Any]:
        if self.settled:
            raise SessionError("settled already")
        if self.number is None:
            raise SessionError("nothing was reserved")
        self.settled = True
        decision = self.session.judge(self.session.ask("settle", *words, str(self.number)))
        if decision.get("state") in OVER:
            raise SessionKilled(decision)   # the cost is recorded in any case
        return decision

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        if self.settled:
            return
        if kind is None:
            self.settle()
            return
        try:
            self.release()
        except SessionError:
            pass    # the exception of the block is more important


class Session:
    """An existing session; start() creates a new one."""

    def __init__(self, session_id: str, *, binary: Optional[str] = None) -> None:
        self.id = session_id
        self._binary = binary or find_binary()

    @classmethod
    def start(cls, *, policy: Optional[str] = None, id: str = "", parent: str = "",
              agent: str = "", binary: Optional[str] = None) -> "Session":
        session = cls(id, binary=binary)
        words: List[str] = []
        for flag, value in (("--policy", policy), ("--id", id), ("--parent", parent),
                            ("--agent", agent)):
            words += [flag, value] if value else []
        decision = session.judge(session.ask("start", *words))
        session.id = str(decision["session_id"])
        return session

    def check(self, action: str, cost: Optional[Any] = None, *, model: str = "",
              tokens_in: Optional[int] = None, tokens_out: Optional[int] = None) -> Reservation:
        """Reserves the cost of an action. Raises SessionRefused or SessionKilled if it is not
        allowed. The result is a context manager. At the end of its block, the reservation is
        settled with the reserved amount, unless the block has settled it. If the block raises an
        exception, the reservation is released."""
        amount = _amount(cost, model, tokens_in, tokens_out)
        decision = self.judge(self.ask("check", "--action", action, *amount, self.id))
        return Reservation(self, decision, amount)

    def violation(self, type_: str, details: str = "") -> Dict[str, Any]:
        """Counts a violation. Raises SessionKilled or SessionRefused if there are now too many."""
        words = ["--type", type_, *_said("--details", details)]
        return self.judge(self.ask("violation", *words, self.id))

    @contextmanager
    def violations(self, type_: str, *exceptions: Type[BaseException]) -> Iterator[None]:
        """Counts a violation for each of these exceptions (default: any) that leaves the block. The
        exception is raised again, unless there are now too many violations."""
        try:
            yield
        except exceptions or (Exception,) as e:
            self.violation(type_, _told(e))
            raise

    def show(self) -> Dict[str, Any]:
        return self.ask("show", self.id)

    def kill(self, reason: str = "") -> Dict[str, Any]:
        return self.ask("kill", *_said("--reason", reason), self.id)

    def complete(self, reason: str = "") -> Dict[str, Any]:
        return self.ask("complete", *_said("--reason", reason), self.id)

    # ---- the program ----

    def ask(self, *words: Word) -> Dict[str, Any]:
        """Returns the answer of `skillsandbox session WORDS --json`."""
        argv = [self._binary, "session", words[0], "--json", *words[1:]]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=SECONDS, check=False)
            answer = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired) as e:
            raise SessionError(f"the session cannot be asked: {e}") from e
        if not isinstance(answer, dict):
            raise SessionError("the session gave no answer")
        if done.returncode not in (0, 1):
            raise SessionError(str(answer.get("reason") or f"exit status {done.returncode}"))
        if done.returncode == 1 and answer.get("action_allowed") is not False:
            raise SessionError("the session contradicts itself")
        return answer

    @staticmethod
    def judge(decision: Dict[str, Any]) -> Dict[str, Any]:
        """Returns the decision if the action is allowed; otherwise raises an exception."""
        if decision.get("action_allowed") is True:
            return decision
        if decision.get("state") in OVER:
            raise SessionKilled(decision)
        raise SessionRefused(decision)


__all__ = ["Reservation", "Session", "SessionError", "SessionKilled", "SessionRefused"]
