"""First error signatures and hints."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

from tests.properties._rule import Program, Variant, calls_of, only_ending
from toolrt import MemoryDisk, Registry, Runtime, State, Workspace, parallel, serial, services, sim
from toolrt.invariants import patched
from toolrt.services import Recorded, RecordedShell, _shell
from toolrt.services._signatures import HINT, remembering

OUTPUTS = {
    "cat one": Recorded("cat: one: No such file or directory\n", status=1, seconds=0.3),
    "cat two": Recorded("cat: two: Permission denied by the owner\n", status=1, seconds=0.1),
    "make": Recorded("gcc: fatal error: no input files\ncompilation terminated early\n", status=2, seconds=0.2),
    "make one": Recorded("all is made as it should be\n", seconds=0.2),
    "make two": Recorded("everything is as it should be\n", seconds=0.1),
}


def shell_batch(*commands: str, state: State | None = None, **options: Any) -> Program:
    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"a": "1"}))
        shell = services.shell_tool(workspace, shell=RecordedShell(OUTPUTS))
        calls = calls_of(*(("run_command", {"command": command}) for command in commands))
        done = await Runtime(Registry([shell]), **options).run(calls, State() if state is None else state)
        return done.state, [result.content for result in done.results]

    return program


def first_error() -> None:
    """The first failed command by call order is remembered, also where a later one fails sooner."""
    state, _ = only_ending(shell_batch("cat one", "cat two", "make"))
    assert state.error_signatures == ("cat: one: No such file or directory",)
    state, _ = only_ending(shell_batch("cat two", "cat one"))
    assert state.error_signatures == ("cat: two: Permission denied by the owner",)


def first_to_finish() -> AbstractContextManager[Any]:
    """What fails first in time is kept in a place that all calls of a runtime share."""
    first: list[tuple[str, ...]] = []

    def reset(make: Any) -> Any:
        def open_one(runtime: Runtime, *args: Any, **options: Any) -> None:
            first.clear()
            make(runtime, *args, **options)

        return open_one

    def remembering_first(make: Any) -> Any:
        def remember(output: str) -> Any:
            first.append(make(output)(State()).error_signatures)
            return lambda state: state.replace(error_signatures=first[0])

        return remember

    stack = ExitStack()
    stack.enter_context(patched(Runtime, "__init__", reset))
    stack.enter_context(patched(_shell, "remembering", remembering_first))
    return stack


def one_hint() -> None:
    """Of two successes in one lane one gives the hint; in lanes of their own the first one shows it."""
    failed = remembering(OUTPUTS["make"].output[0].decode())(State())
    state, contents = only_ending(shell_batch("make one", "make two", state=failed, lanes=parallel))
    assert state.hints == (HINT,)
    assert not any(HINT in content for content in contents)
    state, contents = only_ending(shell_batch("make", "make one", "make two", "make one"))
    assert state.hints == (HINT,)
    assert [HINT in content for content in contents] == [False, True, False, False]
    state, _ = only_ending(shell_batch("make", "make one", "make two", lanes=serial))
    assert state.hints == (HINT,)


def _by_what_it_saw(make: Any) -> Any:
    """Each success decides by the state its lane began with, and appends."""

    def resolve(output: str) -> Any:
        inner = make(output)
        return lambda state: state.replace(hints=(*state.hints, *inner(state.replace(hints=())).hints))

    return resolve


def first_error_in_every_trace() -> None:
    """In every order of steps, and with any command at its time limit: the first that wrote a failure is remembered."""

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"a": "1"}))
        shell = services.shell_tool(workspace, shell=RecordedShell(OUTPUTS))
        calls = calls_of(*(("run_command", {"command": command}) for command in ("cat one", "cat two", "make")))
        done = await Runtime(Registry([shell])).run(calls)
        return done.state.error_signatures, [result.content or result.error for result in done.results]

    def check(execution: sim.Execution) -> list[str]:
        signatures, answers = execution.value
        first = next(answer for answer in answers if "cat:" in answer or "gcc:" in answer)
        return [] if signatures and all(line in first for line in signatures) else [f"{signatures} of {answers}"]

    report = sim.explore(program, sim.DPOR(), check, clock="explored")
    assert report.verdict is sim.PASS, report
    assert report.complete
    assert len(report.outcomes) > 1


RULES = {"first error": first_error, "hint": one_hint}


VARIANTS: dict[str, Variant] = {
    "the first failure to finish is remembered": Variant(
        "first error", first_to_finish, "diff: 'cat: two: Permission denied by the owner' != 'cat: one"
    ),
    "each success decides for itself": Variant(
        "hint", lambda: patched(_shell, "resolving", _by_what_it_saw), "Left contains one more item"
    ),
}
