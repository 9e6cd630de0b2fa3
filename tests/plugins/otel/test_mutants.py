"""Broken variants of telemetry, each of which the checks that the properties stand on must catch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.plugins.otel._observed import (
    Exported,
    Keeper,
    Raising,
    outcomes_of_results,
    outcomes_of_spans,
    reported,
    told_as_reported,
    wrong_with,
    wrong_with_spans,
)
from toolrt import probe, sim
from toolrt.invariants.workloads import WORKLOADS
from toolrt.plugins.otel import Counts, OtelSpans, Telemetry
from toolrt.plugins.otel import _otel as otel
from toolrt.runtime._observer import Clock
from toolrt.runtime._telemetry import BatchTelemetry


def problems() -> list[str]:
    """What is wrong with telemetry on the workloads that cover the fine print."""
    found: list[str] = []
    for mix in WORKLOADS:
        for seed in range(3):
            exported, keeper = Exported(), Keeper()
            telemetry = Telemetry(keeper, OtelSpans(exported.provider), Counts())
            policies = [sim.RandomWalk(seed) for _ in range(3)]
            without = sim.run(mix.program(), policies[0])
            for observer, policy in ((telemetry, policies[1]), (Raising(), policies[2])):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with_it = sim.run(mix.program(observer), policy)
                if (with_it.value, with_it.trace) != (without.value, without.trace):
                    found.append("an observed execution is another execution")
            found += wrong_with(keeper.told)
            found += wrong_with_spans(exported.spans())
            if told_as_reported(keeper.told) != reported(without.trace):
                found.append("a trace says another thing")
            if outcomes_of_spans(exported.spans()) != outcomes_of_results(without.trace):
                found.append("a span has another outcome than its call's result")
            if sum(telemetry.failures):
                found.append("a sink fails")
            if found:
                return found
    return found


@pytest.mark.seldom
def test_honest_telemetry_has_no_problem() -> None:
    """Else the mutants below would be caught for nothing."""
    assert problems() == []


Patch = Callable[[pytest.MonkeyPatch], None]


def without_a_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an observer raises comes out where it is told."""

    def tell(self: Any, kind: str, fields: Mapping[str, Any]) -> None:
        told = {"time": self._clock.now(), "batch": self._batch_id, "number": self._number, **fields}
        self._observer.event(kind, told)

    monkeypatch.setattr(BatchTelemetry, "_tell", tell)


def touching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Telling is an access that a simulation sees."""
    honest = BatchTelemetry._tell

    def tell(self: Any, kind: str, fields: Mapping[str, Any]) -> None:
        probe.access(("telemetry",), True)
        honest(self, kind, fields)

    monkeypatch.setattr(BatchTelemetry, "_tell", tell)


def real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes back."""
    ticks = iter(range(10**9, 0, -1))
    monkeypatch.setattr(Clock, "now", lambda self: next(ticks))


def without(name: str) -> Patch:
    """Something is not told."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(BatchTelemetry, name, lambda *args, **named: None)

    return patch


def waits_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait does not end when its call is answered before it could start."""
    honest = BatchTelemetry.settled

    def settled(self: Any, call: Any) -> None:
        told = self._of(call)
        told.waits, waits = {}, told.waits
        honest(self, call)
        told.waits = waits

    monkeypatch.setattr(BatchTelemetry, "settled", settled)


def calls_told_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """An end comes twice."""
    honest = BatchTelemetry.release_began

    def release_began(self: Any, call: Any) -> None:
        honest(self, call)
        self._tell("call.ended", {"call": call.call_index, "ran": self._of(call).started})

    monkeypatch.setattr(BatchTelemetry, "release_began", release_began)


def spans_that_end_when_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call's span ends with its answer, although a shielded part of it still runs, and once more at its end."""
    honest = OtelSpans._settled

    def settled(self: Any, batch: Any, fields: Mapping[str, Any]) -> None:
        honest(self, batch, fields)
        self._end_call(batch, batch.calls[fields["call"]])

    monkeypatch.setitem(otel._REACTIONS, "call.settled", settled)  # type: ignore[arg-type]


def spans_without_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes are not children of their batch."""
    honest = OtelSpans._start

    def start(self: Any, name: str, parent: Any, *args: Any, **named: Any) -> Any:
        return honest(self, name, None if name == "toolrt.lane" else parent, *args, **named)

    monkeypatch.setattr(OtelSpans, "_start", start)


def lanes_that_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane's span never ends."""
    monkeypatch.setitem(otel._REACTIONS, "lane.ended", lambda self, batch, fields: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "patch",
    [
        without_a_guard,
        touching,
        real_time,
        waits_that_stay,
        calls_told_twice,
        spans_that_end_when_answered,
        spans_without_parents,
        lanes_that_stay_open,
        *map(without, ["opened", "left", "lane_began", "lane_ended", "joined", "granted", "started", "settled"]),
        *map(without, ["release_began"]),
    ],
    ids=lambda patch: patch.__name__ if patch.__name__ != "patch" else f"without_{patch.__closure__[0].cell_contents}",
)
def test_mutant_is_caught(patch: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one of the checks, on workloads that everybody can read."""
    patch(monkeypatch)
    assert problems() != []
