"""Every public name of toolrt with its signature, as text that a reviewer reads: tests/docs/public_names.txt.

    python .ci/public_names.py                print the text
    python .ci/public_names.py --write        write it
    python .ci/public_names.py --against REF  name the changes since a commit or tag that break a user's program

The source is read, never imported (griffe), so the text is the same in every environment.  A room is a module without
an underscore in its path that has an `__all__`.  A name that several rooms export has its members in the room with the
shortest path; the other rooms say where that is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parents[1]
SNAPSHOT = ROOT / "tests" / "docs" / "public_names.txt"


def package() -> griffe.Module:
    """Read the package from the checkout."""
    loaded = griffe.load("toolrt", search_paths=[ROOT], allow_inspection=False)
    assert isinstance(loaded, griffe.Module)
    return loaded


def rooms(module: griffe.Module) -> Iterator[griffe.Module]:
    """Give each module with an `__all__` and without an underscore in its path."""
    if module.exports:
        yield module
    for name, inner in sorted(module.members.items()):
        if not name.startswith("_") and isinstance(inner, griffe.Module):
            yield from rooms(inner)


def text() -> str:
    """Give the whole text: a heading for each room, a line for each name, indented ones for the members of a class."""
    told: dict[str, str] = {}
    lines: list[str] = []
    for room in sorted(rooms(package()), key=lambda room: (room.path.count("."), room.path)):
        lines += ["", room.path, ""]
        for name in sorted(str(export) for export in room.exports or ()):
            try:
                thing = room[name]
                target = thing.final_target if thing.is_alias else thing
            except (KeyError, griffe.AliasResolutionError, griffe.CyclicAliasError):
                lines.append(f"    {name}")  # a module of another package, or a name that is made when it is used
                continue
            place = told.setdefault(target.path, f"{room.path}.{name}")
            if place == f"{room.path}.{name}":
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
    else:
        print(text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
