"""Workloads: batches of timed calls, drawn by seed from a short description.

Rules.  A description names tools: how often a model calls each, how long it takes, what it touches, and whether it says
so.  The same name, seed and number give the same batch, on every machine.  Durations are whole multiples of 1/64 s, so
that sums of them are exact.

Limits.  The batches are generated, and durations are assumed: no public data set has them.  `retail` has the fifteen
tools of the retail domain of tau-bench (Yao et al., 2024; MIT licence).  `files` has tools, their frequencies and the
sizes of batches as counted in the multi-turn data of BFCL (bfcl-eval 2026.3.23, ``BFCL_v4_multi_turn_base``, Apache
2.0).  That package pins versions of tree-sitter and numpy that toolrt's extras exclude, so the counts stand here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from importlib import resources

import attrs

from toolrt.model import READ, WRITE, Claim

#: Durations are multiples of this many seconds.
_GRAIN = 1 / 64
#: How far durations of one tool spread: the standard deviation of their natural logarithm.
_SPREAD = 0.6


@attrs.frozen
class TimedCall:
    """One call of a workload."""

    #: The tool's name.
    tool: str
    #: How long it runs, in virtual seconds.
    seconds: float
    #: What it reads and changes.
    touches: tuple[Claim, ...]
    #: Whether its tool declares that; if not, the runtime knows nothing of it and runs the call alone.
    declares: bool = True

    @property
    def only_reads(self) -> bool:
        """Whether it changes nothing."""
        return all(claim.mode is READ for claim in self.touches)

    def conflicts_with(self, other: TimedCall) -> bool:
        """Whether one of the two changes what the other touches."""
        return any(mine.conflicts_with(theirs) for mine in self.touches for theirs in other.touches)


@attrs.frozen
class ToolShape:
    """One tool of a workload."""

    #: What the model calls it by.
    name: str
    #: How often it is called, relative to the others.
    weight: int
    #: The median of its durations, in virtual seconds.
    seconds: float
    #: What a call touches: "read order" and "write order" mean one drawn thing of that kind, with a star behind
    #: it all of them.  One kind is drawn once in a call.
    touches: tuple[str, ...] = ()
    #: Whether it declares that.
    declares: bool = True


@attrs.frozen
class Workload:
    """A kind of batches."""

    #: What rows call it.
    name: str
    #: What its batches are made of.
    tools: tuple[ToolShape, ...]
    #: How often a batch has so many calls, relative to the others.
    sizes: Mapping[int, int]
    #: How many things of each kind there are.
    things: Mapping[str, int]

    def batch(self, number: int, seed: int = 0) -> tuple[TimedCall, ...]:
        """The calls of batch `number` of the series `seed`, in call order."""
        draw = random.Random(f"{self.name} {seed} {number}")
        [size] = draw.choices(list(self.sizes), list(self.sizes.values()))
        shapes = draw.choices(self.tools, [tool.weight for tool in self.tools], k=size)
        return tuple(self._call(shape, draw) for shape in shapes)

    def _call(self, shape: ToolShape, draw: random.Random) -> TimedCall:
        seconds = shape.seconds * math.exp(draw.gauss(0, _SPREAD))
        drawn: dict[str, str] = {}
        claims = []
        for text in shape.touches:
            mode, kind, *rest = text.split()
            if rest:
                claims.append(Claim((kind,), READ if mode == "read" else WRITE, subtree=True))
                continue
            if kind not in drawn:
                drawn[kind] = str(draw.randrange(self.things[kind]))
            claims.append(Claim((kind, drawn[kind]), READ if mode == "read" else WRITE))
        return TimedCall(shape.name, max(1, round(seconds / _GRAIN)) * _GRAIN, tuple(claims), shape.declares)


def _described() -> Iterator[Workload]:
    """The workloads of `workloads.txt`: what sizes and things there are, and a row for each tool."""
    text = resources.files("toolrt.teaching.lab").joinpath("workloads.txt").read_text(encoding="utf-8")
    for block in text.split("\n\n"):
        name, sizes, things, *rows = block.strip().splitlines()
        tools = []
        for row in rows:
            tool, weight, seconds, touches, declares = (cell.strip() for cell in row.split("|"))
            touched = tuple(touches.split(", ")) if touches else ()
            tools.append(ToolShape(tool, int(weight), float(seconds), touched, declares == "declares"))
        counts = {int(size): share for size, share in _counts(sizes)}
        yield Workload(name.removeprefix("# "), tuple(tools), counts, dict(_counts(things)))


def _counts(row: str) -> Iterator[tuple[str, int]]:
    """The pairs of a row such as ``things: order 5, user 2``."""
    for pair in row.partition(": ")[2].split(", "):
        name, number = pair.split()
        yield name, int(number)


def random_mixes(undeclared: float = 0.1, changes: float = 0.3, calls: int = 8) -> Workload:
    """Batches of `calls` random calls on eight things.

    Args:
        undeclared: the share of calls whose tool declares nothing, so that they run alone; 0 to 1.
        changes: the share of calls that change the thing that they touch; 0 to 1.
        calls: how many calls each batch has, 1 or more.
    """
    shares = [("read", False, 1 - changes), ("write", False, changes), ("read", True, 1 - changes)]
    shares.append(("write", True, changes))
    tools = tuple(
        ToolShape(
            f"{mode}_{'unknown' if alone else 'known'}",
            round(1_000 * share * (undeclared if alone else 1 - undeclared)),
            1.0,
            (f"{mode} thing",),
            declares=not alone,
        )
        for mode, alone, share in shares
    )
    return Workload(f"random, {undeclared:g} undeclared, {changes:g} changes", tools, {calls: 1}, {"thing": 8})


#: The workloads of the page, by name.
WORKLOADS: Mapping[str, Workload] = {
    "random": attrs.evolve(random_mixes(), name="random"),
    **{one.name: one for one in _described()},
}
