"""``toolrt run``: execute a recorded response on a real directory.

Rules.  Everything that can be refused is refused before the first call starts.  Ctrl-C cancels the batch: what
runs is interrupted, what has not started never starts, and every call's result is still printed, as it really was.
A second Ctrl-C gives up on calls that do not end, and names them.  Text for people goes to standard output, or to
standard error when standard output carries the message for a machine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal, NoReturn

import attrs
import trio
from cyclopts import Parameter

from toolrt._plain import counted, plain
from toolrt.cli._arguments import STANDARD_INPUT
from toolrt.cli._exit import Exit
from toolrt.cli._made_with import versions
from toolrt.cli._tally import calls_of, tally
from toolrt.cli.commands._history import print_way_back
from toolrt.cli.experiment._input import checked_target, load_response, write_target
from toolrt.cli.experiment._offer import ToolOptions, offered
from toolrt.cli.experiment._options import LIMIT, Lanes, Slots, Whole, above_0, at_least_one
from toolrt.cli.experiment._policies import lanes_named, slots_named
from toolrt.cli.experiment._roots import KeepHardLinks, Mounts, roots_of
from toolrt.cli.experiment._servers import language_servers_of, servers_of
from toolrt.cli.screen._board import watching
from toolrt.cli.screen._escape import on_one_line, shown_lines
from toolrt.cli.screen._permit import TerminalQuestions, permissions_of
from toolrt.cli.screen._plan import in_words, plan_of, print_plan
from toolrt.cli.screen._screen import Screen, forgiving, print_json
from toolrt.cli.screen._signals import code_of_interrupt, who_interrupts
from toolrt.cli.screen._styles import STYLES
from toolrt.errors import InputRefused, asks_to_exit
from toolrt.interop import record, render_results
from toolrt.model import State, ToolCall, ToolResult
from toolrt.model._content import parts_of, words_of
from toolrt.plugins.code import skeleton
from toolrt.plugins.otel import JsonLines, Telemetry
from toolrt.runtime import Batch, Runtime
from toolrt.workspace import head_and_tail

_Patterns = Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=False)]

FormatName = Literal["anthropic", "openai", "chat", "json", "text"]

#: Lines of each result that people are shown.
_LINES = 12


def run(
    response: Annotated[str, Parameter(help="The recorded response, as JSON; - reads standard input.")],
    /,
    *,
    workspace: Annotated[str, Parameter(help="The directory the calls work on; they change it.")],
    mount: Mounts = (),
    keep_hard_links: KeepHardLinks = False,
    lanes: Lanes = "by_claims",
    slots: Slots = None,
    limit: Annotated[Whole, Parameter(help="How many calls run at once, 1 or more.")] = LIMIT,
    timeout: Annotated[float | None, Parameter(help="Seconds each call may run; no limit unless given.")] = None,
    trace: Annotated[str | None, Parameter(help="Write what happened to this file, as JSON.")] = None,
    telemetry: Annotated[
        str | None, Parameter(help="Add what happens to this file as it happens: lines of JSON without content.")
    ] = None,
    allow: Annotated[_Patterns, Parameter(help="Allow what matches [TOOL:]PATTERN; all else is asked about.")] = (),
    ask: Annotated[_Patterns, Parameter(help="Ask before what matches [TOOL:]PATTERN; outranks --allow.")] = (),
    deny: Annotated[_Patterns, Parameter(help="Deny what matches [TOOL:]PATTERN; outranks the others.")] = (),
    shell: Annotated[
        bool, Parameter(help="Offer run_command as well: its commands can do what you can.", negative=())
    ] = False,
    sandbox: Annotated[
        bool, Parameter(help="Offer run_command in a sandbox: its commands reach the directory alone.", negative=())
    ] = False,
    code: Annotated[
        bool, Parameter(help="Offer tools that know symbols, calls and imports as well.", negative=())
    ] = False,
    lsp: Annotated[
        _Patterns,
        Parameter(help="Offer diagnostics of this language server as well: ruff, ty, or SUFFIXES=COMMAND."),
    ] = (),
    context_budget: Annotated[
        Whole | None, Parameter(help="Tokens that the model has room for; long files are then shown in part.")
    ] = None,
    mcp: Annotated[
        _Patterns, Parameter(help="Take tools from this MCP server as well: a program and its arguments.")
    ] = (),
    mcp_trust: Annotated[
        _Patterns, Parameter(help="Believe the server of this name what it says of its tools, such as read-only.")
    ] = (),
    dry_run: Annotated[bool, Parameter(help="Print the plan and run nothing.", negative=())] = False,
    format: Annotated[
        FormatName, Parameter(help="Print only the message to send back, in that API's form; text is for people.")
    ] = "text",
) -> int:
    """Execute the tool calls of a recorded model response on a directory.

    The response is a message of the Anthropic API, a response or a chat completion of OpenAI's, or a list of calls.
    The tools are the workspace's file tools, a shell with --shell, those that know code with --code, diagnostics with
    --lsp, and those of the MCP servers that --mcp names.
    Lanes and progress are shown while the calls run, then the results in call order. With --format anthropic, openai,
    chat or json, standard output has the message to send back and nothing else. Ctrl-C cancels the calls and still
    prints every result. What the file tools changed can be put back by toolrt undo; what a command or a server
    changed cannot.
    """
    loaded = load_response(response)
    at_least_one("--limit", limit)
    policy, chooser = lanes_named(lanes), slots_named(slots)
    roots = roots_of(workspace, mount)
    if timeout is not None:
        above_0("--timeout", timeout)
    if context_budget is not None and context_budget < 0:
        raise InputRefused("--context-budget", f"expected tokens, 0 or more, got {context_budget}", "See --help.")
    target = None if trace is None else checked_target(trace, "--trace")
    if telemetry is not None and checked_target(telemetry, "--telemetry") == target:
        raise InputRefused("--telemetry", "it is the file that --trace writes", "Name another file.")
    if dry_run and format not in ("text", "json"):
        raise InputRefused(f"--format {format}", "--dry-run has no results to send back", "Use json or text.")
    screen = Screen(forgiving(sys.stdout if format == "text" else sys.stderr))
    files = roots.workspace(skeleton if code else head_and_tail, keep_hard_links)
    wanted = ToolOptions(
        shell or sandbox, sandbox, code, language_servers_of(lsp), servers_of(mcp, mcp_trust, roots.base)
    )
    approve = permissions_of(files, allow, ask, deny, TerminalQuestions(screen, response != STANDARD_INPUT).put)
    lines = None if telemetry is None or dry_run else _lines_in(telemetry)
    observer = None if lines is None else Telemetry(lines, root=roots.base, mounts=roots.mounts)

    async def run_connected() -> RunResult | None:
        async with offered(files, wanted) as offer:
            if dry_run:
                plan = plan_of(loaded.calls, offer.registry, policy)
                if format == "json":
                    print_json(plan.to_json())
                else:
                    print_plan(plan, screen)
                return None
            screen.say(f"{calls_of(len(loaded.calls))}, {lanes}, at most {limit:,} at once")
            runtime = Runtime(
                offer.registry,
                policy,
                limit,
                timeout=timeout,
                approve=approve,
                telemetry=observer,
                services=offer.services,
                slots=chooser,
            )
            # History outlives this process, and a counter would begin anew in each.
            batch_id = f"run-{uuid.uuid4().hex[:8]}"
            state = State(context_budget=context_budget)
            performed = await perform(runtime, loaded.calls, screen, batch_id, state)
            # Before the servers end, so that the results do not wait for them.
            if format == "text":
                _print_results(performed, loaded.calls, screen)
            _print_summary(performed, screen)
            await print_way_back(files, batch_id, screen)
            if format != "text":
                print_json(render_results(performed.results, format))
            return performed

    with contextlib.nullcontext() if target is None else record() as recorder:
        performed = _run(run_connected)
    if performed is None:
        return Exit.OK
    if target is not None and recorder is not None:
        ended = "interrupted" if performed.interrupted else "returned"
        write_target(target, recorder.trace({**versions(), "ended": ended}).to_json(), "--trace")
    if lines is not None:
        lines.close()
        if lines.lost:
            screen.say(f"--telemetry: {counted(lines.lost, 'line')} could not be written", "yellow")
    if performed.interrupted:
        return Exit.INTERRUPTED
    return Exit.OK if all(result.ok for result in performed.results) else Exit.FAILED


def _lines_in(path: str) -> JsonLines:
    try:
        return JsonLines(path)
    except OSError as error:
        why = f"it cannot be written ({error.strerror})"
        raise InputRefused(f"--telemetry {path!r}", why, "Name a file that can be written.") from None


def _run(main: Callable[[], Awaitable[RunResult | None]]) -> RunResult | None:
    try:
        return trio.run(main)
    except BaseExceptionGroup as group:
        # Ctrl-C while servers are connected comes out of a nursery.
        exit_asked = asks_to_exit(group)
        if exit_asked is None:
            raise
        raise exit_asked from None


@attrs.frozen
class RunResult:
    """What came of a batch."""

    #: One for each call, in call order.
    results: tuple[ToolResult, ...]
    #: Whether Ctrl-C cancelled it, or what is taken as that.
    interrupted: bool
    #: Wall seconds it took.
    seconds: float


async def perform(
    runtime: Runtime,
    calls: Sequence[ToolCall],
    screen: Screen,
    batch_id: str | None = None,
    state: State | None = None,
) -> RunResult:
    """Run `calls` as one batch, show it on `screen`, and give what came of it, complete also after Ctrl-C.

    A second Ctrl-C ends the process.

    Checkpoint: always.
    """
    began = time.perf_counter()
    interrupts: list[str] = []
    async with trio.open_nursery() as nursery:
        batch = runtime.open_batch(state, batch_id, runtime.registry.reads_in(calls))
        if threading.current_thread() is threading.main_thread():
            await nursery.start(_cancel_on_interrupt, batch, screen, interrupts)
        async with watching(screen, batch) as board, batch:
            for call in calls:
                batch.submit(call)
            batch.seal()
            async for update in batch:
                board.take(update)
        nursery.cancel_scope.cancel()
    return RunResult(batch.outcome.results, bool(interrupts), time.perf_counter() - began)


async def _cancel_on_interrupt(
    batch: Batch, screen: Screen, interrupts: list[str], task_status: trio.TaskStatus[None]
) -> None:
    """Cancel the batch at the first interrupt; leave at the second, whatever still runs."""
    with trio.open_signal_receiver(signal.SIGINT) as received:
        task_status.started()
        async for _ in received:
            interrupts.append(who_interrupts())
            if len(interrupts) > 1:
                _give_up(batch, screen)
            batch.cancel(interrupts[0])
            screen.say("cancelled: waiting for what still runs; Ctrl-C again to give up", "yellow")


def _give_up(batch: Batch, screen: Screen) -> NoReturn:
    """End the process, because a call that does not end cannot be left otherwise."""
    screen.wipe()
    screen.say()
    for call in batch.calls:
        result = next(iter(call.results), None)
        ended = "still running, given up; effects may have landed" if result is None else result.outcome.value
        screen.say(f"[{call.call_index}] {in_words(call.call)}: {ended}")
    screen.say("interrupted: given up", "bold")
    os._exit(code_of_interrupt())


def _print_results(performed: RunResult, calls: Sequence[ToolCall], screen: Screen) -> None:
    screen.say()
    for result, call in zip(performed.results, calls, strict=True):
        style = STYLES[result.outcome]
        screen.say_parts((f"[{result.call_index}] ", ""), (result.outcome.value, style), (f" {in_words(call)}", ""))
        for text in (result.error, _as_text(result.content)):
            if not text:
                continue
            lines, left_out = shown_lines(text, _LINES)
            for line in lines:
                screen.say(line, indent=4)
            if left_out:
                more = f"{counted(left_out, 'more line')}; --format json has all"
                screen.say(f"... {more}", "dim", indent=4)


def _as_text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = parts_of(content)
    return str(plain(content, str)) if parts is None else words_of(parts)


def _print_summary(performed: RunResult, screen: Screen) -> None:
    dropped = sum(result.progress_dropped for result in performed.results)
    lost = f"; {dropped:,} progress messages were dropped" if dropped else ""
    ended = "interrupted: " if performed.interrupted else ""
    screen.say(on_one_line(f"{ended}{tally(performed.results)} in {performed.seconds:.2f} s{lost}"), "bold")
