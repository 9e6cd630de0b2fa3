"""Nothing of a command is left: not at its end, not at its time limit, not after a cancel."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests._profile import FULL
from tests.services._shells import Answer, Left, Run, calls_of
from toolrt import Outcome, Registry, Runtime, Workspace, services
from toolrt.processes import _supervised, pause_before_restart

#: How many calls are cancelled or timed out at random: a thousand with HYPOTHESIS_PROFILE=full.
CALLS = 1_000 if FULL else 50

#: What a command may leave behind; each holds the pipe open unless it says otherwise.  `{}` is where it goes on.
LEAVES = {
    "a background child": "sleep 1000 & {}",
    "one that closed its output": "sleep 1000 >/dev/null 2>&1 & {}",
    "a grandchild": "sh -c 'sleep 1000 & sleep 1000 & wait' & {}",
    "a group of its own": "set -m; sleep 1000 & {}",
    "a session of its own": "setsid sleep 1000 & {}",
    "a session whose parent ended": "(setsid sh -c 'sleep 1000 & sleep 1000' &) ; {}",
    "a daemon": "(setsid sh -c 'exec >/dev/null 2>&1; (setsid sleep 1000 &)' &) ; {}",
    "one that ignores TERM": "sh -c 'trap \"\" TERM HUP INT; echo deaf; while :; do sleep 1000; done' & {}",
    "a deaf daemon": "(setsid sh -c 'trap \"\" TERM; (sleep 1000 &) ; while :; do sleep 1000; done' &) ; {}",
    "one that is stopped": "sh -c 'kill -STOP $$; sleep 1000' & {}",
    "one with no environment": "env -i setsid sleep 1000 & {}",
    "one that answers TERM by another": "sh -c 'trap \"setsid sleep 1000 &\" TERM; sleep 1000 & wait; sleep 1000' & {}",
}


@pytest.mark.process
@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_what_a_command_leaves_is_gone_at_its_end(answer: Answer, left: Left, leaves: str) -> None:
    """A command's answer comes when nothing of it runs any more, and does not wait for what holds its pipe."""
    result = answer(leaves.format("echo hi; exit 3"))
    assert left() == []
    assert result.outcome is Outcome.OK
    assert "hi\n" in result.content
    assert result.content.endswith("[exit status 3; what it left running was ended]")


@pytest.mark.process
@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_what_a_command_started_is_gone_at_its_time_limit(answer: Answer, left: Left, leaves: str) -> None:
    """The limit ends all of it, however far it came."""
    result = answer({"command": leaves.format("echo hi; sleep 1000"), "timeout": 1.0})
    assert left() == []
    assert result.outcome is Outcome.ERROR
    assert "time limit" in str(result.error)


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_what_a_command_started_is_gone_after_a_cancel(workspace: Workspace, left: Left, leaves: str) -> None:
    """Whoever leaves a cancelled batch leaves nothing running."""

    async def main() -> Outcome:
        runtime = Runtime(Registry([services.shell_tool(workspace)]))
        async with runtime.open_batch() as batch:
            batch.submit(calls_of(leaves.format("echo ready; sleep 1000"))[0])
            batch.seal()
            async for update in batch:
                if "ready" in str(getattr(update, "message", "")):
                    assert left()
                    batch.cancel()
        return batch.outcome.results[0].outcome

    assert trio.run(main) is Outcome.INTERRUPTED
    assert left() == []


@pytest.mark.process
def test_command_that_kills_its_supervisor_is_ended(answer: Answer, left: Left) -> None:
    """What is cut loose is found by its mark."""
    result = answer("setsid sleep 1000 & kill -9 $PPID; sleep 1000")
    assert left() == []
    assert result.content == "[ended by signal 9 (SIGKILL); what it left running was ended]"


@pytest.mark.process
def test_process_that_shows_no_environment_yet_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is beginning another program is looked at again; it was taken for somebody else's."""
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, _supervised._MARK: "this one"}) as process:
        real, looks = _supervised._has_mark, 0

        def has_mark(pid: int, wanted: bytes) -> bool | None:
            nonlocal looks
            looks += pid == process.pid
            return real(pid, wanted) if pid != process.pid or looks > 3 else None

        monkeypatch.setattr(_supervised, "_has_mark", has_mark)
        was_there = _supervised._kill_marked("this one")
        process.terminate()
        assert was_there
        assert process.wait() == -signal.SIGKILL


@pytest.mark.process
def test_process_without_any_environment_is_left_alone() -> None:
    """It is looked at again, but not for ever."""
    with subprocess.Popen(["sleep", "1000"], env={}) as process:
        assert not _supervised._kill_marked("of nobody")
        assert process.poll() is None
        process.kill()


@pytest.mark.seldom
@pytest.mark.process
def test_command_dies_with_the_process_that_ran_it(root: Path, left: Left) -> None:
    """When the program is killed, its commands are not left to themselves."""
    program = (
        "import trio, sys; from toolrt import *; from toolrt import services; w = Workspace(sys.argv[1])\n"
        "call = ToolCall('1', 'run_command', {'command': 'setsid sleep 1000 & touch ready; sleep 1000'})\n"
        "trio.run(Runtime(Registry([services.shell_tool(w)])).run, [call])\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(root)], cwd=root.parent) as process:
        while not (root / "ready").exists():
            assert process.poll() is None
        process.kill()
    while left():
        os.sched_yield()


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_thousand_calls_leave_nothing(
    workspace: Workspace, left: Left, descriptors: Callable[[], int], tmp_path: Path
) -> None:
    """Cancels and time limits at random: as many processes, open files, temporary files and threads as before."""
    choices = random.Random(7)
    kinds = [*LEAVES.values(), "{}", "{}"]
    before = (left(), descriptors(), sorted(os.listdir(tmp_path)), _threads())
    children = _children()

    async def one(number: int) -> None:
        runtime = Runtime(Registry([services.shell_tool(workspace)]))
        last = choices.choice(["echo hi", "sleep 1000", "yes", "exit 1", "head -c 300000 /dev/zero"])
        timeout = choices.choice([0.001, 0.05, 0.2, 0.5])
        call = {"command": choices.choice(kinds).format(last), "timeout": timeout}
        with trio.move_on_after(choices.choice([0.0, 0.01, 0.05, 0.1, 0.3, 60])):
            await runtime.run(calls_of(call))

    async def main() -> None:
        for number in range(0, CALLS, 5):
            async with trio.open_nursery() as nursery:
                for place in range(5):
                    nursery.start_soon(one, number + place)

    trio.run(main)
    assert (left(), descriptors(), sorted(os.listdir(tmp_path)), _threads()) == before
    assert _children() == children


def _threads() -> set[threading.Thread]:
    """The threads of this process, but those that Trio keeps for the next that needs one."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("Trio thread")}


def _children() -> set[int]:
    """The processes whose parent is this one."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return {int(number) for number in listed.read_text().split()} if listed.exists() else set()


@pytest.mark.process
def test_no_signal_is_ignored_in_a_command(answer: Answer, left: Left) -> None:
    """What this program or its supervisor ignores, a command does not."""
    result = answer("grep SigIgn /proc/self/status; grep SigBlk /proc/self/status")
    # 32 and 33 are the C library's own; where it spawns a process, it may leave them ignored.
    others = ~(0b11 << 31)
    assert [int(line.split()[1], 16) & others for line in result.content.splitlines()[:2]] == [0, 0]


@pytest.mark.process
def test_yes_ends_by_its_broken_pipe(answer: Answer) -> None:
    """A pipeline ends as in a terminal."""
    assert answer("yes | head -n 2; echo ${PIPESTATUS[0]}").content == f"y\ny\n{128 + signal.SIGPIPE}\n[exit status 0]"


@pytest.mark.process
def test_what_forks_while_it_is_ended_is_ended(answer: Answer, left: Left) -> None:
    """A process that is found too late is found the next time."""
    forks = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1000 & sleep 0.02; done' & wait"
    result = answer({"command": forks, "timeout": 0.5})
    assert left() == []
    assert result.outcome is Outcome.ERROR


@pytest.mark.process
def test_processes_that_fork_and_end_are_ended(answer: Answer, left: Left) -> None:
    """None of them lives long enough to be found by its number."""
    chain = "import os, signal; signal.signal(15, signal.SIG_IGN)\nwhile True:\n if os.fork(): os._exit(0)"
    result = answer(f'{sys.executable} -S -c "{chain}" & sleep 0.1; echo on')
    assert left() == []
    assert "what it left running was ended" in result.content


@pytest.mark.process
def test_commands_run_in_a_session_without_a_terminal(run: Run, left: Left) -> None:
    """Nobody can be asked, and nothing of the terminal's is theirs."""
    results = run("cat", "tty", "cat /proc/self/stat", "cat /proc/$PPID/stat").results
    assert results[0].content == "[exit status 0]"
    assert results[1].content.startswith("not a tty")
    sessions = {int(result.content.rpartition(")")[2].split()[3]) for result in results[2:]}
    assert len(sessions - {os.getsid(0)}) == 2


def test_pauses_before_restarts_double_up_to_a_bound() -> None:
    """The first restart comes at once; however often a program was lost, the pause stays a number."""
    assert [pause_before_restart(lost) for lost in range(8)] == [0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 5.0]
    assert pause_before_restart(10_000) == 5.0
