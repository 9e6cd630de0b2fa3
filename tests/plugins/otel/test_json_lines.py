"""The JSON-lines sink: whole lines, never a wait for the disk, and what cannot be written is counted."""

from __future__ import annotations

import errno
import gc
import io
import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import toolrt
from tests.plugins.otel._observed import Keeper
from toolrt import Registry, Runtime, ToolCall, ToolContext, sim
from toolrt.errors import DefinitionRefused
from toolrt.plugins.otel import JsonLines, Telemetry
from toolrt.plugins.otel import _json_lines as module

#: Seconds that a thread is given on a machine that is busy; no test takes that long.
PATIENCE = 60.0


@toolrt.tool(safe=True)
async def look(ctx: ToolContext) -> str:
    return "seen"


CALLS = [ToolCall(f"c{index}", "look", {}) for index in range(5)]


def run(sink: Any) -> toolrt.BatchOutcome:
    return trio.run(Runtime(Registry([look]), telemetry=Telemetry(sink)).run, CALLS)


def read(path: Path) -> list[dict[str, Any]]:
    """The file's lines; all of them are whole."""
    text = path.read_bytes()
    assert text == b"" or text.endswith(b"\n")
    return [json.loads(line) for line in text.splitlines()]


def test_every_line_is_one_event(tmp_path: Path) -> None:
    """In the order in which they happened, with the time in seconds and the fields of the kind."""
    path, keeper = tmp_path / "calls.jsonl", Keeper()
    with JsonLines(path) as lines:
        trio.run(Runtime(Registry([look]), telemetry=Telemetry(lines, keeper)).run, CALLS)
        lines.close(PATIENCE)
    assert lines.lost == 0
    assert lines.written == len(keeper.told)
    for line, (kind, fields) in zip(read(path), keeper.told, strict=True):
        assert line == {"kind": kind, **fields, "time": round(fields["time"] / 1e9, 6)}


def test_lines_are_added_at_the_end(tmp_path: Path) -> None:
    """Of what is there, nothing is touched; several sinks may write to one file."""
    path = tmp_path / "calls.jsonl"
    path.write_text('{"kind":"mine"}\n')
    sinks = [JsonLines(path), JsonLines(path)]
    for sink in sinks:
        run(sink)
    for sink in sinks:
        sink.close(PATIENCE)
    found = read(path)
    assert found[0] == {"kind": "mine"}
    assert len(found) == 1 + sinks[0].written + sinks[1].written


def test_stream_is_written_to_and_stays_open() -> None:
    """Whatever has a write method."""
    stream = io.StringIO()
    lines = JsonLines(stream)
    run(lines)
    assert lines.flush(PATIENCE)
    lines.close()
    assert not stream.closed
    assert stream.getvalue().count("\n") == lines.written > 10


def test_simulation_has_no_thread(tmp_path: Path) -> None:
    """A line is there when the call that tells it goes on, and virtual time is told."""
    path = tmp_path / "calls.jsonl"
    lines = JsonLines(path)
    runtime = Runtime(Registry([look]), telemetry=lines)
    before = {*threading.enumerate()}
    seen: list[int] = []

    async def program() -> None:
        await trio.sleep(2)
        await runtime.run(CALLS)
        seen.append(len(read(path)))

    assert sim.run(program).error is None
    assert {*threading.enumerate()} <= before
    assert seen == [lines.written]
    assert {line["time"] for line in read(path)} == {2.0}
    lines.close()


def test_simulation_after_a_run_keeps_the_order(tmp_path: Path) -> None:
    """The thread that a run has started writes what a simulation tells, too."""
    path, keeper = tmp_path / "calls.jsonl", Keeper()
    with JsonLines(path) as lines:
        runtime = Runtime(Registry([look]), telemetry=Telemetry(lines, keeper))
        for _ in range(3):
            trio.run(runtime.run, CALLS)
            sim.run(lambda: runtime.run(CALLS))
        assert lines.flush(PATIENCE)
    assert [line["kind"] for line in read(path)] == keeper.kinds()
    assert [line["number"] for line in read(path)] == [fields["number"] for _, fields in keeper.told]


@pytest.mark.seldom
@pytest.mark.process
def test_same_schedule_gives_the_same_bytes_in_two_processes(tmp_path: Path) -> None:
    """Whatever the hash seed is: lines, spans and counts of an explored mix."""
    program = """
        import json, sys
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        from toolrt import sim
        from toolrt.invariants.workloads import WORKLOADS
        from toolrt.plugins.otel import Counts, JsonLines, OtelSpans, Telemetry

        exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        with Telemetry(counts := Counts(), JsonLines(sys.argv[1]), OtelSpans(provider)) as telemetry:
            for mix in WORKLOADS:
                sim.run(mix.program(telemetry), sim.RandomWalk(7))
        with open(sys.argv[1], "a") as file:
            for span in exporter.get_finished_spans():
                print(span.name, span.start_time, span.end_time, sorted(span.attributes.items()), file=file)
            print(json.dumps(counts.snapshot()), telemetry.failures, file=file)
    """
    texts = []
    for seed in ("1", "2"):
        path = tmp_path / seed
        command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        texts.append(path.read_bytes())
    assert texts[0] == texts[1]
    assert texts[0].count(b"\n") > 500
    assert texts[0].endswith(b"(0, 0, 0)\n")


# A slow disk


class Slow:
    """A stream whose writes end when the test says so; it says whether one had to wait for that too long."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.entered = threading.Event()
        self.gave_up = False
        self.text = ""

    def write(self, text: str) -> int:
        self.entered.set()
        self.gave_up = self.gave_up or not self.go_on.wait(PATIENCE / 6)
        self.text += text
        return len(text)


def batch_ends_before_the_disk_does(bound: int = 1000) -> tuple[Slow, JsonLines]:
    """Run a batch while the disk hangs."""
    slow = Slow()
    lines = JsonLines(slow, bound=bound)  # type: ignore[arg-type]
    outcome = run(lines)
    assert all(result.ok for result in outcome.results)
    assert not slow.gave_up, "the batch has waited for the disk"
    return slow, lines


def test_slow_disk_holds_no_batch_up() -> None:
    """The batch is over while the very first line is still being written; then all of them are."""
    slow, lines = batch_ends_before_the_disk_does()
    slow.go_on.set()
    assert lines.flush(PATIENCE)
    assert lines.lost == 0
    assert slow.text.count("\n") == lines.written > 10
    lines.close()


def test_sink_that_blocks_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above sees one that writes where it is told."""

    def write_at_once(self: Any, kind: str, fields: Mapping[str, Any]) -> None:
        self._output.write([module._line(kind, fields)])

    monkeypatch.setattr(module._Writer, "put", write_at_once)
    monkeypatch.setattr(sys.modules[__name__], "PATIENCE", 0.06)
    with pytest.raises(AssertionError, match="has waited for the disk"):
        batch_ends_before_the_disk_does()


def test_what_has_no_room_to_wait_is_counted() -> None:
    """The newest is dropped: what is written is what came first."""
    slow, lines = batch_ends_before_the_disk_does(bound=7)
    slow.go_on.set()
    assert lines.flush(PATIENCE)
    assert lines.written == 7
    assert [json.loads(line)["kind"] for line in slow.text.splitlines()][:2] == ["batch.opened", "call.submitted"]
    assert lines.written + lines.lost > 20
    lines.close()


def test_closing_waits_as_long_as_it_is_told_to() -> None:
    """What has not been written by then is lost, and a disk that wakes up later changes no count."""
    slow, lines = batch_ends_before_the_disk_does()
    assert slow.entered.wait(PATIENCE)
    assert not lines.flush(0.001)
    lines.close(0.001)
    counts = lines.written, lines.lost
    assert counts[0] == 0
    assert counts[1] > 20
    slow.go_on.set()
    for thread in threading.enumerate():
        if thread.name == "toolrt telemetry":
            thread.join(PATIENCE)
    assert (lines.written, lines.lost) == counts
    lines.close()


def test_lines_after_closing_are_lost(tmp_path: Path) -> None:
    """They are counted; no call fails, and no file comes back."""
    path = tmp_path / "calls.jsonl"
    lines = JsonLines(path)
    lines.close()
    assert all(result.ok for result in run(lines).results)
    assert lines.lost > 20
    assert read(path) == []


# A disk that refuses


def test_closed_stream_fails_no_call() -> None:
    """What it refuses is counted."""
    stream = io.StringIO()
    stream.close()
    with JsonLines(stream) as lines:
        assert all(result.ok for result in run(lines).results)
        assert lines.flush(PATIENCE)
    assert (lines.written, lines.lost > 20) == (0, True)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_full_disk_fails_no_call() -> None:
    """What it has no room for is counted."""
    with JsonLines("/dev/full") as lines:
        assert all(result.ok for result in run(lines).results)
        assert lines.flush(PATIENCE)
    assert (lines.written, lines.lost > 20) == (0, True)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[int], None]:
    """Sets how many bytes the disk still has room for, for one file."""
    left = 0
    write, path = os.write, tmp_path / "calls.jsonl"
    path.touch()

    def limited(fd: int, data: bytes) -> int:
        nonlocal left
        if not os.path.sameopenfile(fd, watched):
            return write(fd, data)
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        part = write(fd, data[:left])
        left -= part
        return part

    def set_room(size: int) -> None:
        nonlocal left
        left = size

    watched = os.open(path, os.O_RDONLY)
    monkeypatch.setattr(module.os, "write", limited)
    return set_room


def test_line_that_the_disk_has_room_for_in_part_is_taken_back(room: Callable[[int], None], tmp_path: Path) -> None:
    """The file ends with a whole line, and goes on with one once there is room again."""
    path = tmp_path / "calls.jsonl"
    output = module._LineFile(str(path))
    lines = [b'{"n":%d}\n' % number for number in range(10)]
    for size in range(0, 80, 3):
        path.write_bytes(b"")
        room(size)
        assert output.write(lines) == size // 8
        assert path.read_bytes() == b"".join(lines[: size // 8])
        room(1000)
        assert output.write(lines[:1]) == 1
        assert path.read_bytes() == b"".join([*lines[: size // 8], lines[0]])
    output.close()


def test_part_of_a_line_that_cannot_be_taken_back_stands_alone(
    room: Callable[[int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer has added to the file meanwhile: the next lines are whole all the same."""
    path = tmp_path / "calls.jsonl"
    output = module._LineFile(str(path))
    room(12)
    monkeypatch.setattr(module.os, "fstat", lambda fd: os.stat_result([0] * 10))
    assert output.write([b'{"n":0}\n', b'{"n":1}\n']) == 1
    monkeypatch.undo()
    assert output.write([b'{"n":2}\n']) == 1
    assert path.read_bytes() == b'{"n":0}\n{"n"\n{"n":2}\n'
    output.close()


@pytest.mark.filterwarnings("ignore::toolrt.errors.ObserverWarning")
def test_thread_that_cannot_start_fails_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again with the next line; nothing is lost if there is one then, and all is counted if not."""
    path = tmp_path / "calls.jsonl"
    start, refusals = threading.Thread.start, [3]

    def refused(thread: threading.Thread) -> None:
        if refusals[0]:
            refusals[0] -= 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    with JsonLines(path) as lines:
        assert all(result.ok for result in run(lines).results)
        assert lines.flush(PATIENCE)
    assert (lines.lost, len(read(path))) == (0, lines.written)
    refusals[0] = 1000
    with JsonLines(path) as lines:
        assert all(result.ok for result in run(lines).results)
    assert (lines.written, lines.lost > 20) == (0, True)


# Ends


@pytest.mark.process
def test_lines_that_nobody_waits_for_are_written_before_python_ends(tmp_path: Path) -> None:
    """Without a close: also a program that ends at once loses none."""
    path = tmp_path / "calls.jsonl"
    program = """
        import sys, trio, toolrt
        from toolrt.plugins.otel import JsonLines

        @toolrt.tool(safe=True)
        async def look(ctx): ...

        lines = JsonLines(sys.argv[1])
        runtime = toolrt.Runtime(toolrt.Registry([look]), limit=None, telemetry=lines)
        trio.run(runtime.run, [toolrt.ToolCall(str(n), "look", {}) for n in range(100)])
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(path)], check=True)
    assert [line["kind"] for line in read(path)][-1] == "batch.ended"
    assert len(read(path)) == 505


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_child_process_writes_its_own_lines_and_no_others(tmp_path: Path) -> None:
    """It has no thread of its parent's, and what waited there is the parent's to write."""
    path = tmp_path / "calls.jsonl"
    program = """
        import os, sys, warnings
        from toolrt.plugins.otel import JsonLines

        warnings.simplefilter("ignore")
        lines = JsonLines(sys.argv[1])
        for number in range(1000):
            lines.event("parent", {"n": number})
        child = os.fork()
        for number in range(1000):
            lines.event("parent's" if child else "child's", {"n": number})
        lines.close(60)
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(path)], check=True, timeout=100)
    found = read(path)
    for kind in ("parent", "parent's", "child's"):
        assert [line["n"] for line in found if line["kind"] == kind] == list(range(1000))
    assert len(found) == 3000


def test_sink_that_is_forgotten_leaves_no_thread(tmp_path: Path) -> None:
    """Its thread writes what is left, closes the file and ends."""
    path = tmp_path / "calls.jsonl"
    slow = Slow()
    lines = JsonLines(slow)  # type: ignore[arg-type]
    run(lines)
    assert slow.entered.wait(PATIENCE)
    [thread] = [thread for thread in threading.enumerate() if thread is lines._writer._thread]
    del lines
    gc.collect()
    slow.go_on.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert json.loads(slow.text.splitlines()[-1])["kind"] == "batch.ended"
    assert not path.exists()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
def test_closing_leaves_no_open_file(tmp_path: Path) -> None:
    """With a thread or without."""
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        with JsonLines(tmp_path / str(number)) as lines:
            run(lines)
        JsonLines(tmp_path / str(number)).close()
        lines.close(PATIENCE)
        thread = lines._writer._thread
        assert thread is not None
        thread.join(PATIENCE)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("target", "bound", "what"), [(7, 10, "target"), (None, 10, "target"), ("x", 0, "bound"), ("x", True, "bound")]
)
def test_what_cannot_be_is_refused(target: Any, bound: Any, what: str, tmp_path: Path) -> None:
    """Before a file is made."""
    if isinstance(target, str):
        target = tmp_path / target
    with pytest.raises(DefinitionRefused, match=what):
        JsonLines(target, bound=bound)
    assert list(tmp_path.iterdir()) == []


def test_file_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    """Not when the first line is written."""
    with pytest.raises(OSError, match="No such file"):
        JsonLines(tmp_path / "no" / "such" / "directory")


@settings(max_examples=30)
@given(
    text=st.text(max_size=30),
    number=st.one_of(st.integers(), st.floats(allow_nan=True, allow_infinity=True), st.none(), st.booleans()),
)
def test_any_field_is_one_line_of_json(text: str, number: Any) -> None:
    """Whatever a tool tells: line ends, numbers that JSON has no word for, half a surrogate."""
    line = module._line(text, {"time": 1_500_000_000, "fields": {text: number, "text": text, "half": "\ud800"}})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line)["time"] == 1.5
