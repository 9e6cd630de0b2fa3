"""Exercises at the end of notebooks about what orders calls: claims, names of files, chains of conflicts.

Rules.  Each compares an answer with the runtime itself: claims by the calls that overlap, names by the identity that a
workspace gives them, chains by the critical path of the workloads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import trio

from toolrt import sim
from toolrt.model import READ, WRITE, Claim, Registry, State, Tool, ToolCall
from toolrt.runtime import Runtime
from toolrt.teaching.lab._exercise import Finding, Graders, told
from toolrt.teaching.lab._makespan import critical_path
from toolrt.teaching.lab._workloads import WORKLOADS, TimedCall
from toolrt.trace import stable_text
from toolrt.workspace import MemoryDisk, Symlink, Workspace

# ---------------------------------------------------------------------- shelf_claims

#: Tool, input, and the shelves that a call of it reads and writes.
_SHELVES = frozenset({"left", "right", "top", "in the hall"})
_USES: tuple[tuple[str, Mapping[str, str], frozenset[str], frozenset[str]], ...] = (
    ("look", {"shelf": "left"}, frozenset({"left"}), frozenset()),
    ("look", {"shelf": "right"}, frozenset({"right"}), frozenset()),
    ("put", {"shelf": "left", "what": "cup"}, frozenset(), frozenset({"left"})),
    ("put", {"shelf": "left", "what": "jug"}, frozenset(), frozenset({"left"})),
    ("put", {"shelf": "right", "what": "cup"}, frozenset(), frozenset({"right"})),
    ("put", {"shelf": "in the hall", "what": "cup"}, frozenset(), frozenset({"in the hall"})),
    ("move", {"source": "left", "target": "right", "what": "cup"}, frozenset(), frozenset({"left", "right"})),
    ("move", {"source": "top", "target": "left", "what": "cup"}, frozenset(), frozenset({"top", "left"})),
    ("inventory", {}, _SHELVES, frozenset()),
)


def _shelf_claims(claims: Any) -> Iterator[Finding]:
    for name, given, *_ in _USES:
        found = claims(name, dict(given))
        if not isinstance(found, list | tuple) or not all(isinstance(one, Claim) for one in found):
            detail = f"{_shown(name, given)}: expected a list of toolrt.Claim, got {found!r:.60}"
            yield Finding(False, "it gives claims", detail)
            return
    apart, together = "calls wait where one changes what the other touches", "other calls do not wait for each other"
    wrong: dict[str, Finding] = {}
    for first, second in product(_USES, repeat=2):
        (_, _, reads, writes), (_, _, other_reads, other_writes) = first, second
        conflict = bool(writes & (other_reads | other_writes) or other_writes & reads)
        execution = sim.run(partial(_overlap, claims, (first, second)))
        what = apart if conflict else together
        if execution.error is not None or execution.value is conflict:
            said = "they ran at the same time" if conflict else "the second call waited for the first"
            detail = said if execution.error is None else told(execution.error)
            pair = ", then ".join(_shown(*use[:2]) for use in (first, second))
            wrong.setdefault(what, Finding(False, what, f"{pair}: {detail}", execution))
    for what in (apart, together):
        yield wrong.get(what, Finding(True, what))


async def _overlap(claims: Any, pair: tuple[Any, Any]) -> bool:
    """Say whether two calls ran at the same time."""
    times: dict[str, tuple[float, float]] = {}

    async def act(ctx: Any, **given: str) -> None:
        began = trio.current_time()
        await trio.sleep(1)
        times[ctx.call_id] = began, trio.current_time()

    tools = [
        Tool(name=name, function=act, schema=None, claims=partial(_claimed, claims, name))
        for name in sorted({use[0] for use in pair})
    ]
    calls = [ToolCall(str(place), use[0], dict(use[1])) for place, use in enumerate(pair)]
    await Runtime(Registry(tools)).run(calls, State())
    return times["1"][0] < times["0"][1]


def _claimed(claims: Any, name: str, given: Mapping[str, Any], state: State) -> Any:
    return claims(name, dict(given))


def _shown(name: str, given: Mapping[str, str]) -> str:
    return f"{name}({', '.join(map(repr, given.values()))})"


# ---------------------------------------------------------------------- same_file

_LINKS = {
    "latest": "notes.txt",
    "newest": "./latest",
    "manual": "docs",
    "deep/er": "../manual",
    "docs/up": "..",
}
_TREE = {"notes.txt": "1", "docs/index.txt": "2", "docs/notes.txt": "3", "deep/notes.txt": "4"}

#: Pairs of paths, each with its other half; what is wanted is asked of a workspace.
_PAIRS: Mapping[str, Mapping[str, str]] = {
    "other files are other files": {"notes.txt": "docs/notes.txt", "docs/notes.txt": "deep/notes.txt"},
    "one dot stays in a directory, and two dots go up": {
        "./docs/.././notes.txt": "notes.txt",
        "docs/../notes.txt": "docs/notes.txt",
    },
    "a link is what it leads to": {"notes.txt": "latest", "docs/notes.txt": "latest"},
    "a link may lead to a link": {"notes.txt": "newest", "latest": "newest"},
    "a link may stand inside a path": {"manual/index.txt": "docs/index.txt", "deep/er/index.txt": "docs/index.txt"},
    "two dots behind a link go up from where it leads": {
        "notes.txt": "deep/er/../notes.txt",
        "deep/notes.txt": "deep/er/../notes.txt",
        "docs/up/latest": "latest",
    },
    "a name that begins like a link is no link": {"manual.txt": "docs.txt", "manuals/index.txt": "docss/index.txt"},
    "a file that is not there yet has one name, too": {"manual/new.txt": "docs/new.txt", "new.txt": "docs/new.txt"},
}


def _same_file(same: Any) -> Iterator[Finding]:
    tree: dict[str, Any] = _TREE | {name: Symlink(target) for name, target in _LINKS.items()}
    workspace = Workspace(MemoryDisk(tree))
    for what, pairs in _PAIRS.items():
        detail = ""
        for one, other in (*pairs.items(), *((other, one) for one, other in pairs.items())):
            wanted = workspace.identify(one).key == workspace.identify(other).key
            try:
                found = same(dict(_LINKS), one, other)
            except Exception as error:
                detail = detail or f"{one} and {other}: it raised {told(error)}"
                continue
            if found is not wanted:
                detail = detail or f"{one} and {other}: expected {wanted}, got {found!r:.60}"
        yield Finding(not detail, what, detail)


# ---------------------------------------------------------------------- longest_chain


def _timed(*calls: tuple[float, str]) -> list[TimedCall]:
    """Make calls of seconds and things; a thing in capitals is changed, another one read."""
    return [
        TimedCall(
            f"call_{place}",
            seconds,
            tuple(Claim((thing.lower(),), WRITE if thing.isupper() else READ) for thing in things),
        )
        for place, (seconds, things) in enumerate(calls)
    ]


_CHAINS: tuple[tuple[str, list[TimedCall]], ...] = (
    ("a batch of no calls takes no time", []),
    ("calls that share nothing run together", _timed((2, "A"), (3, "B"), (1, "C"))),
    ("reads of one thing run together", _timed((2, "a"), (3, "a"), (1, "a"))),
    ("changes of one thing follow each other", _timed((2, "A"), (3, "A"), (1, "A"))),
    ("a call between two others need not part them", _timed((2, "A"), (1, "B"), (2, "A"))),
    ("a chain goes from thing to thing", _timed((1, "A"), (1, "AB"), (1, "BC"), (1, "C"))),
    ("the first call that conflicts need not be on the longest chain", _timed((1, "A"), (4, "B"), (2, "AB"), (1, "A"))),
    ("a short chain of long calls may be the longest", _timed((1, "A"), (1, "A"), (1, "A"), (9, "B"))),
)
_BATCHES = 12


def _longest_chain(seconds: Any) -> Iterator[Finding]:
    drawn: list[tuple[str, Sequence[Sequence[TimedCall]]]] = [
        (f"batches of the workload {name}", [workload.batch(seed) for seed in range(_BATCHES)])
        for name, workload in WORKLOADS.items()
    ]
    small: list[tuple[str, Sequence[Sequence[TimedCall]]]] = [(what, [calls]) for what, calls in _CHAINS]
    for what, batches in (*small, *drawn):
        detail = ""
        for calls in batches:
            wanted, found = critical_path(calls), seconds(list(calls))
            if not detail and found != wanted:
                shown = "; ".join(f"{call.seconds:g} s {', '.join(map(str, call.touches))}" for call in calls[:5])
                more = f" and {len(calls) - 5} more" if len(calls) > 5 else ""
                detail = f"expected {wanted:g} s, got {stable_text(found)}: {shown}{more}"
        yield Finding(not detail, what, detail)


#: What grades each exercise, by name.
BY_ORDER: Graders = {
    "shelf_claims": _shelf_claims,
    "same_file": _same_file,
    "longest_chain": _longest_chain,
}
