"""Plugins: how `load` finds them, and the error for a missing one."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

import toolrt
from toolrt import plugins
from toolrt.errors import InputRefused, MissingExtra


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


@pytest.mark.seldom
@pytest.mark.process
def test_no_plugin_is_imported_before_its_first_use() -> None:
    """All rooms together import none of them."""
    rooms = "interop, invariants, plugins, runtime, services, sim, trace, view, workspace"
    fresh(
        f"import sys; from toolrt import {rooms}\n"
        "assert not [name for name in sys.modules if name.startswith('toolrt.plugins.')]\n"
        "plugins.otel; assert 'toolrt.plugins.otel' in sys.modules and 'toolrt.plugins.code' not in sys.modules"
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
