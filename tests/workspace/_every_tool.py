"""Inputs for every tool of a workspace, made from its schema: a new tool is tested from the day it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from toolrt.model import Tool, ToolCall

#: Parameters that name a file or directory.
PATHS = ("path", "source", "target", "destination", "directory", "root", "paths")


def patch_of(path: str, old: str = "one", new: str = "1") -> str:
    """A unified diff that replaces the first line of a file whose only line is `old`."""
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n"


def value_of(tool: Tool, name: str, path: str) -> Any:
    """What stands for the parameter `name` in a call that does the tool's usual work at `path`."""
    known: Mapping[str, Any] = {
        "content": "1\n",
        "old": "one",
        "new": "1",
        "edits": [{"old": "one", "new": "1"}],
        "patch": patch_of(path),
        "pattern": "**/*" if tool.name == "glob" else "one",
        "text": "one",
        "query": "one",
        "recursive": True,
        "line_numbers": True,
        "all": True,
    }
    if name in PATHS:
        return path
    assert name in known, f"{tool.name}: no value is known for its parameter {name!r}; add one here"
    return known[name]


def inputs_at(tool: Tool, path: str, elsewhere: str = "fresh") -> list[dict[str, Any]]:
    """Inputs that make the tool do its usual work at `path`: one for each parameter that may name it."""
    schema = tool.schema or {}
    properties, required = schema.get("properties", {}), schema.get("required", [])
    named = [name for name in properties if name in PATHS] or ["patch"]
    inputs = []
    for victim in named:
        input: dict[str, Any] = {}
        for name in properties:
            if name in named and name != "patch":
                # What is moved must be there; what it is moved to must not.
                other = "b.txt" if name == "source" else elsewhere
                if name in required or name == victim:
                    input[name] = path if name == victim else other
            elif name in required or name in ("recursive", "all"):
                input[name] = value_of(tool, name, path)
        inputs.append(input)
    return inputs


def names_of(tools: list[Tool]) -> list[str]:
    """The tools' names."""
    return [tool.name for tool in tools]


#: Spellings of one file each: existing, hard-linked, in a directory that is linked, missing, in one that is missing.
GROUPS = [
    ["a.txt", "./a.txt", "d/../a.txt", "way/../a.txt", "hard.txt", "{root}/a.txt", "chain", "missing/../a.txt"],
    ["d/b.txt", "way/b.txt", "link", "d/./b.txt", "{root}/way/b.txt", "d//b.txt", "d"],
    ["d/new.txt", "way/new.txt", "dangling", "later/../d/new.txt"],
    ["later/new.txt", "./later/new.txt", "later/../later/new.txt", "later"],
    ["e", "e/x.txt", "./e", "d", "way", "."],
]

#: All of them, and what is no file or lies outside.
SPELLINGS = [
    *(spelling for group in GROUPS for spelling in group),
    *("new.txt", "./new.txt", "pipe", "loop", "out/x.txt", "../outside/x.txt", "a.txt/x", ".."),
]

#: Where some tools have something to do.
FITTING = {
    "change_dir": ["d", "way", "e", ".", "..", "{root}"],
    "list_dir": ["d", "way", "e", "."],
    "glob": ["d", "way", "."],
    "search": ["d", "way", "."],
    "make_dir": ["later", "e/x", "way/later", "d"],
    "target": ["moved", "d/moved", "way/new.txt", "later/x", "e/d"],
}

#: The same on a disk that folds: other cases, and letters composed otherwise.
FOLDED = [
    ["a.txt", "A.TXT", "D/../A.txt", "HARD.txt", "Chain", "./a.Txt"],
    ["d/b.txt", "D/B.TXT", "WAY/b.txt", "Link", "{root}/D/b.TXT"],
    ["d/n\u00e9w.txt", "D/NE\u0301W.TXT", "way/N\u00c9w.txt", "d/ne\u0301w.txt"],
    ["later/new.txt", "LATER/New.txt", "Later"],
]

_TEXTS = st.sampled_from(["one\n", "one\ntwo\n", "", "x"])
_PATCHED = st.sampled_from(["a.txt", "d/b.txt", "way/b.txt", "new.txt"])
_OLD = st.just("one") | st.sampled_from(["two", "1", "\n", "o", "<", "absent"])


@st.composite
def inputs(draw: st.DrawFn, tool: Tool, mark: str, spelled: st.SearchStrategy[str]) -> dict[str, Any]:
    """Any input of the tool, at paths `spelled` so; `mark` makes what it writes its own."""
    schema = tool.schema or {}
    required = schema.get("required", [])
    input: dict[str, Any] = {}
    for name, part in schema.get("properties", {}).items():
        if name not in required and draw(st.booleans()):
            continue
        if name == "paths":
            input[name] = draw(st.lists(spelled, max_size=3))
        elif name in PATHS:
            fitting = "target" if name == "target" else tool.name
            input[name] = draw(st.sampled_from(FITTING[fitting]) | spelled if fitting in FITTING else spelled)
        elif name == "content":
            input[name] = draw(_TEXTS) + mark
        elif name == "old":
            input[name] = draw(_OLD)
        elif name == "encoding":
            input[name] = draw(st.sampled_from(["utf-8", "latin-1"]))
        elif name == "new":
            input[name] = f"<{mark}>"
        elif name == "edits":
            input[name] = [{"old": draw(_OLD), "new": f"<{mark}{n}>"} for n in range(draw(st.integers(1, 2)))]
        elif name == "patch":
            named = draw(st.lists(_PATCHED, min_size=1, max_size=2))
            input[name] = "".join(patch_of(path, draw(_OLD).strip(), f"<{mark}>") for path in named)
        else:
            input[name] = draw(_other(tool, name, part))
    return input


def _other(tool: Tool, name: str, part: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    kinds = {str(one.get("type")) for one in part.get("anyOf", [part])}
    if "boolean" in kinds:
        return st.booleans()
    if "integer" in kinds:
        return st.integers(0, 3)
    return st.sampled_from(["**/*", "*.txt", "one"]) if "string" in kinds else st.just(value_of(tool, name, "a.txt"))


@st.composite
def calls_of(
    draw: st.DrawFn, tools: list[Tool], *, least: int = 1, most: int = 7, groups: list[list[str]] = GROUPS
) -> list[ToolCall]:
    """One batch of any calls of these tools, at few files each time, so that they meet."""
    group = draw(st.sampled_from(groups))
    spelled = st.sampled_from([*group, *draw(st.lists(st.sampled_from(SPELLINGS), max_size=3))])
    # Half of the calls change what files hold: that is what the others must be ordered with.
    changing = [tool for tool in tools if tool.name in ("write_file", "edit_file")]
    either = st.sampled_from(changing or tools) | st.sampled_from(tools)
    calls = []
    for number in range(draw(st.integers(least, most))):
        tool = draw(either)
        calls.append(ToolCall(f"id{number}", tool.name, draw(inputs(tool, str(number), spelled))))
    return calls
