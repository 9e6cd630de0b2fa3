"""Dynamic partial-order reduction: one execution of each Mazurkiewicz trace of a program.

Paper.  Abdulla, Aronis, Jonsson, Sagonas: Optimal dynamic partial order reduction (POPL 2014; source sets in JACM
2017).  This folder has its source sets, sleep sets and wakeup trees.

Two steps are *dependent* when one task makes both, when both touch one resource and one of them writes it, or when one
of them may have done anything.  Executions that differ only in the order of independent steps are one trace.

Differences from the paper.

1. *Blocking.*  Trio disables no step: a task that waits has made its attempt, which is a step like any other.  So there
   is no rule for blocking, and a lock that is taken and a lock that is waited for are both found.
2. *Unknown accesses.*  What a step would touch once a race is reversed is not known before it runs.  The search
   assumes all that the same step of that task has touched so far.  A wakeup tree is built on such guesses; once a guess
   was seen that could be wrong, the search drops all wakeup trees and every enabled task is tried at each place of the
   current execution.  From then on races are reversed by source sets, which plan one step and guess nothing.  An
   execution may then turn out to repeat a trace; it is ended there, and not counted.
3. *Unreported accesses.*  A step that reported nothing may have done anything.  A step that touches different things
   although nothing it reported or could know was different withholds something: then the space is searched again with
   each step taken to touch all it ever has, until nothing is new.  At the end random samples test the reduction.
4. *Choices.*  A step that asks for choices is tried with each value at each place.  It sleeps as a whole when all its
   values were tried; one value sleeps by itself.
5. *Optional steps.*  Some steps may happen and need not: the clock beside tasks that can run, and the cancel of a
   named scope.  No other step waits for them, so they never justify leaving out an execution.  They are tried where
   they are enabled last, and the races of that execution move them to earlier places.  Where an optional step can
   happen, nothing is planned ahead.
6. *Idle time.*  If nothing can run, time advances; no choice can reverse that, so it comes after all that was before
   it.  Time that advances only because the idle-only task was not chosen depends on all other steps.  If a task could
   have run later, the clock could have moved before it, so that is tried.

Files.  `_dpor`: the strategy.  `_search`: its claims and its parts; `_spread`: several parts in turn.  `_tree`: what is
left to run.  `_current`: the current execution with happens-before and races.  `_node`: one step of it.  `_plan`: what
reverses a race.  `_steps`: footprints.  `_witness`: steps that withhold.  `_samples`: other orders that test the
reduction.  `_unordered`: the pairs that they turn.  `_reachable`: what is compared.
"""
