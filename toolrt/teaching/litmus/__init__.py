"""The litmus gallery: small programs, and exactly what can come of each.

A litmus program has a name, a story, and its exact outcome set: `verify` fails on an outcome that is not in the set,
and on one of the set that never comes.  So the gallery tests the simulator, which must reach all outcomes and no other.
And it teaches: each program shows one way in which timing decides something, or one reason why it cannot.

    >>> from toolrt.teaching.litmus import LITMUS, verify
    >>> lost_update = LITMUS["lost_update_3x2"]
    >>> sorted(lost_update.wrong)
    [2, 3, 4, 5]
    >>> found = verify(lost_update)
    >>> found.executions, found.classes, found.ok
    (1680, 762, True)

``toolrt litmus`` lists them, ``toolrt litmus NAME`` explores one, ``toolrt litmus --verify`` verifies all.
"""

from __future__ import annotations

from toolrt.teaching.litmus._catalogue import LITMUS, THEMES
from toolrt.teaching.litmus._histories import SlotModel, TicketModel
from toolrt.teaching.litmus._litmus import Count, Litmus
from toolrt.teaching.litmus._verify import MOST, Verified, in_order, method_of, verify

__all__ = [
    "LITMUS",
    "MOST",
    "THEMES",
    "Count",
    "Litmus",
    "SlotModel",
    "TicketModel",
    "Verified",
    "in_order",
    "method_of",
    "verify",
]
