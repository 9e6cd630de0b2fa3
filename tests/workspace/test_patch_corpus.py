"""Patches as models write them: each gives the right files or is refused, also with a line of context wrong."""

from __future__ import annotations

import pytest
import trio

import toolrt
from tests.workspace._patches import Case, Tree, corpus
from toolrt.model import Outcome, Registry, State, ToolCall, covers
from toolrt.workspace import FileProblem, MemoryDisk, Workspace
from toolrt.workspace.tools import _patching
from toolrt.workspace.tools._hunks import patched
from toolrt.workspace.tools._patch import names_in, parsed_patch

CASES = corpus()


def applied(case: Case, patch: str) -> Tree | None:
    """The files after `patch`, without a workspace; None: it is refused."""
    tree = dict(case.before)
    try:
        for part in parsed_patch(patch):
            before = "" if part.source is None else tree[part.source]
            after = "" if part.whole else patched("a", before, part.hunks)
            if part.source is None and part.target in tree:
                return None
            if part.source is not None and not part.copies:
                del tree[part.source]
            if part.target is not None:
                tree[part.target] = after
            elif after:
                return None
    except (FileProblem, KeyError):
        return None
    return tree


def test_corpus_is_large():
    """Also of what is to be refused."""
    assert len(CASES) >= 200
    assert len({case.title for case in CASES}) == len(CASES)
    assert sum(case.after is None for case in CASES) >= 25


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_patch_gives_the_right_files_or_is_refused(case):
    """By the tool, on the disk in memory; a patch that is refused changes nothing."""
    disk = MemoryDisk(dict(case.before))
    runtime = toolrt.Runtime(Registry(Workspace(disk).tools()))
    call = ToolCall("id", "apply_patch", {"patch": case.patch})
    result = trio.run(runtime.run, [call], toolrt.State()).results[0]
    expected = case.before if case.after is None else case.after
    paths = {*case.before, *(case.after or {}), "new.py", "b/new.py", "i/new.py", "lib/s.py", "l"}
    assert {path: content for path in paths if (content := content_of(disk, path)) is not None} == expected
    assert (result.outcome is Outcome.OK) == (case.after is not None), result.error


def content_of(disk: MemoryDisk, path: str) -> str | None:
    """What a file has; None: there is none."""
    try:
        return disk.peek(tuple(path.split("/"))).decode()
    except FileNotFoundError:
        return None


def mutations(patch: str):
    """The patch without one of its lines of context, with one of them twice, and with one of them a line further on."""
    lines = patch.split("\n")
    if "=======" in lines and ">>>>>>> REPLACE" in lines:
        return  # a line that only one half of a block has is a change
    for index, line in enumerate(lines):
        if line[:1] == " " or (line[:1].isalpha() and index > 2 and lines[index - 1][:1] in (" ", "-", "+", "@")):
            yield [*lines[:index], *lines[index + 1 :]]
            yield [*lines[:index], line, *lines[index:]]
            if lines[index + 1 : index + 2] and lines[index + 1][:1] in (" ", "-"):
                yield [*lines[:index], lines[index + 1], line, *lines[index + 2 :]]


@pytest.mark.parametrize("name", sorted({case.title.partition(":")[0] for case in CASES}))
def test_patch_with_a_line_of_context_wrong_is_never_applied_wrong(name):
    """One line is lost, doubled or moved: the result is the right one, or a refusal."""
    right = refused = 0
    for case in CASES:
        if case.after is None or not case.title.startswith(f"{name}:"):
            continue
        for lines in mutations(case.patch):
            found = applied(case, "\n".join(lines))
            assert found in (None, case.after), f"{case.title}\n" + "\n".join(lines)
            right, refused = right + (found is not None), refused + (found is None)
    assert right
    assert refused


def test_header_lines_name_all_files_of_a_patch():
    """Of each patch and of its mutations."""
    for case in CASES:
        for patch in (case.patch, *("\n".join(lines) for lines in mutations(case.patch))):
            try:
                parts = parsed_patch(patch)
            except FileProblem:
                continue
            names = {name for part in parts for name in (part.source, part.target) if name is not None}
            assert names <= {*names_in(patch)}, patch


def test_long_patch_claims_all_that_it_would_claim_if_it_were_short(monkeypatch):
    """Its claims are made of its header lines: they cover what its parts need, and what those look at."""
    for case in CASES:
        workspace, input = Workspace(MemoryDisk(dict(case.before))), {"patch": case.patch}
        with monkeypatch.context() as patched_module:
            exact = _patching.claims_of_patch(workspace, input, State())
            looks_at = _patching.names_in_patch(workspace, input, State())
            patched_module.setattr(_patching, "_LONG", 0)
            long = _patching.claims_of_patch(workspace, input, State())
            assert {*looks_at} <= {*_patching.names_in_patch(workspace, input, State())}
        if case.after is not None:
            assert [claim for claim in exact if not covers(long, claim)] == [], case.title


def test_long_patch_changes_renames_and_deletes():
    """It is read in a worker thread, and every file that it touches is one that it claimed."""
    lines = [f"line {number}" for number in range(4_000)]
    hunks = [f"@@ -{n + 1} +{n + 1} @@\n-{lines[n]}\n+new {n}" for n in range(0, len(lines), 2)]
    renamed = ["diff --git a/b b/d", "rename from b", "rename to d"]
    deleted = ["diff --git a/c b/c", "--- a/c", "+++ /dev/null", "@@ -1 +0,0 @@", "-c", ""]
    patch = "\n".join(["--- a/a", "+++ b/a", *hunks, *renamed, *deleted])
    disk = MemoryDisk({"a": "\n".join([*lines, ""]), "b": "b\n", "c": "c\n"})
    runtime = toolrt.Runtime(Registry(Workspace(disk).tools()))
    result = trio.run(runtime.run, [ToolCall("id", "apply_patch", {"patch": patch})]).results[0]
    assert result.content == "patched 3 files: changed a; renamed b to d; deleted c"
    assert content_of(disk, "a").startswith("new 0\nline 1\nnew 2\n")
    assert [content_of(disk, path) for path in ("b", "c", "d")] == [None, None, "b\n"]
