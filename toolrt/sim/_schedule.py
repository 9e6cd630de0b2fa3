"""A schedule: the choices of one execution, enough to make it again.

Rules.  The JSON form records for each step the task, what was enabled, what was touched and the virtual time;
the short form only the tasks that stepped, for a person to paste::

    main main.0*2 main.1

A token is a task's path, or path*count for several steps in a row.  Behind a path the name of the function that the
task runs may stand, ``main.0 withdraw*2``: a reader wants it, and a replay does not look at it.  A last token ``!``
says that the step limit ended the execution there, and a first token ``trio:`` that tasks stepped in passes,
``order="trio"``.  A token ``chance=7`` before the paths says from which stream of random numbers the program drew;
without it that is stream 0, or none.  Both forms are the same text in every process.

Limits.  A schedule belongs to its program: for another one, or after a change, replaying it raises
`ReplayDiverged`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import groupby
from typing import Any

import attrs

from toolrt._plain import compact, frozen
from toolrt.errors import ScheduleRefused
from toolrt.sim._paths import ROOT, key_of_path
from toolrt.trace import Access, Step, plain

_VERSION = 1
_STOPPED = "!"
_IN_PASSES = "trio:"
_CHANCE = "chance="
_NO_NAMES: Mapping[str, str] = {}


@attrs.frozen(slots=False)
class Schedule:
    """The choices of one execution."""

    #: The steps in order.  From the short form they have only `index` and `task`: `enabled` is empty and
    #: `choice` is -1.
    steps: tuple[Step, ...]
    #: True when the step limit ended the execution after the last step.
    stopped: bool = False
    #: In which orders tasks stepped: "any", or "trio".
    order: str = "any"
    #: The name of the function that each task runs, by its path, where it is known; no part of the schedule.
    functions: Mapping[str, str] = attrs.field(factory=dict, eq=False, repr=False)
    #: The stream of random numbers that the program drew from, 0 or more; 0, too, where it drew none.
    chance: int = 0

    def __len__(self) -> int:
        return len(self.steps)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The task of each step."""
        return tuple(step.task for step in self.steps)

    @cached_property
    def choices(self) -> tuple[int, ...]:
        """The choices, one for each step, as `Choices` takes them; -1 where the short form does not say."""
        return tuple(step.choice for step in self.steps)

    @cached_property
    def switches(self) -> int:
        """How many steps were given to another task although the one before could go on.

        In Trio's orders the tasks of a pass have their turns by path: how many steps were out of turn.
        """
        if self.order == "trio":
            return sum(step.choice > 0 for step in self.steps)
        return sum(
            before.task != step.task and step.enabled[:1] == (before.task,)
            for before, step in zip(self.steps, self.steps[1:], strict=False)
        )

    @cached_property
    def short(self) -> str:
        """The short form, with paths alone: the same text for the same choices."""
        return self._written(_NO_NAMES)

    @cached_property
    def named(self) -> str:
        """The short form for a reader: each task has the name of its function where it steps first."""
        return self._written(self.functions)

    def _written(self, functions: Mapping[str, str]) -> str:
        tokens = [] if self.order == "any" else [_IN_PASSES]
        if self.chance:
            tokens.append(f"{_CHANCE}{self.chance}")
        tokens += in_tokens(self.tasks, functions)
        if self.stopped:
            tokens.append(_STOPPED)
        return " ".join(tokens)

    def to_json(self) -> str:
        """Write it as one line of JSON, the same bytes in every process."""
        return compact(
            {
                "toolrt_schedule": _VERSION,
                "stopped": self.stopped,
                **({} if self.order == "any" else {"order": self.order}),
                **({"chance": self.chance} if self.chance else {}),
                "steps": [
                    {
                        "task": step.task,
                        "enabled": list(step.enabled),
                        "touched": [[plain(access.resource), access.write] for access in step.accesses],
                        "time": step.time,
                    }
                    for step in self.steps
                ],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        """Read a text that `to_json` wrote.

        Raises:
            ScheduleRefused: it is not a schedule; the message names the place.
        """
        _check_text(text)
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ScheduleRefused(text, f"not JSON: {error}") from None
        if not isinstance(document, dict) or document.get("toolrt_schedule") != _VERSION:
            raise ScheduleRefused(text, f'expected an object with "toolrt_schedule": {_VERSION}')
        stopped, steps = document.get("stopped", False), document.get("steps")
        if not isinstance(stopped, bool):
            raise ScheduleRefused(text, f"stopped: expected true or false, got {stopped!r:.40}")
        if not isinstance(steps, list):
            raise ScheduleRefused(text, f"steps: expected an array, got {steps!r:.40}")
        if (order := document.get("order", "any")) not in ("any", "trio"):
            raise ScheduleRefused(text, f'order: expected "any" or "trio", got {order!r:.40}')
        if not isinstance(chance := document.get("chance", 0), int) or isinstance(chance, bool) or chance < 0:
            raise ScheduleRefused(text, f"chance: expected a number, 0 or more, got {chance!r:.40}")
        found = (_step(text, index, entry) for index, entry in enumerate(steps))
        return cls(tuple(found), stopped, order, chance=chance)

    @classmethod
    def from_short(cls, text: str) -> Schedule:
        """Read a text in the short form.

        Raises:
            ScheduleRefused: a token is neither a task's path nor path*count; the message names it.
        """
        _check_text(text)
        steps: list[Step] = []
        tokens = text.split()
        stopped = bool(tokens) and tokens[-1] == _STOPPED
        if stopped:
            tokens.pop()
        order = "trio" if tokens[:1] == [_IN_PASSES] else "any"
        if order == "trio":
            del tokens[0]
        chance = "0"
        if tokens and tokens[0].startswith(_CHANCE):
            chance = tokens.pop(0).removeprefix(_CHANCE)
            if not (chance.isascii() and chance.isdecimal()):
                raise ScheduleRefused(text, f"{_CHANCE}{chance}: expected a number, 0 or more")
        if not tokens:
            raise ScheduleRefused(text, "it is empty; the shortest schedule is: main")
        may_be_named = False
        for place, token in enumerate(tokens):
            task, star, count = token.partition("*")
            if may_be_named and _is_name(task):
                # The path before it has its one step already, which the count includes.
                task, repeats, may_be_named = steps[-1].task, -1, False
            else:
                repeats, may_be_named = 0, not star and task != ROOT
                try:
                    key_of_path(task)
                except ValueError as error:
                    raise ScheduleRefused(text, f"token {place}: {error}") from None
            if star and not (count.isascii() and count.isdecimal() and int(count) > 0):
                raise ScheduleRefused(text, f"token {place}: {count!r} is not a count of 1 or more")
            for _ in range((int(count) if star else 1) + repeats):
                steps.append(Step(len(steps), task, (), -1, (), 0.0))
        return cls(tuple(steps), stopped, order, chance=int(chance))

    @classmethod
    def of(cls, value: object) -> Schedule:
        """Give a schedule for a value that is a `Schedule`, its JSON or its short form.

        Raises:
            ScheduleRefused: it is none of these.
        """
        if isinstance(value, Schedule):
            return value
        if isinstance(value, str):
            return cls.from_json(value) if value.lstrip().startswith("{") else cls.from_short(value)
        raise ScheduleRefused(repr(value), f"expected a Schedule or a text, got a {type(value).__name__}")

    def __str__(self) -> str:
        return self.short


def in_tokens(tasks: Iterable[str], functions: Mapping[str, str] = _NO_NAMES) -> list[str]:
    """Write what stepped as tokens of the short form, each task with its function where it steps first."""
    tokens = []
    left = {task: name for task, name in functions.items() if _is_name(name)}
    for task, group in groupby(tasks):
        count = sum(1 for _ in group)
        name = left.pop(task, None)
        token = task if name is None else f"{task} {name}"
        tokens.append(token if count == 1 else f"{token}*{count}")
    return tokens


def _is_name(text: str) -> bool:
    """Say whether a token names a function: it could be no path."""
    if not text.isidentifier():
        return False
    try:
        key_of_path(text)
    except ValueError:
        return True
    return False


def _check_text(value: object) -> None:
    if not isinstance(value, str):
        raise ScheduleRefused(repr(value), f"expected a text, got a {type(value).__name__}")


def _step(text: str, index: int, entry: Any) -> Step:
    def refuse(field: str, expected: str) -> ScheduleRefused:
        return ScheduleRefused(text, f"steps[{index}].{field}: expected {expected}")

    if not isinstance(entry, dict):
        raise ScheduleRefused(text, f"steps[{index}]: expected an object, got {entry!r:.40}")
    task, enabled = entry.get("task"), entry.get("enabled")
    touched, time = entry.get("touched", []), entry.get("time", 0.0)
    if not isinstance(task, str):
        raise refuse("task", "a task's path")
    if not isinstance(enabled, list) or not all(isinstance(name, str) for name in enabled):
        raise refuse("enabled", "an array of task paths")
    if enabled and task not in enabled:
        raise refuse("enabled", f"{task} among {enabled}")
    if isinstance(time, bool) or not isinstance(time, int | float):
        raise refuse("time", "a number of seconds")
    if not isinstance(touched, list):
        raise refuse("touched", "an array")
    accesses = []
    for pair in touched:
        match pair:
            case [list() as resource, bool() as write]:
                accesses.append(Access(frozen(resource), write))
            case _:
                raise refuse("touched", "pairs of a resource and true or false")
    choice = enabled.index(task) if enabled else -1
    return Step(index, task, tuple(enabled), choice, tuple(accesses), float(time))
