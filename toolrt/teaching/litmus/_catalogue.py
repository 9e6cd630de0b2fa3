"""All programs of the gallery, by theme and by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolrt.teaching.litmus._cancelling import CANCELLING
from toolrt.teaching.litmus._cells import CELLS
from toolrt.teaching.litmus._channels import CHANNELS
from toolrt.teaching.litmus._histories import HISTORIES
from toolrt.teaching.litmus._laws import LAWS
from toolrt.teaching.litmus._litmus import Litmus
from toolrt.teaching.litmus._locks import LOCKS
from toolrt.teaching.litmus._moments import MOMENTS
from toolrt.teaching.litmus._outside import OUTSIDE
from toolrt.teaching.litmus._plain import ORDERS, PLAIN
from toolrt.teaching.litmus._spaces import SPACES
from toolrt.teaching.litmus._waiting import WAITING

#: The programs by theme.
THEMES: Mapping[str, tuple[Litmus, ...]] = MappingProxyType(
    {
        "shared memory": CELLS,
        "plain Python": PLAIN,
        "locks": LOCKS,
        "waiting": WAITING,
        "channels and nurseries": CHANNELS,
        "cancellation": CANCELLING,
        "orders": ORDERS,
        "moments": MOMENTS,
        "threads and sockets": OUTSIDE,
        "histories": HISTORIES,
        "many schedules": SPACES,
        "the laws": LAWS,
    }
)

#: The programs by name.
LITMUS: Mapping[str, Litmus] = MappingProxyType(
    {litmus.name: litmus for programs in THEMES.values() for litmus in programs}
)
