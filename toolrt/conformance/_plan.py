"""What an executor is asked to do: calls of a few tools on files in memory, and what a serial run gives.

Rules.
    1. A tool waits before it touches a file, between its read and its write, and after it.  The plan says how long.
    2. `note` is different in each call of a plan, so effects and answers tell which call they are of.
    3. What a serial run gives is computed from the plan; no executor is asked.
    4. A kill comes at a moment: before a tool starts, before and behind each of its effects, before it returns, and
       before and behind each commit.  From then on nothing of the process changes anything: see `ExecutorDisk`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from toolrt.conformance._disk import ExecutorDisk
from toolrt.model import ToolCall

Kind = Literal["read_file", "append_file", "append_then_fail", "search", "shell", "fail"]

#: What each tool is, as a model would read it.
_ABOUT: dict[str, str] = {
    "read_file": "Give the text of a file.",
    "append_file": "Append the note to a file.",
    "append_then_fail": "Append the note to a file, then raise an error.",
    "search": "Look for the note on the net; touches no file.",
    "shell": "Append the note to every file; must run alone.",
    "fail": "Raise an error; touches no file.",
}
_WITH_PATH = ("read_file", "append_file", "append_then_fail")
_SAFE = ("read_file", "search", "fail")

#: The files that there are, each empty at first.
PATHS = ("a.txt", "b.txt")


class ToolBroke(Exception):
    """What a failing tool raises."""


@attrs.frozen
class SampleCall:
    """One call: its tool, its file, and how long it waits, in whole virtual seconds, at its three places."""

    tool: Kind
    path: str = PATHS[0]
    before: int = 0
    between: int = 0
    after: int = 0

    @property
    def touches(self) -> dict[str, Literal["read", "write"]]:
        """Which files it reads or writes."""
        if self.tool == "shell":
            return dict.fromkeys(PATHS, "write")
        if self.tool in _WITH_PATH:
            return {self.path: "read" if self.tool == "read_file" else "write"}
        return {}

    @property
    def fails(self) -> bool:
        """Whether its tool raises."""
        return self.tool in ("append_then_fail", "fail")

    @property
    def seconds(self) -> int:
        """How long it runs."""
        return self.before + self.between + self.after

    def conflicts(self, other: SampleCall) -> bool:
        """Whether the order of the two matters."""
        if "shell" in (self.tool, other.tool):
            return True
        mine, others = self.touches, other.touches
        return any(path in others and "write" in (mode, others[path]) for path, mode in mine.items())


@attrs.frozen
class SampleBounds:
    """What an executor is to keep while it runs a batch; in one plan one of these is given."""

    #: How many calls run at once, at most; None: any number.
    limit: int | None = None
    #: By tool: how many of its calls run at once, at most.
    slots: Mapping[str, int] = attrs.field(factory=dict)
    #: By tool: how many of its calls start in any stretch of one second, at most.
    rates: Mapping[str, int] = attrs.field(factory=dict)
    #: Virtual seconds after which nothing may run; what has ended keeps its answer.  None: there is no deadline.
    deadline: float | None = None

    def __str__(self) -> str:
        told = [f"limit {self.limit}"] if self.limit is not None else []
        told += [f"{number} slots for {name}" for name, number in self.slots.items()]
        told += [f"{number} starts of {name} a second" for name, number in self.rates.items()]
        told += [f"deadline {self.deadline:g} s"] if self.deadline is not None else []
        return ", ".join(told)


@attrs.frozen
class SampleBatch:
    """One batch."""

    calls: tuple[SampleCall, ...]
    #: The instant at which the task that awaits the executor is cancelled, in virtual seconds; None: never.
    cancel_at: float | None = None
    #: Draws the order of timers that end at one instant.
    seed: int = 0
    #: For each process that is killed, the number of the moment at which it is; one more process is not.  None: the
    #: executor is not told that it may be killed.
    kills: tuple[int, ...] | None = None
    #: What it is to be run within; None: the executor is not told any.
    bounds: SampleBounds | None = None

    def __str__(self) -> str:
        lines = [f"{index}: {_shown(call)}" for index, call in enumerate(self.calls)]
        lines += [f"killed at its moment {moment}" for moment in self.kills or ()]
        lines += [] if self.bounds is None else [f"within {self.bounds}"]
        if self.cancel_at is not None:
            lines.append(f"cancelled at {self.cancel_at:g} s")
        return "\n".join(lines)


def _shown(call: SampleCall) -> str:
    where = f"{call.path!r}" if call.tool in _WITH_PATH else ""
    waits = f"{call.before} s, {call.between} s, {call.after} s"
    return f"{call.tool}({where}), waits {waits}"


@attrs.frozen
class Answer:
    """What an executor answers to one call."""

    call_id: str
    content: Any
    is_error: bool


@attrs.frozen
class Happened:
    """One thing that a tool did."""

    #: Virtual seconds.
    time: float
    call: int
    what: Literal["start", "read", "write", "end"]
    #: The process in which it did.
    process: int = 0


@attrs.frozen
class Serial:
    """What one call at a time gives."""

    answers: tuple[Answer, ...]
    files: dict[str, str]
    #: Every text that each file has in turn.
    versions: dict[str, list[str]]


@attrs.define
class Tried:
    """What an executor made of a plan."""

    plan: SampleBatch
    serial: Serial
    files: dict[str, str] = attrs.field(factory=lambda: dict.fromkeys(PATHS, ""))
    happened: list[Happened] = attrs.field(factory=list)
    #: What the executor gave; None where it raised, was cancelled or did not end.
    answers: list[Answer] | None = None
    #: What it raised, a `Stuck`, or what is wrong with the form of its answers; None where it was cancelled, too.
    error: BaseException | None = None
    #: The virtual instant at which the executor ended.
    ended_at: float | None = None
    #: How many things had happened by then.
    ended_after: int = 0
    #: What outlives a process.
    disk: ExecutorDisk = attrs.field(factory=ExecutorDisk)
    #: The virtual instant at which each killed process was killed.
    killed_at: list[float] = attrs.field(factory=list)

    def spans(self) -> dict[int, tuple[int, int]]:
        """For each call that started, the places of its first start and its last end among what happened."""
        found: dict[int, tuple[int, int]] = {}
        for place, one in enumerate(self.happened):
            if one.what == "start" and one.call not in found:
                found[one.call] = (place, len(self.happened))
            elif one.what == "end":
                found[one.call] = (found[one.call][0], place)
        return found


class ExecutorTool:
    """A tool, as an executor sees it: awaited with the input of a call, it gives a text or raises.

    Attributes:
        name: what calls name it by.
        description: one sentence.
        schema: the JSON schema of its input.
        safe: whether it may overlap other calls that are safe.
    """

    def __init__(self, name: str, tried: Tried) -> None:
        self.name = name
        self.description = _ABOUT[name]
        self.safe = name in _SAFE
        properties = {"note": {"type": "string"}}
        if name in _WITH_PATH:
            properties["path"] = {"type": "string"}
        self.schema = {
            "type": "object",
            "properties": properties,
            "required": sorted(properties),
            "additionalProperties": False,
        }
        self._tried = tried

    def claims(self, input: dict[str, Any]) -> list[tuple[str, str]] | None:
        """What a call with this input touches, as (resource, "read" or "write"); None: anything, so it runs alone."""
        if self.name == "shell":
            return None
        if self.name in _WITH_PATH:
            return [(input["path"], "read" if self.name == "read_file" else "write")]
        return []

    async def __call__(self, *, note: str, path: str = "") -> str:
        """Do it.

        Raises:
            ToolBroke: the tool is one that fails.
        """
        tried = self._tried
        index = int(note.removeprefix("<").removesuffix(">"))
        call = tried.plan.calls[index]
        tried.disk.moment()
        self._tell(index, "start")
        try:
            await _wait(call.before)
            texts = {name: tried.files[name] for name in call.touches}
            if texts:
                self._tell(index, "read")
            await _wait(call.between)
            for name, mode in call.touches.items():
                if mode == "write":
                    tried.disk.moment()
                    tried.files[name] = texts[name] + note
                    self._tell(index, "write")
            tried.disk.moment()
            await _wait(call.after)
            tried.disk.moment()
            return _content(call, note, texts)
        finally:
            self._tell(index, "end")

    def _tell(self, index: int, what: Literal["start", "read", "write", "end"]) -> None:
        tried = self._tried
        if tried.disk.killed_at is None:
            now, process = asyncio.get_running_loop().time(), len(tried.killed_at)
            tried.happened.append(Happened(now, index, what, process))


async def _wait(seconds: int) -> None:
    if seconds:
        await asyncio.sleep(seconds)


def _content(call: SampleCall, note: str, texts: dict[str, str]) -> str:
    if call.fails:
        raise ToolBroke(f"{note} broke")
    if call.tool == "read_file":
        return f"{note} read {texts[call.path]!r}"
    return f"{note} done"


def note_of(index: int) -> str:
    """The note of the call at `index`."""
    return f"<{index}>"


def tool_calls(plan: SampleBatch) -> list[ToolCall]:
    """The calls, as an executor gets them."""
    return [
        ToolCall(
            f"call_{index}",
            call.tool,
            {"note": note_of(index), **({"path": call.path} if call.tool in _WITH_PATH else {})},
        )
        for index, call in enumerate(plan.calls)
    ]


def tools(tried: Tried) -> list[ExecutorTool]:
    """One tool of each kind."""
    return [ExecutorTool(name, tried) for name in _ABOUT]


def serial_run(calls: Sequence[SampleCall]) -> Serial:
    """What one call at a time gives."""
    files = dict.fromkeys(PATHS, "")
    versions: dict[str, list[str]] = {name: [""] for name in PATHS}
    answers = []
    for index, (note, call) in enumerate(_noted(calls)):
        texts = {name: files[name] for name in call.touches}
        for name, mode in call.touches.items():
            if mode == "write":
                files[name] += note
                versions[name].append(files[name])
        try:
            answers.append(Answer(f"call_{index}", _content(call, note, texts), False))
        except ToolBroke as error:
            answers.append(Answer(f"call_{index}", str(error), True))
    return Serial(tuple(answers), files, versions)


def _noted(calls: Sequence[SampleCall]) -> Iterator[tuple[str, SampleCall]]:
    for index, call in enumerate(calls):
        yield note_of(index), call
