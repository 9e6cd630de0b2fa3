"""What a failed command is known by, and whether a later one still says it."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from toolrt import MemoryDisk, Registry, Runtime, State, ToolCall, Workspace, services
from toolrt.services import Recorded, RecordedShell
from toolrt.services._signatures import HINT, distinctive, remembering, resolving

PYTEST = """\
\x1b[1m============================= test session starts ==============================\x1b[0m
platform linux -- Python 3.11.7, pytest-9.0.3, pluggy-1.6.0
rootdir: /repo
collected 3 items

tests/test_shop.py .F.                                                   [100%]

=================================== FAILURES ===================================
_______________________________ test_total_of_two ______________________________

    def test_total_of_two():
>       assert total([1, 2]) == 4
E       assert 3 == 4
E        +  where 3 = total([1, 2])

tests/test_shop.py:12: AssertionError
=========================== short test summary info ============================
FAILED tests/test_shop.py::test_total_of_two - assert 3 == 4
========================= 1 failed, 2 passed in 0.02s ==========================
"""

PYTEST_MENDED = """\
============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-9.0.3, pluggy-1.6.0
rootdir: /repo
collected 3 items

tests/test_shop.py ...                                                   [100%]

============================== 3 passed in 0.01s ===============================
"""

CARGO = """\
    Blocking waiting for file lock on build directory
    Checking crate v0.1.0 (/repo/crate)
error[E0308]: mismatched types
  --> src/main.rs:14:20
   |
14 |     let total: u32 = "four";
   |                ---   ^^^^^^ expected `u32`, found `&str`
   |                |
   |                expected due to this

For more information about this error, try `rustc --explain E0308`.
error: could not compile `crate` (bin "crate") due to 1 previous error
"""

CARGO_MENDED = """\
    Blocking waiting for file lock on build directory
    Checking crate v0.1.0 (/repo/crate)
    Finished `dev` profile [unoptimized + debuginfo] target(s) in 0.42s
"""


def after(*outputs: tuple[str, bool], state: State | None = None) -> State:
    """The state after commands with these outputs, each of which failed (False) or succeeded (True)."""
    state = State() if state is None else state
    for output, succeeded in outputs:
        state = (resolving if succeeded else remembering)(output)(state)
    return state


@pytest.mark.parametrize(
    ("failed", "mended"), [(PYTEST, PYTEST_MENDED), (CARGO, CARGO_MENDED)], ids=["pytest", "cargo"]
)
def test_lines_of_a_failure_are_its_diagnostics(failed: str, mended: str) -> None:
    """Most of the five are not what the tool always says, so the success is told from the failure."""
    lines = distinctive(failed)
    assert len(lines) == 5
    assert sum(line in mended for line in lines) <= 1
    state = after((failed, False), (failed, True))
    assert (state.error_signatures, state.hints) == (lines, ())
    assert after((failed, False), (mended, True)).hints == (HINT,)


def test_lines_are_those_of_the_stated_score() -> None:
    """Failures first, then what is there once, then length, then place; colours, blanks and notes do not count."""
    output = "\n".join(
        [
            "short error",
            "[1/20] error in a step's number",
            "----------------------------------------",
            "a status that is there twice and is long",
            "a status that is there twice and is long",
            "one plain line, and the longest of all those that are just plain",
            "\x1b[31m  error: the shorter one\x1b[0m  ",
            "panic at line 12 of the file",
            "panic at line 15 of the file",
            "fatal: the longer one of these two",
            "another plain line, a shorter one",
        ]
    )
    assert distinctive(output) == (
        "fatal: the longer one of these two",
        "error: the shorter one",
        "panic at line 12 of the file",
        "one plain line, and the longest of all those that are just plain",
        "another plain line, a shorter one",
    )


def test_line_is_cut_and_compared_without_its_digits() -> None:
    """An error that moved or took another time is still there."""
    [line] = distinctive("error: " + "x" * 500)
    assert len(line) == 120
    assert after(("error at line 12 of it", False), ("error at line 345 of it", True)).hints == ()


def test_first_failure_stays_and_later_ones_change_nothing() -> None:
    """It is an anchor, and the hint comes once."""
    state = after((PYTEST, False), (CARGO, False))
    assert state.error_signatures == distinctive(PYTEST)
    state = after((PYTEST_MENDED, True), (CARGO, False), (CARGO_MENDED, True), state=state)
    assert (state.error_signatures, state.hints) == (distinctive(PYTEST), (HINT,))


@pytest.mark.parametrize(
    ("lines", "gone", "hint"),
    [
        (5, 2, False),
        (5, 3, True),
        (4, 2, False),
        (4, 3, True),
        (3, 1, False),
        (3, 2, True),
        (2, 1, False),
        (1, 1, True),
    ],
)
def test_three_of_five_must_be_gone(lines: int, gone: int, hint: bool) -> None:
    """Of fewer lines as large a part."""
    failed = [f"error: the {word} thing is missing" for word in ("first", "second", "third", "fourth", "fifth")[:lines]]
    state = after(("\n".join(failed), False), ("\n".join(failed[gone:]), True))
    assert bool(state.hints) is hint


def test_failure_without_a_line_is_not_remembered() -> None:
    """The next one is the first."""
    assert after(("", False), ("no\n\n", False), (PYTEST, False)).error_signatures == distinctive(PYTEST)
    assert after(("", False), ("", True)) == State()


@given(st.text(alphabet="ab1 \n[\x1be\u2028\r", max_size=400))
def test_any_output_has_lines_that_are_its_own(output: str) -> None:
    """At most five, no two the same, and a success that says all of it says nothing new."""
    lines = distinctive(output)
    assert len(lines) <= 5
    assert len(set(lines)) == len(lines)
    assert after((output, False), (output, True)).hints == ()


def run(*commands: str, **options: object) -> tuple[State, list[str]]:
    shell = RecordedShell(
        {
            "pytest": Recorded(PYTEST, status=1),
            "pytest -x": Recorded(PYTEST_MENDED),
            "sleep 9; pytest": Recorded(PYTEST, seconds=999),
            "ls": Recorded("a\n"),
        }
    )
    workspace = Workspace(MemoryDisk({"a": ""}))
    tool = services.shell_tool(workspace, shell=shell, timeout=10)
    calls = [ToolCall(f"{number}", "run_command", {"command": command}) for number, command in enumerate(commands)]
    done = trio.run(Runtime(Registry([tool])).run, calls, clock=trio.testing.MockClock(autojump_threshold=0))
    return done.state, [result.content if result.ok else result.error or "" for result in done.results]


def test_shell_tells_the_hint_where_it_is_due_and_once() -> None:
    """In the answer of the command that shows it, and in the state; reading commands are no evidence."""
    state, answers = run("pytest", "ls", "pytest -x", "pytest -x")
    assert [HINT in answer for answer in answers] == [False, False, True, False]
    assert answers[2].endswith(f"[exit status 0; {HINT}]")
    assert (state.error_signatures, state.hints) == (distinctive(PYTEST), (HINT,))


def test_shell_remembers_a_command_that_ran_out_of_time() -> None:
    """It failed, and what it wrote until then tells how."""
    state, answers = run("sleep 9; pytest", "pytest -x")
    assert "time limit" in answers[0]
    assert state.error_signatures == distinctive(PYTEST)
    assert HINT in answers[1]


def test_shell_that_never_failed_says_nothing() -> None:
    """And changes nothing in the state."""
    assert run("pytest -x", "ls") == (State(), [f"{PYTEST_MENDED}[exit status 0]", "a\n[exit status 0]"])
