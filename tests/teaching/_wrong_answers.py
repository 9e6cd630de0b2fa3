"""Answers that are wrong, and something that the grade says of each: the exercise, the answer, the text."""

from __future__ import annotations

from typing import Any

import toolrt
from tests.teaching import _wrong_programs as programs
from tests.teaching._right_answers import add, counting, file_law
from toolrt import sim
from toolrt.workspace import held


def merge_as_finished(state: dict[str, Any], finished: list[Any]) -> Any:
    for _, _, modifier in finished:
        state = modifier(state)
    return state, []


def merge_stops(state: dict[str, Any], finished: list[Any]) -> Any:
    for index, position, modifier in sorted(finished, key=lambda one: one[:2]):
        try:
            state = modifier(dict(state))
        except Exception:
            return state, [(index, position)]
    return state, []


def merge_by_text(state: dict[str, Any], finished: list[Any]) -> Any:
    return merge_in(state, sorted(finished, key=lambda one: str(one[:2])))


def merge_in(state: dict[str, Any], finished: list[Any]) -> Any:
    rejected = []
    for index, position, modifier in finished:
        try:
            state = modifier(state)
        except Exception:
            rejected.append((index, position))
    return state, rejected


def merge_value_errors(state: dict[str, Any], finished: list[Any]) -> Any:
    rejected = []
    for index, position, modifier in sorted(finished, key=lambda one: one[:2]):
        try:
            state = modifier(dict(state))
        except ValueError:
            rejected.append((index, position))
    return state, rejected


def merge_on_the_original(state: dict[str, Any], finished: list[Any]) -> Any:
    rejected = []
    for index, position, modifier in sorted(finished, key=lambda one: one[:2]):
        before = dict(state)
        try:
            state = modifier(state)
        except Exception:
            state = before
            rejected.append((index, position))
    return state, rejected


def merge_dirty(state: dict[str, Any], finished: list[Any]) -> Any:
    return merge_in(state, sorted(finished, key=lambda one: one[:2]))


@toolrt.tool(safe=True)
async def count_changes_the_state(ctx: toolrt.ToolContext, word: str) -> str:
    """Count a word in the state itself."""
    ctx.state["seen"][word] = ctx.state["seen"].get(word, 0) + 1
    return "counted"


@toolrt.tool(safe=True)
async def count_stale(ctx: toolrt.ToolContext, word: str) -> toolrt.ToolOutput:
    """Count from the state as it was when the call began."""
    after = counting(ctx.state, word)["seen"]
    return toolrt.ToolOutput("counted", modifiers=[lambda state: state.set("seen", after)])


@toolrt.tool(safe=True)
async def count_and_forget(ctx: toolrt.ToolContext, word: str) -> toolrt.ToolOutput:
    """Count right, and forget the rest of the state."""
    return toolrt.ToolOutput("counted", modifiers=[lambda state: toolrt.State({"seen": counting(state, word)["seen"]})])


@toolrt.tool
async def count_alone(ctx: toolrt.ToolContext, word: str) -> toolrt.ToolOutput:
    """Count right, and alone."""
    return toolrt.ToolOutput("counted", modifiers=[lambda state: counting(state, word)])


def appender_by_spelling(workspace: toolrt.Workspace) -> toolrt.Tool:
    @toolrt.tool(claims=lambda input, state: [toolrt.Claim(("name", input["path"]), toolrt.WRITE)])
    async def append_line(ctx: toolrt.ToolContext, path: str, line: str) -> str:
        """Add a line, in the order of spellings."""
        identity = workspace.identify(path)
        before = (await workspace.disk.read(identity.entry, 1_000)).content
        await workspace.disk.revise(identity.entry, 1_000, lambda found: before + f"{line}\n".encode())
        return "added"

    return append_line


def appender_of_everything(workspace: toolrt.Workspace) -> toolrt.Tool:
    @toolrt.tool(claims=lambda input, state: workspace.claims(".", state, toolrt.WRITE, subtree=True), owner=workspace)
    async def append_line(ctx: toolrt.ToolContext, path: str, line: str) -> str:
        """Add a line, and claim the whole workspace."""
        entry = workspace.identify(path).entry
        before = (await workspace.disk.read(entry, 1_000)).content
        await workspace.disk.revise(entry, 1_000, lambda found: before + f"{line}\n".encode())
        return "added"

    return append_line


def appender_past_the_workspace(workspace: toolrt.Workspace) -> toolrt.Tool:
    @toolrt.tool(claims=lambda input, state: workspace.claims(input["path"], state, toolrt.WRITE), owner=workspace)
    async def append_line(ctx: toolrt.ToolContext, path: str, line: str) -> str:
        """Add a line to what was read a moment ago."""
        entry = workspace.identify(path).entry
        before = (await workspace.disk.read(entry, 1_000)).content
        await workspace.disk.revise(entry, 1_000, lambda found: before + f"{line}\n".encode())
        return "added"

    return append_line


def appender_with_the_break_first(workspace: toolrt.Workspace) -> toolrt.Tool:
    @toolrt.tool(claims=lambda input, state: workspace.claims(input["path"], state, toolrt.WRITE), owner=workspace)
    async def append_line(ctx: toolrt.ToolContext, path: str, line: str) -> str:
        """Add a line break, and a line."""
        identity = held(workspace, ctx, path, toolrt.WRITE)
        await workspace.files.revise(ctx, identity, lambda before: (before or b"") + f"\n{line}".encode())
        return "added"

    return append_line


def law_of_writes(trace: Any) -> list[str]:
    """Mutations begin in call order: nothing of overlaps, and nothing of reads."""
    wrong, last = [], {}
    for event in trace.of_kind("file.mutation_began"):
        where = event.fields["batch"], event.fields["file"]
        if last.get(where, -1) > event.fields["call"]:
            wrong.append(f"call {event.fields['call']} comes late")
        last[where] = event.fields["call"]
    return wrong


def law_of_one_rule(left_out: str) -> Any:
    """The law without what it says of some pair of events."""

    def law(trace: Any) -> list[str]:
        return [said for said in file_law(trace) if left_out not in said]

    return law


def law_only_writers(trace: Any) -> list[str]:
    return file_law(trace, readers=False)


def law_that_counts(trace: Any) -> list[str]:
    return ["it reads before it writes"] if trace.of_kind("file.read") else []


#: An execution that shows it can be looked at.
SHOWN: list[tuple[str, Any, str]] = [
    ("two_adders", {2}, "1 more outcome comes of some schedule"),
    ("two_adders", {"1", "2"}, "none of all 6"),
    ("two_adders", set(), "2 more outcomes come"),
    ("lose_it", "main main.0*2 main.1*2 main", "the counter ends at 2"),
    ("mend_it", programs.add_without_lock, "think() was called without the lock"),
    ("mend_it", programs.add_reads_outside, "the counter holds 1"),
    ("mend_it", programs.add_thinks_first, "think() was called without the lock"),
    ("mend_it", programs.add_lets_go_to_think, "think() was called without the lock"),
    ("mend_it", programs.add_never_releases, "attempt to re-acquire an already held Lock"),
    ("mend_it", programs.add_without_thinking, "think() was called 0 times for 2 additions"),
    ("mend_it", programs.add_one_lock_for_all, "two counters with a lock each took 2 s"),
    ("mend_it", programs.add_hides, "did not let it out"),
    ("mend_it", programs.add_keeps_the_lock_when_cancelled, "trio.Cancelled is no Exception"),
    ("mend_it", programs.add_writes_outside, "the counter is written without the lock"),
    ("mend_it", programs.add_thinks_again, "think() raised, and was called 2 times"),
    ("embrace", "main main.0*4 main.1*4 main", "it ends in 'moved both'"),
    ("no_embrace", programs.transfer_as_given, "✗ opposite transfers end"),
    ("no_embrace", programs.transfer_sleepily, "✗ a ring of three ends"),
    ("no_embrace", programs.transfer_one_lock, "without the lock of b"),
    ("no_embrace", programs.transfer_sorted, "✗ an account may give to itself"),
    ("no_embrace", programs.transfer_through_a_gate, "the transfer from c to d waited for 1 s"),
    ("no_embrace", programs.transfer_without_finally, "move() raised, and these stay locked: a, b"),
    ("gather", programs.gather_of_ten, "it took 2 s, expected 1 s"),
    ("gather", programs.gather_value_errors, "OSError: gone"),
    ("gather", programs.gather_as_they_finish, "got [('ok', 'a'), ('ok', 'c'), ('ok', 'b')]"),
    ("gather", programs.gather_one_by_one, "it took 6 s, expected 3 s"),
    ("gather", programs.gather_by_function, "one function called twice has two answers"),
    ("gather", programs.gather_until_one_fails, "ValueError: no"),
    ("gather", programs.gather_swallowing, "gave an answer as if nothing had been"),
    ("pure_counter", count_and_forget, "the rest of the state is gone"),
    ("pure_counter", count_stale, "expected {'mug': 3, 'tea': 3}"),
    ("honest_tool", appender_by_spelling, "breaks its promise (claims)"),
    ("honest_tool", appender_past_the_workspace, "another program added a line meanwhile, and it is gone"),
    ("honest_tool", appender_with_the_break_first, "lines stand in call order"),
    ("honest_tool", appender_of_everything, "it claims more than it touches"),
    ("tickets", programs.tickets_with_locks, "one after the other, got x1 begins, x1 ends, x0 begins"),
    ("tickets", programs.tickets_one_by_one, "calls that share nothing need not wait"),
    ("tickets", programs.tickets_by_groups, "expected the answers of"),
    ("tickets", programs.tickets_ignoring_names, "one after the other, got x0 begins, x1 begins"),
    ("tickets", programs.tickets_kept_by_a_failure, "waits for an Event that is not set"),
    ("tickets", programs.tickets_of_none, "✗ calls on nothing share nothing"),
    ("tickets", programs.tickets_of_ten, "it took 2 s; calls that share nothing need not wait: 1 s"),
    ("tickets", programs.tickets_by_function, "one function called twice has two answers"),
    ("file_law", law_of_writes, "not caught: two calls change a file at the same time"),
    ("file_law", lambda trace: [], "not caught: Claims on files are not taken"),
    ("file_law", law_only_writers, "not caught: READ claims on files are not taken"),
    ("file_law", law_that_counts, "it complains of the right runtime"),
    ("stop", programs.stop_never, "it became ['ok', 'ok', 'ok', 'ok']"),
    ("stop", programs.stop_one_by_one, "it was stopped after 1 s and returned after 2 s"),
    ("stop", programs.stop_denying, "the answers say [('ok', 0), ('not started',)"),
    ("stop", programs.stop_without_limit, "calls ran at once, the limit is"),
    ("stop", programs.stop_swallowing, "it was cancelled from outside, and began 2 calls afterwards"),
    ("stop", programs.stop_with_a_full_house, "✗ the limit may be above their number"),
    ("stop", programs.stop_saying_ok, "the answers say [('ok', 0), ('ok', 1)"),
]

#: No execution shows it: the answer is no schedule or no program, or wrong whatever the schedule.
TOLD: list[tuple[str, Any, str]] = [
    ("two_adders", {0, 1, 2}, "none of all 6 schedules ends so"),
    ("two_adders", 2, "expected a set"),
    ("lose_it", "main main.0 main.2", "the program offered"),
    ("lose_it", "first one, then two", "not a schedule"),
    ("lose_it", "main main.0 main.1", "its end"),
    ("lose_it", 17, "expected a Schedule or a text"),
    ("how_many", {2: (6, 6), 3: (90, 90)}, "you say 6, which is too many"),
    ("how_many", {2: (4, 4)}, "there is no entry for 3"),
    ("how_many", (6, 4), "it is {2: (schedules, classes)"),
    ("how_many", {2: 6, 3: 90}, "it is {2: (schedules, classes)"),
    ("embrace", "main main.0", "its end"),
    ("in_call_order", lambda answers, delivered: True, "not always caught: results come as calls finish"),
    ("in_call_order", lambda answers, delivered: False, "it is False for []"),
    (
        "in_call_order",
        lambda answers, delivered: delivered == sorted(delivered, key=str),
        "not always caught: the last result never comes",
    ),
    (
        "in_call_order",
        lambda answers, delivered: [a for _, a in delivered] == answers,
        "not always caught: each answer names the next",
    ),
    (
        "in_call_order",
        lambda answers, delivered: len(answers) == len(delivered),
        "not always caught: each result has the answer of the next",
    ),
    (
        "in_call_order",
        lambda answers, delivered: (
            len(answers) == len(delivered)
            and [index for index, _ in delivered] == sorted(index for index, _ in delivered)
            and all(answers[index] == answer for index, answer in delivered)
        ),
        "not always caught: the first result comes twice, and the last never",
    ),
    (
        "in_call_order",
        lambda answers, delivered: (
            len(answers) == len(delivered)
            and all(one[0] == index and one[1] is answers[index] for index, one in enumerate(delivered))
        ),
        "✗ it holds on the right program",
    ),
    ("in_call_order", lambda answers, delivered: None, "True or False, this one gave None"),
    ("needle", lambda seed: sim.Random(sim.RandomWalk(seed=seed), 300), "not found with 10 of 10 seeds"),
    ("needle", lambda seed: sim.PCT(depth=2, seed=seed), "expected such as sim.Random"),
    ("needle", sim.Exhaustive(), "it is a function of a seed"),
    ("merge", merge_as_finished, "expected ({'said': 'ab'}, []), got"),
    ("merge", merge_stops, "expected ({'said': 'abc'}, [(1, 0)])"),
    ("merge", merge_by_text, "✗ numbers are numbers: call 10 comes after call 9"),
    ("merge", merge_value_errors, "✗ whatever kind of error it is"),
    ("merge", merge_on_the_original, "the modifier was handed the caller's own state"),
    ("merge", merge_dirty, "✗ one that changes what it is given, and then raises"),
    ("pure_counter", count_changes_the_state, "breaks its promise (state)"),
    ("pure_counter", count_alone, "runs alone"),
    ("pure_counter", add, "expected a function with @toolrt.tool"),
    ("file_law", law_of_one_rule("changes f after"), "not caught: call 0 changes a file after call 1 has"),
    ("file_law", law_of_one_rule("call 1 while call 0"), "not caught: two calls change a file at the same time"),
    ("file_law", lambda trace: not file_law(trace), "a law gives the list of what is wrong"),
    ("honest_tool", lambda workspace: add, "expected make(workspace) to return a tool"),
]
