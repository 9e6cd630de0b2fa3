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
