"""What a simulation replaces in Trio and in the standard library stands there again when it is over."""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Awaitable, Callable

import pytest
from trio.lowlevel import checkpoint

from toolrt import probe, sim

#: Where a simulation puts names of its own.
_PACKAGES = """trio _socket _thread asyncio builtins concurrent datetime multiprocessing os posix queue random select
selectors signal socket ssl subprocess tempfile threading time urllib uuid warnings""".split()  # noqa: SIM905

#: Names that an execution replaces, of each kind that there is.
_REPLACED = """asyncio.events.new_event_loop os.fork os.posix_spawn os.system os.urandom random.random
socket.getaddrinfo socket.gethostbyname socket.socket.__init__ subprocess.Popen.__init__
threading.Thread.start time.time trio.CancelScope._might_change_registered_deadline trio.Event.set
trio._core._run.CancelStatus.recalculate trio._core._run.Deadlines.expire trio._core._run.Runner.spawn_impl
trio._core._run._r trio._core._run.cancel_shielded_checkpoint trio._core._thread_cache.ThreadCache.start_thread_soon
trio._socket._SocketType.__init__ uuid._generate_time_safe""".split()  # noqa: SIM905


def _names() -> dict[str, object]:
    """Each name in those packages and their classes, with what it stands for, and what the process has besides."""
    found: dict[str, object] = {
        "sink": probe.sink,
        "inline": probe.threads_inline,
        "collected": gc.isenabled(),
        **{f"hook {place}": hook for place, hook in enumerate(sys.get_asyncgen_hooks())},
        **{f"generator {name}": value for name, value in vars(vars(random)["_inst"]).items()},
    }
    for path, module in list(sys.modules.items()):
        if path.partition(".")[0] in _PACKAGES:
            for name, value in list(vars(module).items()):
                found[f"{path}.{name}"] = value
                if isinstance(value, type):
                    found |= {f"{path}.{name}.{inner}": held for inner, held in list(vars(value).items())}
    return found


def _changed(before: dict[str, object]) -> set[str]:
    after = _names()
    return {name for name in before.keys() | after.keys() if before.get(name, _names) is not after.get(name, _names)}


async def _fails() -> None:
    raise ValueError


async def _is_refused() -> None:
    threading.Thread(target=int).start()


@pytest.mark.parametrize("program", [checkpoint, _fails, _is_refused])
def test_each_name_that_is_replaced_is_put_back(program: Callable[[], Awaitable[None]]) -> None:
    """However the simulation ends: also by what its check raises."""
    inside: set[str] = set()

    async def noted() -> None:
        inside.update(_changed(before))
        await program()

    sim.run(checkpoint)  # imports what it needs
    before = _names()
    sim.run(noted)
    assert inside >= {*_REPLACED}
    assert _changed(before) == set()
    with pytest.raises(ZeroDivisionError):
        sim.explore(program, check=lambda execution: 1 // 0)
    assert _changed(before) == set()
