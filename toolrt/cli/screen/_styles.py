"""How outcomes look."""

from __future__ import annotations

from toolrt.model import Outcome

STYLES = {
    Outcome.OK: "green",
    Outcome.ERROR: "red",
    Outcome.INVALID: "red",
    Outcome.DENIED: "yellow",
    Outcome.TIMED_OUT: "red",
    Outcome.INTERRUPTED: "yellow",
    Outcome.NOT_STARTED: "yellow",
    Outcome.SKIPPED: "yellow",
}
