"""The list of file tools for a model: what each claims, and the schemas that they share.

Rules.  A tool is a function of a workspace, a call's context and the model's input.  What it claims is claimed as the
call is ordered; what it refuses it refuses with a `FileProblem`.  Schemas are derived from the type hints once in a
process, for all workspaces.

Theory.  Where the ``schema`` extra is missing, the same schemas are written by `_schema_of`, and checked as far as the
core can (a test holds both against each other); so a workspace's tools work with the core alone.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from toolrt.errors import MissingExtra
from toolrt.model import READ, WRITE, Claim, Mode, State, Tool
from toolrt.workspace.change._held import FileAccess
from toolrt.workspace.finding._finding import claims_of_walk, glob, search
from toolrt.workspace.names._identity import Wanted, identify
from toolrt.workspace.text._text import Edit
from toolrt.workspace.tools._arranging import change_dir, delete_path, make_dir, move_path
from toolrt.workspace.tools._editing import edit_file, multi_edit, write_file
from toolrt.workspace.tools._landed import landed
from toolrt.workspace.tools._patching import apply_patch, claims_of_patch, names_in_patch
from toolrt.workspace.tools._reading import list_dir, read_file

ClaimsOf = Callable[[FileAccess, Mapping[str, Any], State], tuple[Claim, ...]]


@attrs.frozen
class _FileTool:
    """One tool, for any workspace."""

    #: Takes the workspace, the call's context and the input.
    function: Callable[..., Any]
    #: What it claims, or None: it runs alone.
    claims: ClaimsOf
    #: What those look at.
    claims_after: ClaimsOf
    #: Whether it only looks.
    reads: bool = False
    #: Whether its calls share the batch's read budget.
    shares_read_budget: bool = False
    #: Whether it runs alone, though it says what it touches.
    alone: bool = False
    #: Whether it leaves out what is withheld of a directory.
    leaves_out: bool = False

    @property
    def name(self) -> str:
        """What models call it by."""
        return self.function.__name__

    @property
    def looks_back(self) -> bool:
        """Whether it can tell after a crash whether its change is there."""
        return not self.reads and not self.alone


def _about(
    function: Callable[..., Any],
    mode: Mode,
    wanted: Wanted = Wanted.FILE,
    subtree: bool = False,
    names: tuple[str, ...] = ("path",),
    alone: bool = False,
    **more: bool,
) -> _FileTool:
    """A tool about what each of the parameters `names` means."""

    def claims(workspace: FileAccess, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
        claimed: dict[Claim, None] = {}
        for name in names:
            meant = identify(workspace.disk, input[name], state.working_dir, wanted)
            claimed.update(dict.fromkeys(meant.claims(mode, subtree)))
        return tuple(claimed)

    looks_at, reads = functools.partial(_looks_at, wanted, names), mode is READ and not alone
    return _FileTool(function, claims, looks_at, reads=reads, alone=alone, **more)


def _looks_at(
    wanted: Wanted, names: tuple[str, ...], workspace: FileAccess, input: Mapping[str, Any], state: State
) -> tuple[Claim, ...]:
    looked_at: list[Claim] = []
    for name in names:
        looked_at += identify(workspace.disk, input[name], state.working_dir, wanted).looks_at()
    return tuple(looked_at)


_DIRECTORY, _ENTRY, _ENDS = Wanted.DIRECTORY, Wanted.ENTRY, ("source", "target")
_WALK = functools.partial(_looks_at, _DIRECTORY, ("path",))

#: All of them, in the order that models are shown them.
_FILE_TOOLS = (
    _about(read_file, READ, shares_read_budget=True),
    _about(write_file, WRITE),
    _about(edit_file, WRITE),
    _about(multi_edit, WRITE),
    _FileTool(apply_patch, claims_of_patch, names_in_patch),
    _about(list_dir, READ, _DIRECTORY, subtree=True, leaves_out=True),
    _FileTool(glob, claims_of_walk, _WALK, reads=True, leaves_out=True),
    _FileTool(search, claims_of_walk, _WALK, reads=True, leaves_out=True),
    _about(make_dir, WRITE, _DIRECTORY),
    _about(move_path, WRITE, _ENTRY, subtree=True, names=_ENDS, leaves_out=True),
    _about(delete_path, WRITE, _ENTRY, subtree=True, leaves_out=True),
    _about(change_dir, READ, _DIRECTORY, alone=True),
)


def file_tools(workspace: FileAccess) -> list[Tool]:
    """The tools that read and change the files of `workspace`."""
    return [_tool_of(kind, workspace) for kind in _FILE_TOOLS]


def _tool_of(kind: _FileTool, workspace: FileAccess) -> Tool:
    tool = _prototype(kind).rebound(
        functools.partial(kind.function, workspace),
        claims=functools.partial(kind.claims, workspace),
        claims_after=functools.partial(kind.claims_after, workspace),
        owner=workspace,
    )
    if kind.looks_back:
        tool.landed = functools.partial(landed, workspace)
    return tool


@functools.cache
def _prototype(kind: _FileTool) -> Tool:
    """The tool without a workspace; all workspaces share what is derived from its signature."""
    function = functools.partial(kind.function, None)
    described = inspect.getdoc(kind.function) or ""
    fields: dict[str, Any] = {
        "safe": kind.reads,
        "shares_read_budget": kind.shares_read_budget,
        "alone": kind.alone,
        "leaves_out": kind.leaves_out,
        "looks_again": True,
        "idempotent": not kind.looks_back,
    }
    tool = Tool(name=kind.name, function=function, description=described, **fields)
    try:
        tool.validator  # noqa: B018  so that it is made here, once
    except MissingExtra:
        schema = schema_of(kind.function)
        tool = Tool(name=kind.name, function=function, description=described, schema=schema, **fields)
        tool.validator  # noqa: B018
    return tool


_EDITS = "list[Edit]"
_JSON_TYPES = {"str": "string", "int": "integer", "bool": "boolean", "None": "null"}


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a tool's input, from its type hints alone; made without the ``schema`` extra."""
    parameters = list(inspect.signature(function).parameters.values())[2:]
    schema = _schema_of(parameters)
    if any(parameter.annotation == _EDITS for parameter in parameters):
        edit = _schema_of(inspect.signature(Edit).parameters.values())
        schema["$defs"] = {"Edit": {"title": "Edit", "description": inspect.getdoc(Edit), **edit}}
    return schema


def _schema_of(parameters: Iterable[inspect.Parameter]) -> dict[str, Any]:
    """The schema of an object that has these as its properties."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in parameters:
        part: dict[str, Any]
        if parameter.annotation == _EDITS:
            part = {"type": "array", "items": {"$ref": "#/$defs/Edit"}}
        else:
            kinds = [{"type": _JSON_TYPES[kind]} for kind in parameter.annotation.split(" | ")]
            part = {"anyOf": kinds} if len(kinds) > 1 else kinds[0]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            part = {**part, "default": parameter.default}
        properties[parameter.name] = part
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
