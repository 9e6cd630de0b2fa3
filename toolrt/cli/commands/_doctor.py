"""``toolrt doctor``: what is installed, and what works on this machine.

Rules.  What the simulator controls is tried, not looked up: a small program runs for each line.  What cannot be read is
told, and is no error of the command.
"""

from __future__ import annotations

import importlib.metadata
import platform
import random
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Annotated, Any

import attrs
import trio
from cyclopts import Parameter

from toolrt import sim
from toolrt.cli._exit import Exit
from toolrt.cli._made_with import version
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen, forgiving, print_json
from toolrt.teaching.litmus import LITMUS, verify

#: What each extra gives; those for work on toolrt itself are left out.
EXTRAS = {
    "adapters": "all adapters of SDKs and agent frameworks",
    "agent_framework": "tools for Microsoft's Agent Framework",
    "anthropic": "batches for the Anthropic SDK",
    "cli": "this command line",
    "cluster": "campaigns on many machines",
    "code": "code tools: symbols, callers, blast radius",
    "http": "toolrt serve --http",
    "langgraph": "a ToolNode for LangGraph",
    "llama_index": "agents of LlamaIndex",
    "lsp": "diagnostics of language servers",
    "mcp": "tools of MCP servers, and toolrt serve",
    "notebooks": "JupyterLab, to open the notebooks",
    "openai": "batches for the OpenAI SDK",
    "openai_agents": "tools for the OpenAI Agents SDK",
    "otel": "spans and metrics of OpenTelemetry",
    "pydantic_ai": "a toolset for pydantic-ai",
    "schema": "schemas from type hints",
    "search": "ripgrep, for fast searches",
    "testing": "explored tests, strategies, check_tool",
}


def doctor(*, json: Annotated[bool, Parameter(help="Print what was found as JSON.", negative=())] = False) -> int:
    """Tell what is installed, what each extra gives, and what the simulator controls here.

    Put its output into a bug report. It exits with 1 where the simulator does not support this Python or Trio.
    """
    simulator = {name: _tried(probe) for name, probe in PROBES.items()}
    found: dict[str, Any] = {
        "versions": {name: version(name) for name in ("toolrt", "trio", "attrs")}
        | {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"},
        "simulator": simulator,
        "extras": [attrs.asdict(extra) for extra in _extras()],
        "programs": {name: shutil.which(name) for name in ("rg", "git", "ruff", "ty")},
    }
    if json:
        print_json(found)
    else:
        _say(found)
    return Exit.OK if all(why is None for why in simulator.values()) else Exit.FAILED


@attrs.frozen
class ExtraState:
    """One extra, and what it is made of."""

    name: str
    gives: str
    #: By package the installed version, or None.
    packages: dict[str, str | None]


def _extras() -> list[ExtraState]:
    packages: dict[str, dict[str, str | None]] = defaultdict(dict)
    try:
        needed = importlib.metadata.requires("toolrt") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    for line in needed:
        parts = re.fullmatch(r"([\w.-]+)(?:\[[^]]*\])?[^;]*;(.*)", line)
        extra = parts and re.search(r"extra == ['\"]([\w-]+)['\"]", parts[2])
        if parts and extra:
            known = version(parts[1])
            name = extra[1].replace("-", "_")
            packages[name][parts[1]] = None if known == "not installed" else known
    return [ExtraState(name, gives, packages[name]) for name, gives in EXTRAS.items() if packages[name]]


def _say(found: dict[str, Any]) -> None:
    screen = Screen(forgiving(sys.stdout))
    versions = found["versions"]
    screen.say(", ".join(f"{name} {number}" for name, number in versions.items()))
    screen.say("")
    screen.say("The simulator controls")
    for name, why in found["simulator"].items():
        screen.say(f"{name:<28}  {'yes' if why is None else f'NO: {why}'}", indent=2)
    screen.say("")
    screen.say("Extras")
    for extra in found["extras"]:
        missing = [name for name, number in extra["packages"].items() if number is None]
        state = "yes" if not missing else f'no: pip install "toolrt[{extra["name"]}]" ({", ".join(missing)})'
        screen.say(f"{extra['name']:<16}{extra['gives']:<46}{state}", indent=2)
    if not found["extras"]:
        screen.say("not known: toolrt is not installed, only found on the path", indent=2)
    screen.say("")
    screen.say("Programs")
    for name, path in found["programs"].items():
        screen.say(f"{name:<16}{path or 'not found'}", indent=2)


def _tried(probe: Callable[[], None]) -> str | None:
    """Why a probe fails; None: it does not."""
    try:
        probe()
    except Exception as error:
        return on_one_line(f"{type(error).__name__}: {error}")
    return None


def _probe_clock() -> None:
    async def program() -> float:
        await trio.sleep(3600)
        return trio.current_time()

    _require(sim.run(program).value == 3600, "an hour of virtual time is another number of seconds")


def _probe_chance() -> None:
    async def program() -> float:
        await trio.lowlevel.checkpoint()
        return random.random()

    _require(sim.run(program).value == sim.run(program).value, "two executions draw different numbers")


def _probe_network() -> None:
    async def program() -> bytes:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with listeners[0], await listeners[0].accept() as other, stream:
            await other.send_all(b"here")
            return bytes(await stream.receive_some(4))

    _require(_value(program) == b"here", "other bytes arrive")


def _probe_processes() -> None:
    async def program() -> bytes:
        with sim.Process("toolrt-doctor", stdout=b"well"):
            done = await trio.run_process(["toolrt-doctor"], capture_stdout=True)
        return bytes(done.stdout)

    _require(_value(program) == b"well", "a scripted process prints something else")


def _as_stated(name: str) -> Callable[[], None]:
    """A probe that verifies a litmus program: every outcome that is stated comes, and no other."""

    def probe() -> None:
        problems = verify(LITMUS[name]).problems
        _require(not problems, f"{name}: {', '.join(problems)}")

    return probe


def _value(program: Callable[[], Any]) -> Any:
    execution = sim.run(program)
    if execution.error is not None:
        raise execution.error
    return execution.value


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


#: What is tried, by what it shows.
PROBES: dict[str, Callable[[], None]] = {
    "the order of tasks": _as_stated("order_of_tasks"),
    "the clock": _probe_clock,
    "random numbers": _probe_chance,
    "the network, in memory": _probe_network,
    "threads": _as_stated("check_in_thread"),
    "processes, scripted": _probe_processes,
    "plain objects (tracking)": _as_stated("plain_list"),
}
