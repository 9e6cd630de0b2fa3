"""``toolrt run``: what it does, prints and answers."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import Registry, Runtime, ToolCall, ToolOutput, invariants, tool
from toolrt.cli.commands._run import perform
from toolrt.cli.screen._screen import Screen
from toolrt.trace import Trace

OUTCOMES = ["ok"] * 9 + ["error", "ok", "invalid", "ok", "ok"]


def test_run_leaves_the_files_that_serial_leaves(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """By claims and one at a time give one directory, and not the one there was."""
    other, before = tmp_path / "other", tree(shop)
    shutil.copytree(shop, other, symlinks=True)
    assert toolrt("run", response, "--workspace", shop).code == 1
    assert toolrt("run", response, "--workspace", other, "--lanes", "serial").code == 1
    assert tree(shop) == tree(other) != before


@pytest.mark.parametrize("lanes", ["by_claims", "by_safety", "parallel", "serial"])
def test_run_answers_every_call_under_every_lane_policy(toolrt: Any, response: Path, shop: Path, lanes: str) -> None:
    """The example's outcomes are those its README names."""
    ended = toolrt("run", response, "--workspace", shop, "--lanes", lanes, "--format", "json")
    assert [result["outcome"] for result in json.loads(ended.out)] == OUTCOMES


@pytest.mark.seldom
@pytest.mark.process
def test_run_in_a_process_of_its_own_prints_results_in_call_order(toolrt: Any, response: Path, shop: Path) -> None:
    """``python -m toolrt`` is the command; every call has its line, in order."""
    ended = toolrt.spawned("run", response, "--workspace", shop)
    results = ended.out.split("\n\n", 1)[1]
    numbers = [line.split("]")[0] for line in results.splitlines() if line.startswith("[")]
    assert (ended.code, numbers) == (1, [f"[{index}" for index in range(14)])
    assert "12 ok, 1 error, 1 invalid" in ended.out


@pytest.mark.process
def test_run_loads_neither_hypothesis_nor_pytest_nor_the_simulator(response: Path, shop: Path) -> None:
    """A command is no test, and a real run needs neither the simulator nor the laws."""
    program = (
        "import sys; from toolrt.cli import main; "
        f"main(['run', {str(response)!r}, '--workspace', {str(shop)!r}]); "
        "assert not {'hypothesis', 'pytest', 'toolrt.sim', 'toolrt.invariants'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=100)


def test_run_exits_0_when_every_call_is_ok(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """One read that works."""
    assert toolrt("run", written(("read_file", {"path": "README.md"})), "--workspace", shop).code == 0


def test_run_exits_1_when_a_call_is_not_ok(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """A tool that does not exist."""
    ended = toolrt("run", written(("read_fil", {"path": "README.md"})), "--workspace", shop)
    assert ended.code == 1
    assert "the nearest are read_file" in ended.out


@pytest.mark.seldom
@pytest.mark.process
def test_run_reads_standard_input(toolrt: Any, response: Path, shop: Path) -> None:
    """``-`` is standard input."""
    ended = toolrt.spawned("run", "-", "--workspace", shop, "--format", "json", given=response.read_bytes())
    assert [result["outcome"] for result in json.loads(ended.out)] == OUTCOMES


@pytest.mark.parametrize(
    ("format", "ids"),
    [
        ("anthropic", lambda message: [block["tool_use_id"] for block in message["content"]]),
        ("openai", lambda items: [item["call_id"] for item in items]),
        ("chat", lambda items: [item["tool_call_id"] for item in items]),
        ("json", lambda items: [item["call_id"] for item in items]),
    ],
)
def test_run_format_prints_only_the_message_to_send_back(
    toolrt: Any, response: Path, shop: Path, format: str, ids: Callable[[Any], list[str]]
) -> None:
    """Standard output is one JSON value with an answer for every call; people read standard error."""
    asked = [block["id"] for block in json.loads(response.read_text())["content"] if block["type"] == "tool_use"]
    ended = toolrt("run", response, "--workspace", shop, "--format", format)
    assert ids(json.loads(ended.out)) == asked
    assert "12 ok, 1 error, 1 invalid" in ended.err


@pytest.mark.seldom
@pytest.mark.process
def test_run_format_is_utf8_in_every_locale(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """What the file holds arrives, although the locale is C."""
    (shop / "prices.txt").write_text("値段", encoding="utf-8")
    calls = written(("read_file", {"path": "prices.txt"}))
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    ended = toolrt.spawned("run", calls, "--workspace", shop, "--format", "json", env=env)
    assert json.loads(ended.out)[0]["content"] == "値段"


def test_run_trace_keeps_every_law(toolrt: Any, response: Path, shop: Path, tmp_path: Path) -> None:
    """What was recorded is a trace as the simulator makes it, and the laws hold on it."""
    target = tmp_path / "trace.json"
    toolrt("run", response, "--workspace", shop, "--trace", target)
    trace = Trace.from_json(target.read_text())
    assert len(trace.of_kind("call.settled")) == 14
    assert trace.meta["ended"] == "returned"
    assert invariants.check(trace) == []


def test_run_dry_run_prints_the_plan_and_changes_nothing(
    toolrt: Any, response: Path, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """Lanes, calls, claims and who waits for whom."""
    before = tree(shop)
    ended = toolrt("run", response, "--workspace", shop, "--dry-run")
    assert ended.code == 0
    assert "lane 0: 13 calls, may overlap" in ended.out
    assert "[3] edit_file ./shop/cart.py  after 2" in ended.out
    assert "writes file/shop/cart.py" in ended.out
    assert tree(shop) == before


def test_run_dry_run_gives_the_plan_as_json(toolrt: Any, response: Path, shop: Path) -> None:
    """The same for machines: each call is in one lane, or invalid."""
    plan = json.loads(toolrt("run", response, "--workspace", shop, "--dry-run", "--format", "json").out)
    planned = [call["call_index"] for lane in plan["lanes"] for call in lane["calls"]]
    assert sorted(planned + [call["call_index"] for call in plan["invalid"]]) == list(range(14))


def test_run_dry_run_keeps_equal_calls_apart(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """Two calls with one content are two calls."""
    edit = ("edit_file", {"path": "README.md", "old": "a", "new": "b"})
    plan = json.loads(toolrt("run", written(edit, edit), "--workspace", shop, "--dry-run", "--format", "json").out)
    assert [(call["call_index"], call["waits_for"]) for call in plan["lanes"][0]["calls"]] == [(0, []), (1, [0])]


@pytest.mark.seldom
def test_run_takes_10000_calls(toolrt: Any, tmp_path: Path, written: Callable[..., Path]) -> None:
    """Every one is answered."""
    root = tmp_path / "empty"
    root.mkdir()
    calls = written(*[("read_file", {"path": f"{index % 7}.txt"}) for index in range(10_000)])
    ended = toolrt("run", calls, "--workspace", root, "--format", "json")
    assert [result["call_index"] for result in json.loads(ended.out)] == list(range(10_000))


@pytest.mark.seldom
@pytest.mark.process
def test_run_goes_on_when_nobody_reads(response: Path, shop: Path) -> None:
    """A closed pipe ends the printing, not the calls."""
    process = subprocess.Popen(
        [sys.executable, "-m", "toolrt", "run", str(response), "--workspace", str(shop)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    complaint = process.stderr.read()
    assert (process.wait(timeout=100), complaint) == (1, b"")
    process.stderr.close()
    assert "shipping" in (shop / "shop" / "cart.py").read_text()
    assert (shop / "CHANGES.md").exists()


def test_run_writes_only_what_the_calls_write(
    toolrt: Any, response: Path, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """No file beside those the calls name is made or changed, and links stay links."""
    before = tree(shop)
    toolrt("run", response, "--workspace", shop)
    after = tree(shop)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"CHANGES.md", "data/prices-2026.csv", "shop/cart.py", "shop/prices.py"}
    assert os.readlink(shop / "shop" / "basket.py") == "cart.py"


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is Linux's")
@pytest.mark.parametrize("format", ["text", "json"])
def test_run_on_a_full_disk_still_runs_every_call(response: Path, shop: Path, format: str) -> None:
    """What could not be written is an error, for people as for a machine."""
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "toolrt", "run", response, "--workspace", shop, "--format", format],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=100,
            check=False,
        )
    assert ended.returncode == 2
    assert "could not be written" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert (shop / "CHANGES.md").exists()


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_run_with_a_closed_stream_still_runs_every_call(response: Path, shop: Path, closed: str) -> None:
    """A service has no terminal."""
    command = f'"{sys.executable}" -m toolrt run "{response}" --workspace "{shop}" {closed}'
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert (shop / "CHANGES.md").exists()


def test_run_shows_modifiers_that_were_merged_or_rejected() -> None:
    """Tools of one's own may change the state; a modifier that raises is named."""

    @tool(claims=())
    async def remember(ctx: Any) -> ToolOutput:
        return ToolOutput("ok", modifiers=[lambda state: state.set("n", 1), lambda state: state["absent"]])

    screen = Screen(out := io.StringIO())
    trio.run(perform, Runtime(Registry([remember])), [ToolCall("a", "remember")], screen)
    assert "lane 0 merged 1 modifier" in out.getvalue()
    assert "[0] modifier 1 changed nothing: KeyError" in out.getvalue()
