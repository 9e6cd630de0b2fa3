"""Exercises whose answer is code that runs: a task, or a tiny runtime.

Rules.  The objects that an answer gets report how they are used (which task holds which lock, which call has started
and ended), so that a right result reached in a wrong way is noticed.  Small programs run under every schedule, larger
ones under 300.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import permutations
from typing import Any

import attrs
import trio
from trio.lowlevel import checkpoint, current_task

from toolrt import sim
from toolrt._plain import counted
from toolrt.errors import StepLimit
from toolrt.teaching.lab._exercise import Finding, Graders, told
from toolrt.teaching.lab._experiments import until_it_fails
from toolrt.teaching.litmus._litmus import together
from toolrt.trace import stable_text

#: What a program gives: what is wrong with what it did, or "".
Program = Callable[[], Awaitable[str]]
Function = Callable[[], Awaitable[Any]]

_SCHEDULES = 300
_STEP_LIMIT = 1_000


def tried(what: str, *programs: Program, most: int = _SCHEDULES) -> Finding:
    """Run each program under many schedules, the simplest first, and report the first one that goes wrong."""
    for program in programs:
        shown = _first_wrong(program, most)
        if shown is not None:
            schedule = shown.schedule.short
            schedule = schedule if len(schedule) <= 160 else f"{schedule[:160]}…"
            return Finding(False, what, f"{_wrong(shown)}\nunder the schedule: {schedule}", shown)
    return Finding(True, what)


def _first_wrong(program: Program, most: int) -> sim.Execution | None:
    """Give the first execution that goes wrong, as simple as it gets."""
    simplest = sim.run(program, sim.Choices(), step_limit=_STEP_LIMIT)
    if isinstance(simplest.error, StepLimit):
        return simplest
    if _wrong(simplest):
        return sim.run(program, sim.Choices(), step_limit=_STEP_LIMIT, details=True)

    wrong: list[sim.Execution] = []

    def is_right(execution: sim.Execution) -> bool:
        if _wrong(execution):
            wrong.append(execution)
            return False
        return True

    ran, none_failed = until_it_fails(program, is_right, sim.Portfolio(most), _STEP_LIMIT)
    if none_failed:
        return None
    # The same executions again, as far as the one that failed, for a report that simplifies it.
    report = sim.explore(program, sim.Portfolio(most), is_right, ran, step_limit=_STEP_LIMIT)
    if not report.failures:
        return wrong[0]  # the answer keeps something from run to run
    choices = sim.Choices(report.failures[0].minimal.choices)
    return sim.run(program, choices, step_limit=_STEP_LIMIT, details=True)


def _wrong(execution: sim.Execution) -> str:
    if execution.error is not None:
        # A deadlock says who waits for what.
        return told(execution.error) if isinstance(execution.error, BaseExceptionGroup) else str(execution.error)
    return str(execution.value)


async def _pause(seconds: float | None) -> None:
    """Sleep, or pass a checkpoint."""
    if seconds is None:
        await checkpoint()
    else:
        await trio.sleep(seconds)


# ---------------------------------------------------------------------- mend_it


class _Guarded(sim.Cell[int]):
    """A counter that notes each use of it without its lock."""

    def __init__(self, lock: trio.Lock) -> None:
        super().__init__(0, name="counter")
        self._lock = lock
        self.wrong = ""

    def get(self) -> int:
        """Read it."""
        self._used("read")
        return super().get()

    def set(self, value: int) -> None:
        """Write it."""
        self._used("written")
        super().set(value)

    def _used(self, did: str) -> None:
        if self._lock.statistics().owner is not current_task():
            self.wrong = f"the counter is {did} without the lock: one await more at this place, and an addition is lost"


def _adders_that_hold(add: Any) -> Program:
    """Every use of the counter is under the lock, so the answer does not rest on where Trio has its checkpoints."""

    async def program() -> str:
        lock = trio.Lock()
        counter = _Guarded(lock)
        await together(*[lambda: add(counter, lock, checkpoint)] * 2)
        return counter.wrong

    return program


def _adders(add: Any, tasks: int, seconds: Sequence[float] = ()) -> Program:
    async def program() -> str:
        counter, lock = sim.Cell(0, name="counter"), trio.Lock()
        thought, wrong = 0, ""

        def thinking(number: int) -> Function:
            async def think() -> None:
                nonlocal thought, wrong
                thought += 1
                if lock.statistics().owner is not current_task():
                    wrong = "think() was called without the lock: what was read, or is to be read, may change meanwhile"
                await _pause(seconds[number] if seconds else None)

            return think

        await together(*(lambda number=number: add(counter, lock, thinking(number)) for number in range(tasks)))
        if wrong:
            return wrong
        if thought != tasks:
            return f"think() was called {counted(thought, 'time')} for {tasks} additions"
        if counter.get() != tasks:
            return f"{tasks} tasks added one, and the counter holds {counter.get()}"
        return "a lock is still held at the end" if lock.locked() else ""

    return program


def _two_counters(add: Any) -> Program:
    async def program() -> str:
        counters, locks = [sim.Cell(0, name=name) for name in "ab"], [trio.Lock(), trio.Lock()]
        async with trio.open_nursery() as nursery:
            for counter, lock in zip(counters, locks, strict=True):
                nursery.start_soon(add, counter, lock, _lasting(None, 1))
        took = trio.current_time()
        return "" if took == 1 else f"two counters with a lock each took {took:g} s, each thinks for 1 s"

    return program


def _thought_that_fails(add: Any) -> Program:
    async def program() -> str:
        counter, lock = sim.Cell(0, name="counter"), trio.Lock()
        thought = 0

        async def fails() -> None:
            nonlocal thought
            thought += 1
            await checkpoint()
            raise ValueError("no idea")

        try:
            await add(counter, lock, fails)
        except ValueError:
            pass
        else:
            return "think() raised ValueError, and add() did not let it out"
        if thought != 1:
            return f"think() raised, and was called {counted(thought, 'time')}"
        await add(counter, lock, checkpoint)
        return "" if counter.get() == 1 else f"one of two additions failed, and the counter holds {counter.get()}"

    return program


def _thought_that_is_cancelled(add: Any) -> Program:
    async def program() -> str:
        counter, lock = sim.Cell(0, name="counter"), trio.Lock()
        with trio.move_on_after(1):
            await add(counter, lock, trio.sleep_forever)
        if lock.locked():
            return "think() was cancelled, and the lock is held for ever: trio.Cancelled is no Exception"
        await add(counter, lock, checkpoint)
        return "" if counter.get() == 1 else f"one of two additions was cancelled, and the counter is {counter.get()}"

    return program


def _mend_it(add: Any) -> Iterator[Finding]:
    yield tried("two additions are two", _adders(add, 2))
    yield tried("three are three, however long each thinks", _adders(add, 3), _adders(add, 3, [2, 1, 1]))
    yield tried("two counters do not wait for each other", _two_counters(add))
    yield tried("a thought that fails blocks no other task", _thought_that_fails(add))
    yield tried("nor does one that is cancelled", _thought_that_is_cancelled(add))
    yield tried("the counter is read and written under the lock", _adders_that_hold(add))


# ---------------------------------------------------------------------- no_embrace


@attrs.frozen
class _Account:
    """What a transfer is handed."""

    name: str
    lock: trio.Lock = attrs.field(factory=trio.Lock)


def _transfers(transfer: Any, pairs: str, seconds: float | None = None) -> Program:
    async def program() -> str:
        accounts = {name: _Account(name) for name in "abcd"}
        wrong: list[str] = []
        moved: list[str] = []

        async def one(source: _Account, target: _Account) -> None:
            async def move() -> None:
                mine = current_task()
                for account in (source, target):
                    if account.lock.statistics().owner is not mine:
                        wrong.append(f"move() from {source.name} to {target.name} without the lock of {account.name}")
                moved.append(source.name + target.name)
                await _pause(seconds)

            await transfer(source, target, move)

        await together(*(lambda pair=pair: one(accounts[pair[0]], accounts[pair[1]]) for pair in pairs.split()))
        if wrong:
            return wrong[0]
        if sorted(moved) != sorted(pairs.split()):
            return f"of the transfers {pairs} were moved: {' '.join(moved) or 'none'}"
        if seconds is not None and trio.current_time() != seconds:
            return f"{pairs} share no account and took {trio.current_time():g} s, each moves for {seconds:g} s"
        held = [account.name for account in accounts.values() if account.lock.locked()]
        return f"still locked at the end: {held}" if held else ""

    return program


def _beside_a_queue(transfer: Any) -> Program:
    """Two transfers wait for each other; a third one shares no account with them, and begins at once."""

    async def program() -> str:
        accounts = {name: _Account(name) for name in "abcd"}
        began: dict[str, float] = {}

        async def one(pair: str) -> None:
            async def move() -> None:
                began[pair] = trio.current_time()
                await trio.sleep(1)

            await transfer(accounts[pair[0]], accounts[pair[1]], move)

        await together(*((one, pair) for pair in ("ab", "ba", "cd")))
        late = began.get("cd", 0)
        return f"the transfer from c to d waited for {late:g} s, while b and a waited for each other" if late else ""

    return program


def _move_that_fails(transfer: Any) -> Program:
    async def program() -> str:
        source, target = _Account("a"), _Account("b")

        async def fails() -> None:
            await checkpoint()
            raise ValueError("no money")

        try:
            await transfer(source, target, fails)
        except ValueError:
            held = [account.name for account in (source, target) if account.lock.locked()]
            return f"move() raised, and these stay locked: {', '.join(held)}" if held else ""
        return "move() raised ValueError, and transfer() did not let it out"

    return program


def _no_embrace(transfer: Any) -> Iterator[Finding]:
    yield tried("both locks are held while it moves", _transfers(transfer, "ab"))
    yield tried("opposite transfers end", _transfers(transfer, "ab ba"))
    yield tried("a ring of three ends", _transfers(transfer, "ab bc ca"))
    yield tried("an account may give to itself", _transfers(transfer, "aa"))
    yield tried("transfers between other accounts do not wait", _transfers(transfer, "ab cd", 1))
    yield tried("nor while others stand in line", _beside_a_queue(transfer))
    yield tried("a move that raises leaves no lock behind", _move_that_fails(transfer))


# ---------------------------------------------------------------------- gather


def _lasting(value: Any, seconds: float, log: list[str] | None = None) -> Function:
    async def function() -> Any:
        if log is not None:
            log.append(f"{value} begins")
        await trio.sleep(seconds)
        if log is not None:
            log.append(f"{value} ends")
        if isinstance(value, Exception):
            raise value
        return value

    return function


def _expects(run: Any, given: Callable[[], Any], wanted: Any, seconds: float | None = None) -> Program:
    async def program() -> str:
        found = await run(given())
        if found != wanted:
            return f"expected {stable_text(wanted)}, got {stable_text(found)}"
        took = trio.current_time()
        return "" if seconds is None or took == seconds else f"it took {took:g} s, expected {seconds:g} s"

    return program


def _gathers(run: Any, *pairs: tuple[Any, float]) -> Program:
    wanted = [("error", str(value)) if isinstance(value, Exception) else ("ok", value) for value, _ in pairs]
    longest = max((seconds for _, seconds in pairs), default=0)
    return _expects(run, lambda: [_lasting(*pair) for pair in pairs], wanted, longest)


def _twice(run: Any, call: Callable[[Function], Any] = lambda function: function) -> Program:
    async def program() -> str:
        count = 0

        async def counts() -> int:  # noqa: ASYNC124  one step is enough
            nonlocal count
            count += 1
            return count

        found = await run([call(counts), call(counts)])
        right = [("ok", 1), ("ok", 2)], [("ok", 2), ("ok", 1)]
        return "" if found in right else f"one function called twice has two answers, got {stable_text(found)}"

    return program


def _is_cancelled(run: Any, call: Callable[[Function], Any]) -> Program:
    async def program() -> str:
        with trio.move_on_after(1) as scope:
            await run(call(_lasting("a", 10)))
        if trio.current_time() != 1:
            return f"it was cancelled after 1 s and went on until {trio.current_time():g} s"
        return "" if scope.cancelled_caught else "it was cancelled, and gave an answer as if nothing had been"

    return program


def _gather(run: Any) -> Iterator[Finding]:
    orders = [_gathers(run, *zip("abc", seconds, strict=True)) for seconds in permutations((1, 2, 3))]
    yield tried("answers are in call order, whichever call is done first", *orders, most=30)
    yield tried("also when all are done in the same instant", _gathers(run, ("a", 1), ("b", 1), ("c", 1)))
    yield tried("also when there are many of them", _gathers(run, *((number, 1) for number in range(12))), most=30)
    failing = _gathers(run, ("a", 2), (ValueError("no"), 1), ("c", 3)), _gathers(run, (ValueError("no"), 0), ("b", 0))
    yield tried("a failure is the answer of its call alone", *failing)
    yield tried("whatever kind of failure it is", _gathers(run, (OSError("gone"), 1), (KeyError("tea"), 1), ("c", 2)))
    yield tried("one function may be called twice", _twice(run))
    yield tried("no calls have no answers", _gathers(run))
    yield tried("a cancel goes through", _is_cancelled(run, lambda function: [function]))


# ---------------------------------------------------------------------- tickets


def _ordered(run: Any, *calls: tuple[str | None, float], seconds: float) -> Program:
    """Calls on resources: calls on one resource run in call order, one at a time; the others do not wait."""

    async def program() -> str:
        log: list[str] = []
        names = [f"{resource or 'free'}{number}" for number, (resource, _) in enumerate(calls)]
        given = [(resource, _lasting(name, lasts, log)) for name, (resource, lasts) in zip(names, calls, strict=True)]
        found = await run(given)
        for resource in dict.fromkeys(resource for resource, _ in calls if resource is not None):
            own = [entry for entry in log if entry.startswith(resource)]
            mine = [name for name, (of, _) in zip(names, calls, strict=True) if of == resource]
            if own != [f"{name} {word}" for name in mine for word in ("begins", "ends")]:
                return f"on {resource}: expected {', '.join(mine)}, one after the other, got {', '.join(own)}"
        if found != [("ok", name) for name in names]:
            return f"expected the answers of {', '.join(names)} in this order, got {stable_text(found)}"
        took = trio.current_time()
        return "" if took == seconds else f"it took {took:g} s; calls that share nothing need not wait: {seconds:g} s"

    return program


def _frees(run: Any) -> Program:
    def calls() -> list[Any]:
        return [("x", _lasting(ValueError("no"), 1)), ("x", _lasting("b", 1)), (None, _lasting(OSError("gone"), 1))]

    return _expects(run, calls, [("error", "no"), ("ok", "b"), ("error", "gone")], 2)


def _tickets(run: Any) -> Iterator[Finding]:
    yield tried("calls on one thing run in call order", _ordered(run, ("x", 1), ("x", 1), ("x", 1), seconds=3))
    several = _ordered(run, ("x", 0), ("y", 0), ("x", 0), ("y", 0), seconds=0)
    yield tried("also when nothing takes any time", several, most=2 * _SCHEDULES)
    apart = _ordered(run, ("x", 2), ("y", 2), (None, 2), seconds=2)
    yield tried("calls on other things do not wait", apart, _ordered(run, ("x", 3), ("x", 1), ("y", 4), seconds=4))
    yield tried("a waiting call holds up none behind it", _ordered(run, ("x", 2), ("x", 2), (None, 1), seconds=4))
    yield tried("calls on nothing share nothing", _ordered(run, (None, 2), (None, 2), ("x", 1), seconds=2))
    many = _ordered(run, *((name, 1) for name in "abcdefghijkl"), seconds=1)
    yield tried("also when there are many of them", many, most=30)
    yield tried("one function may be called twice", _twice(run, lambda function: ("x", function)))
    yield tried("a call that fails gives its place on", _frees(run))
    yield tried("a cancel goes through", _is_cancelled(run, lambda function: [("x", function), ("x", function)]))


# ---------------------------------------------------------------------- stop


def _stopped(run: Any, lasts: Sequence[float], limit: int, after: float | None, wanted: list[str] | None) -> Program:
    """Calls that are stopped: each answer is true, no call starts afterwards, and none goes on."""

    async def program() -> str:
        stop = trio.Event()
        started: list[int] = []
        ended: list[int] = []
        running = most = 0

        def function_of(number: int) -> Function:
            async def function() -> int:
                nonlocal running, most
                started.append(number)
                running += 1
                most = max(most, running)
                try:
                    await trio.sleep(lasts[number])
                finally:
                    running -= 1
                ended.append(number)
                return number

            return function

        async def stopper() -> None:
            if after is not None:
                await trio.sleep(after)
                stop.set()

        async with trio.open_nursery() as nursery:
            if after == 0:
                stop.set()
            else:
                nursery.start_soon(stopper)
            found = await run([function_of(number) for number in range(len(lasts))], limit, stop)
            left, when = running, trio.current_time()
            nursery.cancel_scope.cancel()
        return _about_stop(found, started, ended, lasts, limit, most, left, when, after, wanted)

    return program


def _about_stop(
    found: Any,
    started: list[int],
    ended: list[int],
    lasts: Sequence[float],
    limit: int,
    most: int,
    left: int,
    when: float,
    after: float | None,
    wanted: list[str] | None,
) -> str:
    truth = [
        ("ok", number) if number in ended else ("interrupted",) if number in started else ("not started",)
        for number in range(len(lasts))
    ]
    if left:
        return f"{counted(left, 'call')} still ran when it had returned"
    if most > limit:
        return f"{most} calls ran at once, the limit is {limit}"
    if started != sorted(started):
        return f"calls began in the order {started}"
    if found != truth:
        return f"what became of the calls was {truth}, the answers say {stable_text(found)}"
    if wanted is not None and [answer[0] for answer in truth] != wanted:
        return f"expected {wanted}, it became {[answer[0] for answer in truth]}"
    if after is not None and when > after:
        return f"it was stopped after {after:g} s and returned after {when:g} s"
    return ""


def _nothing_begins_after_a_cancel(run: Any) -> Program:
    async def program() -> str:
        started = 0

        async def function() -> None:
            nonlocal started
            started += 1
            await trio.sleep(10)

        with trio.move_on_after(1) as scope:
            await run([function] * 3, 1, trio.Event())
        if started > 1:
            return f"it was cancelled from outside, and began {counted(started - 1, 'call')} afterwards"
        return (
            "" if scope.cancelled_caught else "it was cancelled from outside, and gave an answer as if nothing had been"
        )

    return program


def _stop(run: Any) -> Iterator[Finding]:
    yield tried("without a stop all are answered", _stopped(run, [1, 1, 1], 2, None, ["ok"] * 3))
    yield tried("they begin in call order", *(_stopped(run, [1, 0, 1], limit, None, ["ok"] * 3) for limit in (1, 2)))
    yield tried(
        "the limit may be above their number", _stopped(run, [1], 3, None, ["ok"]), _stopped(run, [], 1, None, [])
    )
    became = ["ok", "interrupted", "interrupted", "not started"]
    yield tried("a stop leaves what has finished, interrupts what runs", _stopped(run, [1, 3, 2, 1], 2, 1.5, became))
    yield tried("what is stopped before it begins never does", _stopped(run, [1, 1], 2, 0, ["not started"] * 2))
    yield tried("in the instant of the stop each answer is true", _stopped(run, [1, 1, 1], 2, 1, None))
    yield tried("a cancel from outside goes through", _nothing_begins_after_a_cancel(run))


#: What grades each exercise, by name.
BY_PROGRAM: Graders = {
    "mend_it": _mend_it,
    "no_embrace": _no_embrace,
    "gather": _gather,
    "tickets": _tickets,
    "stop": _stop,
}
