"""Which features a mix has: a random subset, and for most of the mixes a shape in which several of them meet.

Rules.
    1. One number is a subset of the features and a shape, so that a mix shrinks by its calls, and not feature by
       feature; 0 is as few as there can be.
    2. A shape says what calls have in common: that they touch one thing, end early, stop the batch, open sub-batches.
       What each call does is drawn, as in every mix.

Theory.  Swarm testing (Groce et al., ISSTA 2012) draws features independently of each other, so three that have to meet
seldom do.  A shape raises the share of a group of features together; see
docs/decisions/088-random-examples-under-test.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import attrs
from hypothesis import strategies as st

from toolrt.testing._strategies_calls import DOING, FEATURES, Draw, Palette

#: What a mix can be without, and the features that go with it; `tool_mixes` itself looks for the last three.
CAN_GO: Mapping[str, tuple[str, ...]] = {
    "files": ("files", "workspace"),
    "state": ("state", "overwrite", "broken"),
    "failures": ("fail", "leave", "protest"),
    "timeouts": ("timeouts",),
    "stops": ("stops",),
    "approvals": ("approvals",),
    "shields": ("shield",),
    "invalid": ("invalid",),
    "sub_batches": ("sub-batches",),
    "shared": ("rates",),
    "limits": (),
    "streaming": (),
}

#: How many of twenty mixes have each feature of batches.
_OF_BATCHES: Mapping[str, int] = {
    "crowd": 6,
    "one name": 6,
    "many names": 3,
    "limit": 8,
    "delays": 8,
    "shared limit": 1,
    "limit of evens": 1,
    "uses of evens": 1,
    "beside": 1,
}

#: The families of actions that claim what they touch.
_CLAIMING = ("cells", "files", "paths")

#: What ends a call before its time, or before it has started.
_EARLY = ("timeouts", "approvals", "invalid", "fail", "stops")


@attrs.define
class _Swarm:
    """What is chosen for one mix."""

    chance: random.Random
    #: The features of its batch.
    has: set[str]
    #: The features of its calls that are none of `DOING`, and those of `DOING`, in the order of their weight.
    features: set[str]
    doing: list[str]
    often: set[str] = attrs.field(factory=set)
    max_actions: int = 4
    children: tuple[int, int] = (1, 3)
    depth: int = 2
    uneven: bool = False
    places: tuple[int | None, ...] = (2,)
    first: str | None = None


def _few(swarm: _Swarm) -> None:
    """The calls have the features and no more in common."""
    if "stops" in swarm.features and swarm.chance.random() < 0.5:
        # A stop meets calls that run beside the one that fails only where these do nothing but read.
        swarm.features.add("readers")
        swarm.doing.insert(0, swarm.chance.choice(_CLAIMING))
    if "sub-batches" in swarm.features and swarm.chance.random() < 0.5:
        # The calls of a sub-batch meet each other only where they touch the same things, and they are few.
        swarm.doing.insert(0, swarm.chance.choice(_CLAIMING))
        swarm.has = swarm.has - {"many names"} | {"one name"}


def _family(swarm: _Swarm) -> None:
    """Sub-batches of several calls that last differently, beside calls that wait for a slot."""
    swarm.features |= {"sub-batches", "safe"}
    swarm.features -= {"invalid", "timeouts", "approvals", "exclusive", "pure", "sync", "stops"}
    swarm.often |= {"sub-batches"}
    swarm.has = swarm.has - {"crowd", "many names"} | {"limit", "several"}
    swarm.children, swarm.depth, swarm.uneven, swarm.max_actions = (2, 3), 1, True, 2
    if swarm.chance.random() < 0.5:
        swarm.doing = [swarm.chance.choice(("say", "state"))]
    else:
        # Calls of one sub-batch meet at one thing, and not for want of a slot.
        swarm.doing = [swarm.chance.choice(_CLAIMING)]
        swarm.has = swarm.has - {"limit"} | {"one name"}


def _halt(swarm: _Swarm) -> None:
    """Several calls that stop the batch, each with claims that later calls wait for."""
    swarm.features |= {"stops"}
    swarm.features -= {"exclusive", "invalid"}
    swarm.often |= {"stops"}
    swarm.has = swarm.has - {"many names"} | {"several"}
    if swarm.chance.random() < 0.5:
        swarm.features -= {"sub-batches", "safe"}
        swarm.doing = swarm.chance.sample(_CLAIMING, 2)
    else:
        # Beside a call that stops the batch runs only what reads.
        swarm.features |= {"readers", "safe"}
        swarm.doing = ["state", swarm.chance.choice(("fail", *_CLAIMING))]
    swarm.uneven, swarm.max_actions = True, 3


def _bundle(swarm: _Swarm) -> None:
    """Calls that claim many things each."""
    swarm.features -= {"exclusive", "safe", "sub-batches", "pure"}
    swarm.has = swarm.has - {"crowd", "one name"} | {"many names"}
    swarm.doing = [*_CLAIMING, swarm.chance.choice(("follow", "overwrite"))]
    swarm.max_actions = 8


def _hold(swarm: _Swarm) -> None:
    """Calls that a cancel does not end at once."""
    swarm.features |= {"finish", "safe"}
    swarm.features -= {"invalid", "approvals", "exclusive"}
    swarm.often |= {"finish"}
    swarm.doing = ["shield", *swarm.chance.sample(("state", "protest", "say"), 1)]
    swarm.uneven, swarm.max_actions = True, 2


def _disk(swarm: _Swarm) -> None:
    """Tools of a workspace on one disk, beside scripted calls."""
    swarm.features |= {"workspace"}
    swarm.has = swarm.has - {"crowd"} | {"several"}


def _share(swarm: _Swarm) -> None:
    """Calls that wait for places, rates and limits that batches may share, and last differently."""
    swarm.features |= {"safe"}
    swarm.features -= {"sub-batches", "approvals", "exclusive", "invalid", "pure", "timeouts"}
    some = ("shared limit", "beside"), ("limit of evens",), ("shared limit", "limit of evens"), ("uses of evens",)
    limits = swarm.chance.choice((*some, (), ()))
    swarm.has = swarm.has - {"crowd", "many names", "limit"} | {"several", *limits}
    swarm.doing = swarm.chance.sample(("places", "rates", "say"), 2)
    swarm.places = swarm.chance.choice(((1,), (1,), (2,), (2, 2, None), (2, 2, 3)))
    swarm.uneven, swarm.max_actions = True, 2
    if not limits:
        # One call too many shows where each call takes its share of one thing, and nothing else keeps calls apart.
        swarm.features -= {"safe", "stops", "sync", "workspace", "readers"}
        swarm.has = swarm.has - {"delays"} | {"one name"}
        swarm.first, swarm.places = swarm.chance.choice(("places", "rates")), swarm.chance.choice(((1,), (2,)))
        swarm.doing = [swarm.first]
        swarm.has |= set(swarm.chance.choice(((), ("beside",))))


def _meet(swarm: _Swarm) -> None:
    """A call that ends early between one that holds a thing and one that waits for it: see `meeting`."""
    swarm.features |= {*_EARLY, "sub-batches", swarm.chance.choice(("leave", "broken"))}
    swarm.features -= {swarm.chance.choice(("invalid", "exclusive"))}
    swarm.has = swarm.has - {"crowd"} | {"meeting", swarm.chance.choice(("limit", "meeting"))}
    swarm.doing = [*swarm.doing[:1], "overwrite", "paths", "follow"]
    swarm.max_actions = 2


#: The shapes, and the weight of each.
SHAPES: Mapping[Callable[[_Swarm], None], int] = {
    _few: 6,
    _meet: 7,
    _family: 3,
    _halt: 2,
    _bundle: 1,
    _share: 3,
    _hold: 1,
    _disk: 1,
}


#: Numbers of subsets; three draws are added up to one.
_NUMBERS = 5_000


def _with_labels(strategy: st.SearchStrategy[Any], count: int) -> st.SearchStrategy[Any]:
    """The same, inside of so many tuples, each with a label of its own."""
    for number in range(count):
        strategy = st.tuples(strategy, st.just(("label", number)))
    return strategy


_LABELS = 8
_NUMBER = _with_labels(st.integers(0, _NUMBERS - 1), _LABELS)


def draw_number(draw: Draw) -> int:
    """The number of a subset.

    Hypothesis makes most examples of others: it takes a label, and copies one draw that has it over another.  Drawn
    once, a number was the same in five examples of six.  This one is the sum of two draws with labels of their own.
    """
    number = 0
    for _ in range(2):
        drawn = draw(_NUMBER)
        for _ in range(_LABELS):
            drawn = drawn[0]
        number += drawn
    return number % _NUMBERS


@lru_cache(20_000)
def swarm(number: int, off: frozenset[str], fails: bool) -> tuple[frozenset[str], Palette]:
    """A subset of the features but those that are `off`: of batches, and what calls are drawn from."""
    if number == 0:
        return frozenset(), Palette(frozenset({"cells", "state"} - off), fails=fails)
    chance = random.Random(number)
    # Few kinds of action in one mix, so that calls meet: a kind's share is its weight (Efraimidis and Spirakis, 2006).
    doing = sorted(DOING, key=lambda name: chance.random() ** (1 / FEATURES[name]), reverse=True)
    chosen = _Swarm(
        chance,
        {name for name, share in _OF_BATCHES.items() if chance.randrange(20) < share},
        {name for name, share in FEATURES.items() if name not in DOING and chance.randrange(20) < share},
        [name for name in doing if name not in off][: chance.choice((1, 2, 2, 3, 3, 4))],
    )
    chance.choices(tuple(SHAPES), tuple(SHAPES.values()))[0](chosen)
    palette = Palette(
        frozenset({*chosen.features, *chosen.doing} - off),
        max_actions=2 if "crowd" in chosen.has else chosen.max_actions,
        fails=fails,
        depth=chosen.depth,
        children=chosen.children,
        uneven=chosen.uneven,
        places=chosen.places,
        first=chosen.first if chosen.first not in off else None,
        often=frozenset(chosen.often),
    )
    if "one name" in chosen.has:
        palette = attrs.evolve(palette, cells=("a",), files=("f",), keys=("x",))
    elif "many names" in chosen.has:
        palette = attrs.evolve(palette, cells=tuple("abcdefgh"), files=tuple("fghijkl"), keys=tuple("xyzuvw"))
    return frozenset(chosen.has), palette
