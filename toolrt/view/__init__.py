"""Pictures of what was observed: a page to step through, and still pictures of many kinds.

Rules.  Every picture is made from a `toolrt.trace.Trace`, or from an object that has one; this room runs no program.
The same trace gives the same bytes.  Text of tools and models is data: each format escapes it, and cuts it where it is
long, with the number of characters that are left out.
"""

from toolrt.view._chart import By, Scale
from toolrt.view._chrome import chrome
from toolrt.view._diff import diff
from toolrt.view._frame import frame
from toolrt.view._lanes import lanes
from toolrt.view._mermaid import mermaid
from toolrt.view._plot import plot
from toolrt.view._show import HasTree, Page, gallery, play, show
from toolrt.view._slider import slider
from toolrt.view._source import HasTrace
from toolrt.view._svg import Svg, svg
from toolrt.view._tables import (
    COLUMNS,
    Column,
    access_rows,
    call_rows,
    event_rows,
    execution_rows,
    step_rows,
)
from toolrt.view._text import text

__all__ = [
    "COLUMNS",
    "By",
    "Column",
    "HasTrace",
    "HasTree",
    "Page",
    "Scale",
    "Svg",
    "access_rows",
    "call_rows",
    "chrome",
    "diff",
    "event_rows",
    "execution_rows",
    "frame",
    "gallery",
    "lanes",
    "mermaid",
    "play",
    "plot",
    "show",
    "slider",
    "step_rows",
    "svg",
    "text",
]
