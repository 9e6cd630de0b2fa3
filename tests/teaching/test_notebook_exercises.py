"""The exercises at the end of notebooks: right answers, wrong ones with the grader's reason, and their cells."""

from __future__ import annotations

import json
import posixpath
from pathlib import Path
from typing import Any

import pytest
import trio

import toolrt
from toolrt import READ, WRITE, Claim
from toolrt.teaching.lab import NOTEBOOK_EXERCISES, SHEET, Exercise, GradeStatus

NOTEBOOKS = sorted(Path(__file__).parents[2].joinpath("notebooks").glob("*.ipynb"))

#: What each notebook ends with, by its number; 10 is the sheet.
ENDS = {
    "01": ["two_adders", "gather"],
    "02": ["shelf_claims"],
    "03": ["in_call_order"],
    "04": ["merge", "pure_counter"],
    "05": ["same_file"],
    "06": ["stop"],
    "07": ["how_many", "needle"],
    "08": ["file_law"],
    "09": ["honest_tool"],
    "11": ["longest_chain"],
    "12": ["keep_slots"],
    "13": ["as_serial"],
}

# ---------------------------------------------------------------------- shelf_claims


def shelf_claims(name: str, given: Any) -> list[Claim]:
    if name == "inventory":
        return [Claim(("shelf",), READ, subtree=True)]
    mode = READ if name == "look" else WRITE
    return [Claim(("shelf", given[key]), mode) for key in ("shelf", "source", "target") if key in given]


def claims_to_write(name: str, given: Any) -> list[Claim]:
    return [Claim(one.resource, WRITE, one.subtree) for one in shelf_claims(name, given)]


def claims_of_things(name: str, given: Any) -> list[Claim]:
    return [Claim(("thing", given["what"]), WRITE)] if "what" in given else shelf_claims(name, given)


def claims_of_one_shelf(name: str, given: Any) -> list[Claim]:
    return [Claim(("shelf",), READ)] if name == "inventory" else shelf_claims(name, given)


def claims_of_known_shelves(name: str, given: Any) -> list[Claim]:
    if name == "inventory":
        return [Claim(("shelf", shelf), READ) for shelf in ("left", "right", "top")]
    return shelf_claims(name, given)


def claims_to_read_the_target(name: str, given: Any) -> list[Claim]:
    if name == "move":
        return [Claim(("shelf", given["source"]), WRITE), Claim(("shelf", given["target"]), READ)]
    return shelf_claims(name, given)


# ---------------------------------------------------------------------- same_file


def _resolved(links: Any, path: str, at: tuple[str, ...] = ()) -> tuple[str, ...]:
    for part in path.split("/"):
        name = "/".join((*at, part))
        if part == "..":
            at = at[:-1]
        elif name in links:
            at = _resolved(links, links[name], at)
        elif part != ".":
            at = (*at, part)
    return at


def same_file(links: Any, one: str, other: str) -> bool:
    return _resolved(links, one) == _resolved(links, other)


def same_spelling(links: Any, one: str, other: str) -> bool:
    return posixpath.normpath(one) == posixpath.normpath(other)


def same_link(links: Any, one: str, other: str) -> bool:
    return same_spelling(links, links.get(one, one), links.get(other, other))


def same_after_dots(links: Any, one: str, other: str) -> bool:
    return same_file(links, posixpath.normpath(one), posixpath.normpath(other))


def same_by_beginnings(links: Any, one: str, other: str) -> bool:
    """A link is taken for one wherever a path begins like it, also in the middle of a name."""

    def resolved(path: str) -> str:
        at, parts = "", path.split("/")
        while parts:
            part = parts.pop(0)
            if part == "..":
                at = posixpath.dirname(at)
            elif part != ".":
                at = posixpath.join(at, part)
                link = next((link for link in links if at.startswith(link)), None)
                if link is not None:
                    parts[:0] = (links[link] + at[len(link) :]).split("/")
                    at = posixpath.dirname(link)
        return at

    return resolved(one) == resolved(other)


# ---------------------------------------------------------------------- longest_chain


def longest_chain(calls: Any) -> float:
    ends: list[float] = []
    for call in calls:
        before = (end for other, end in zip(calls, ends, strict=False) if other.conflicts_with(call))
        ends.append(call.seconds + max(before, default=0))
    return max(ends, default=0)


def chain_of_neighbours(calls: Any) -> float:
    longest = now = 0.0
    for place, call in enumerate(calls):
        follows = place > 0 and calls[place - 1].conflicts_with(call)
        now = call.seconds + (now if follows else 0)
        longest = max(longest, now)
    return longest


def chain_to_the_first(calls: Any) -> float:
    ends: list[float] = []
    for call in calls:
        before = (end for other, end in zip(calls, ends, strict=False) if other.conflicts_with(call))
        ends.append(call.seconds + next(before, 0))
    return max(ends, default=0)


def sum_of_all_before(calls: Any) -> float:
    ends = (
        call.seconds + sum(other.seconds for other in calls[:place] if other.conflicts_with(call))
        for place, call in enumerate(calls)
    )
    return max(ends, default=0)


def chain_to_the_longest_call(calls: Any) -> float:
    ends: list[float] = []
    for place, call in enumerate(calls):
        before = [at for at in range(place) if calls[at].conflicts_with(call)]
        longest = max(before, key=lambda at: calls[at].seconds, default=None)
        ends.append(call.seconds + (0 if longest is None else ends[longest]))
    return max(ends, default=0)


# ---------------------------------------------------------------------- keep_slots and as_serial


def hand_on(pool: Any) -> None:
    if pool.waiting:
        pool.waiting.pop(0).set()
    else:
        pool.free += 1


async def keep_slots(pool: Any, use: Any, hands_on: bool = True) -> None:
    """Leave the line when the wait is cancelled; a slot that was handed over by then goes to the next."""
    if pool.free:
        pool.free -= 1
    else:
        pool.waiting.append(turn := trio.Event())
        try:
            await turn.wait()
        except BaseException:
            if turn in pool.waiting:
                pool.waiting.remove(turn)
            elif hands_on:
                hand_on(pool)
            raise
    try:
        await use()
    finally:
        hand_on(pool)


async def keep_handed_slot(pool: Any, use: Any) -> None:
    await keep_slots(pool, use, hands_on=False)


async def stay_in_line(pool: Any, use: Any) -> None:
    if pool.free:
        pool.free -= 1
    else:
        pool.waiting.append(turn := trio.Event())
        await turn.wait()
    try:
        await use()
    finally:
        hand_on(pool)


async def take_and_forget(pool: Any, use: Any) -> None:
    pool.free -= 1
    await use()
    pool.free += 1


async def one_by_one(pool: Any, use: Any) -> None:
    if not hasattr(pool, "lock"):
        pool.lock = trio.Lock()
    async with pool.lock:
        await use()


async def release_after(pool: Any, use: Any) -> None:
    if not hasattr(pool, "semaphore"):
        pool.semaphore = trio.Semaphore(pool.free)
    await pool.semaphore.acquire()
    await use()
    pool.semaphore.release()


async def look_again_now_and_then(pool: Any, use: Any) -> None:
    while not pool.free:  # noqa: ASYNC110  what a student would write
        await trio.sleep(0.1)
    pool.free -= 1
    try:
        await use()
    finally:
        pool.free += 1


async def ask_again_and_again(pool: Any, use: Any) -> None:
    while not pool.free:
        await trio.lowlevel.checkpoint()
    pool.free -= 1
    try:
        await use()
    finally:
        pool.free += 1


async def wake_and_hope(pool: Any, use: Any) -> None:
    """The one that is woken may be cancelled before it takes the slot, and wakes no other."""
    while not pool.free:
        pool.waiting.append(turn := trio.Event())
        await turn.wait()
    pool.free -= 1
    try:
        await use()
    finally:
        pool.free += 1
        if pool.waiting:
            pool.waiting.pop(0).set()


async def release_what_was_not_taken(pool: Any, use: Any) -> None:
    if not hasattr(pool, "semaphore"):
        pool.semaphore = trio.Semaphore(pool.free)
    try:
        await pool.semaphore.acquire()
        await use()
    finally:
        pool.semaphore.release()


def as_serial(call: Any, lane: Any) -> toolrt.LaneChoice:
    return opens(call.name != "price" and paid(lane))


def opens(is_needed: bool) -> toolrt.LaneChoice:
    return toolrt.LaneChoice.OPEN if is_needed else toolrt.LaneChoice.JOIN


def paid(lane: Any) -> bool:
    return any(other.name == "pay" for other in lane)


RIGHT = {
    "shelf_claims": shelf_claims,
    "same_file": same_file,
    "longest_chain": longest_chain,
    "keep_slots": keep_slots,
    "as_serial": as_serial,
}

WRONG: list[tuple[str, Any, str]] = [
    ("shelf_claims", lambda name, given: [], "they ran at the same time"),
    ("shelf_claims", lambda name, given: None, "expected a list of toolrt.Claim, got None"),
    ("shelf_claims", lambda name, given: shelf_claims(name, given)[:1], "then move('top', 'left', 'cup'): they ran"),
    ("shelf_claims", claims_to_write, "look('left'), then look('left'): the second call waited"),
    ("shelf_claims", claims_of_things, "look('left'), then put('left', 'cup'): they ran"),
    ("shelf_claims", claims_of_one_shelf, "put('left', 'cup'), then inventory(): they ran"),
    ("shelf_claims", claims_of_known_shelves, "put('in the hall', 'cup'), then inventory(): they ran"),
    ("shelf_claims", claims_to_read_the_target, "look('left'), then move('top', 'left', 'cup'): they ran"),
    ("same_file", same_by_beginnings, "✗ a name that begins like a link is no link"),
    ("same_file", lambda links, one, other: True, "✗ other files are other files"),
    ("same_file", lambda links, one, other: one == other, "✗ one dot stays in a directory, and two dots go up"),
    ("same_file", same_spelling, "✗ a link is what it leads to"),
    ("same_file", same_link, "✗ a link may lead to a link"),
    ("same_file", same_after_dots, "✗ two dots behind a link go up from where it leads"),
    ("same_file", lambda links, one, other: links[one] == links[other], "it raised KeyError"),
    ("longest_chain", lambda calls: sum(call.seconds for call in calls), "✗ calls that share nothing run together"),
    ("longest_chain", lambda calls: max(call.seconds for call in calls), "it raised ValueError"),
    ("longest_chain", chain_of_neighbours, "✗ a call between two others need not part them"),
    ("longest_chain", chain_to_the_first, "✗ the first call that conflicts need not be on the longest chain"),
    ("longest_chain", sum_of_all_before, "✗ a chain goes from thing to thing"),
    ("longest_chain", chain_to_the_longest_call, "✗ batches of the workload random"),
    ("keep_slots", look_again_now_and_then, "one slot served two tasks of 1.03 s in 2.13 s"),
    ("keep_slots", ask_again_and_again, "✗ a task that waits does not ask again and again"),
    ("keep_slots", wake_and_hope, "✗ a task that is cancelled in line holds up none behind it"),
    ("keep_slots", release_what_was_not_taken, "2 slots were in use at once, and the pool has 1"),
    ("keep_slots", stay_in_line, "✗ a cancel takes no slot"),
    ("keep_slots", keep_handed_slot, "of 1 slots 0 are left"),
    ("keep_slots", take_and_forget, "slots were in use at once"),
    ("keep_slots", release_after, "✗ a use that raises gives its slot back"),
    ("keep_slots", one_by_one, "✗ free slots are used at once"),
    ("as_serial", lambda call, lane: opens(call.name != "price" and paid(lane[-1:])), "pay, price, pay"),
    ("as_serial", lambda call, lane: opens(call.name == "budget" and paid(lane)), "pay, pay: expected"),
    ("as_serial", lambda call, lane: opens(paid(lane)), "✗ a price shares the lane of a change"),
    ("as_serial", lambda call, lane: True, "expected (['had 9', 'had 8'], 7)"),
    ("as_serial", lambda call, lane: False, "✗ calls that change nothing share a lane"),
    ("as_serial", lambda call, lane: call.name != "pay", "✗ a change shares the lane of the calls before it"),
]


@pytest.mark.seldom
@pytest.mark.parametrize("name", list(NOTEBOOK_EXERCISES))
def test_right_answer_at_the_end_of_a_notebook_is_right(name: str) -> None:
    """Every finding is good."""
    grade = NOTEBOOK_EXERCISES[name].grade(RIGHT[name])
    assert grade.right, str(grade)


@pytest.mark.drawn(12)
@pytest.mark.parametrize(("name", "answer", "said"), WRONG, ids=[f"{name}-{said[:24]}" for name, _, said in WRONG])
def test_wrong_answer_at_the_end_of_a_notebook_is_told(name: str, answer: Any, said: str) -> None:
    """The grade says what goes wrong."""
    grade = NOTEBOOK_EXERCISES[name].grade(answer)
    assert grade.status is GradeStatus.WRONG
    assert said in str(grade), str(grade)


def test_every_exercise_of_a_notebook_has_several_wrong_answers() -> None:
    """So that each is known to see something."""
    counts = {name: sum(name == one for one, *_ in WRONG) for name in NOTEBOOK_EXERCISES}
    assert min(counts.values()) >= 2, counts


def test_every_notebook_but_the_sheet_ends_with_exercises() -> None:
    """And each exercise of a notebook stands at the end of the one whose number it has."""
    assert sorted(ENDS) == [path.name[:2] for path in NOTEBOOKS if not path.name.startswith("10-")]
    own = {name: f"{exercise.week:02}" for name, exercise in NOTEBOOK_EXERCISES.items()}
    assert own == {name: number for number, names in ENDS.items() for name in names if name not in SHEET}


@pytest.mark.parametrize(("number", "names"), ENDS.items(), ids=list(ENDS))
def test_notebook_ends_with_its_exercises(number: str, names: list[str]) -> None:
    """The last cells have each task as it is graded, and the template in place of an answer."""
    (path,) = [path for path in NOTEBOOKS if path.name.startswith(number)]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"][-2 * len(names) :]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code"] * len(names)
    for place, name in enumerate(names):
        sheet = "SHEET" if name in SHEET else "NOTEBOOK_EXERCISES"
        exercise: Exercise = (SHEET if name in SHEET else NOTEBOOK_EXERCISES)[name]
        text, code = ("".join(cell["source"]) for cell in cells[2 * place : 2 * place + 2])
        assert f"## Exercise: {exercise.title}\n" in text
        assert exercise.task in text
        assert exercise.template in code
        assert code.endswith(f'\n{sheet}["{name}"].grade(answer)')


@pytest.mark.parametrize("name", list(NOTEBOOK_EXERCISES))
def test_template_at_the_end_of_a_notebook_is_not_an_answer(name: str) -> None:
    """What a reader begins with runs, and is neither right nor wrong."""
    namespace: dict[str, Any] = {}
    exec(NOTEBOOK_EXERCISES[name].template, namespace)
    assert NOTEBOOK_EXERCISES[name].grade(namespace["answer"]).status is GradeStatus.UNANSWERED
