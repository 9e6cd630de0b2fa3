"""Nothing private leaves through telemetry: not by the runtime's own events, and not by what tools tell."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import toolrt
from tests.plugins.otel._observed import Exported, Keeper
from toolrt import Registry, Runtime, State, ToolCall, ToolContext, ToolOutput, Workspace, services
from toolrt.plugins.otel import Counts, JsonLines, OtelMetrics, OtelSpans, Telemetry
from toolrt.plugins.otel._scrub import SECRET, Scrubber
from toolrt.runtime import _telemetry

#: Planted wherever content, input, state, reasons and errors may be.
PLANTED = "kumquat-7f3a"


def observed(run: Callable[[Telemetry], Any], **how: Any) -> str:
    """All that the sinks kept of what `run` did, as one text."""
    exported, keeper, lines, counts = Exported(), Keeper(), io.StringIO(), Counts()
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    sinks = [keeper, JsonLines(lines), OtelSpans(exported.provider), counts, OtelMetrics(provider)]
    with Telemetry(*sinks, **how) as telemetry:
        run(telemetry)
    assert telemetry.failures == (0,) * 5
    metrics = reader.get_metrics_data()
    assert metrics is not None
    assert lines.getvalue().count("\n") == len(keeper.told) > 0
    shown = [span.to_json() for span in exported.spans()]
    return "\n".join([repr(keeper.told), lines.getvalue(), *shown, json.dumps(counts.snapshot()), metrics.to_json()])


def leaky_run(telemetry: Telemetry) -> None:
    """A batch with the planted word in everything that is a user's or a model's own."""

    @toolrt.tool(safe=True)
    async def returns(ctx: ToolContext, text: str) -> ToolOutput:
        ctx.progress(PLANTED)
        ctx.emit(toolrt.OutputChunk(0, PLANTED))
        return ToolOutput(PLANTED, modifiers=[lambda state: state.set("k", PLANTED)])

    @toolrt.tool(safe=True)
    async def gives(ctx: ToolContext, text: str) -> dict[str, str]:
        return {PLANTED: PLANTED}

    @toolrt.tool(safe=True)
    async def refuses(ctx: ToolContext, text: str) -> ToolOutput:
        return ToolOutput(error=PLANTED)

    @toolrt.tool(safe=True)
    async def raises(ctx: ToolContext, text: str) -> None:
        with ctx.telemetry.span("block"):
            raise OSError(2, PLANTED, f"/home/{PLANTED}")

    @toolrt.tool(safe=True, timeout=0.01)
    async def sleeps(ctx: ToolContext, text: str) -> None:
        await trio.sleep(60)

    def check(request: toolrt.ApprovalRequest) -> toolrt.Allow | toolrt.Deny:
        return toolrt.Deny(PLANTED) if request.name == "gives" else toolrt.Allow()

    async def both() -> None:
        tools = [returns, gives, refuses, raises, sleeps]
        runtime = Runtime(Registry(tools), approve=check, telemetry=telemetry)
        async with runtime.open_batch(State({"k": PLANTED}, working_dir=f"/{PLANTED}")) as batch:
            for tool in (*[tool.name for tool in tools], PLANTED):
                batch.submit(ToolCall("c", tool, {"text": PLANTED}))
            batch.submit(ToolCall("c", "returns", {PLANTED: PLANTED}))
        async with runtime.open_batch() as batch:
            batch.cancel(PLANTED)

    trio.run(both)


def test_no_content_is_told() -> None:
    """No input, no content, no error's text, no reason, no state, no progress: in no sink."""
    assert PLANTED not in observed(leaky_run)


def test_what_leaks_content_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above sees it: one field of content is enough."""
    honest = _telemetry._measured
    monkeypatch.setattr(_telemetry, "_measured", lambda content: (content, honest(content)[1]))
    assert PLANTED in observed(leaky_run)


def test_no_text_of_an_error_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where it is told, the test above sees it."""

    def told(self: Any, call: Any, error: BaseException | None) -> None:
        if error is not None:
            self._of(call).error = str(error)

    monkeypatch.setattr(_telemetry.BatchTelemetry, "raised", told)
    assert PLANTED in observed(leaky_run)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "of-a-person" / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text(f"{PLANTED}\n")
    return root


def test_no_path_of_the_machine_is_told(root: Path) -> None:
    """File tools and the shell, on a real directory: paths relative to it, and nothing of their contents."""

    def work(telemetry: Telemetry) -> None:
        workspace = Workspace(root)
        shell = services.shell_tool(workspace)
        runtime = Runtime(Registry([*workspace.tools(), shell]), telemetry=telemetry)
        calls = [
            ToolCall("1", "read_file", {"path": str(root / "src" / "a.py")}),
            ToolCall("2", "edit_file", {"path": "src/a.py", "old": PLANTED, "new": f"{PLANTED}-2"}),
            ToolCall("3", "write_file", {"path": str(root / "b.txt"), "content": PLANTED}),
            ToolCall("4", "read_file", {"path": "/etc/nosuchfile"}),
            ToolCall("5", "run_command", {"command": f"echo {PLANTED}; pwd; cd src"}),
        ]
        trio.run(runtime.run, calls)

    text = observed(work, root=root)
    assert "src/a.py" in text
    assert PLANTED not in text
    assert "of-a-person" not in text
    assert str(root.parent) not in text
    assert "/etc" not in text


def test_what_tools_tell_is_looked_through(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths outside, secrets that were named, of the environment, or of a well-known form; names and keys too."""
    monkeypatch.setenv("SOME_API_KEY", "walnut-of-environment")
    private = {
        "named": "pecan-of-caller and more",
        "environment": "is walnut-of-environment",
        "form": "sk-" + "q" * 24,
        "password": "hazelnut",
        "text": "token=cashew1234",
        "path": "/home/almond/x.py",
        "inside": str(root / "src" / "a.py"),
        "pecan-of-caller": "key",
    }

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        ctx.telemetry.event("pecan-of-caller", private)
        with ctx.telemetry.span("block walnut-of-environment", private):
            pass

    def run(telemetry: Telemetry) -> None:
        runtime = Runtime(Registry([work]), telemetry=telemetry)
        trio.run(runtime.run, [ToolCall("pecan-of-caller", "work", {})])

    text = observed(run, root=root, secrets=["pecan-of-caller"])
    for nut in ("pecan", "walnut", "q" * 24, "hazelnut", "cashew", "almond", str(root)):
        assert nut not in text, nut
    assert "src/a.py" in text
    assert SECRET in text


def test_mounted_files_are_told_by_their_names(root: Path, tmp_path: Path) -> None:
    """Their own paths are private wherever they stand in a text, through links of theirs too."""
    docs = tmp_path.resolve() / "of-a-person" / "docs"
    docs.mkdir()
    spelled = tmp_path.resolve() / "link-of-a-person"
    spelled.symlink_to(docs)

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        ctx.telemetry.event("flags", {"option": f"-I{docs}/include", "glued": f"at{docs}", "real": f"{docs}/x.md"})

    for where in (docs, spelled):

        def run(telemetry: Telemetry) -> None:
            trio.run(Runtime(Registry([work]), telemetry=telemetry).run, [ToolCall("c", "work", {})])

        text = observed(run, root=root, mounts={"docs": where})
        assert "of-a-person" not in text
        for shown in ("-Idocs/include", "docs/x.md", "atdocs"):
            assert shown in text


def test_secrets_are_found_by_their_form() -> None:
    """Keys and tokens of well-known kinds, wherever they stand in a text."""
    scrubber = Scrubber(None, [])
    for secret in (
        "sk-ant-" + "a1" * 12,
        "ghp_" + "A1b2" * 9,
        "github_pat_" + "a" * 20,
        "AKIA" + "ABCDEFGH12345678",
        "xoxb-1234567890-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ):
        assert scrubber.text(f"it is {secret} there") == f"it is {SECRET} there"
    assert scrubber.text("https://me:hunter2@host.org/x") == f"https://{SECRET}@host.org/x"
    assert scrubber.text("Authorization: Bearer abcdefgh123").count("abcdefgh123") == 0


@pytest.mark.parametrize(
    "path", ["//srv/walnut/x", r"\/srv\/walnut\/x", "見つかりません/srv/walnut/x", "-I/srv/walnut"]
)
def test_paths_are_found_however_they_are_written(path: str) -> None:
    """With more slashes, as JSON escapes them, and behind a letter."""
    assert "walnut" not in Scrubber("/work", []).text(f"no {path}")
    assert "walnut" not in str(Scrubber(None, []).fields({"text": [path, {"why": path}]}))


@pytest.mark.parametrize(
    "text",
    ["cache.missed", "src/a.py", "by_claims", "toolu_01AbCdEf", "a key of 3 words", "batch-12", "tokens: 12", "größe"],
)
def test_words_stay_as_they_are(text: str) -> None:
    """What is no secret is told as it is."""
    assert Scrubber("/work", []).text(text) == text


def test_name_of_the_working_directory_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell calls it PWD; a database's is one."""
    monkeypatch.setenv("PWD", "walnut-path")
    monkeypatch.setenv("DB_PWD", "hazelnut")
    assert Scrubber(None, []).text("walnut-path and hazelnut") == f"walnut-path and {SECRET}"


@given(text=st.text(max_size=80), secret=st.text("abcdefgh/-=:'\" ~.", min_size=4, max_size=12))
def test_named_secret_is_never_told(text: str, secret: str) -> None:
    """Wherever it stands, whatever it looks like, and looking twice finds the same."""
    scrubber = Scrubber("/work", [secret])
    found = scrubber.text(text + secret + text)
    assert secret not in found or secret in SECRET or secret in "the path"
    assert scrubber.text(text + secret + text) == found


def test_what_was_looked_through_is_remembered_to_a_bound() -> None:
    """However many texts there are."""
    scrubber = Scrubber(None, [])
    for number in range(10_000):
        scrubber.text(f"text {number}")
    assert len(scrubber._seen) <= 2048


def test_scrubber_that_looks_at_nothing_is_caught(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """The tests above see it."""
    monkeypatch.setattr(Scrubber, "_looked_through", lambda self, text: text)
    with pytest.raises(AssertionError, match="'pecan' is contained here"):
        test_what_tools_tell_is_looked_through(root, monkeypatch)
