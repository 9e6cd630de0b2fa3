"""A mix: one batch of scripted calls with the settings of its run, except for the schedule.

A mix is a value.  `Mix.program` is a program for `toolrt.sim`; `simulate` runs it once and puts into the trace's
notes what the laws need besides the events: what the oracle gives, and what the files hold.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import attrs
import trio

from toolrt import sim
from toolrt.errors import DefinitionRefused, InternalError, PolicyRefused
from toolrt.invariants.mixes._crash import until_crash
from toolrt.invariants.mixes._twin import TwinDisk
from toolrt.invariants.mixes._world import World
from toolrt.invariants.oracle import run_one_by_one
from toolrt.invariants.predicates._check import check
from toolrt.invariants.predicates._equality import trace_digest
from toolrt.invariants.predicates._law import Predicate, Violation
from toolrt.invariants.script import LEAVES_NOTHING, Brief, Scripted
from toolrt.invariants.serial import SerialRun
from toolrt.model import BatchOutcome, Observer, State
from toolrt.model._watched_state import parts_json
from toolrt.order import (
    LANE_POLICIES,
    LanePolicy,
    Limits,
    SlotPolicy,
    checked_lanes,
    checked_slots,
    is_rule,
    left_out,
    partition,
    promises_serial,
)
from toolrt.runtime import Batch, Runtime
from toolrt.store import Journal, MemoryRecords

#: The batch's id, in the runtime and in the oracle: texts name it.
_BATCH = "mix"

#: Virtual seconds that a slow reader takes for each update.
SLOW_READER = 1.0


def _calls(given: Iterable[Scripted]) -> tuple[Scripted, ...]:
    calls = _tuple_of("calls", "Scripted calls, in call order", given)
    for call in calls:
        if not isinstance(call, Scripted):
            raise DefinitionRefused("a mix's call", "a Scripted call", call)
    return calls


def _seconds(given: Iterable[float]) -> tuple[float, ...]:
    return _tuple_of("delays", _DELAYS, given)


def _tuple_of(field: str, expected: str, given: Iterable[Any]) -> tuple[Any, ...]:
    try:
        return tuple(given)
    except TypeError:
        raise DefinitionRefused(f"Mix({field})", expected, given) from None


_DELAYS = "virtual seconds, 0 or more, for each call"


def _are_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _are_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair)


def _are_numbers(value: object) -> bool:
    """Say whether it is a sequence of whole numbers, 0 or more."""
    return isinstance(value, Sequence) and all(map(_is_place, value))


def _must_be(expected: str, fits: Callable[[Any], bool]) -> Callable[[Any, Any, Any], None]:
    """Make a validator of a field of a mix."""

    def validate(_: object, field: Any, value: object) -> None:
        if not fits(value):
            raise DefinitionRefused(f"Mix({field.name})", expected, value)

    return validate


def _lanes(given: Any) -> Any:
    """A lane policy of toolrt's own stands by its name."""
    return given.__name__ if any(given is policy for policy in LANE_POLICIES.values()) else given


def _are_lanes(instance: object, field: Any, value: Any) -> None:
    names = f"one of {', '.join(LANE_POLICIES)}, or a lane policy of your own"
    if isinstance(value, str) or not (callable(value) or is_rule(value)):
        _must_be(names, lambda value: isinstance(value, str) and value in LANE_POLICIES)(instance, field, value)
    else:
        checked_lanes("Mix(lanes)", value)


def _is_place(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_a_count(value: Any) -> bool:
    return _is_place(value) and value >= 1


def _disagree(calls: Iterable[Scripted]) -> bool:
    """Say whether two of the calls, or of those inside, give a rate or a resource two numbers."""
    claims = [claim for call in calls for one in call.family for claim in one.claims if claim.slots is not None]
    return len(set(claims)) > len({claim.resource for claim in claims})


_IS_A_COUNT_OR_NONE = _must_be(
    "a number of calls, 1 or more, or None", lambda value: value is None or _is_a_count(value)
)
_ARE_SECONDS_OR_NONE = _must_be(
    "virtual seconds, 0 or more, or None", lambda value: value is None or _are_seconds(value)
)


def _one_of(*names: str) -> Callable[[Any, Any, Any], None]:
    return _must_be(f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names)


@attrs.frozen
class MixEnding:
    """How one execution of a mix ended."""

    #: Each call's outcome, in call order.
    outcomes: tuple[str, ...]
    #: What each file holds, by name.
    files: tuple[tuple[str, str], ...]
    #: Whether the reader was told that nothing more would come.
    read_to_the_end: bool = attrs.field(default=False, eq=False, repr=False)
    #: How many groups of claims are left on the workspace's disk.
    claims_left: int = attrs.field(default=0, eq=False, repr=False)
    #: How many threads of its calls still run.
    threads_left: int = attrs.field(default=0, eq=False, repr=False)

    def __str__(self) -> str:
        files = ", ".join(f"{name}={text!r}" for name, text in self.files)
        return " ".join(self.outcomes) + (f"; {files}" if files else "")


@attrs.frozen(slots=False, repr=False)
class Mix(Brief):
    """One batch of scripted calls.

    Raises:
        DefinitionRefused: a field is not what it must be.
    """

    #: The calls, in call order.
    calls: tuple[Scripted, ...] = attrs.field(default=(), converter=_calls)
    #: The lane policy: the name of one of toolrt's own, or one of yours.
    lanes: Literal["by_claims", "by_safety", "parallel", "serial"] | LanePolicy = attrs.field(
        default="by_claims", converter=_lanes, validator=_are_lanes
    )
    #: How many calls run at once, 1 or more; None is no limit.
    limit: int | None = attrs.field(
        default=10,
        validator=_IS_A_COUNT_OR_NONE,
    )
    #: Virtual seconds before each call is submitted, from the one before; shorter than `calls` means 0 for the rest.
    delays: tuple[float, ...] = attrs.field(
        default=(),
        converter=_seconds,
        validator=_must_be(_DELAYS, lambda value: all(map(_are_seconds, value))),
    )
    #: Virtual seconds after which the batch is cancelled, or None.
    cancel_after: float | None = attrs.field(
        default=None,
        validator=_ARE_SECONDS_OR_NONE,
    )
    #: Whether it is cancelled by an enclosing scope; else by `Batch.cancel`.
    cancel_outside: bool = False
    #: "eager" asks at once for the next update, "slow" takes a second for each, "none" never asks.
    reader: Literal["eager", "slow", "none"] = attrs.field(default="eager", validator=_one_of("eager", "slow", "none"))
    #: What the files hold at first.
    files: Mapping[str, str] = attrs.field(factory=dict, validator=_must_be("texts by name", _are_texts))
    #: What the state holds at first.
    state: Mapping[str, str] = attrs.field(factory=dict, validator=_must_be("texts by name", _are_texts))
    #: Which ready call takes the next slot: a slot policy of yours, or None for the lowest call_index.
    slots: SlotPolicy | None = attrs.field(
        default=None, validator=lambda _, field, value: checked_slots("Mix(slots)", value)
    )
    #: What the twin disk holds at first, by path, as of `toolrt.workspace.MemoryDisk`; None: see `UseTool`.
    disk: Mapping[str, Any] | None = None
    #: The place of the one call that is cancelled then, by `Batch.cancel_call`; None: the whole batch is.
    cancel_call: int | None = attrs.field(
        default=None,
        validator=_must_be("the place of a call, or None", lambda value: value is None or _is_place(value)),
    )

    #: How many calls run at once by a limit that batches may share, 1 or more; None is no such limit.
    shared: int | None = attrs.field(default=None, validator=_IS_A_COUNT_OR_NONE)
    #: The same for the calls at even places together.
    shared_evens: int | None = attrs.field(default=None, validator=_IS_A_COUNT_OR_NONE)

    #: How many calls those of the calls at even places may be, in one conversation, 1 or more; None is any number.
    uses_evens: int | None = attrs.field(default=None, validator=_IS_A_COUNT_OR_NONE)
    #: Calls of another batch that runs beside it: of the same runtime, so it shares its limits, rates and claims.  They
    #: leave nothing behind.
    beside: tuple[Scripted, ...] = attrs.field(default=(), converter=_calls)
    #: Seconds from when the batch begins until it is cancelled by its deadline, above 0, or None.
    deadline: float | None = attrs.field(
        default=None,
        validator=_must_be(
            "virtual seconds, above 0, or None", lambda value: value is None or (_are_seconds(value) and value > 0)
        ),
    )
    #: Virtual seconds after which its process crashes, and another one goes on with the batch; None: it does not crash,
    #: and has no journal.
    crash_after: float | None = attrs.field(
        default=None,
        validator=_ARE_SECONDS_OR_NONE,
    )

    def __attrs_post_init__(self) -> None:
        self._check_together()
        if not isinstance(self.lanes, str):
            # Refuses a policy that fails, or that keeps state between batches.
            world = self._world()
            partition(world.calls(), world.registry(), State(self.state), self.lanes)

    def _check_together(self) -> None:
        """Refuse fields that do not go together."""
        left = [action for call in self.beside for action in call.does if not isinstance(action, LEAVES_NOTHING)]
        if left:
            raise DefinitionRefused("Mix(beside)", "calls that leave nothing behind", left[0])
        if self.beside and _disagree((*self.calls, *self.beside)):
            # Which batch says its number first is the schedule's choice.
            raise DefinitionRefused("Mix(beside)", "one number for each rate and each resource with places", self)
        if self.crash_after is None:
            return
        if self.cancel_after is not None or self.deadline is not None or self.beside:
            raise DefinitionRefused("Mix(crash_after)", "no cancel, no deadline and no other batch", self)
        if any(call.uses is not None or call.thread for call in self.calls):
            raise DefinitionRefused("Mix(crash_after)", "no tool of a workspace, and no thread", self)

    @property
    def lane_policy(self) -> LanePolicy:
        """The lane policy itself."""
        return LANE_POLICIES[self.lanes] if isinstance(self.lanes, str) else self.lanes

    @property
    def left_out(self) -> tuple[str, ...]:
        """What of the laws is not checked because of the policies, each as a text."""
        return left_out(self.lane_policy, self.slots)

    @property
    def approves(self) -> bool:
        """Whether the runtime has an approval check."""
        family = (one for call in self.calls for one in call.family)
        return any(call.approval is not None or call.approval_after is not None for call in family)

    @property
    def exact(self) -> bool:
        """Whether every schedule must give the oracle's results; with a cancel, only what had finished."""
        return self.cancel_after is None and self.deadline is None

    @property
    def has_oracle(self) -> bool:
        """Whether it can be compared with one call at a time: no timeout runs while other calls may.

        What fits into a call's timeout when a sub-batch of it runs at once need not when it runs one call at a time.
        """
        family = (one for call in self.calls for one in call.family)
        return not any(call.timeout is not None and call.sub_batches for call in family)

    def with_call(self, index: int, call: Scripted | None = None, /, **changes: Any) -> Mix:
        """The same mix with another call at `index`.

        Args:
            index: the call's place, from 0; the number of calls puts `call` behind the last.
            call: what stands there instead; None: what stands there now.
            changes: fields of that call, and what they become: ``with_call(1, timeout=2.0)``.

        Raises:
            DefinitionRefused: there is no such call, or no such field.
        """
        most = len(self.calls) if call is not None else len(self.calls) - 1
        if not (_is_place(index) and index <= most):
            raise DefinitionRefused("with_call(index)", f"the place of a call, 0 to {most}", index)
        call = self.calls[index] if call is None else call
        fields = [field.name for field in attrs.fields(Scripted)]
        if unknown := [name for name in changes if name not in fields]:
            raise DefinitionRefused("with_call(changes)", f"fields of a call: {', '.join(fields)}", unknown)
        if changes:
            call = attrs.evolve(call, **changes)
        return attrs.evolve(self, calls=(*self.calls[:index], call, *self.calls[index + 1 :]))

    def without_call(self, index: int) -> Mix:
        """The same mix without the call at `index`; those behind it move up, and so do their delays.

        Raises:
            DefinitionRefused: there is no such call.
        """
        if not (_is_place(index) and index < len(self.calls)):
            raise DefinitionRefused("without_call(index)", f"the place of a call, 0 to {len(self.calls) - 1}", index)
        calls = (*self.calls[:index], *self.calls[index + 1 :])
        after, cut = self.cancel_after, self.cancel_call
        if cut is not None and cut >= index:
            after, cut = (None, None) if cut == index else (after, cut - 1)
        delays = (*self.delays[:index], *self.delays[index + 1 :])
        return attrs.evolve(self, calls=calls, delays=delays, cancel_after=after, cancel_call=cut)

    def with_completion_order(self, ranks: Sequence[int]) -> Mix:
        """The same mix, its calls lasting as long as their ranks say: equal ranks end in the same instant.

        Args:
            ranks: one number for each call, 0 or more.  A call of rank r runs for r + 1 virtual seconds.

        Raises:
            DefinitionRefused: there are not as many ranks as calls, or one is no whole number of 0 or more.
        """
        if not _are_numbers(ranks) or len(ranks) != len(self.calls):
            raise DefinitionRefused("a completion order", f"{len(self.calls)} ranks, 0 or more", ranks)
        calls = [call.lasting(rank + 1) for call, rank in zip(self.calls, ranks, strict=True)]
        return attrs.evolve(self, calls=calls)

    def program(self, telemetry: Observer | None = None) -> Callable[[], Awaitable[MixEnding]]:
        """A program for `toolrt.sim`: one execution of the mix, with a world of its own.

        Args:
            telemetry: receives what the runtime does.
        """

        def runtime(world: World, records: MemoryRecords | None) -> Runtime:
            approve = world.approve if self.approves else None
            registry, policy, limit = world.registry(), self.lane_policy, self.limit
            options: dict[str, Any] = {"telemetry": telemetry, "slots": self.slots, "limits": self._limits()}
            journal = None if records is None else Journal(records)
            return Runtime(registry, policy, limit, approve, journal=journal, **options)

        async def process(world: World, records: MemoryRecords | None) -> MixEnding:
            runs = runtime(world, records)
            batch = runs.open_batch(State(self.state), batch_id=_BATCH, deadline=self.deadline)
            if not self.beside:
                return await alone(world, batch)
            async with trio.open_nursery() as both:
                both.start_soon(functools.partial(runs.run, world.calls_beside(), batch_id="beside"))
                found = await alone(world, batch)
            # Both share one table: whether it is empty can be judged when both are over.
            return ending(world, batch.outcome, found.read_to_the_end)

        async def alone(world: World, batch: Batch) -> MixEnding:
            read_to_the_end, scope = False, trio.CancelScope()
            async with trio.open_nursery() as nursery:
                with scope:
                    if self.cancel_after is not None:
                        nursery.start_soon(_cancel, batch, scope, self)
                    read_to_the_end = await self._run(batch, world)
                nursery.cancel_scope.cancel()
            return ending(world, batch.outcome, read_to_the_end)

        async def run() -> MixEnding:
            world = self._world()
            if self.crash_after is None:
                return await process(world, None)
            records = MemoryRecords()
            found = await until_crash(
                lambda: process(world, records), self.crash_after, lambda: (world.after_crash(), records.copy())
            )
            if isinstance(found, MixEnding):
                return found
            world, records = found.left
            if records.read(_BATCH) is None:
                return await process(world, records)
            return ending(world, await runtime(world, records).resume(_BATCH), False)

        return run

    def _limits(self) -> Limits | None:
        """The limits that its batch may share with others."""
        evens: str | tuple[str, ...] = tuple(f"tool{index}" for index in range(0, len(self.calls), 2))
        tools, uses = (
            {} if not evens or number is None else {evens: number} for number in (self.shared_evens, self.uses_evens)
        )
        return Limits(self.shared, tools=tools, uses=uses) if self.shared is not None or tools or uses else None

    @property
    def denied(self) -> frozenset[int]:
        """The places of the calls that are denied because the conversation has used their tools up."""
        counted = [index for index, call in enumerate(self.calls) if index % 2 == 0 and call.is_of_a_script]
        return frozenset() if self.uses_evens is None else frozenset(counted[self.uses_evens :])

    def _world(self, remembers: bool = False) -> World:
        """A world for one execution; if it `remembers`, with all versions of what is on the disk."""
        twin = TwinDisk(self.disk, remembers) if any(call.uses is not None for call in self.calls) else None
        return World(self.calls, self.files, twin, self.beside)

    async def _run(self, batch: Batch, world: World) -> bool:
        """Run the batch, and say whether it was read to its end."""
        async with batch, trio.open_nursery() as nursery:
            if any(self.delays):
                nursery.start_soon(self._submit, batch, world)
            else:
                for call in world.calls():
                    batch.submit(call)
                batch.seal()
            if self.reader != "none":
                async for _ in batch:
                    # The reader does nothing else; where it sees progress of sub-batches, see `World`.
                    world.vouch()
                    if self.reader == "slow":
                        await trio.sleep(SLOW_READER)
                        world.vouch()
        return self.reader != "none"

    async def _submit(self, batch: Batch, world: World) -> None:
        delays = dict(enumerate(self.delays))
        for index, call in enumerate(world.calls()):
            if delays.get(index):
                await trio.sleep(delays[index])
            batch.submit(call)
        batch.seal()

    def oracle(self) -> dict[str, Any]:
        """What one call at a time gives: results, state, files, and every version each file had."""
        return self._asked()[0]

    def serial(self) -> dict[str, Any] | None:
        """What `serial` gives on the same calls, with what each call sets of the state; None: no law asks for it.

        It is run once for a mix, whatever the number of schedules.
        """
        return self._asked()[1]

    def _asked(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        found = _oracles.get(id(self))
        if found is None:
            in_lanes = self._one_by_one(self.lane_policy)
            found = in_lanes, self._serially() if promises_serial(self.lane_policy) else None
            _oracles[id(self)] = found
            weakref.finalize(self, _oracles.pop, id(self), None)
        return found

    def _one_by_one(self, policy: LanePolicy) -> dict[str, Any]:
        async def run(world: World, approve: Any) -> dict[str, Any]:
            registry, state = world.registry(), State(self.state)
            plan: dict[str, Any] = {"lanes": policy, "approve": approve, "batch_id": _BATCH, "denied": self.denied}
            found = await run_one_by_one(world.calls(), registry, state, **plan)
            return {"sets": [parts_json(parts) for parts in found.sets], "stale": list(found.stale), **_told(found)}

        return self._told_by(run)

    def _serially(self) -> dict[str, Any]:
        async def run(world: World, approve: Any) -> dict[str, Any]:
            plan = SerialRun(world.registry(), approve, denied=self.denied)
            found = await plan.run(world.calls(), State(self.state), batch_id=_BATCH)
            tree = {name: {"alone": list(one.alone), **_told(one)} for name, one in plan.tree.items()}
            return {"sets": [sorted(map(list, parts)) for parts in found.sets], "tree": tree, **_told(found)}

        return self._told_by(run)

    def _told_by(self, oracle: Callable[[World, Any], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """What an oracle says of the mix, with what it leaves in files."""
        world = self._world(remembers=not self.exact)
        approve = world.approve if self.approves else None

        async def run() -> dict[str, Any]:
            return {
                **await oracle(world, approve),
                "files": {**world.files, **({} if world.twin is None else world.twin.files)},
                "versions": {**world.versions, **({} if world.twin is None else world.twin.versions)},
                "exact": self.exact,
            }

        execution = sim.run(run)
        if isinstance(execution.error, PolicyRefused):
            raise execution.error
        if execution.error is not None:
            raise InternalError(f"the oracle of {self!r} ended by {execution.error!r}") from execution.error
        answer: dict[str, Any] = execution.value
        return answer

    @property
    def check(self) -> MixCheck:
        """What `toolrt.sim.explore` takes as its check: ``mix.check(execution, laws)`` gives every violation."""
        return MixCheck(self)


@attrs.frozen
class MixCheck:
    """Holds executions of one mix against the laws."""

    #: What is run.
    mix: Mix

    def __call__(self, execution: sim.Execution, laws: Mapping[str, Predicate] | None = None) -> list[Violation]:
        """Every violation of the `laws`, ours by default, in one execution of the mix.

        Raises:
            AssertionError: no law is broken, and the execution ended by an error.
        """
        judged(self.mix, execution)
        found = check(execution.trace, laws)
        if not found and execution.error is not None:
            raise AssertionError(f"the execution ended by {execution.error!r}")
        return found

    @property
    def leaves_out(self) -> tuple[str, ...]:
        """What of the laws is not checked because of the mix's policies, each as a text."""
        return self.mix.left_out


def _told(found: Any) -> dict[str, Any]:
    return {"results": [result.to_json() for result in found.results], "state": found.state.to_json()}


#: What the oracle said of mixes that are still alive.
_oracles: dict[int, tuple[dict[str, Any], dict[str, Any] | None]] = {}


def ending(world: World, outcome: BatchOutcome, read_to_the_end: bool) -> MixEnding:
    """How a batch that is over with this `outcome` has left its `world`."""
    outcomes = tuple(result.outcome.value for result in outcome.results)
    twin = world.twin
    files, left = (world.files, 0) if twin is None else ({**world.files, **twin.files}, twin.claims_left)
    return MixEnding(outcomes, tuple(sorted(files.items())), read_to_the_end, left, world.running)


async def _cancel(batch: Batch, scope: trio.CancelScope, mix: Mix) -> None:
    await trio.sleep(mix.cancel_after or 0)
    cancel(batch, mix, scope.cancel)


def cancel(batch: Batch, mix: Mix, outside: Callable[[], object]) -> None:
    """Cancel what the `mix` says, in the way that it says; one call alone only once it was submitted."""
    if mix.cancel_call is not None:
        if mix.cancel_call < len(batch.calls):
            batch.cancel_call(mix.cancel_call, "the mix says so")
    elif mix.cancel_outside:
        outside()
    else:
        batch.cancel("the mix says so")


def judged(mix: Mix, execution: sim.Execution) -> sim.Execution:
    """The same execution, with the oracle's answer and the files in its trace's notes."""
    notes = execution.trace.notes
    if mix.has_oracle:
        notes["oracle"] = mix.oracle()
        in_turn = mix.serial()
        if in_turn is not None:
            notes["serial"] = in_turn
    if isinstance(execution.value, MixEnding):
        notes["files"] = dict(execution.value.files)
        if any(call.uses is not None for call in mix.calls):
            notes["temp_files"] = [name for name, _ in execution.value.files if ".toolrt" in name]
            notes["claims_left"] = ["in the table"] * execution.value.claims_left
        if execution.value.threads_left:
            notes["threads"] = ["of a call"] * execution.value.threads_left
        if execution.value.read_to_the_end:
            notes["read_to_the_end"] = _BATCH
    return execution


def simulate(
    mix: Mix,
    schedule: Sequence[int] | sim.Schedule | str | None = None,
    completion_order: Sequence[int] | None = None,
    *,
    replayed: bool = False,
    step_limit: int = 20_000,
) -> sim.Execution:
    """Run `mix` once and return the execution, its trace ready for `invariants.check`.

    Args:
        mix: what to run.
        schedule: small numbers, one for each step (0 is the simplest choice, and what a list that is too short
            goes on with); or a schedule, which is replayed exactly; or None: the simplest choices.
        completion_order: as for `Mix.with_completion_order`.
        replayed: run the schedule a second time too and note the digest of its trace, for law 14.
        step_limit: the number of steps after which it is stopped.

    Raises:
        ReplayDiverged: `schedule` is a schedule of another program.
        ScheduleRefused: `schedule` is a text that is no schedule.
        DefinitionRefused: the completion order does not fit, or an argument is not what it must be.
    """
    if not isinstance(mix, Mix):
        raise DefinitionRefused("simulate(mix)", "a Mix", mix)
    if not (schedule is None or isinstance(schedule, sim.Schedule | str) or _are_numbers(schedule)):
        raise DefinitionRefused("simulate(schedule)", "choices, 0 or more, a schedule, or None", schedule)
    if completion_order is not None:
        mix = mix.with_completion_order(completion_order)

    def once(choices: Sequence[int] | sim.Schedule | str | None) -> sim.Execution:
        if isinstance(choices, sim.Schedule | str):
            return sim.replay(mix.program(), choices)
        return sim.run(mix.program(), sim.Choices([] if choices is None else choices), step_limit=step_limit)

    execution = judged(mix, once(schedule))
    if replayed:
        execution.trace.notes["replay_digest"] = trace_digest(once(execution.choices).trace)
    return execution
