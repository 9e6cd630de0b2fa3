"""A recorded batch as a program for the simulator.

Rules.  Every execution gets a copy of the twin, a workspace, a runtime and a claim table of its own, so nothing of
one is seen by the next, and the real directory is never written to.  The batch is submitted, sealed and read as
``toolrt run`` does it.  The oracle runs the same calls one at a time on one more copy, without the runtime.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import attrs
import trio

from toolrt import invariants, sim
from toolrt.cli._tally import tally
from toolrt.cli.experiment._offer import file_tools
from toolrt.cli.experiment._policies import lanes_named, slots_named
from toolrt.cli.experiment._roots import Roots, fresh
from toolrt.cli.experiment._variation import NOTHING_ELSE, SCOPE, Variation
from toolrt.invariants.oracle import run_one_by_one
from toolrt.model import BatchOutcome, Registry, State, ToolCall
from toolrt.model._watched_state import parts_json
from toolrt.order import LANE_POLICIES, left_out, partition, promises_serial
from toolrt.runtime import Runtime
from toolrt.workspace import Disk, Workspace

#: Steps that an execution may take: each call takes about five, and as many again for each directory it makes.
_STEPS_AT_LEAST = 10_000
_STEPS_PER_CALL = 200


class ExperimentEnding:
    """How one execution ended: equal endings left the same results, state and files.

    Files are looked at when first asked for, outside the simulation, where looking is no step of it.
    """

    def __init__(self, outcome: BatchOutcome, workspace: Workspace, known: Mapping[int, str]) -> None:
        #: The results and the state.
        self.outcome = outcome
        self._workspace = workspace
        self._known = known

    @cached_property
    def files(self) -> dict[str, str]:
        """What every file holds, as a digest, and what else is there."""
        return _digests(self._workspace.snapshot(), self._known)

    @cached_property
    def digest(self) -> str:
        """Twelve hex digits that tell endings apart."""
        results = [result.to_json() for result in self.outcome.results]
        everything = [results, self.outcome.state.to_json(), self.files]
        return _digest(json.dumps(everything, sort_keys=True, default=repr).encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExperimentEnding) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def in_words(self) -> str:
        """The same for people, who do not know what the digest is of."""
        return f"{tally(self.outcome.results)} (digest of results, state and files: {self.digest})"

    def __repr__(self) -> str:
        return f"{tally(self.outcome.results)} (ending {self.digest})"


@attrs.frozen(slots=False)
class Experiment:
    """Calls, the directory they work on, and how they are run."""

    #: The calls, in call order.
    calls: tuple[ToolCall, ...]
    #: The twin of the directories; every execution has a copy.
    disk: Disk
    #: The lane policy's name.
    lanes: str
    #: How many calls run at once.
    limit: int
    #: What else may happen.
    variation: Variation = NOTHING_ELSE
    #: After so many steps an execution is stopped; None: many more than it needs.
    steps: int | None = None
    #: The slot policy's name; None: ready calls take slots in call order.
    slots: str | None = None

    @classmethod
    def on(
        cls,
        roots: Roots,
        calls: tuple[ToolCall, ...],
        lanes: str,
        limit: int,
        variation: Variation = NOTHING_ELSE,
        slots: str | None = None,
    ) -> Experiment:
        """The experiment on a copy of the directories `roots`.

        Raises:
            InputRefused: there is no policy of that name.
            PolicyRefused: the lane policy fails, or keeps state between batches.
        """
        return cls(calls, roots.twin(variation.fault()), lanes, limit, variation, slots=slots)

    def __attrs_post_init__(self) -> None:
        slots_named(self.slots)
        if self.lanes not in LANE_POLICIES:
            partition(self.calls, Registry(file_tools(Workspace(fresh(self.disk)))), policy=lanes_named(self.lanes))
        self._known  # noqa: B018  looking at the files must not be a step of the first execution

    def __getstate__(self) -> dict[str, Any]:
        # The digests are kept under what `id` gives in this process.
        return {name: value for name, value in self.__dict__.items() if name not in ("_known", "_before")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._known  # noqa: B018

    @property
    def step_limit(self) -> int:
        """After so many steps an execution is stopped."""
        if self.steps is not None:
            return self.steps
        return max(_STEPS_AT_LEAST, _STEPS_PER_CALL * len(self.calls))

    async def program(self) -> ExperimentEnding:
        """One execution: what `toolrt.sim` is given."""
        workspace = Workspace(fresh(self.disk))
        timeout = self.variation.timeout
        registry, lanes, slots = Registry(file_tools(workspace)), lanes_named(self.lanes), slots_named(self.slots)
        runtime = Runtime(registry, lanes, self.limit, timeout=timeout, slots=slots)
        with sim.scope(SCOPE) if self.variation.cancel else contextlib.nullcontext():
            async with runtime.open_batch(expected_reads=runtime.registry.reads_in(self.calls)) as batch:
                for call in self.calls:
                    batch.submit(call)
                batch.seal()
                async for _ in batch:
                    pass
        return ExperimentEnding(batch.outcome, workspace, self._known)

    def run(self, choices: Sequence[int] = ()) -> sim.Execution:
        """One execution of these choices, and of the simplest ones behind them."""
        return sim.run(self.program, sim.Choices(choices), step_limit=self.step_limit, **self.variation.actors)

    def replay(self, schedule: sim.Schedule) -> sim.Execution:
        """The execution of `schedule` again.

        Raises:
            ReplayDiverged: it cannot be repeated.
        """
        return sim.replay(self.program, schedule, **self.variation.actors)

    @cached_property
    def _before(self) -> Mapping[str, bytes | str]:
        """The directory as every execution finds it."""
        return Workspace(self.disk).snapshot()

    @cached_property
    def _known(self) -> Mapping[int, str]:
        """The digests of contents that are there at first, by their `id`; `_before` keeps them alive.

        Copies of a twin share what was not changed, so most contents need not be read again.
        """
        return {id(content): _digest(content) for content in self._before.values() if isinstance(content, bytes)}

    @cached_property
    def tree_digest(self) -> str:
        """Twelve hex digits that tell directories apart by what is in them."""
        return _digest(json.dumps(_digests(self._before, self._known), sort_keys=True).encode())

    @property
    def identity(self) -> str:
        """What tells experiments apart: the calls, the directories' content, and how the calls are run."""
        calls = [[call.call_id, call.name, call.input] for call in self.calls]
        everything = [calls, self.tree_digest, self.lanes, self.limit, self.variation.to_json()]
        everything += [] if self.slots is None else [self.slots]
        return _digest(json.dumps(everything, sort_keys=True, default=repr).encode())

    @cached_property
    def oracle(self) -> dict[str, Any]:
        """What one call at a time gives, as law `same_as_oracle` takes it."""
        return {
            **self._one_by_one(self.calls, self.lanes),
            "exact": True,
            "versions": self._versions() if self.variation.cancel else {},
        }

    @cached_property
    def serial(self) -> dict[str, Any]:
        """What the policy `serial` gives on the same calls, as law `same_as_serial` takes it."""
        return self._one_by_one(self.calls, "serial")

    def _one_by_one(self, calls: Sequence[ToolCall], lanes: str) -> dict[str, Any]:
        workspace = Workspace(fresh(self.disk))
        registry = Registry(file_tools(workspace))
        found = trio.run(partial(run_one_by_one, calls, registry, State(), lanes=lanes_named(lanes)))
        return {
            "results": [result.to_json() for result in found.results],
            "sets": [parts_json(parts) for parts in found.sets],
            "state": found.state.to_json(),
            "files": _digests(workspace.snapshot(), self._known),
        }

    def _versions(self) -> dict[str, list[str | None]]:
        """What each file holds after each number of calls; None where it is not there."""
        prefixes = [self._one_by_one(self.calls[:count], self.lanes)["files"] for count in range(len(self.calls) + 1)]
        paths = {path for files in prefixes for path in files}
        return {path: list(dict.fromkeys(files.get(path) for files in prefixes)) for path in sorted(paths)}

    def check(self, execution: sim.Execution, twice: bool = False) -> list[invariants.Violation]:
        """Every violation of the laws in one execution.

        Args:
            execution: of `program`.
            twice: run its schedule once more, for law `same_schedule_same_trace`.
        """
        self._note(execution)
        if twice:
            again = self.run(execution.choices)
            execution.trace.notes["replay_digest"] = invariants.trace_digest(again.trace)
        return invariants.check(execution.trace)

    def _note(self, execution: sim.Execution) -> None:
        """Put what the laws compare with into the notes of the execution's trace."""
        notes = execution.trace.notes
        if self.variation.clock_moves is not None:
            notes["time_moves_early"] = True
        if self.variation.compares:
            notes["oracle"] = self.oracle
            if promises_serial(lanes_named(self.lanes)):
                notes["serial"] = self.serial
        if isinstance(execution.value, ExperimentEnding):
            notes["files"] = execution.value.files

    @cached_property
    def unchecked(self) -> tuple[str, ...]:
        """The laws that one run of the simplest schedule cannot check."""
        execution = self.run()
        self._note(execution)
        verdicts = invariants.verdicts(execution.trace)
        not_checked = (invariants.LawVerdict.NOT_CHECKED, invariants.LawVerdict.GIVEN_UP)
        return tuple(law for law, verdict in verdicts.items() if verdict in not_checked)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What of the laws a policy of the user's own leaves out, each as a text."""
        own = self.slots is not None or self.lanes not in LANE_POLICIES
        return left_out(lanes_named(self.lanes), slots_named(self.slots)) if own else ()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _digests(files: Mapping[str, bytes | str], known: Mapping[int, str]) -> dict[str, str]:
    """What each file holds, as a digest; links and the like as they are."""
    return {
        path: content if isinstance(content, str) else known.get(id(content)) or _digest(content)
        for path, content in files.items()
    }
