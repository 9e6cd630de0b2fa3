"""What each theme and each program of the gallery teaches, in a line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolrt.teaching.litmus import Litmus

#: What the programs of a theme have in common.
LESSONS: Mapping[str, str] = MappingProxyType(
    {
        "shared memory": "A step is whole; between two steps anything may happen. Begin here.",
        "plain Python": "The same races, in objects that do not report what tasks do with them.",
        "locks": "A lock orders what it covers. What it leaves out may still go wrong, and two locks may deadlock.",
        "waiting": "Conditions, events, semaphores and sleeps: what is remembered, and what is lost.",
        "channels and nurseries": "Items that tasks hand over, and tasks that fail together.",
        "cancellation": "A cancel arrives at a checkpoint: what was done by then is done, and the rest is not.",
        "orders": "Which orders Trio's documentation allows, and which ones its scheduler happens to make.",
        "moments": "What holds at the end, at every step, or at some step, are three different questions.",
        "threads and sockets": "Worker threads and connections are simulated too, each with choices of its own.",
        "histories": "Whether calls that overlap can be explained by calls that came one after the other.",
        "many schedules": "Why a search needs more than luck: the schedules are many, those that differ are few.",
        "the laws": "toolrt's own laws, each beside a mutant that breaks it.",
    }
)

_TAUGHT = """
lost_update_2x1 | read, then write: a lost update
lost_update_3x1 | the more tasks, the more ways to lose
lost_update_3x2 | the worst outcome needs an early reader that writes last
store_buffering | what a processor may do and Trio may not
message_passing | data before flag is enough on one thread
load_buffering | no task reads what is written later
independent_reads | all readers see one order of writes
overdraw | check, then act
account | whole steps in an unintended order
aba | an equal value is not an unchanged one
lazy_init | check, then act: one instance too many
lazy_init_locked | the check and the act under one lock
peterson | mutual exclusion without a lock
peterson_swapped | two lines swapped break a proof
both_give_way | safe, and yet neither gets in
look_before_you_enter | looking is not holding
plain_attribute | an attribute is shared memory
plain_dict | a key of a dict is shared memory
plain_two_keys | different keys do not race
plain_list | an item of a list is shared memory
plain_closure | a closure's variable is shared memory
plain_deque | look, then take: the item may be gone
plain_heap | functions change objects that they are handed
plain_counter | a write may hide in a method
plain_vars | one variable has more than one name
plain_view | two objects may share their bytes
plain_children | a nursery's order of starts is no order
lock_2 | a lock makes two steps one
lock_3 | a lock serves those who wait in line
dining_2 | each holds one and waits for the other: deadlock
dining_3 | a circle of waiting: deadlock
dining_4 | a circle of waiting, in a larger space
dining_5 | a circle of waiting, too large to enumerate
dining_3_one_turns | locks in one order cannot deadlock
two_locks | locks in opposite orders: deadlock
two_stages | a free lock is taken without a gap
two_stages_apart | what is whole under two locks is not whole
two_stages_6 | the same bug among many schedules
order_of_waiting | a fair lock keeps the order of asking
upgrade | two readers who both want to write: deadlock
readers_and_writer | readers together, a writer alone
livelock | busy for ever, and nothing done
event_set_before_wait | an event remembers
event_after_data | write first, then signal
event_before_data | a signal that comes too early
lost_wakeup | a condition does not remember
wakeup_with_predicate | write the fact down, and look before you wait
stolen_wakeup | after waking, look again: while, not if
bounded_buffer_1p2c | a textbook's deadlock that Trio does not have
bounded_buffer_2p2c | waking one waiter may wake the wrong one
bounded_buffer_2p2c_all | wake all, and let each look again
rendezvous | signal before you wait
rendezvous_backwards | both wait first: deadlock
barrier | the last one in opens for all
barrier_used_again | a permit goes to a waiter at once
barrier_used_again_apart | a fast task laps a slow one
at_most_2 | a limiter counts who is inside
poll | polling ends as soon as something is written
sleep_order | virtual time keeps the order of sleeps
sleep_tie | sleeps that end together end in any order
close_or_receive | a closed end is reported, never a hang
close_before_send | sent is not received
shared_sender | one closes what another still uses
work_queue | any worker may get any item
channel_keeps_order | a channel keeps the order of its items
ask_each_other | both send first: deadlock
first_failure | the first failure hides the second
failure_while_cleaning_up | a failure in cleanup joins the first one
result_beside_failure | a result that timing may take away
started_or_failed | nursery.start() gives a value or a failure
order_of_tasks | call order has to be fixed before tasks exist
cancel_or_result | one or the other, never both
taken_and_lost | a checkpoint after taking can lose the item
taken_and_kept | receive() takes the item or leaves it
timeout_tie | a deadline is met before any task steps
timeout_or_event | the timeout wins a tie
nested_timeouts | of two equal timeouts the outer one catches
cleanup | cleanup that awaits is cancelled as well
cleanup_shielded | a shield lets cleanup finish
send_or_time_out | both ends agree on what was sent
cancel_or_send | a cancelled send happened or did not
first_step | a task runs to its first checkpoint, cancelled or not
swallowed_cancel | a caught Cancelled comes again
two_files | interrupted is not the same as not started
cancel_inside_cancel | the outer cancel goes through the inner scope
between_lock_and_try | a gap between taking and try leaks a lock
lock_in_a_with | async with leaves no gap
cancelled_in_line | a lock that is handed over is not lost
notified_and_cancelled | a notification dies with the one it woke
notified_and_passed_on | who is cancelled wakes the next one
writer_gives_up | who leaves a line must wake those behind
writer_says_so | leaving a line and telling the others
passes | Trio's scheduler does not make every order
two_looks | a checkpoint may take any time
two_looks_passes | a habit of the scheduler is not a promise
always_whole | in the end all is well, and between it was not
always_whole_at_once | one step has no between
eventually_met | two who meet only by luck
eventually_met_waiting | two who wait for each other meet
reachable_both | one step with both inside is enough
reachable_in_turn | a lock: no step has both inside
sometimes_last | what is so at the end of some schedule
check_then_thread | check in a task, act in a thread: a race
check_in_thread | check and act in one thread step
one_read | TCP keeps bytes in order, not messages
read_until_whole | read until all is there
count_sent | send what to do, not what you saw
count_kept_there | one owner of the count
tickets_2 | two calls that no order explains
tickets_2_locked | a lock makes calls linearizable
cancelled_get | a cancelled get took it or did not
cancelled_get_loses | a checkpoint after taking breaks the promise
write_skew | each reads what the other writes
write_skew_locked | under a lock the second one sees the first
stale_replica | serializable is less than linearizable
needle_3x2 | one class of six is wrong
needle_5x3 | few classes among very many schedules
reorder_3 | rare orders of independent writers
reorder_4 | the same, among more classes
reorder_5 | the same, among very many classes
reorder_10 | too many classes to visit
uneven_25 | a long run of one task is rare
tools_4_on_2 | tools that append without an order
tools_6_on_3 | many schedules, eight classes
tools_5_on_5 | independent tools: one class
tools_5_on_1 | one file, any order: 120 classes
"""

_TEACHES = dict(line.split(" | ") for line in _TAUGHT.strip().splitlines())


def taught_by(program: Litmus) -> str:
    """What `program` teaches, in a line; empty for one that is not of the gallery."""
    _, _, law = program.story.rpartition(" Law ")
    if program.name not in _TEACHES and law != program.story:
        return f"law {law.rstrip('.')}, {'broken by a mutant' if program.name.endswith('_mutant') else 'kept'}"
    return _TEACHES.get(program.name, "")
