"""Every private name of Trio that the simulator uses, and nothing else.

Rules.  No other module of `toolrt.sim` reads a name of Trio that starts with an underscore or is not documented.  Each
such name is in `_required`, which is checked before every simulation: a Trio whose internals moved is refused with the
list of what moved (`UnsupportedTrio`), never half controlled.  Everything replaced here acts on the simulation's own
run alone, hands all else to what it replaced, and is put back afterwards.

- `_seam`: one Trio run, as the scheduler sees it; `_step`: one step of a task; `_leftovers`: what executions leave
  behind in the run, so that many can follow one another in it.
- `_control`: what is replaced so that the scheduler is asked, and the program cannot leave the simulation; `_order`:
  what is replaced so that cancelling goes in path order; `_held`: deadlines that come one by one; `_outside`: what of
  the standard library is refused;
  `_decided`: its random numbers and clocks, which the execution decides; `_sockets`: where Trio asks for the operating
  system's, and `_real_io`: where that is asked after all; `_lent`: which worker thread has the turn; `_stand_ins`:
  what the rooms above put in the place of such things.
- `_reports`: what a step touched, for an explorer that swaps steps; `_things`: what it touched is called.
- `_required`: the self-test.
"""

from toolrt.sim._trio_internals._children import process_names
from toolrt.sim._trio_internals._control import controlled, outside_run
from toolrt.sim._trio_internals._decided import (
    CLOCKS,
    FILES,
    PROCESSES,
    RANDOM,
    SOCKETS,
    Decided,
    real_monotonic,
    real_sleep,
)
from toolrt.sim._trio_internals._forced_end import (
    BOUNDARIES,
    ForcedEnd,
    beside_steps,
    forced_end,
    functions_of_step,
    is_in_step,
    let_go,
    look_no_more,
    where_it_stands,
)
from toolrt.sim._trio_internals._held import hold_due, release
from toolrt.sim._trio_internals._lent import lent, name_os_thread, thread_names
from toolrt.sim._trio_internals._real_io import RealIO, replace_real_io
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._reporter import deed_of
from toolrt.sim._trio_internals._reports import Reports
from toolrt.sim._trio_internals._required import check_supported
from toolrt.sim._trio_internals._seam import (
    OwnRun,
    Seam,
    begins_awake,
    begins_cancelled,
    is_host_of_guest,
    is_loop,
    nursery_of,
    seam_of_this_run,
)
from toolrt.sim._trio_internals._sockets import (
    Arrivals,
    MemorySockets,
    SocketRun,
    real_getaddrinfo,
    real_getnameinfo,
    replace_sockets,
)
from toolrt.sim._trio_internals._stand_ins import StandIn, StandIns
from toolrt.sim._trio_internals._step import DUE, ENDED, GOES_ON, PARKED, can_step_inside
from toolrt.sim._trio_internals._things import OUTSIDE, SOON, TIME, Primitives, asks_of, begun_under, cancels, reads

__all__ = [
    "BOUNDARIES",
    "CLOCKS",
    "DUE",
    "ENDED",
    "FILES",
    "GOES_ON",
    "OUTSIDE",
    "PARKED",
    "PROCESSES",
    "RANDOM",
    "SOCKETS",
    "SOON",
    "TIME",
    "Arrivals",
    "Decided",
    "ForcedEnd",
    "MemorySockets",
    "OwnRun",
    "Primitives",
    "RealIO",
    "Replacements",
    "Reports",
    "Seam",
    "SocketRun",
    "StandIn",
    "StandIns",
    "asks_of",
    "begins_awake",
    "begins_cancelled",
    "begun_under",
    "beside_steps",
    "can_step_inside",
    "cancels",
    "check_supported",
    "controlled",
    "deed_of",
    "forced_end",
    "functions_of_step",
    "hold_due",
    "is_host_of_guest",
    "is_in_step",
    "is_loop",
    "lent",
    "let_go",
    "look_no_more",
    "name_os_thread",
    "nursery_of",
    "outside_run",
    "process_names",
    "reads",
    "real_getaddrinfo",
    "real_getnameinfo",
    "real_monotonic",
    "real_sleep",
    "release",
    "replace_real_io",
    "replace_sockets",
    "seam_of_this_run",
    "thread_names",
    "where_it_stands",
]
