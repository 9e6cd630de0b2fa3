"""Samplers that look at few tasks a step draw as the plain rules do: the same seed gives the same schedule."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolrt import sim

Touched = tuple[tuple[tuple[str, int], bool], ...]


class PlainURW:
    """Weighs every enabled task at every step."""

    def __init__(self, policy: sim.URW) -> None:
        self.seed, self.lengths = policy.seed, policy._lengths

    def start(self, steps: list[Any]) -> None:
        self.draw, self.known = Random(self.seed).random, self.lengths.trials >= 3
        self.made: dict[str, int] = {}
        self.left: dict[str, int] = {}

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        for name in enabled:
            if name not in self.made:
                self.made[name] = 0
                self.left[name] = whole = self.lengths.with_children(name)
                if (parent := name.rpartition(".")[0]) in self.left:
                    self.left[parent] -= whole
        best = 0
        if len(enabled) > 1 and self.known:
            weights = [max(1, self.left[name]) for name in enabled]
            drawn = self.draw() * sum(weights)
            while best < len(weights) - 1 and drawn >= sum(weights[: best + 1]):
                best += 1
        elif len(enabled) > 1:
            best = int(self.draw() * len(enabled))
        self.made[enabled[best]] += 1
        self.left[enabled[best]] -= 1
        return best


class PlainPOS:
    """Compares the step that was made with what every other task touches next."""

    def __init__(self, policy: sim.POS) -> None:
        self.seed, self.seen = policy.seed, dict(policy._footprints)

    def start(self, steps: list[Any]) -> None:
        self.draw, self.steps = Random(self.seed).random, steps
        self.priorities: dict[str, float] = {}
        self.made: dict[str, int] = {}
        self.parked: dict[str, Touched] = {}

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        if step:
            self.after(self.steps[-1][3], enabled)
        for name in enabled:
            if name not in self.priorities:
                self.priorities[name] = self.draw()
        self.chosen = max(enabled, key=self.priorities.__getitem__)
        return enabled.index(self.chosen)

    def after(self, touched: Touched, enabled: tuple[str, ...]) -> None:
        name = self.chosen
        waits_for = tuple(access for access in touched if access[0][0] == "Lock")
        self.parked[name] = () if name in enabled else waits_for
        self.seen[name, self.made.get(name, 0)] = touched
        self.made[name] = self.made.get(name, 0) + 1
        del self.priorities[name]
        for other in [*self.priorities]:
            expected = self.parked.get(other, ()) + self.seen.get((other, self.made.get(other, 0)), ())
            conflict = any(mine == its and (write or writes) for mine, write in touched for its, writes in expected)
            if conflict or not touched or not expected:
                del self.priorities[other]


ACCESSES = st.lists(st.tuples(st.sampled_from([("Lock", 0), ("cell", 0), ("cell", 1)]), st.booleans()), max_size=2)
NAMES = st.sampled_from(["main.0", "main.1", "main.0.0", "main.1.0", "main.2"])
STEPS = st.lists(st.tuples(st.lists(NAMES, min_size=1, unique=True), ACCESSES), min_size=1, max_size=12)


@given(st.lists(STEPS, min_size=5, max_size=5), st.integers(0, 9), st.booleans())
def test_samplers_draw_as_the_plain_rules_do(executions: list[Any], seed: int, is_pos: bool) -> None:
    """Whichever tasks can run and whatever they touch, five executions of one sample choose alike."""
    sample: Any = (sim.POS if is_pos else sim.URW)(seed).sample()
    for index, execution in enumerate(executions):
        policy: Any = sample.derive(index)
        plain: Any = (PlainPOS if is_pos else PlainURW)(policy)
        steps: list[Any] = []
        policy.start(sim.RunInfo(index, 100, steps))
        plain.start(steps)
        for number, (names, touched) in enumerate(execution):
            enabled = tuple(names)
            choice = policy.choose(enabled, number)
            assert choice == plain.choose(enabled, number)
            steps.append((None, enabled, choice, tuple(sorted(set(touched))), 0.0, ()))
        policy.finish(len(steps))
