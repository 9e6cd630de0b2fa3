"""How a guest ends: with its loop, without it, by Ctrl-C, and in other loops; each in a process of its own."""

import subprocess
import sys
import textwrap

import pytest

_COMMON = """
import asyncio, gc, os, signal, sys, threading, time
import trio
import toolrt
from toolrt import Outcome, Registry, Runtime, ToolCall, aio, tool

ended = []

@tool(safe=True)
async def wait_on_trio(ctx):
    try:
        await trio.sleep_forever()
    finally:
        ended.append("trio")

@aio.tool(safe=True)
async def wait_on_asyncio(ctx):
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("asyncio")

@tool(safe=True)
async def quick(ctx):
    await trio.lowlevel.checkpoint()
    return "quick"

runtime = Runtime(Registry([wait_on_trio, wait_on_asyncio, quick]))
both = [ToolCall("a", "wait_on_trio"), ToolCall("b", "wait_on_asyncio")]
one = [ToolCall("a", "quick")]

async def open_both():
    batch = aio.open_batch(runtime)
    await batch.__aenter__()
    for call in both:
        batch.submit(call)
    while sum(call.status is toolrt.Status.EXECUTING for call in batch.calls) < 2:
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    return batch

def outcomes(batch):
    return [result.outcome.name for result in batch.outcome.results]
"""


def run(program: str, *, code: int = 0, packages: str = "") -> str:
    """Run the program in a process of its own, and give what it printed; it must exit with `code`."""
    for package in packages.split():
        pytest.importorskip(package, reason=f"{package} is not installed")
    text = _COMMON + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


pytestmark = pytest.mark.process


@pytest.mark.seldom
def test_the_end_of_the_loop_ends_what_runs() -> None:
    """`asyncio.run` leaves no tool behind, though the main coroutine left its batch open."""
    printed = run(
        """
        async def main():
            global batch
            batch = await open_both()

        asyncio.run(main())
        print(sorted(ended), trio.lowlevel.in_trio_run())
        trio.run(trio.lowlevel.checkpoint)
        """
    )
    assert printed == "['asyncio', 'trio'] False\n"


def test_a_plain_close_of_the_loop_is_mended_by_the_next_use() -> None:
    """The batch of the closed loop is cancelled then, and the thread is free for Trio again."""
    printed = run(
        """
        gc.disable()  # it would close the task that the loop has left, sooner or later
        loop = asyncio.new_event_loop()
        batch = loop.run_until_complete(open_both())
        loop.close()
        try:
            trio.run(trio.lowlevel.checkpoint)
        except RuntimeError as error:
            print(error)
        print(asyncio.run(aio.run(runtime, one)).results[0].content)
        print(ended, outcomes(batch))
        trio.run(trio.lowlevel.checkpoint)
        sys.stdout.flush()
        os._exit(0)  # asyncio complains of the task that its closed loop has left
        """
    )
    assert printed.splitlines()[0] == "Attempted to call run() from inside a run()"
    assert printed.splitlines()[1] == "quick"
    assert printed.splitlines()[2] == "['trio'] ['INTERRUPTED', 'INTERRUPTED']"


def test_the_exit_of_the_interpreter_ends_what_a_closed_loop_left() -> None:
    """The tool's cleanup runs."""
    printed = run(
        """
        loop = asyncio.new_event_loop()

        @tool(safe=True)
        async def tidy(ctx):
            try:
                await trio.sleep_forever()
            finally:
                print("tidied")

        async def main():
            batch = aio.open_batch(Runtime(Registry([tidy])))
            await batch.__aenter__()
            batch.submit(ToolCall("a", "tidy"))
            for _ in range(50):
                await asyncio.sleep(0)

        loop.run_until_complete(main())
        loop.close()
        """
    )
    assert printed == "tidied\n"


def test_a_plain_close_lets_go_of_a_tool_that_no_cancel_ends() -> None:
    """A call that finishes whatever happens cannot finish on a closed loop: it fails, and says why."""
    printed = run(
        """
        @aio.tool(interrupt="finish")
        async def stubborn(ctx):
            await asyncio.Event().wait()

        async def main():
            batch = aio.open_batch(Runtime(Registry([stubborn])))
            await batch.__aenter__()
            batch.submit(ToolCall("a", "stubborn"))
            for _ in range(50):
                await asyncio.sleep(0)
            return batch

        loop = asyncio.new_event_loop()
        batch = loop.run_until_complete(main())
        loop.close()
        print(asyncio.run(aio.run(runtime, one)).results[0].content)
        print(batch.outcome.results[0].error)
        sys.stdout.flush()
        os._exit(0)  # asyncio complains of the task that its closed loop has left
        """
    )
    quick, error = printed.splitlines()
    assert quick == "quick"
    assert "the asyncio event loop was closed while this tool ran on it" in error


def test_ctrl_c_cancels_the_batch_of_asyncio_run() -> None:
    """The tools end, then KeyboardInterrupt comes out of `asyncio.run`."""
    printed = run(
        """
        async def main():
            async with aio.open_batch(runtime) as batch:
                for call in both:
                    batch.submit(call)
                while sum(call.status is toolrt.Status.EXECUTING for call in batch.calls) < 2:
                    await asyncio.sleep(0)
                await asyncio.sleep(0)
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.Event().wait()

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted", sorted(ended))
        trio.run(trio.lowlevel.checkpoint)
        """
    )
    assert printed == "interrupted ['asyncio', 'trio']\n"


def test_ctrl_c_comes_out_of_a_loop_that_does_not_handle_it() -> None:
    """As it does without a guest; the loop can go on."""
    printed = run(
        """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(aio.run(runtime, one))
        loop.call_soon(os.kill, os.getpid(), signal.SIGINT)
        try:
            loop.run_until_complete(asyncio.sleep(30))
        except KeyboardInterrupt:
            print("interrupted")
        print(loop.run_until_complete(aio.run(runtime, one)).results[0].content)
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        trio.run(trio.lowlevel.checkpoint)
        """
    )
    assert printed == "interrupted\nquick\n"


def test_uvloop_is_served_too() -> None:
    """Results, a cancel, and the end with the loop."""
    printed = run(
        """
        import uvloop

        async def main():
            print((await aio.run(runtime, one)).results[0].content)
            try:
                async with asyncio.timeout(0.05):
                    await aio.run(runtime, both)
            except TimeoutError:
                print(sorted(ended))

        uvloop.run(main())
        trio.run(trio.lowlevel.checkpoint)
        """,
        packages="uvloop",
    )
    assert printed == "quick\n['asyncio', 'trio']\n"


def test_a_request_handler_of_starlette_runs_batches() -> None:
    """Ten requests at once, each with a batch of its own, on one runtime."""
    printed = run(
        """
        import httpx2 as httpx
        from starlette.applications import Starlette
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route

        async def handler(request):
            return PlainTextResponse((await aio.run(runtime, one * 2)).results[1].content)

        async def main():
            transport = httpx.ASGITransport(Starlette(routes=[Route("/", handler)]))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                answers = await asyncio.gather(*(client.get("/") for _ in range(10)))
            print({answer.text for answer in answers})

        asyncio.run(main())
        """,
        packages="httpx2 starlette",
    )
    assert printed == "{'quick'}\n"


@pytest.mark.seldom
def test_pytest_asyncio_runs_tests_with_guests(tmp_path: object) -> None:
    """Each test has a loop of its own, and a Trio test between them runs."""
    pytest.importorskip("pytest_asyncio", reason="pytest-asyncio is not installed")
    path = f"{tmp_path}/test_both.py"
    with open(path, "w") as file:
        file.write(
            textwrap.dedent(
                """
                import asyncio
                import pytest, trio
                from toolrt import Registry, Runtime, ToolCall, aio

                @aio.tool(safe=True)
                async def quick(ctx):
                    await asyncio.sleep(0)

                @pytest.mark.asyncio
                @pytest.mark.parametrize("n", range(3))
                async def test_batch(n):
                    done = await aio.run(Runtime(Registry([quick])), [ToolCall("a", "quick")])
                    assert done.results[0].error is None

                def test_trio():
                    trio.run(trio.lowlevel.checkpoint)

                @pytest.mark.asyncio
                async def test_again():
                    await test_batch(0)
                """
            )
        )
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", path]
    command += ["-o", "asyncio_default_fixture_loop_scope=function"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=str(tmp_path))
    assert "5 passed" in done.stdout, done.stdout + done.stderr
