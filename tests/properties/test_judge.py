"""The judge that Coq extracts from docs/proof/Judge.v, and the copy of its relation in Python, have one verdict."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties._relation import Step, Steps, judged, steps_of
from tests.properties.test_proof import BROKEN, PROOF, THEOREMS
from toolrt import testing
from toolrt.invariants import Mix
from toolrt.invariants.mutants import MUTANTS

MISSING = [tool for tool in ("coqc", "ocamlfind", "ocamlopt") if shutil.which(tool) is None]

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)}: apt-get install coq ocaml-nox ocaml-findlib"),
]

#: The verdict on a batch: "accepted", or the theorem that it breaks.
Judge = Callable[[Steps], str]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """The judge as a process: Coq writes it in OCaml, which is compiled here.

    The proofs of Ordering.v are left out (``-vos``): test_proof.py has Coq check them.
    """
    place = tmp_path_factory.mktemp("judge")
    for name in ("Ordering.v", "Judge.v", "judge.ml"):
        shutil.copy(PROOF.with_name(name), place)
    for command in (
        "coqc -q -vos Ordering.v",
        "coqc -q -vos Judge.v",
        "coqc -q -vok Judge.v",
        "ocamlfind ocamlopt judged.mli judged.ml judge.ml -o judge",
    ):
        made = subprocess.run(command.split(), cwd=place, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
    with subprocess.Popen([place / "judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def verdict(steps: Steps) -> str:
            print(*steps.lines(), sep="\n", file=asked, flush=True)
            return answers.readline().strip()

        yield verdict


def of_the_copy(steps: Steps) -> str:
    """What the relation in Python says, in the words of the judge."""
    refusal = judged(steps)
    return "accepted" if refusal is None else refusal.theorem


@pytest.mark.seldom
@settings(max_examples=100)  # in every profile: the relation in Python has more of them, in test_proof.py
@given(mix=testing.tool_mixes(), schedule=testing.schedules())
def test_both_accept_the_traces_of_the_runtime(judge: Judge, mix: Mix, schedule: list[int]) -> None:
    for steps in steps_of(testing.simulate(mix, schedule).trace):
        assert judge(steps) == of_the_copy(steps) == "accepted", steps.lines()


@pytest.mark.parametrize("name", BROKEN)
def test_both_refuse_a_wrong_runtime_for_the_same_theorem(judge: Judge, name: str) -> None:
    """The theorem that the table on the page tells is among them."""
    mutant, random, found = MUTANTS[name], Random(1), set()
    with mutant.apply():
        for _ in range(20):
            schedule = [random.randrange(4) for _ in range(40)]
            for steps in steps_of(testing.simulate(mutant.workload, schedule, step_limit=2_000).trace):
                found.add(judge(steps))
                assert judge(steps) == of_the_copy(steps), steps.lines()
    assert BROKEN[name] in found


@pytest.mark.seldom
@settings(max_examples=25)  # in every profile: each example is some hundred traces
@given(mix=testing.tool_mixes(), schedule=testing.schedules())
def test_both_judge_a_changed_trace_alike(judge: Judge, mix: Mix, schedule: list[int]) -> None:
    """One step is left out, comes twice, or is where another was: some of that is lawful, and both say what."""
    for steps in steps_of(testing.simulate(mix, schedule).trace):
        for changed in changed_once(steps.steps):
            other = attrs.evolve(steps, steps=changed)
            assert judge(other) == of_the_copy(other), other.lines()


def changed_once(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Each way to drop one step, to have one again at any later time, and to swap two."""
    for at, step in enumerate(steps):
        yield steps[:at] + steps[at + 1 :]
        for again in range(at + 1, len(steps) + 1):
            yield (*steps[:again], step, *steps[again:])
    for one, other in combinations(range(len(steps)), 2):
        swapped = list(steps)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        yield tuple(swapped)


@pytest.mark.seldom
@settings(max_examples=50)  # in every profile: each example is a hundred traces
@given(mix=testing.tool_mixes(), schedule=testing.schedules(), seed=st.integers(0, 2**32))
def test_both_judge_other_orders_alike(judge: Judge, mix: Mix, schedule: list[int], seed: int) -> None:
    """The calls do what they did, in another order; some know their claims late, run once more, or leave a step out."""
    random = Random(seed)
    for steps in steps_of(testing.simulate(mix, schedule).trace):
        for _ in range(100):
            other = attrs.evolve(steps, steps=tuple(riffled(steps.steps, random)))
            assert judge(other) == of_the_copy(other), other.lines()


def riffled(steps: tuple[Step, ...], random: Random) -> Iterator[Step]:
    """Each call's own steps in their order, and so those of the lanes and the reader; between them mostly as it was."""
    rows: dict[int | None, list[tuple[int, Step]]] = {}
    for at, step in enumerate(steps):
        row = rows.setdefault(None if step.kind in ("applies", "merges", "hands") else step.numbers[0], [])
        if step.kind == "takes" and random.random() < 0.2:
            row.append((at, attrs.evolve(step, kind="awaits")))
        if random.random() < 0.95:
            row.append((at, step))
        if step.kind == "starts" and random.random() < 0.2:
            row += [(at, attrs.evolve(step, kind="pauses")), (at, step)]
    while left := [row for row in rows.values() if row]:
        row = random.choice(left) if random.random() < 0.3 else min(left, key=lambda row: row[0][0])
        yield row.pop(0)[1]


def test_changes_break_each_theorem_that_the_judge_names(judge: Judge) -> None:
    """The comparison reaches all verdicts: each is that of a trace which is a step away from a lawful one."""
    mix, found = MUTANTS["modifiers as they come"].workload, set()
    (steps,) = steps_of(testing.simulate(mix, []).trace)
    for changed in [steps.steps, *changed_once(steps.steps)]:
        found |= {judge(attrs.evolve(steps, steps=changed, left=left)) for left in (True, False)}
    named = {line.split('"')[1] for line in PROOF.with_name("judge.ml").read_text().splitlines() if '-> "' in line}
    assert found == named
    assert named - {"accepted"} <= {*THEOREMS}
