"""A trace written by hand: what the laws are tried on without a runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolrt.invariants import LAWS
from toolrt.trace import Trace

EMPTY = {"values": {}}


class Tape:
    """Writes events down; each method is what the runtime would report."""

    def __init__(self, *, virtual: bool = True, limit: int | None = 10, batch: str = "b") -> None:
        self.now = 0.0
        self.batch = batch
        self.raw: list[Any] = []
        self.step = 0 if virtual else None
        self.results: list[dict[str, Any]] = []
        self.meta: dict[str, Any] = {"ended": "returned"}
        self.notes: dict[str, Any] = {}
        self.lane = 0
        self.event("batch.opened", policy="by_claims", limit=limit, state=EMPTY, parent=None)

    def event(self, kind: str, **fields: Any) -> None:
        """Any event of the batch."""
        self.raw.append((self.step, self.now, "main", kind, {"batch": self.batch, **fields}))

    def wait(self, seconds: float) -> None:
        """Time moves."""
        self.now += seconds

    def submit(self, *calls: int) -> None:
        for call in calls:
            self.event("call.submitted", call=call, call_id=f"id{call}", name="t", input={})
            self.results.append({"call_index": call, "call_id": f"id{call}", "name": "t"})

    def begin(self, *calls: int, state: Any = EMPTY, shared: bool = True) -> None:
        """A lane starts."""
        self.event("lane.started", lane=self.lane, shared=shared, calls=list(calls), state=state)

    def take(self, call: int, *claims: Any, shared: bool = True, stops: bool = False, reads_only: bool = False) -> None:
        self.event(
            "ticket.taken",
            call=call,
            lane=self.lane,
            shared=shared,
            claims=[[mode, list(path), False] for mode, path in claims],
            stops=stops,
            reads_only=reads_only,
        )

    def start(self, call: int, *, thread: bool = False, timeout: float | None = None) -> None:
        self.event("call.started", call=call, lane=self.lane, thread=thread, timeout=timeout)

    def settle(self, call: int, outcome: str = "ok", error: str | None = None, **fields: Any) -> None:
        error = "why" if error is None and outcome != "ok" else error
        self.event("call.settled", call=call, outcome=outcome, content=None, error=error, **fields)
        self.results[call] |= {"outcome": outcome, "content": None, "error": error}

    def end(self, *calls: int) -> None:
        for call in calls:
            self.event("call.ended", call=call)

    def run(self, call: int, seconds: float = 0, outcome: str = "ok") -> None:
        """A call from its start to its end, alone."""
        self.start(call)
        self.wait(seconds)
        self.settle(call, outcome)
        self.end(call)

    def say(self, call: int, number: int, accepted: bool = True) -> None:
        self.event("progress.sent", call=call, number=number, accepted=accepted)

    def hear(self, call: int, number: int) -> None:
        self.event("progress.delivered", call=call, number=number)

    def ask(self) -> None:
        self.event("reader.asked")

    def deliver(self, call: int) -> None:
        self.event("result.delivered", call=call, outcome=self.results[call]["outcome"])

    def merge(self, *places: Any, state: Any = EMPTY) -> None:
        """The lane's modifiers apply, and it ends: ``(call, position)`` or ``(call, position, False)``."""
        for call, position, *ok in places:
            self.event("state.applied", lane=self.lane, call=call, position=position, ok=not ok)
        applied = [[call, position] for call, position, *ok in places if not ok]
        rejected = [[call, position] for call, position, *ok in places if ok]
        self.event("lane.merged", lane=self.lane, state=state, applied=applied, rejected=rejected)

    def merge_delivered(self) -> None:
        self.event("merge.delivered", lane=self.lane)

    def next_lane(self) -> None:
        self.lane += 1

    def leave(self, state: Any = EMPTY, left: dict[str, int] | None = None, **fields: Any) -> None:
        left = {"tasks": 0, "tickets": 0, "slots": 0, "progress": 0} if left is None else left
        self.event("batch.left", results=self.results, state=state, left=left, **fields)

    def trace(self) -> Trace:
        """What was written."""
        return Trace(self.raw, (), self.meta, self.notes)


@pytest.fixture
def tape() -> Callable[..., Tape]:
    """Makes a `Tape`."""
    return Tape


@pytest.fixture
def broken() -> Callable[[Tape], dict[str, list[str]]]:
    """What every law finds in a tape, by the law's name; laws that find nothing are left out."""

    def find(tape: Tape) -> dict[str, list[str]]:
        found = {name: [violation.detail for violation in law(tape.trace())] for name, law in LAWS.items()}
        return {name: details for name, details in found.items() if details}

    return find


@pytest.fixture
def simple(tape: Callable[..., Tape]) -> Callable[..., Tape]:
    """Makes a tape of two calls that may overlap, up to their starts."""

    def make(**options: Any) -> Tape:
        made = tape(**options)
        made.submit(0, 1)
        made.event("batch.sealed")
        made.begin(0, 1)
        made.take(0)
        made.take(1)
        return made

    return make


@pytest.fixture
def running(simple: Callable[..., Tape]) -> Callable[..., Tape]:
    """Makes a tape of two calls that run."""

    def make(**options: Any) -> Tape:
        made = simple(**options)
        made.start(0)
        made.start(1)
        return made

    return make
