"""Every exception of toolrt, and its wording.

Rules.  A tool's own failure is an outcome of its call, never an exception of the runtime.  What is raised is
one of five kinds: the caller's mistake (`MisuseError`), a replay that met something else than its schedule
(`ReplayDiverged`), a law that was found broken (`LawBroken`), a model's reply that was cut off (`StreamBroken`), or a
bug of ours (`InternalError`, whose text begins "toolrt bug:").  A simulated program that cannot go on ends with a
`SimulationStopped`.

Each class keeps its values as attributes and builds its own text: what was refused, what was expected and
got, where, and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = [
    "BatchClosed",
    "Blocked",
    "Deadlock",
    "DefinitionRefused",
    "InputRefused",
    "InternalError",
    "JournalFailed",
    "JournalRefused",
    "LawBroken",
    "Livelock",
    "MissingExtra",
    "MisuseError",
    "NotReproducible",
    "NotSimulated",
    "ObserverWarning",
    "PolicyRefused",
    "RealTimeout",
    "ReplayDiverged",
    "ScheduleRefused",
    "SimulationStopped",
    "StepLimit",
    "StreamBroken",
    "StuckStep",
    "StuckThread",
    "ToolrtError",
    "UndeclaredWarning",
    "UnsupportedTrio",
    "asks_to_exit",
    "error_text",
]


class ToolrtError(Exception):
    """The root of everything toolrt raises on its own account."""


class MisuseError(ToolrtError):
    """The caller asked for something that cannot be; nothing was changed."""


class InternalError(ToolrtError):
    """A bug of toolrt's own.

    Attributes:
        what: what should not have been so.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"toolrt bug: {what}")


class MissingExtra(MisuseError, ImportError):
    """A feature needs a package that an extra of toolrt installs.

    Attributes:
        feature: what was asked for.
        extra: the extra that brings it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        self.feature = feature
        self.extra = extra
        ImportError.__init__(self, f'{feature} needs the "{extra}" extra: pip install "toolrt[{extra}]"')


class DefinitionRefused(MisuseError):
    """A tool, claim, registry or runtime was defined in a way that cannot work.

    Attributes:
        what: the thing that was being defined.
        expected: what it must be.
        got: what it was.
    """

    def __init__(self, what: str, expected: str, got: object) -> None:
        self.what = what
        self.expected = expected
        self.got = got
        super().__init__(f"{what}: expected {expected}, got {got!r}")


class _Remedied(MisuseError):
    """What was refused, why, and what to do next."""

    def __init__(self, what: str, why: str, remedy: str) -> None:
        self.what = what
        self.why = why
        self.remedy = remedy
        super().__init__(f"{what}: {why}. {remedy}")


class InputRefused(_Remedied):
    """A file or text from outside was refused before anything was done with it.

    Attributes:
        what: what was refused (a file's name, an argument).
        why: what is wrong with it, with what was expected and got.
        remedy: what to do next.
    """


class JournalRefused(_Remedied):
    """A journal refused what was asked of it; nothing was run.

    Attributes:
        what: the journal's file, or the batch.
        why: what is wrong, with what was expected and got.
        remedy: what to do next.
    """


class JournalFailed(ToolrtError):
    """A journal could not be read or written, so its batch was cancelled; `Runtime.resume` goes on with it.

    Attributes:
        what: the journal's file.
        why: what the disk or the database said.
    """

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why
        super().__init__(f"journal {what}: {why}. What was kept before is kept; resume the batch once that is mended.")


class StreamBroken(ToolrtError):
    """A model's reply ended before it was whole; calls of it may have run, and their batch was cancelled.

    Attributes:
        what: whose reply it is.
        why: how it ended.
    """

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why
        super().__init__(f"{what}: {why}. Look at the batch's results before you ask the model again.")


class BatchClosed(MisuseError):
    """A batch was used in a way its stage does not allow; the batch is unchanged.

    Attributes:
        batch_id: the batch.
        action: what was asked of it.
        why: why it cannot be.
    """

    def __init__(self, batch_id: str, action: str, why: str) -> None:
        self.batch_id = batch_id
        self.action = action
        self.why = why
        super().__init__(f"batch {batch_id}: cannot {action}: {why}")


class LawBroken(ToolrtError, AssertionError):
    """A law did not hold.

    Attributes:
        violations: every violation found, in trace order.
    """

    def __init__(self, violations: Sequence[object], context: str = "") -> None:
        self.violations = tuple(violations)
        lines = [str(violation) for violation in self.violations]
        if context:
            lines.append(context)
        super().__init__("\n".join(lines))


class UndeclaredWarning(RuntimeWarning):
    """A call waited for a call of another batch, because the tool of one of them declares nothing; told once.

    Attributes:
        call, batch: the call that waited.
        other_call, other_batch: the one that it waited for.
    """

    def __init__(self, call: str, batch: str, other_call: str, other_batch: str) -> None:
        self.call, self.batch = call, batch
        self.other_call, self.other_batch = other_call, other_batch
        super().__init__(
            f"{call} of batch {batch} waited for {other_call} of batch {other_batch}: a tool that declares nothing "
            "runs alone among all batches that share its claims. Declare what it touches (claims=, safe=True), or say "
            "whose each batch is: Runtime.run(calls, state, owner=...)"
        )


class ObserverWarning(RuntimeWarning):
    """An observer of a runtime raised; no call was touched by it.

    Attributes:
        observer: the type of the observer.
        kind: what it was told.
        error: the type of what it raised; its text may be private.
    """

    def __init__(self, observer: str, kind: str, error: str) -> None:
        self.observer = observer
        self.kind = kind
        self.error = error
        super().__init__(
            f"telemetry: {observer} raised {error} when it was told of {kind}; no call was touched. "
            "What it raises from now on is only counted."
        )


class UnsupportedTrio(ToolrtError):
    """The installed Trio does not work as the simulator expects.

    Attributes:
        version: the installed version.
        differences: each expectation that does not hold.
    """

    def __init__(self, version: str, differences: Sequence[str]) -> None:
        self.version = version
        self.differences = tuple(differences)
        listed = "; ".join(self.differences)
        super().__init__(
            f"toolrt.sim cannot control Trio {version}: {listed}. "
            "Install a Trio version that toolrt's pyproject.toml admits; the runtime itself is not affected."
        )


class NotSimulated(MisuseError):
    """The program did something a simulation cannot control (a thread of its own, a socket, a subprocess).

    Attributes:
        action: what it did.
        remedy: what to use instead.
    """

    def __init__(self, action: str, remedy: str) -> None:
        self.action = action
        self.remedy = remedy
        super().__init__(f"a simulated program cannot {action}: {remedy}")


class NotReproducible(ToolrtError):
    """A failing schedule cannot be written as a program without toolrt; the text says why."""


class RealTimeout(NotSimulated):
    """Something real that a simulated program waits for took too long: the execution decides nothing.

    Attributes:
        seconds: so long it was waited for, in real seconds.
    """

    def __init__(self, what: str, seconds: float, remedy: str) -> None:
        self.seconds = seconds
        super().__init__(f"wait for {what} {seconds:g} seconds", remedy)


class StuckStep(RealTimeout):
    """An execution was ended from outside because it ran beyond its limit in wall time: it decides nothing.

    Attributes:
        seconds: the limit.
        place: the line where it stood.
    """

    def __init__(self, seconds: float, place: str) -> None:
        self.seconds = seconds
        self.place = place
        NotSimulated.__init__(
            self,
            f"end within {seconds:.3g} seconds on the wall; it stood at {place}",
            "a step ends at a checkpoint, and blocks nothing; allow it more seconds if it only takes long",
        )


class StuckThread(RealTimeout):
    """A worker thread of a simulated program kept the turn for too long: the execution decides nothing.

    Attributes:
        name: the thread's.
        seconds: so long it was waited for.
        stack: where it was, as text; it may have other lines each time.
    """

    def __init__(self, name: str, seconds: float, stack: str) -> None:
        self.name = name
        self.stack = stack
        super().__init__(
            f"the thread {name!r}, which kept the turn for",
            seconds,
            "a thread may wait for trio.from_thread, time.sleep and threading's conditions; sim.thread_seconds gives "
            f"it more time.  It was in:\n{stack}",
        )


class Blocked(ToolrtError):
    """A model's operation has to wait: it cannot be done in this state.

    The method of a sequential model raises it where the real object would wait; see `toolrt.sim.linearizable`.
    """


class ScheduleRefused(MisuseError):
    """A text is not a schedule.

    Attributes:
        text: the text, shortened.
        why: what is wrong, and where.
    """

    def __init__(self, text: str, why: str) -> None:
        self.text = text if len(text) <= 80 else text[:77] + "..."
        self.why = why
        super().__init__(f"not a schedule: {self.text!r}: {why}")


class PolicyRefused(MisuseError):
    """A lane policy or a slot policy failed, gave no answer that there is, or was not the same when asked twice.

    A batch goes on without it: a call whose lane rule fails runs alone, and ready calls take slots in call order where
    the slot policy fails.  The error is raised when the batch is left, so nothing is lost.

    Attributes:
        kind: "lane" or "slot".
        policy: its name.
        expected: what it had to do.
        got: what it gave, or the exception it raised.
        batch_id: the batch; None where nothing was run.
        call_index: the call it was asked about, or None.
        outcome: the `BatchOutcome`, complete, once the batch is over; None where nothing was run.
    """

    def __init__(
        self,
        kind: str,
        policy: str,
        expected: str,
        got: object,
        batch_id: str | None = None,
        call_index: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.kind = kind
        self.policy = policy
        self.expected = expected
        self.got = got
        self.batch_id = batch_id
        self.call_index = call_index
        self.outcome: Any = None
        parts = [f"{kind} policy {policy}"]
        parts += [] if batch_id is None else [f"batch {batch_id}"]
        parts += [] if call_index is None else [f"call {call_index}"]
        seen = f"{type(got).__name__} raised: {got}" if isinstance(got, BaseException) else repr(got)
        if batch_id is None:
            instead = "Nothing was run."
        else:
            what = "the call runs alone" if kind == "lane" else "ready calls take slots in call order"
            instead = f"Instead {what}; `outcome` of this error has every result."
        remedy = remedy or _POLICY_REMEDIES.get(kind, "")
        super().__init__(f"{', '.join(parts)}: expected {expected}, got {seen}. {instead} {remedy}")


_POLICY_REMEDIES = {
    "lane": "Let place(call, lane) return LaneChoice.JOIN, OPEN or ALONE for each call.",
    "slot": "Let it return one of the calls that it is given, and none again and again before an older one.",
}


class ReplayDiverged(ToolrtError):
    """A replay met something else than its schedule says.  It never guesses.

    Attributes:
        step: the step, counted from 0.
        expected: what the schedule has there.
        got: what the program offered.
    """

    def __init__(self, step: int, expected: object, got: object) -> None:
        self.step = step
        self.expected = expected
        self.got = got
        super().__init__(
            f"replay diverged at step {step}: the schedule has {expected}, the program offered {got}. "
            "The program has changed since the schedule was made, or it depends on something the "
            "simulator does not control."
        )


# The text of an error names so many tasks; its attribute `waiting` has all.
_MOST_TASKS_TOLD = 100


class SimulationStopped(ToolrtError):
    """A simulated program could not go on.

    Attributes:
        step: the step at which it stopped, counted from 0.
        waiting: for each task that was alive, its path and what it waits for.
    """

    def __init__(self, text: str, step: int, waiting: Sequence[tuple[str, str]]) -> None:
        self.step = step
        self.waiting = tuple(waiting)
        lines = [text, *(f"  {task} waits for {what}" for task, what in self.waiting[:_MOST_TASKS_TOLD])]
        if (more := len(self.waiting) - _MOST_TASKS_TOLD) > 0:
            lines.append(f"  and {more:,} more")
        super().__init__("\n".join(lines))


class Deadlock(SimulationStopped):
    """Nothing can run and no deadline is pending.

    Attributes:
        waits_on: for each task that waits for others, its path and theirs: who waits for whom, as far as it is known.
    """

    def __init__(
        self, step: int, waiting: Sequence[tuple[str, str]], waits_on: Sequence[tuple[str, tuple[str, ...]]] = ()
    ) -> None:
        self.waits_on = tuple(waits_on)
        super().__init__(f"deadlock at step {step}: no task can run and no deadline is pending", step, waiting)


class StepLimit(SimulationStopped):
    """The step limit was reached: a livelock, or a limit that is too low.

    Attributes:
        limit: the limit, in steps.
        time_stood_still: a deadline was pending and the clock never reached it, because tasks kept running.
        others: None; or, when system tasks or callbacks went on and no task of the program did, the names of
            those system tasks.
        starved: the paths of the tasks that could have run in a quarter of the second half of the steps, and never did.
        started: the line that has started the most of many tasks; "": there were not many.
    """

    def __init__(
        self,
        limit: int,
        waiting: Sequence[tuple[str, str]],
        time_stood_still: bool,
        step: int | None = None,
        others: Sequence[str] | None = None,
        starved: Sequence[str] = (),
        started: str = "",
    ) -> None:
        self.limit = limit
        self.started = started
        self.starved = tuple(starved)
        self.time_stood_still = time_stood_still
        self.others = None if others is None else tuple(others)
        text = f"step limit of {limit} reached"
        if others is not None:
            names = f"system tasks ({', '.join(others)})" if others else "callbacks"
            text += f": {names} go on, and no task of the program stepped meanwhile"
        if time_stood_still:
            text += "; time never moved although a deadline was pending, so this may be no livelock"
        elif starved:
            text += f"; {', '.join(starved)} never had a turn for long, so this may be no livelock"
        else:
            text += "; a livelock, unless the program needs more steps (raise step_limit)"
        if started:
            text += f"; most of its {len(waiting):,} tasks were started at {started}"
        super().__init__(text, limit if step is None else step, waiting)


class Livelock(StepLimit):
    """Every task that can run goes round in a circle and writes nothing, and no deadline is pending.

    However long it went on, nothing would change: each task has made its round since anything was written, so the
    circle is fair to all of them.

    Attributes:
        cycle: the last round of each of those tasks: the number and the task's path of each step, in order.
        time_stood_still: one of them looked at the clock, which moves to deadlines only: this may be no livelock.
        limit: the step limit, which was not reached.
        others: None: system tasks and callbacks have no part in it.
        starved: empty: no task went without a turn.
        started: "": it is not looked at.
    """

    def __init__(
        self,
        step: int,
        cycle: Sequence[tuple[int, str]],
        waiting: Sequence[tuple[str, str]],
        limit: int,
        time_stood_still: bool,
    ) -> None:
        self.limit = limit
        self.starved = ()
        self.started = ""
        self.others = None
        self.time_stood_still = time_stood_still
        self.cycle = tuple(cycle)
        names = ", ".join(dict.fromkeys(name for _, name in self.cycle))
        text = f"livelock at step {step}: {names} can run, and run in a circle that writes nothing"
        if time_stood_still:
            text += "; the circle looks at the clock and no deadline is pending, so this may be no livelock"
        text += "\n  the circle: " + ", ".join(f"step {number} of {name}" for number, name in self.cycle)
        SimulationStopped.__init__(self, text, step, waiting)


def asks_to_exit(error: BaseException | None) -> BaseException | None:
    """The Ctrl-C or exit in `error`, if there is one: what no tool's failure is."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(asks_to_exit, error.exceptions)), None)
    return None


def errors_in(error: BaseException | None) -> list[BaseException]:
    """The errors that are no groups: those inside of one, in its order, or `error` itself; none for None."""
    if isinstance(error, BaseExceptionGroup):
        return [inner for member in error.exceptions for inner in errors_in(member)]
    return [] if error is None else [error]


def error_text(error: BaseException) -> str:
    """An `error` in one line: its type and text; a group by its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(error_text(member) for member in error.exceptions)
    try:
        text = str(error)
    except Exception as broken:
        text = f"(its text cannot be made: {type(broken).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
