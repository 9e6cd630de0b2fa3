"""Every name that toolrt promises, with its signature, as text that a reviewer reads: tests/docs/public_names.txt.

    python .ci/public_names.py                print the text
    python .ci/public_names.py --write        write it, and the tables of names in docs/reference/names
    python .ci/public_names.py --against REF  name the changes since a commit or tag that break a user's program

The source is read, never imported (griffe), so the text is the same in every environment.  What is promised stands
below, by the room that a program imports it from; any other name is for who reads or extends the house.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parents[1]
SNAPSHOT = ROOT / "tests" / "docs" / "public_names.txt"
PAGES = ROOT / "docs" / "reference" / "names"
#: A room's place on a page, and the table behind it, which the site leaves out: it has the whole docstrings.
PLACE = re.compile(r"^(<!-- names of ([\w.]+) -->\n)(?:\n.*?<!-- end of names -->\n)?", re.MULTILINE | re.DOTALL)

#: What a user writes, by room.
PROMISED = {
    "toolrt": (
        "EVERYTHING READ WRITE Allow ApprovalRequest Batch BatchOutcome Change Claim ClaimTable Deny Diagnostic Event "
        "File Image Journal Json LaneChoice MemoryDisk Mode Outcome Permissions Permit PolicyCall Progress Registry "
        "ResultReady Rewrite Row Rule Runtime Services State StateMerged Text Tool ToolCall ToolContext ToolOutput "
        "ToolResult TrackedCall Workspace by_claims by_safety parallel partition record run_sync serial tool"
    ),
    "toolrt.aio": "CallOrder call close on_loop open_batch run tool",
    "toolrt.conformance": "conformance load_adapter",
    "toolrt.errors": (
        "BatchClosed DefinitionRefused JournalRefused LawBroken MissingExtra MisuseError PolicyRefused ToolrtError "
        "UndeclaredWarning"
    ),
    "toolrt.interop": "read_response render_results",
    "toolrt.invariants": (
        "KINDS LAWS MUTANTS LawVerdict Mix Mutant Violation all_batches check executed_by exhaust law patched rerun "
        "simulate table verdicts"
    ),
    "toolrt.invariants.script": (
        "AppendFile BreakState ChangeState Fail OverwriteState Pause ReadFile Say Scripted SeeState Sleep SubBatch "
        "WriteFile"
    ),
    "toolrt.plugins.agent_framework": "ordering",
    "toolrt.plugins.anthropic": "AnthropicTurn run tools",
    "toolrt.plugins.code": "CodeIndex skeleton",
    "toolrt.plugins.langgraph": "langchain_tool tool_node",
    "toolrt.plugins.llama_index": "ordered",
    "toolrt.plugins.lsp": "LanguageServer LanguageServers",
    "toolrt.plugins.mcp": "McpServer connect serve",
    "toolrt.plugins.openai": "chat_tools run run_chat tools",
    "toolrt.plugins.openai_agents": "ordered",
    "toolrt.plugins.otel": "Counts JsonLines OtelSpans Telemetry",
    "toolrt.plugins.pydantic_ai": "ordered_tools",
    "toolrt.probe": "access event vouch",
    "toolrt.services": "RealShell RecordedShell Shell only_reads parallel_edit_tool shell_tool",
    "toolrt.sim": (
        "CANCELLED DPOR FAIL INCONCLUSIVE PASS PCT Bounded Cell ChildProcess Choices Execution Exhaustive Failure "
        "History Hybrid Network Policy Portfolio Process Random RandomWalk Report Schedule Strategy Verdict always "
        "again asgi atomic before choose compare estimate eventually explore faults leave_real line linearizable "
        "lock_order reachable recorded replay run scope serializable shielded sometimes tracked watch"
    ),
    "toolrt.teaching.lab": "Exercise Sheet",
    "toolrt.teaching.litmus": "LITMUS Litmus verify",
    "toolrt.teaching.play": "Game",
    "toolrt.testing": (
        "ParallelMachine Wrong batches check_tool check_tools command explored mutation_score propose_claims "
        "run_parallel schedules simulate tool_mixes"
    ),
    "toolrt.trace": "Trace",
    "toolrt.view": "chrome diff mermaid show svg text",
    "toolrt.workspace": (
        "Directory Disk FileProblem HardLink History Identity Kind Limits MemoryDisk MountedDisk Permissions "
        "Permit RealDisk Rule Special Stat Symlink Undone User Version Wanted Workspace held identify"
    ),
}


@functools.cache
def package() -> griffe.Module:
    """Read the package from the checkout, once."""
    loaded = griffe.load("toolrt", search_paths=[ROOT], allow_inspection=False)
    assert isinstance(loaded, griffe.Module)
    return loaded


def text() -> str:
    """Give the whole text: a heading for each room, a line for each name, indented ones for the members of a class.

    A name of several rooms has its members in the first of them; the others say where that is.
    """
    whole = package()
    told: dict[str, str] = {}
    lines: list[str] = []
    for path in sorted(PROMISED, key=lambda path: (path.count("."), path)):
        room = whole[path.partition(".")[2]] if path != "toolrt" else whole
        lines += ["", path, ""]
        for name in sorted(PROMISED[path].split()):
            if name not in map(str, room.exports or ()):
                raise LookupError(f"{path} does not export {name}, which is promised")
            thing = room[name]
            target = thing.final_target if thing.is_alias else thing
            place = told.setdefault(target.path, f"{path}.{name}")
            if place == f"{path}.{name}":
                lines += [f"    {line}" for line in described(name, target)]
            else:
                lines.append(f"    {name} = {place}")
    return "\n".join(lines[1:]) + "\n"


def described(name: str, target: griffe.Object) -> Iterator[str]:
    """Describe one name: the class and its public members, the signature of a function, the type of a value."""
    if isinstance(target, griffe.Class):
        bases = ", ".join(str(base) for base in target.bases)
        yield f"class {name}({bases})" if bases else f"class {name}"
        members = {**target.inherited_members, **target.members}
        for member, thing in sorted(members.items()):
            if member.startswith("_") and member != "__init__":
                continue
            try:
                inner = thing.final_target if thing.is_alias else thing
            except (griffe.AliasResolutionError, griffe.CyclicAliasError):
                continue  # inherited from another package
            if not isinstance(inner, griffe.Class | griffe.Module):
                yield from (f"    {line}" for line in described(member, inner))
    elif isinstance(target, griffe.Function):
        kind = "async def" if "async" in target.labels else "def"
        yield f"{kind} {target.signature(name=name)}"
    elif isinstance(target, griffe.Attribute):
        kind = f": {target.annotation}" if target.annotation else ""
        value = " ".join(str(target.value).split()) if "class-attribute" in target.labels and target.value else ""
        yield name + kind + (f" = {value}" if value else "")
    else:
        yield name


def pages() -> dict[Path, str]:
    """Give the pages of names, each room with a table: what each name is, in the first words of its docstring."""
    whole = package()

    def table(found: re.Match[str]) -> str:
        room = whole[found[2].partition(".")[2]] if found[2] != "toolrt" else whole
        rows = [f"| `{name}` | {summary(room[name])} |" for name in sorted(map(str, room.exports or ()))]
        return f"{found[1]}\n| name | what it is |\n|---|---|\n" + "\n".join(rows) + "\n\n<!-- end of names -->\n"

    return {path: PLACE.sub(table, path.read_text(encoding="utf-8")) for path in sorted(PAGES.glob("*.md"))}


def summary(thing: griffe.Object | griffe.Alias) -> str:
    """Give the first paragraph of a docstring as the cell of a table."""
    target = thing.final_target if isinstance(thing, griffe.Alias) else thing
    text = "" if target.docstring is None else target.docstring.value.partition("\n\n")[0]
    if not text and isinstance(target, griffe.Attribute):
        text = comment(target) or f"`{target.value}`"
    return " ".join(text.split()).replace("|", "\\|")


def comment(value: griffe.Attribute) -> str:
    """Give the comment above a value of a module."""
    assert isinstance(value.filepath, Path)
    lines = value.lines_collection[value.filepath]
    first = last = (value.lineno or 1) - 1
    while first > 0 and lines[first - 1].startswith("#:"):
        first -= 1
    return " ".join(line.removeprefix("#:") for line in lines[first:last])


def against(reference: str) -> list[str]:
    """Describe the changes since `reference` that griffe knows to break programs, one line each."""
    before = griffe.load_git("toolrt", ref=reference, repo=ROOT, allow_inspection=False)
    found = griffe.find_breaking_changes(before, package())
    return [breakage.explain(griffe.ExplanationStyle.ONE_LINE) for breakage in found]


def main(arguments: list[str]) -> int:
    """Print the text, write it, or compare; 1 if something breaks."""
    if arguments[:1] == ["--against"]:
        broken = against(arguments[1])
        print("\n".join(broken) or "nothing that griffe knows to break a program")
        return 1 if broken else 0
    if arguments == ["--write"]:
        SNAPSHOT.write_text(text(), encoding="utf-8")
        for path, page in pages().items():
            path.write_text(page, encoding="utf-8")
    else:
        print(text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
