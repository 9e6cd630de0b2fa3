"""A notebook's kernel has a running event loop that never ends: batches are awaited in its cells."""

from __future__ import annotations

from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

pytestmark = pytest.mark.process

CELLS = [
    """
import asyncio, trio, toolrt
from toolrt import aio

@aio.tool(safe=True)
async def on_asyncio(ctx):
    await asyncio.sleep(0)
    return "asyncio"

@toolrt.tool(safe=True)
async def on_trio(ctx):
    await trio.sleep(0)
    return "trio"

@aio.tool(safe=True)
async def for_ever(ctx):
    await asyncio.Event().wait()

runtime = toolrt.Runtime(toolrt.Registry([on_asyncio, on_trio, for_ever]))
def calls(*names):
    return [toolrt.ToolCall(name, name) for name in names]
""",
    """
done = await aio.run(runtime, calls("on_asyncio", "on_trio"))
print([result.content for result in done.results])
""",
    """
try:
    async with asyncio.timeout(0.05), aio.open_batch(runtime) as batch:
        for call in calls("on_trio", "for_ever"):
            batch.submit(call)
        await asyncio.Event().wait()
except TimeoutError:
    print([result.outcome.value for result in batch.outcome.results])
""",
    """
try:
    toolrt.run_sync(runtime, calls("on_trio"))
except toolrt.errors.MisuseError as error:
    print("toolrt.aio" in str(error))
await aio.close()
print(trio.run(runtime.run, calls("on_trio")).results[0].content)
print((await aio.run(runtime, calls("on_asyncio"))).results[0].content)
""",
]


@pytest.mark.seldom
def test_cells_await_batches_in_the_kernels_loop() -> None:
    """Results and a timeout; after `close` a cell may run Trio itself, and the next batch begins anew."""
    notebook: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    printed = [
        "".join(output.text for output in cell.outputs if output.output_type == "stream") for cell in notebook.cells
    ]
    assert printed == ["", "['asyncio', 'trio']\n", "['ok', 'interrupted']\n", "True\ntrio\nasyncio\n"]
