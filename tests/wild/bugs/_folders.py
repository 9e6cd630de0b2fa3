"""What stands in a bug's folder: `bug.toml`, `program.py` and `report.md`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import attrs

HERE = Path(__file__).parent


@attrs.frozen
class Bug:
    """A defect of a released library.

    Attributes:
        name: the folder's name.
        library: the package's name on the index, and the version that has the defect.
        requires: what pip installs for the program.
        alone: what pip installs without what it requires itself.
        symptom: one sentence.
        expects: what an error says that is this defect; another error is the program's own.
        known: a public report or fix that names it, or "not found" when we found none.
        fixed: requirements with which the program passes; empty where no release does.
        options: keywords for `sim.explore`.
        repair: kinds of constraint that are a right repair, each with the functions that it is about; empty where a
            repair has to change what a step does.
        repaired_by_maintainers: whether it is their repair, or an open pull request; else it is the report's.
    """

    name: str
    library: str
    requires: tuple[str, ...]
    alone: tuple[str, ...]
    symptom: str
    expects: str
    known: str
    fixed: tuple[str, ...]
    options: dict[str, object]
    repair: tuple[str, ...]
    repaired_by_maintainers: bool

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return HERE / self.name


def bug(name: str) -> Bug:
    """Read the `bug.toml` of a folder."""
    told = tomllib.loads((HERE / name / "bug.toml").read_text())
    return Bug(
        name,
        told["library"],
        tuple(told["requires"]),
        tuple(told.get("without_dependencies", ())),
        told["symptom"],
        told["expects"],
        told["known"],
        tuple(told.get("fixed", ())),
        told.get("explore", {}),
        tuple(told.get("repair", ())),
        bool(told.get("fixed")) or told.get("pull_request", False),
    )


def bugs() -> list[Bug]:
    """All, in the order of their names."""
    return [bug(path.parent.name) for path in sorted(HERE.glob("*/bug.toml"))]
