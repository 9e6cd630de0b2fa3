"""A trace written by hand: what the laws are tried on without a runtime."""

from __future__ import annotations

import shlex
from ast import literal_eval
from collections.abc import Callable
from typing import Any

import pytest

from toolrt.invariants import LAWS
from toolrt.trace import Trace

EMPTY = {"values": {}}


def _value(word: str) -> Any:
    """A word of a script: a literal, or a text."""
    try:
        return literal_eval(word)
    except (ValueError, SyntaxError):
        return word


def _pair(word: Any) -> Any:
    """Two parts of a word with a colon between them."""
    return word.split(":") if isinstance(word, str) else word


class Tape:
    """Writes events down; each method is what the runtime would report, or several of these."""

    @classmethod
    def played(cls, script: str) -> Tape:
        """What a script says: ``tape`` with its options if any, then verbs, which are methods, and their arguments."""
        statements = [shlex.split(statement, posix=False) for statement in script.split(";")]
        options = statements.pop(0)[1:] if script.startswith("tape") else []
        made = cls(**{name: _value(value) for name, value in (word.split("=") for word in options)})
        for verb, *words in statements:
            named = dict(word.split("=", 1) for word in words if "=" in word and word[0] not in "\"'{[")
            given = [_value(word) for word in words if word.partition("=")[0] not in named]
            getattr(made, verb)(*given, **{name: _value(value) for name, value in named.items()})
        return made

    def __init__(self, *, virtual: bool = True, limit: int | None = 10, batch: str = "b") -> None:
        self.now = 0.0
        self.batch = batch
        self.raw: list[Any] = []
        self.step = 0 if virtual else None
        self._results: dict[str, list[dict[str, Any]]] = {}
        self.meta: dict[str, Any] = {"ended": "returned"}
        self.notes: dict[str, Any] = {}
        self.lane = 0
        self.event("batch.opened", policy="by_claims", limit=limit, state=EMPTY, parent=None)

    def event(self, kind: str, **fields: Any) -> None:
        """Any event of the batch."""
        self.raw.append((self.step, self.now, "main", kind, {"batch": self.batch, **fields}))

    @property
    def results(self) -> list[dict[str, Any]]:
        """What each call of the batch has been answered."""
        return self._results.setdefault(self.batch, [])

    def inside(self, number: int = 1) -> None:
        """What follows is of this sub-batch of call 0, which opens it."""
        self.batch = f"b/0.{number}"
        if self.batch not in self._results:
            self._results[self.batch] = []
            self.event("batch.opened", policy="by_claims", limit=10, state=EMPTY, parent=["b", 0])

    def outside(self) -> None:
        """What follows is of the batch itself."""
        self.batch = "b"

    def ready(self, *calls: int) -> None:
        """Calls are submitted, and have tickets that do not conflict."""
        self.submit(*calls)
        self.begin(*calls)
        for call in calls:
            self.take(call, f"write:a{call}")

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

    def take(
        self,
        call: int,
        *claims: str | tuple[str, Any],
        shared: bool = True,
        stops: bool = False,
        reads_only: bool = False,
    ) -> None:
        self.event(
            "ticket.taken",
            call=call,
            lane=self.lane,
            shared=shared,
            claims=[[mode, list(path), False] for mode, path in map(_pair, claims)],
            stops=stops,
            reads_only=reads_only,
        )

    def start(self, *calls: int, thread: bool = False, timeout: float | None = None, **fields: Any) -> None:
        for call in calls:
            self.event("call.started", call=call, lane=self.lane, thread=thread, timeout=timeout, **fields)

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

    def done(self, *calls: int) -> None:
        """Calls end well."""
        for call in calls:
            self.settle(call)
            self.end(call)

    def skip(self, *calls: int) -> None:
        """Calls are skipped, and told by which call."""
        for call in calls:
            self.settle(call, "skipped", "skipped: call 0 failed")

    def seal(self) -> None:
        self.event("batch.sealed")

    def cancel(self) -> None:
        self.event("batch.cancelled", reason="x", outside=False)

    def stop(self, by: int) -> None:
        self.event("batch.stopped", by=by)

    def asked(self, *calls: int) -> None:
        for call in calls:
            self.event("approval.asked", call=call)

    def allowed(self, call: int) -> None:
        self.event("approval.answered", call=call, answer="allow")

    def opens(self, call: int, file: str = "f") -> None:
        """A mutation of the file begins."""
        self.event("file.mutation_began", call=call, file=file)

    def closes(self, call: int, version: str = "v", file: str = "f") -> None:
        self.event("file.mutation_ended", call=call, file=file, version=version, ok=True)

    def mutate(self, call: int, version: str = "v") -> None:
        """One whole mutation of the file."""
        self.opens(call)
        self.closes(call, version)

    def read(self, call: int, version: str) -> None:
        self.event("file.read", call=call, file="f", version=version)

    def say(self, call: int, number: int, accepted: bool = True) -> None:
        self.event("progress.sent", call=call, number=number, accepted=accepted)

    def hear(self, call: int, number: int) -> None:
        self.event("progress.delivered", call=call, number=number)

    def ask(self) -> None:
        self.event("reader.asked")

    def deliver(self, call: int) -> None:
        self.event("result.delivered", call=call, outcome=self.results[call]["outcome"])

    def hand(self, *calls: int) -> None:
        """The reader asks for results, and gets them."""
        for call in calls:
            self.ask()
            self.deliver(call)

    def merge(self, *places: str, state: Any = EMPTY) -> None:
        """The lane's modifiers apply, each ``call:position``, and it ends."""
        applied = [[int(part) for part in _pair(place)] for place in places]
        for call, position in applied:
            self.event("state.applied", lane=self.lane, call=call, position=position, ok=True)
        self.event("lane.merged", lane=self.lane, state=state, applied=applied, rejected=[])

    def merge_delivered(self) -> None:
        self.event("merge.delivered", lane=self.lane)

    def merged(self, lane: int) -> None:
        """The reader asks for a merge, and gets it."""
        self.ask()
        self.event("merge.delivered", lane=lane)

    def next_lane(self) -> None:
        self.lane += 1

    def leave(self, state: Any = EMPTY, left: dict[str, int] | None = None, **fields: Any) -> None:
        left = {"tasks": 0, "tickets": 0, "slots": 0, "progress": 0} if left is None else left
        self.event("batch.left", results=self.results, state=state, left=left, **fields)

    def over(self, *calls: int, **fields: Any) -> None:
        """The calls end well and the batch is left."""
        self.done(*calls)
        self.merge()
        self.leave(**fields)

    def forget(self) -> None:
        """The last result is lost."""
        self.results.pop()

    def alter(self, call: int, **fields: Any) -> None:
        """A result says something else than what was settled."""
        self.results[call] |= fields

    def note(self, name: str, value: Any) -> None:
        self.notes[name] = value

    def ended(self, how: str) -> None:
        self.meta["ended"] = how

    # How many traces begin

    def two(self) -> None:
        """Two calls that may overlap, up to their starts."""
        self.submit(0, 1)
        self.seal()
        self.begin(0, 1)
        self.take(0)
        self.take(1)

    def running(self) -> None:
        """Two calls that run."""
        self.two()
        self.start(0, 1)

    def both(self) -> None:
        """Both calls run at once for a second and end well."""
        self.start(0, 1)
        self.wait(1)
        self.done(0, 1)

    def parent(self, interrupt: str = "cancel") -> None:
        """Call 0 runs and has opened a sub-batch, whose events follow; call 1 may run beside it."""
        self.submit(0, 1)
        self.seal()
        self.begin(0, 1)
        self.take(0, "write:a")
        self.take(1, "write:b")
        self.start(0, interrupt=interrupt)
        self.inside()

    def stopping(self) -> None:
        """A call that stops the batch has failed; a reader beside it runs, a writer behind it waits."""
        self.submit(0, 1, 2)
        self.seal()
        self.begin(0, 1, 2)
        self.take(0, stops=True)
        self.take(1, ("read", "x"), reads_only=True)
        self.take(2, ("write", "y"))
        self.start(0, 1)
        self.wait(1)
        self.settle(0, "error")

    def two_lanes(self, thread: bool = False) -> None:
        """An exclusive call that has been merged, and another one behind it that has ended."""
        self.submit(0, 1)
        self.seal()
        for call in (0, 1):
            self.begin(call, shared=False)
            self.take(call, shared=False)
            self.start(call, thread=thread)
            self.settle(call)
            if thread:
                self.say(call, 0, accepted=False)
                self.ask()
            self.end(call)
            self.merge()
            self.next_lane()
        self.leave()

    def trace(self) -> Trace:
        """What was written."""
        return Trace(self.raw, (), self.meta, self.notes)


@pytest.fixture
def tape() -> type[Tape]:
    """Makes a `Tape`."""
    return Tape


@pytest.fixture
def broken() -> Callable[[Tape], dict[str, list[str]]]:
    """What every law finds in a tape, by the law's name; laws that find nothing are left out."""

    def find(tape: Tape) -> dict[str, list[str]]:
        found = {name: [violation.detail for violation in law(tape.trace())] for name, law in LAWS.items()}
        return {name: details for name, details in found.items() if details}

    return find
