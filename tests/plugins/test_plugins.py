"""Plugins: how `load` finds them, the error for a missing one, and their former paths."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

import toolrt
from toolrt import plugins
from toolrt.errors import InputRefused, MissingExtra

#: The former path of each plugin.
FORMER = {
    "toolrt.services.code": "code",
    "toolrt.services.lsp": "lsp",
    "toolrt.services.telemetry": "otel",
    "toolrt.interop.mcp": "mcp",
}


def fresh(program: str) -> None:
    """Run `program` in a fresh interpreter."""
    subprocess.run([sys.executable, "-c", program], check=True)


def offered(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> None:
    """Have other distributions offer `points`."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points if group == "toolrt.plugins" else ())


@pytest.mark.parametrize("name", plugins.BUILT_IN)
def test_a_built_in_plugin_is_found_without_metadata(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The table alone names them: no metadata is read."""
    monkeypatch.setattr("importlib.metadata.entry_points", None)
    assert plugins.load(name) is getattr(plugins, name) is importlib.import_module(f"toolrt.plugins.{name}")
    assert name in dir(plugins)


@pytest.mark.process
def test_no_plugin_is_imported_before_its_first_use() -> None:
    """All rooms together import none of them."""
    rooms = "interop, invariants, lab, plugins, runtime, services, sim, trace, view, workspace"
    fresh(
        f"import sys; from toolrt import {rooms}\n"
        "assert not [name for name in sys.modules if name.startswith('toolrt.plugins.')]\n"
        "plugins.otel; assert 'toolrt.plugins.otel' in sys.modules and 'toolrt.plugins.code' not in sys.modules"
    )


@pytest.mark.parametrize("former", FORMER)
def test_a_former_path_gives_the_same_names(former: str) -> None:
    """Each name of the plugin is the same object at the old path, however that is imported."""
    plugin = plugins.load(FORMER[former])
    room, _, last = former.rpartition(".")
    assert getattr(importlib.import_module(room), last).__all__ == plugin.__all__
    assert importlib.import_module(former).__all__ == plugin.__all__
    given: dict[str, Any] = {}
    exec(f"from {former} import *", given)
    for name in plugin.__all__:
        assert given[name] is getattr(plugin, name) is getattr(importlib.import_module(former), name)
    with pytest.raises(AttributeError, match=f"module '{former}' has no attribute '__path__'"):
        importlib.import_module(former).__path__  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        importlib.import_module(former).absent  # noqa: B018


PROGRAMS = [
    "from toolrt import services; services.code.CodeIndex; services.lsp.LanguageServers; services.telemetry.Counts",
    "import toolrt; toolrt.services.code.skeleton; toolrt.interop.mcp.connect",
    "import toolrt.services.code; toolrt.services.code.LANGUAGES",
    "import toolrt.services.telemetry as telemetry; telemetry.OtelSpans",
    "from toolrt.services import code, lsp, telemetry; code.Graph; lsp.Checked; telemetry.JsonLines",
    "from toolrt.services import *; code.CodeIndex; lsp.LanguageServer; shell_tool",
    "from toolrt.services.code import CodeIndex, skeleton",
    "from toolrt.services.lsp import LanguageServer, LanguageServers",
    "from toolrt.services.telemetry import Counts, JsonLines, Telemetry",
    "from toolrt.interop import mcp; mcp.McpServer('x', ['y'])",
    "from toolrt.interop.mcp import connect",
    "import toolrt.interop.mcp; toolrt.interop.mcp.Offered",
    # Importing the old path imports no plugin.
    *(f"import {former}; assert not [name for name in sys.modules if 'toolrt.plugins.' in name]" for former in FORMER),
]


@pytest.mark.process
def test_a_former_path_works_in_a_fresh_interpreter() -> None:
    """What programs and documents wrote before still runs, whatever was imported first."""
    fresh(
        "import attrs, os, sys, trio\n"  # these alone, so that the programs start sooner
        f"for program in {PROGRAMS!r}:\n"
        "    if os.fork() == 0:\n"
        "        exec(program)\n"
        "        os._exit(0)\n"
        "    assert os.wait()[1] == 0, program\n"
    )


def test_an_entry_point_is_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another distribution's plugin is listed after the built-in ones, and is the object that it names."""
    offered(monkeypatch, EntryPoint("zoo", "toolrt:Workspace", "toolrt.plugins"))
    assert plugins.available() == (*plugins.BUILT_IN, "zoo")
    assert plugins.load("zoo") is toolrt.Workspace


def test_an_entry_point_takes_no_built_in_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in plugin stays what it is."""
    offered(monkeypatch, EntryPoint("lsp", "toolrt:Workspace", "toolrt.plugins"))
    assert plugins.available() == tuple(plugins.BUILT_IN)
    assert plugins.load("lsp") is plugins.lsp


def test_a_plugin_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error lists those that are."""
    offered(monkeypatch, EntryPoint("zoo", "toolrt:Workspace", "toolrt.plugins"))
    with pytest.raises(
        InputRefused, match=rf"plugin 'lps': it is not installed. Choose one of {', '.join(plugins.BUILT_IN)}, zoo"
    ):
        plugins.load("lps")
    with pytest.raises(AttributeError, match="no attribute 'lps'"):
        plugins.lps  # noqa: B018


def test_a_broken_plugin_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says which entry point of which distribution, and what was raised."""
    offered(monkeypatch, EntryPoint("zoo", "toolrt:absent", "toolrt.plugins"))
    with pytest.raises(InputRefused, match=r"plugin 'zoo': 'toolrt:absent'.*AttributeError.*absent") as caught:
        plugins.load("zoo")
    assert isinstance(caught.value.__cause__, AttributeError)


def test_a_name_that_two_distributions_claim_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them is meant cannot be known."""
    offered(monkeypatch, *(EntryPoint("zoo", f"toolrt:{name}", "toolrt.plugins") for name in ("Workspace", "Registry")))
    with pytest.raises(InputRefused, match="plugin 'zoo': several distributions claim it: toolrt:Workspace"):
        plugins.load("zoo")


@pytest.mark.parametrize("name", plugins.BUILT_IN)
def test_a_built_in_plugin_that_cannot_be_imported_names_its_extra(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A package that is missing where the plugin is imported gives the command that installs it."""
    monkeypatch.delattr(plugins, name, raising=False)
    monkeypatch.setitem(sys.modules, f"toolrt.plugins.{name}", None)  # type: ignore[arg-type]
    with pytest.raises(MissingExtra, match=rf"plugin '{name}' needs the \"{name}\" extra: pip install") as caught:
        plugins.load(name)
    assert isinstance(caught.value.__cause__, ImportError)
