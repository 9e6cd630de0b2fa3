"""What models are told of the file tools, and how their input is checked: once for all, and with the core alone."""

from __future__ import annotations

import pytest
import trio

import toolrt
from toolrt.errors import MissingExtra
from toolrt.model import Outcome, Registry, ToolCall, _schema, _tool
from toolrt.workspace import MemoryDisk, Workspace
from toolrt.workspace.tools import _tools


def tools():
    return Workspace(MemoryDisk({"a": "one"})).tools()


NAMES = [kind.name for kind in _tools._FILE_TOOLS]


@pytest.fixture
def core_alone(monkeypatch):
    """As if the schema extra were not installed."""

    def refuse(function, tool):
        raise MissingExtra("deriving", "schema")

    monkeypatch.setattr(_tool, "DerivedValidator", refuse)
    monkeypatch.setattr(_schema, "_checker", lambda schema, what: None)
    _tools._prototype.cache_clear()
    yield
    _tools._prototype.cache_clear()


def test_schemas_are_shared_by_all_workspaces():
    """Deriving one takes longer than most calls."""
    for one, other in zip(tools(), tools(), strict=True):
        assert one.validator is other.validator
        assert one.owner is not other.owner


def test_tools_have_descriptions_for_models():
    """Each says what it does and what its parameters mean; none speaks of its implementation."""
    for tool in tools():
        assert tool.description
        assert "Raises" not in tool.description
        for name in tool.schema["properties"]:
            if name not in ("path", "encoding"):
                assert name in tool.description, f"{tool.name}: {name}"


@pytest.mark.parametrize("name", NAMES)
def test_schema_of_the_core_alone_is_the_derived_one(name):
    """Written by hand from the same hints."""
    (kind,) = (kind for kind in _tools._FILE_TOOLS if kind.name == name)
    assert _tools.schema_of(kind.function) == _tools._prototype(kind).schema


WRONG = [
    ("read_file", {}),
    ("read_file", {"path": 1}),
    ("read_file", {"path": "a", "offset": "1"}),
    ("read_file", {"path": "a", "offset": True}),
    ("read_file", {"path": "a", "more": 1}),
    ("write_file", {"path": "a", "content": None}),
    ("multi_edit", {"path": "a", "edits": {}}),
    ("multi_edit", {"path": "a", "edits": ["x"]}),
    ("multi_edit", {"path": "a", "edits": [{"old": "x"}]}),
    ("multi_edit", {"path": "a", "edits": [{"old": "x", "new": "y", "more": 1}]}),
    ("multi_edit", {"path": "a", "edits": [{"old": "x", "new": "y", "all": 1}]}),
    ("search", {"pattern": "x", "glob": 1}),
]
GOOD = [
    ("read_file", {"path": "a"}, "one"),
    ("read_file", {"path": "a", "offset": None, "limit": 1}, "one"),
    ("multi_edit", {"path": "a", "edits": [{"old": "one", "new": "1"}]}, "replaced 1 place in a (1 at line 1)"),
    ("glob", {"pattern": "*"}, "a"),
    ("search", {"pattern": "on"}, "a:1: one"),
]


def run(name, input):
    runtime = toolrt.Runtime(Registry(tools()))
    return trio.run(runtime.run, [ToolCall("id", name, input)], toolrt.State()).results[0]


@pytest.mark.parametrize(("name", "input"), WRONG)
def test_wrong_input_is_invalid(name, input):
    """With the schema extra."""
    assert run(name, input).outcome is Outcome.INVALID


@pytest.mark.usefixtures("core_alone")
@pytest.mark.parametrize(("name", "input"), WRONG)
def test_wrong_input_is_invalid_with_the_core_alone(name, input):
    """What the schemas say is plain enough to be checked without a library."""
    assert run(name, input).outcome is Outcome.INVALID


@pytest.mark.parametrize(("name", "input", "content"), GOOD)
def test_input_is_taken(name, input, content):
    """With the schema extra."""
    assert run(name, input).content == content


@pytest.mark.usefixtures("core_alone")
@pytest.mark.parametrize(("name", "input", "content"), GOOD)
def test_input_is_taken_with_the_core_alone(name, input, content):
    """Every tool works without an extra."""
    assert run(name, input).content == content
