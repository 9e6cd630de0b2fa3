"""Lets Ctrl-C interrupt the code of tools, and holds it back while the runtime's own bookkeeping runs.

Rules.
    1. The runtime's entry points and its tasks run under Trio's KeyboardInterrupt protection: a Ctrl-C that arrives
       there waits for the main task's next checkpoint.
    2. A tool, its `safe`, `stops_batch` and `claims`, its modifiers, the lane policy, the approval check and the
       services that hear of changes run without it, so that one that does not end can be interrupted.
    3. What runs without it is called from one place each, named below or `asked` and `awaited` in
       `toolrt.runtime._execution`, and what comes up there is handled like an exit in a call.

Theory.  Trio decides by the innermost frame whose code is marked.  A function that is called from a marked one is
protected with it, so it is enough to mark the ways in, and the ways out again.

Limits.  Observers (`telemetry`) run protected, because the bookkeeping calls them half way through.
"""

from __future__ import annotations

import trio

from toolrt.model import Tool
from toolrt.order import _merge, shares_a_lane

#: Marks a way into the runtime, or the function of one of its tasks.
protected = trio.lowlevel.enable_ki_protection

# The rooms below know no Trio; these are the places where they call functions of a tool's author.
for _asks in (Tool._asked, _merge._result, shares_a_lane):
    trio.lowlevel.disable_ki_protection(_asks)
