"""A job: one execution that a driver asks for; and its result, which the driver gets."""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

import attrs
import outcome
import trio

from toolrt.errors import DefinitionRefused, Livelock, StepLimit
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._record import ExecutionRecord
from toolrt.sim.engine._source_lines import SourceLines
from toolrt.sim.policies._policy import Policy

T = TypeVar("T")

#: After so many steps an execution is stopped, unless the caller says otherwise.
DEFAULT_STEP_LIMIT = 10_000


class RecordNeeded(Exception):
    """Whether a task goes round in a circle depends on what rewritten code reports, and nothing is reported."""


def called_like(program: Any, wrapped: T, more: str = "") -> T:
    """Let `wrapped` have the names of `program`, which tests are made of and checkpoints compared by, and give it."""
    for name, value in (("__name__", ""), ("__qualname__", more), ("__module__", "")):
        # A partial has no names, and what exec made has no module.
        if isinstance(own := getattr(program, name, None), str):
            setattr(wrapped, name, own + value)
    return wrapped


class InPasses:
    """A program whose tasks step in passes, as those of Trio's loop do (`_passes`)."""

    def __init__(self, program: Callable[[], Awaitable[Any]]) -> None:
        self.__wrapped__ = program
        called_like(program, self)

    def __call__(self) -> Awaitable[Any]:
        return self.__wrapped__()


@attrs.define
class Job:
    """One execution to do; `checked_job` makes one from what a caller gave."""

    #: The program.
    program: Callable[[], Awaitable[Any]]
    #: Picks its choices.
    policy: Policy
    #: The number of steps after which it is stopped, 1 or more.
    step_limit: int = DEFAULT_STEP_LIMIT
    #: Its place among the executions of one exploration, from 0.
    index: int = 0
    #: True when the driver calls nothing of its caller's before it asks for the next job: stepping out of the Trio
    #: run for it is a twentieth of a small execution.
    caller_is_not_asked: bool = False
    #: False when no reader is expected to look at what steps touch, nor at events: they are then not reported.
    reports: bool = True
    #: False when enabled lists need not be kept either.
    keeps_enabled: bool = True
    #: False: an execution in which a task may go round in a circle is ended, and `RecordNeeded` is raised.
    looks_for_circles: bool = True
    #: How many passes in a row system tasks and callbacks may have; the step limit, or 10,000, when None.
    pass_limit: int | None = None
    #: Collects where in the source each step ran, and each access was made; None: they are not wanted.
    places: SourceLines | None = None
    #: The stream of random numbers that the program draws from, 0 or more, unless the policy names one.
    chance: int = 0
    #: In which orders tasks step: "any", or "trio".
    order: str = attrs.field(init=False)

    @order.default
    def _order(self) -> str:
        return "trio" if isinstance(self.program, InPasses) else "any"

    @property
    def task_name(self) -> str:
        """Give the name that Trio gives a run's main task: the program's function, with its module."""
        program = self.program
        while isinstance(program, functools.partial):
            program = program.func
        module, name = getattr(program, "__module__", None), getattr(program, "__qualname__", None)
        return f"{module}.{name or type(program).__qualname__}"


def check_program(program: object, step_limit: object) -> None:
    """Refuse what is no program, and what is no limit.

    Raises:
        DefinitionRefused: one of them is not what it must be.
    """
    if not callable(program):
        raise DefinitionRefused("a program", "an async function without arguments", program)
    if not isinstance(step_limit, int) or isinstance(step_limit, bool) or step_limit < 1:
        raise DefinitionRefused("step_limit", "a number of steps, 1 or more", step_limit)


def checked_job(program: Any, policy: Any, step_limit: int) -> Job:
    """Give the job for unchecked arguments.

    Raises:
        DefinitionRefused: one of them is not what it must be.
    """
    check_program(program, step_limit)
    if isinstance(policy, type) or not (
        callable(getattr(policy, "start", None)) and callable(getattr(policy, "choose", None))
    ):
        raise DefinitionRefused("a policy", "an object with start(info) and choose(enabled, step)", policy)
    return Job(program, policy, step_limit)


#: Yields jobs, is sent executions, returns the answer.
Driver = Generator[Job, Execution, T]


class Jobs:
    """The jobs of one driver, one after the other."""

    def __init__(self, driver: Driver[Any]) -> None:
        self._driver = driver
        #: The one that is to be done; None before the first.
        self.job: Job | None = None
        #: What the driver has returned or raised; None while there are jobs.
        self.answer: outcome.Outcome[Any] | None = None
        #: Whether the last one was ended from outside, so that its program could not close what it had made.
        self.was_abandoned = False

    @trio.lowlevel.disable_ki_protection
    def advance(self, result: Execution | BaseException | None) -> None:
        """Send the driver the result of its job (None begins it), and take the next job or the answer."""
        try:
            if isinstance(result, BaseException):
                self.job = self._driver.throw(result)
            else:
                self.job = self._driver.send(result)  # type: ignore[arg-type]
        except StopIteration as stop:
            self.answer = outcome.Value(stop.value)
        except BaseException as error:  # noqa: ASYNC103
            self.answer = outcome.Error(error)


def result_of(job: Job | None, record: ExecutionRecord, chance: int | None) -> Execution | BaseException:
    """Give the execution, or what has to be raised instead; `chance` is the stream of random numbers that it used."""
    assert job is not None
    error = record.error
    fault = record.fault or (None if error is None else _interrupt_in(error))
    # What a sampler measures is how long the program is; a circle does not tell that.
    measures = not (isinstance(error, Livelock) and hasattr(job.policy, "sample"))
    if fault is None and measures and (finish := getattr(job.policy, "finish", None)) is not None:
        try:
            finish(len(record.steps))
        except BaseException as raised:  # noqa: ASYNC103
            fault = raised
    if fault is not None:
        return fault
    stopped = isinstance(error, StepLimit) and not isinstance(error, Livelock)
    caveats = frozenset(record.caveats)
    heard = () if record.outside is None else record.outside.reads()
    its = (record.value, error, record.steps, record.events, stopped, job.index, record.beside, record.order)
    return Execution(*its, caveats, heard, chance, record.changes)


def _interrupt_in(error: BaseException) -> BaseException | None:
    """Give the Ctrl-C that ended the program, also when a nursery has wrapped it."""
    if isinstance(error, KeyboardInterrupt):
        return error
    if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt) is not None:
        interrupt = KeyboardInterrupt()
        interrupt.__cause__ = error
        return interrupt
    return None
