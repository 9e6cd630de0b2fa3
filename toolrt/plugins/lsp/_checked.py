"""What language servers answered about one file."""

from __future__ import annotations

from typing import Any

import attrs

from toolrt.model import Diagnostic


def in_order(finding: Diagnostic) -> tuple[Any, ...]:
    """The place of a finding among others: by line and column, then by what it says."""
    return (
        *(finding.line, finding.column, finding.severity, finding.source or ""),
        *(finding.code or "", finding.message),
    )


@attrs.frozen
class Checked:
    """The findings on one file, as it was when it was asked about."""

    #: The file, relative to the workspace's root, with slashes.
    path: str
    #: What was found, in the order of the places; of several servers together.
    findings: tuple[Diagnostic, ...] = ()
    #: The servers that answered, in the order in which they were given.
    answered: tuple[str, ...] = ()
    #: Why a server's findings are not here, in the servers' order: ``"ty: it gave no findings within 10 s"``.
    problems: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every server that is for this file has answered."""
        return not self.problems
