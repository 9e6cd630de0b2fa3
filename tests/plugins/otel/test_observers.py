"""What becomes of observers that misbehave, what is refused, and what is counted."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Mapping
from typing import Any

import pytest

from tests.plugins.otel._observed import Keeper, wrong_with
from tests.plugins.otel._observed_batches import REGISTRY, run
from toolrt import Runtime
from toolrt.errors import DefinitionRefused, ObserverWarning
from toolrt.plugins.otel import Counts, Telemetry


class Failing:
    """Raises at every `kind`, or at everything."""

    def __init__(self, kind: str | None = None) -> None:
        self.kind = kind

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        if self.kind in (None, kind):
            raise RuntimeError("private words")


def test_observer_that_raises_is_counted_and_warned_of_once() -> None:
    """The warning says who and at what, and not the words; every call goes on."""
    observer = Failing()
    runtime = Runtime(REGISTRY, telemetry=observer)
    with pytest.warns(ObserverWarning) as caught:
        outcome = run(runtime, ("sleep", {}), ("write", {}))
    assert [result.ok for result in outcome.results] == [True, True]
    assert len(caught) == 1
    assert str(caught[0].message) == (
        "telemetry: Failing raised RuntimeError when it was told of batch.opened; no call was touched. "
        "What it raises from now on is only counted."
    )
    assert runtime.telemetry_failures == Runtime(REGISTRY, telemetry=observer).telemetry_failures > 10


def test_warning_that_is_an_error_fails_no_call() -> None:
    """Where warnings are errors: it is counted all the same."""
    runtime = Runtime(REGISTRY, telemetry=Failing())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(runtime, ("sleep", {})).results[0].ok
    assert runtime.telemetry_failures > 5


def test_sink_that_raises_keeps_nothing_from_the_others() -> None:
    """Before and behind it; each has its own count."""
    before, behind = Keeper(), Keeper()
    telemetry = Telemetry(before, Failing("call.started"), behind)
    with pytest.warns(ObserverWarning):
        run(Runtime(REGISTRY, telemetry=telemetry), ("sleep", {}), ("sleep", {}))
    assert before.told == behind.told
    assert telemetry.failures == (0, 2, 0)
    assert wrong_with(before.told) == []


def test_closing_closes_every_sink() -> None:
    """Also behind one whose closing raises; those without a close are left alone."""
    closed = []

    class Closing(Keeper):
        def close(self) -> None:
            closed.append(self)
            raise ValueError("cannot close")

    sinks = [Closing(), Keeper(), Closing()]
    with pytest.warns(ObserverWarning), Telemetry(*sinks) as telemetry:
        pass
    assert closed == [sinks[0], sinks[2]]
    assert telemetry.failures == (1, 0, 1)


def test_observer_that_cannot_be_referred_to_weakly_is_told_too() -> None:
    """And one that cannot be hashed, or says it equals another."""

    class Slotted:
        __slots__ = ("told",)
        __hash__ = None  # type: ignore[assignment]

        def __init__(self) -> None:
            self.told: list[str] = []

        def event(self, kind: str, fields: Mapping[str, Any]) -> None:
            self.told.append(kind)

        def __eq__(self, other: object) -> bool:
            return True

    observer = Slotted()
    run(Runtime(REGISTRY, telemetry=observer), ("sleep", {}))
    assert observer.told[-1] == "batch.ended"


def test_observer_is_kept_by_nobody() -> None:
    """What is kept of it goes with it."""
    from toolrt.runtime import _observer

    gc.collect()
    before = len(_observer._states)
    keeper = Keeper()
    run(Runtime(REGISTRY, telemetry=keeper), ("sleep", {}))
    assert len(_observer._states) == before + 1
    del keeper
    gc.collect()
    assert len(_observer._states) == before


@pytest.mark.parametrize("telemetry", [7, "text", Counts, object()])
def test_what_is_no_observer_is_refused(telemetry: Any) -> None:
    """By the runtime, by `Services` and by `Telemetry`, before anything runs."""
    with pytest.raises(DefinitionRefused, match="event"):
        Runtime(REGISTRY, telemetry=telemetry)
    with pytest.raises(DefinitionRefused, match="event"):
        Telemetry(telemetry)


def test_telemetry_refuses_what_cannot_be() -> None:
    """A root or mounts that are none; a secret that is too short, and the refusal does not say which."""
    with pytest.raises(DefinitionRefused, match="root"):
        Telemetry(root=7)  # type: ignore[arg-type]
    for root, mounts in (("/work", ["docs"]), ("/work", {"docs": 7}), (None, {"docs": "/docs"})):
        with pytest.raises(DefinitionRefused, match="mounts"):
            Telemetry(root=root, mounts=mounts)  # type: ignore[arg-type]
    with pytest.raises(DefinitionRefused) as refused:
        Telemetry(secrets=["xyz"])
    assert "xyz" not in str(refused.value)


def test_counts_refuse_names_that_nothing_has() -> None:
    """And say which there are."""
    with pytest.raises(DefinitionRefused, match=r"toolrt\.calls"):
        Counts().count("calls")
    with pytest.raises(DefinitionRefused, match=r"toolrt\.call\.wait"):
        Counts().distribution("toolrt.calls")


def test_counts_add_up() -> None:
    """By tool, outcome and reason, with how long it took."""
    counts = Counts()
    runtime = Runtime(REGISTRY, limit=1, telemetry=Telemetry(counts))
    run(runtime, ("write", {"seconds": 2}), ("write", {"seconds": 4}), ("broken", {}), ("nosuchtool", {}))
    assert counts.count("toolrt.calls") == 4
    assert counts.count("toolrt.calls", tool="write", outcome="ok") == 2
    assert counts.count("toolrt.calls", tool="broken", outcome="error") == 1
    assert counts.count("toolrt.calls", tool="(unknown)", outcome="invalid") == 1
    duration = counts.distribution("toolrt.call.duration", tool="write")
    assert (duration.count, duration.total, duration.least, duration.most) == (2, 6.0, 2.0, 4.0)
    assert sum(duration.classes) == 2
    assert counts.distribution("toolrt.call.wait", why="claims").total == 2.0
    assert counts.distribution("toolrt.call.wait", why="approval").least is None
    assert counts.snapshot()["toolrt.batch.duration"][0]["total"] == 6.0
