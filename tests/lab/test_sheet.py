"""The exercise sheet: for each exercise an answer that is right, and wrong ones that are told what is wrong.

The answers stand here and in no notebook.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

import toolrt
from toolrt import lab, sim, view
from toolrt.errors import MisuseError
from toolrt.invariants.litmus import LITMUS
from toolrt.lab import SHEET, Status
from toolrt.workspace import held

ROOT = Path(__file__).parents[2]

# ---------------------------------------------------------------------- right answers


async def _add(counter: Any, lock: trio.Lock, think: Any) -> None:
    async with lock:
        seen = counter.get()
        await think()
        counter.set(seen + 1)


async def _transfer(source: Any, target: Any, move: Any) -> None:
    first, second = sorted((source, target), key=lambda account: account.name)
    async with first.lock:
        if second is first:
            await move()
            return
        async with second.lock:
            await move()


async def _answer_of(function: Any) -> tuple[str, Any]:
    try:
        return "ok", await function()
    except Exception as error:
        return "error", str(error)


async def _gather(functions: Any) -> list[Any]:
    answers: list[Any] = [None] * len(functions)

    async def call(index: int) -> None:
        answers[index] = await _answer_of(functions[index])

    async with trio.open_nursery() as nursery:
        for index in range(len(functions)):
            nursery.start_soon(call, index)
    return answers


async def _tickets(calls: Any) -> list[Any]:
    answers: list[Any] = [None] * len(calls)
    last: dict[str, trio.Event] = {}

    async def call(index: int, before: trio.Event | None, after: trio.Event) -> None:
        if before is not None:
            await before.wait()
        answers[index] = await _answer_of(calls[index][1])
        after.set()

    async with trio.open_nursery() as nursery:
        for index, (resource, _) in enumerate(calls):
            before, after = last.get(resource), trio.Event()
            if resource is not None:
                last[resource] = after
            nursery.start_soon(call, index, before, after)
    return answers


async def _stop(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    answers: list[Any] = [("not started",)] * len(functions)
    waiting = list(range(len(functions)))[::-1]

    async def worker() -> None:
        while waiting and not stop.is_set():
            index = waiting.pop()
            answers[index] = ("interrupted",)
            answers[index] = ("ok", await functions[index]())

    async def stopper() -> None:
        await stop.wait()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stopper)
        async with trio.open_nursery() as workers:
            for _ in range(limit):
                workers.start_soon(worker)
        nursery.cancel_scope.cancel()
    return answers


def _holds(answers: list[Any], delivered: list[tuple[int, Any]]) -> bool:
    return delivered == list(enumerate(answers))


def _merge(state: dict[str, Any], finished: list[Any]) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    rejected = []
    for index, position, modifier in sorted(finished, key=lambda one: one[:2]):
        try:
            state = modifier(dict(state))
        except Exception:
            rejected.append((index, position))
    return state, rejected


def _counting(state: toolrt.State, word: str) -> toolrt.State:
    seen = state["seen"]
    return state.set("seen", {**seen, word: seen.get(word, 0) + 1})


@toolrt.tool(safe=True)
async def _count(ctx: toolrt.ToolContext, word: str) -> toolrt.ToolOutput:
    """Count a word."""
    await checkpoint()
    return toolrt.ToolOutput("counted", modifiers=[lambda state: _counting(state, word)])


def _appender(workspace: toolrt.Workspace) -> toolrt.Tool:
    @toolrt.tool(claims=lambda input, state: workspace.claims(input["path"], state, toolrt.WRITE), owner=workspace)
    async def append_line(ctx: toolrt.ToolContext, path: str, line: str) -> str:
        """Add a line."""
        identity = held(workspace, ctx, path, toolrt.WRITE)
        await workspace.files.revise(ctx, identity, lambda before: (before or b"") + f"{line}\n".encode())
        return "added"

    return append_line


def _file_law(trace: Any, readers: bool = True) -> list[str]:
    wrong = []
    writing: dict[Any, int] = {}
    written: dict[Any, set[int]] = defaultdict(set)
    read: dict[Any, set[int]] = defaultdict(set)
    kinds = ("file.mutation_began", "file.mutation_ended", *["file.read"] * readers)
    for event in trace.of_kind(*kinds):
        call, where = event.fields["call"], (event.fields["batch"], event.fields["file"])
        if event.kind == "file.mutation_ended":
            writing.pop(where, None)
            written[where].add(call)
            continue
        if where in writing and writing[where] != call:
            wrong.append(f"call {call} while call {writing[where]} changes {where[1]}")
        late = read[where] | written[where] if event.kind == "file.mutation_began" else set()
        wrong += [f"call {call} changes {where[1]} after call {other}" for other in late if other > call]
        if event.kind == "file.mutation_began":
            writing[where] = call
        else:
            wrong += [f"call {call} reads what call {other} wrote" for other in written[where] if other > call]
            read[where].add(call)
    return wrong


_RIGHT: dict[str, Any] = {
    "two_adders": {1, 2},
    "lose_it": "main main.0 main.1*2 main.0 main",
    "how_many": {2: (6, 4), 3: (90, 36)},
    "mend_it": _add,
    "embrace": "main main.0*2 main.1*3 main.0",
    "no_embrace": _transfer,
    "in_call_order": _holds,
    "gather": _gather,
    "needle": lambda seed: sim.Random(sim.PCT(depth=2, seed=seed), 300),
    "merge": _merge,
    "pure_counter": _count,
    "honest_tool": _appender,
    "tickets": _tickets,
    "file_law": _file_law,
    "stop": _stop,
}


@pytest.mark.parametrize("name", list(SHEET))
def test_right_answer_is_right(name: str) -> None:
    """Every finding is good, and there are some."""
    grade = SHEET[name].grade(_RIGHT[name])
    assert grade.right, str(grade)
    assert grade.findings
    assert str(grade).startswith(f"{name}: right, {len(grade.findings)} of {len(grade.findings)}\n")


# ---------------------------------------------------------------------- wrong answers


async def _add_without_lock(counter: Any, lock: trio.Lock, think: Any) -> None:
    seen = counter.get()
    await think()
    counter.set(seen + 1)


async def _add_reads_outside(counter: Any, lock: trio.Lock, think: Any) -> None:
    seen = counter.get()
    async with lock:
        await think()
        counter.set(seen + 1)


async def _add_never_releases(counter: Any, lock: trio.Lock, think: Any) -> None:
    await lock.acquire()
    seen = counter.get()
    await think()
    counter.set(seen + 1)
    lock.release()


_LOCKS: dict[Any, trio.Lock] = defaultdict(trio.Lock)


async def _add_one_lock_for_all(counter: Any, lock: trio.Lock, think: Any) -> None:
    async with _LOCKS[trio.lowlevel.current_task().parent_nursery], lock:
        seen = counter.get()
        await think()
        counter.set(seen + 1)


async def _add_without_thinking(counter: Any, lock: trio.Lock, think: Any) -> None:
    counter.set(counter.get() + 1)


async def _add_hides(counter: Any, lock: trio.Lock, think: Any) -> None:
    async with lock:
        try:
            await think()
        except ValueError:
            return
        counter.set(counter.get() + 1)


async def _transfer_as_given(source: Any, target: Any, move: Any) -> None:
    async with source.lock, target.lock:
        await move()


async def _transfer_sleepily(source: Any, target: Any, move: Any) -> None:
    async with source.lock:
        await checkpoint()
        async with target.lock:
            await move()


async def _transfer_one_lock(source: Any, target: Any, move: Any) -> None:
    async with min(source, target, key=lambda account: account.name).lock:
        await move()


async def _transfer_sorted(source: Any, target: Any, move: Any) -> None:
    first, second = sorted((source, target), key=lambda account: account.name)
    async with first.lock, second.lock:
        await move()


async def _gather_as_they_finish(functions: Any) -> list[Any]:
    answers: list[Any] = []

    async def call(function: Any) -> None:
        answers.append(await _answer_of(function))

    async with trio.open_nursery() as nursery:
        for function in functions:
            nursery.start_soon(call, function)
    return answers


async def _gather_one_by_one(functions: Any) -> list[Any]:
    return [await _answer_of(function) for function in functions]


async def _gather_by_function(functions: Any) -> list[Any]:
    answers: dict[Any, Any] = {}

    async def call(function: Any) -> None:
        answers[function] = await _answer_of(function)

    async with trio.open_nursery() as nursery:
        for function in functions:
            nursery.start_soon(call, function)
    return [answers[function] for function in functions]


async def _gather_until_one_fails(functions: Any) -> list[Any]:
    answers: list[Any] = [None] * len(functions)

    async def call(index: int) -> None:
        answers[index] = ("ok", await functions[index]())

    async with trio.open_nursery() as nursery:
        for index in range(len(functions)):
            nursery.start_soon(call, index)
    return answers


async def _gather_swallowing(functions: Any) -> list[Any]:
    answers: list[Any] = [None] * len(functions)

    async def call(index: int) -> None:
        try:
            answers[index] = ("ok", await functions[index]())
        except BaseException as error:
            answers[index] = ("error", str(error))

    async with trio.open_nursery() as nursery:
        for index in range(len(functions)):
            nursery.start_soon(call, index)
    return answers


async def _tickets_with_locks(calls: Any) -> list[Any]:
    locks: dict[Any, trio.Lock] = defaultdict(trio.Lock)

    def in_turn(resource: Any, function: Any) -> Any:
        async def locked() -> Any:
            if resource is None:
                return await function()
            async with locks[resource]:
                return await function()

        return locked

    return await _gather([in_turn(*call) for call in calls])


async def _tickets_one_by_one(calls: Any) -> list[Any]:
    return await _gather_one_by_one([function for _, function in calls])


async def _tickets_by_groups(calls: Any) -> list[Any]:
    answers: list[Any] = []
    free = [function for resource, function in calls if resource is None]
    answers += await _gather(free)
    for resource in dict.fromkeys(resource for resource, _ in calls if resource is not None):
        answers += await _gather_one_by_one([function for of, function in calls if of == resource])
    return answers


async def _tickets_ignoring_names(calls: Any) -> list[Any]:
    return await _gather([function for _, function in calls])


async def _tickets_kept_by_a_failure(calls: Any) -> list[Any]:
    answers: list[Any] = [None] * len(calls)
    last: dict[Any, trio.Event] = {}

    async def call(index: int, before: trio.Event | None, after: trio.Event) -> None:
        if before is not None:
            await before.wait()
        answers[index] = await _answer_of(calls[index][1])
        if answers[index][0] == "ok":
            after.set()

    async with trio.open_nursery() as nursery:
        for index, (resource, _) in enumerate(calls):
            before, after = last.get(resource), trio.Event()
            if resource is not None:
                last[resource] = after
            nursery.start_soon(call, index, before, after)
    return answers


async def _stop_never(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    limiter = trio.CapacityLimiter(limit)

    def limited(function: Any) -> Any:
        async def run() -> Any:
            async with limiter:
                return await function()

        return run

    return await _gather([limited(function) for function in functions])


async def _stop_one_by_one(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    answers = []
    for function in functions:
        if stop.is_set():
            answers.append(("not started",))
        else:
            answers.append(("ok", await function()))
    return answers


async def _stop_denying(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    return [
        ("not started",) if answer == ("interrupted",) else answer for answer in await _stop(functions, limit, stop)
    ]


async def _stop_without_limit(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    return await _stop(functions, len(functions), stop)


async def _stop_saying_ok(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    answers = await _stop(functions, limit, stop)
    return [("ok", index) if answer == ("interrupted",) else answer for index, answer in enumerate(answers)]


def _merge_as_finished(state: dict[str, Any], finished: list[Any]) -> Any:
    for _, _, modifier in finished:
        state = modifier(state)
    return state, []


def _merge_stops(state: dict[str, Any], finished: list[Any]) -> Any:
    for index, position, modifier in sorted(finished, key=lambda one: one[:2]):
        try:
            state = modifier(dict(state))
        except Exception:
            return state, [(index, position)]
    return state, []


def _merge_by_text(state: dict[str, Any], finished: list[Any]) -> Any:
    return _merge_in(state, sorted(finished, key=lambda one: str(one[:2])))


def _merge_in(state: dict[str, Any], finished: list[Any]) -> Any:
    rejected = []
    for index, position, modifier in finished:
        try:
            state = modifier(state)
        except Exception:
            rejected.append((index, position))
    return state, rejected


def _merge_dirty(state: dict[str, Any], finished: list[Any]) -> Any:
    return _merge_in(state, sorted(finished, key=lambda one: one[:2]))


@toolrt.tool(safe=True)
async def _count_changes_the_state(ctx: toolrt.ToolContext, word: str) -> str:
    """Count a word in the state itself."""
    ctx.state["seen"][word] = ctx.state["seen"].get(word, 0) + 1
    return "counted"


@toolrt.tool(safe=True)
async def _count_stale(ctx: toolrt.ToolContext, word: str) -> toolrt.ToolOutput:
    """Count from the state as it was when the call began."""
    after = _counting(ctx.state, word)["seen"]
    return toolrt.ToolOutput("counted", modifiers=[lambda state: state.set("seen", after)])


@toolrt.tool
async def _count_alone(ctx: toolrt.ToolContext, word: str) -> toolrt.ToolOutput:
    """Count right, and alone."""
    return toolrt.ToolOutput("counted", modifiers=[lambda state: _counting(state, word)])


def _appender_by_spelling(workspace: toolrt.Workspace) -> toolrt.Tool:
    @toolrt.tool(claims=lambda input, state: [toolrt.Claim(("name", input["path"]), toolrt.WRITE)])
    async def append_line(ctx: toolrt.ToolContext, path: str, line: str) -> str:
        """Add a line, in the order of spellings."""
        identity = workspace.identify(path)
        before = (await workspace.disk.read(identity.entry, 1_000)).content
        await workspace.disk.revise(identity.entry, 1_000, lambda found: before + f"{line}\n".encode())
        return "added"

    return append_line


def _appender_of_everything(workspace: toolrt.Workspace) -> toolrt.Tool:
    @toolrt.tool(claims=lambda input, state: workspace.claims(".", state, toolrt.WRITE, subtree=True), owner=workspace)
    async def append_line(ctx: toolrt.ToolContext, path: str, line: str) -> str:
        """Add a line, and claim the whole workspace."""
        entry = workspace.identify(path).entry
        before = (await workspace.disk.read(entry, 1_000)).content
        await workspace.disk.revise(entry, 1_000, lambda found: before + f"{line}\n".encode())
        return "added"

    return append_line


def _law_only_writers(trace: Any) -> list[str]:
    return _file_law(trace, readers=False)


def _law_that_counts(trace: Any) -> list[str]:
    return ["it reads before it writes"] if trace.of_kind("file.read") else []


_WRONG: list[tuple[str, Any, str]] = [
    ("two_adders", {0, 1, 2}, "none of all 6 schedules ends so"),
    ("two_adders", {2}, "1 more outcome comes of some schedule"),
    ("two_adders", {"1", "2"}, "none of all 6"),
    ("two_adders", 2, "expected a set"),
    ("two_adders", set(), "2 more outcomes come"),
    ("lose_it", "main main.0*2 main.1*2 main", "the counter ends at 2"),
    ("lose_it", "main main.0 main.2", "the program offered"),
    ("lose_it", "first one, then two", "not a schedule"),
    ("lose_it", "main main.0 main.1", "its end"),
    ("lose_it", 17, "expected a Schedule or a text"),
    ("how_many", {2: (6, 6), 3: (90, 90)}, "you say 6, which is too many"),
    ("how_many", {2: (4, 4)}, "there is no entry for 3"),
    ("how_many", (6, 4), "it is {2: (schedules, classes)"),
    ("how_many", {2: 6, 3: 90}, "it is {2: (schedules, classes)"),
    ("mend_it", _add_without_lock, "2 tasks added one, and the counter holds 1"),
    ("mend_it", _add_reads_outside, "the counter holds 1"),
    ("mend_it", _add_never_releases, "think"),
    ("mend_it", _add_without_thinking, "think() was called 0 times for 2 additions"),
    ("mend_it", _add_one_lock_for_all, "two counters with a lock each took 2 s"),
    ("mend_it", _add_hides, "did not let it out"),
    ("embrace", "main main.0*4 main.1*4 main", "it ends in 'moved both'"),
    ("embrace", "main main.0", "its end"),
    ("no_embrace", _transfer_as_given, "give"),
    ("no_embrace", _transfer_sleepily, "main"),
    ("no_embrace", _transfer_one_lock, "without the lock of b"),
    ("no_embrace", _transfer_sorted, "an account may give to itself"),
    ("in_call_order", lambda answers, delivered: True, "not always caught: results come as calls finish"),
    ("in_call_order", lambda answers, delivered: False, "it is False for []"),
    (
        "in_call_order",
        lambda answers, delivered: delivered == sorted(delivered, key=str),
        "the last result never comes",
    ),
    ("in_call_order", lambda answers, delivered: [a for _, a in delivered] == answers, "each answer names the next"),
    (
        "in_call_order",
        lambda answers, delivered: len(answers) == len(delivered),
        "each result has the answer of the next",
    ),
    ("in_call_order", lambda answers, delivered: None, "True or False, this one gave None"),
    ("gather", _gather_as_they_finish, "under the schedule"),
    ("gather", _gather_one_by_one, "it took 6 s, expected 3 s"),
    ("gather", _gather_by_function, "one function called twice has two answers"),
    ("gather", _gather_until_one_fails, "ValueError: no"),
    ("gather", _gather_swallowing, "gave an answer as if nothing had been"),
    ("needle", lambda seed: sim.Random(sim.RandomWalk(seed=seed), 300), "not found with 10 of 10 seeds"),
    ("needle", lambda seed: sim.PCT(depth=2, seed=seed), "expected such as sim.Random"),
    ("needle", sim.Exhaustive(), "it is a function of a seed"),
    ("merge", _merge_as_finished, "expected ({'said': 'ab'}, []), got"),
    ("merge", _merge_stops, "expected ({'said': 'abc'}, [(1, 0)])"),
    ("merge", _merge_by_text, "call 10 comes after call 9"),
    ("merge", _merge_dirty, "and then raises, changes nothing either"),
    ("pure_counter", _count_changes_the_state, "breaks its promise (state)"),
    ("pure_counter", _count_stale, "expected {'mug': 3, 'tea': 3}"),
    ("pure_counter", _count_alone, "runs alone"),
    ("pure_counter", _add, "expected a function with @toolrt.tool"),
    ("honest_tool", _appender_by_spelling, "breaks its promise (claims)"),
    ("honest_tool", _appender_of_everything, "it claims more than it touches"),
    ("honest_tool", lambda workspace: _add, "expected make(workspace) to return a tool"),
    ("tickets", _tickets_with_locks, "expected x0, x1, x2, one after the other"),
    ("tickets", _tickets_one_by_one, "calls that share nothing need not wait"),
    ("tickets", _tickets_by_groups, "expected the answers of"),
    ("tickets", _tickets_ignoring_names, "expected x0, x1, x2, one after the other"),
    ("tickets", _tickets_kept_by_a_failure, "main"),
    ("file_law", lambda trace: [], "not caught: Claims on files are not taken"),
    ("file_law", _law_only_writers, "not caught: READ claims on files are not taken"),
    ("file_law", _law_that_counts, "it complains of the right runtime"),
    ("stop", _stop_never, "it became ['ok', 'ok', 'ok', 'ok']"),
    ("stop", _stop_one_by_one, "it was stopped after 1 s and returned after 2 s"),
    ("stop", _stop_denying, "the answers say"),
    ("stop", _stop_without_limit, "calls ran at once, the limit is"),
    ("stop", _stop_saying_ok, "the answers say"),
]


@pytest.mark.parametrize(("name", "answer", "said"), _WRONG, ids=[f"{name}-{said[:24]}" for name, _, said in _WRONG])
def test_wrong_answer_is_told_what_is_wrong(name: str, answer: Any, said: str) -> None:
    """It is wrong, and the text says why; an execution that shows it can be looked at."""
    grade = SHEET[name].grade(answer)
    assert grade.status is Status.WRONG
    assert said in str(grade), str(grade)
    if any(not one.good and one.evidence is not None for one in grade.findings):
        assert isinstance(grade.show(), view.Page)
    else:
        with pytest.raises(MisuseError, match=f"exercise {name}"):
            grade.show()


def test_every_exercise_has_several_wrong_answers() -> None:
    """So that each is known to see something."""
    counts = {name: sum(name == one for one, _, _ in _WRONG) for name in SHEET}
    assert min(counts.values()) >= 2, counts


def test_sheet_is_in_the_order_of_weeks() -> None:
    """Fifteen exercises, one for each week of a semester."""
    assert [exercise.week for exercise in SHEET.values()] == list(range(1, 16))
    assert all(SHEET[name].name == name for name in SHEET)


@pytest.mark.parametrize("name", list(SHEET))
def test_template_is_not_an_answer(name: str) -> None:
    """What a student begins with runs, gives `answer`, and is not answered yet: neither right nor wrong."""
    namespace: dict[str, Any] = {"toolrt": toolrt, "trio": trio, "sim": sim}
    exec(SHEET[name].template, namespace)
    for answer in (namespace["answer"], None, ...):
        grade = SHEET[name].grade(answer)
        assert (grade.status, str(grade)) == (Status.UNANSWERED, f"{name}: not answered yet")
    assert not grade.right


def test_part_that_is_not_written_yet_is_no_answer() -> None:
    """Also where it stands in a function inside, in a class, or in a tool."""

    def outer(workspace: Any) -> Any:
        def inner() -> None:
            raise NotImplementedError

        return inner

    class Halves:
        def done(self) -> int:
            return 1

        def missing(self) -> int:
            raise NotImplementedError

    @toolrt.tool
    async def unwritten(ctx: toolrt.ToolContext) -> str:
        """Not yet."""
        raise NotImplementedError

    for answer in (outer, Halves, unwritten):
        assert SHEET["honest_tool"].grade(answer).status is Status.UNANSWERED


def test_answer_that_raises_is_told_what_it_raised() -> None:
    """Where nobody expects it, as where it is run."""

    def raises(*anything: Any) -> Any:
        raise KeyError("nobody knows")

    for name in ("in_call_order", "merge", "needle", "honest_tool", "file_law", "gather", "mend_it"):
        grade = SHEET[name].grade(raises)
        assert grade.status is Status.WRONG
        assert "nobody knows" in str(grade)


def test_runtime_that_never_ends_is_stopped() -> None:
    """A task that spins at a checkpoint is ended by the step limit, and that is told."""

    async def spins(functions: Any) -> Any:
        while True:
            await checkpoint()

    grade = SHEET["gather"].grade(spins)
    assert grade.status is Status.WRONG
    assert "step" in str(grade)


def test_tasks_name_programs_and_files_that_are_there() -> None:
    """A litmus program or a page that a task sends its reader to exists."""
    text = "\n".join(exercise.task for exercise in SHEET.values())
    names = [part.split('"')[1] for part in text.split("LITMUS[")[1:]]
    pages = [word.strip("()*.,;") for word in text.split() if "docs/" in word]
    assert names
    assert pages
    assert set(names) <= set(LITMUS)
    assert all((ROOT / page).is_file() for page in pages)


def test_summary_counts_what_is_right() -> None:
    """A line for each grade, and how many are right."""
    grades = [SHEET["two_adders"].grade({1, 2}), SHEET["lose_it"].grade()]
    assert lab.summary(*grades) == "✓ two_adders     right\n  lose_it        not answered yet\n1 of 2 right"


def test_exercise_is_shown_in_a_notebook_with_its_week_and_its_task() -> None:
    """As Markdown; the sheet is a list."""
    shown = SHEET["tickets"]._repr_markdown_()
    assert shown.startswith("### Week 13: Tickets (`tickets`)\n\n**Write `run(calls)`")
    assert str(SHEET).splitlines()[0] == "week  1  two_adders     Two add one"


def test_notebook_has_each_task_and_its_template_alone() -> None:
    """The sheet's notebook has every task as it is graded, and a template in place of an answer."""
    document = json.loads((ROOT / "notebooks/10-exercise-sheet.ipynb").read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    text = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "markdown"]
    for exercise in SHEET.values():
        assert f"## Week {exercise.week}: {exercise.title}\n\n{exercise.task}" in text
        (cell,) = [one for one in code if f'SHEET["{exercise.name}"].grade(' in one]
        assert cell.startswith(exercise.template)
