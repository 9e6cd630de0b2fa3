"""How smooth the page is: frame times while it is scrolled, stepped and zoomed, in a real browser.

    python tests/benchmarks/page.py            ten thousand events
    python tests/benchmarks/page.py 50000      more

Prints, for each view and each way to move, how many milliseconds of a processor the page's process uses for a frame
(script, style, layout and painting), and the time between frames as the browser showed them: the median, the 99th of a
hundred, and the longest.  A frame at 60 Hz has 16.7 ms.  On a busy machine the time between frames is longer than what
the page uses.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from playwright.sync_api import Browser, Page, sync_playwright

from tests.view._traces import large
from toolrt import view
from toolrt.trace import Access, Step, Trace

_MOVES = {
    "scroll": "view.scroll.scrollTop = (frame * 97) % (view.scroll.scrollHeight - view.scroll.clientHeight || 1)",
    "step": "toolrt.app.goTo((frame * 7) % toolrt.app.length)",
    "play": "toolrt.app.goTo(frame)",
    "zoom": "toolrt.app.zoom(frame % 2 ? 1.1 : 1 / 1.1)",
}

_MEASURE = """
([move, frames]) => new Promise((done) => {
  const act = new Function("frame", "view", move);
  const between = [];
  let before = performance.now();
  let frame = 0;
  const view = toolrt.app.views[0];
  const ask = (now) => {
    between.push(now - before);
    before = now;
    act(frame, view);
    frame += 1;
    if (frame < frames) requestAnimationFrame(ask);
    else done(between.slice(1));
  };
  requestAnimationFrame(ask);
})
"""


def steps(count: int) -> Trace:
    """A simulated execution of `count` steps by 20 tasks that share ten cells."""
    tasks = tuple(f"main.{number}" for number in range(20))
    made = []
    for index in range(count):
        task = tasks[index * 7 % 20]
        accesses = (Access(("cell", f"c{index % 10}"), index % 3 == 0),)
        made.append(
            Step(index, task, tuple(sorted(tasks)), tasks.index(task), accesses, 0.0, (index - 1,) if index else ())
        )
    return Trace((), made, {"ended": "returned"})


def told(numbers: list[float]) -> str:
    """Median, 99th of a hundred, longest."""
    ordered = sorted(numbers)
    return f"{ordered[len(ordered) // 2]:7.1f} {ordered[int(len(ordered) * 0.99)]:7.1f} {ordered[-1]:7.1f}"


def used(browser: Browser) -> float:
    """Seconds of processor time that the pages' process has used so far."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return max(float(each["cpuTime"]) for each in processes if each["type"] == "renderer")


def measure(browser: Browser, tab: Page, name: str, keys: list[str], frames: int) -> None:
    """Print a line for each view and move."""
    for key in keys:
        tab.keyboard.press(key)
        shown = tab.locator('[role=tab][aria-selected="true"]').text_content()
        for move, code in _MOVES.items():
            if key == "3" and move in ("scroll", "zoom"):
                continue
            before = used(browser)
            between = tab.evaluate(_MEASURE, [code, frames])
            each = (used(browser) - before) / frames * 1000
            print(f"{name:8} {shown:7} {move:7} {each:14.1f}     {told(between)}")


def main() -> None:
    """Measure."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    browser_path = os.environ.get("TOOLRT_BROWSER") or shutil.which("chromium")
    print("                         processor, ms       between frames, ms")
    print("                             per frame      median     99%     max")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as directory:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=browser_path, args=arguments)
        for name, trace in {"calls": large(events // 10), "steps": steps(events)}.items():
            began = time.perf_counter()
            page = view.show(trace)
            size = len(page.html)
            file = page.save(Path(directory) / f"{name}.html")
            made = time.perf_counter() - began
            tab = browser.new_page(viewport={"width": 1280, "height": 800})
            began = time.perf_counter()
            tab.goto(file.as_uri())
            tab.locator("#panel h2").wait_for()
            opened = time.perf_counter() - began
            count = len(trace.events) or len(trace.steps)
            print(f"{name}: {count:,}, {size / 1e6:.1f} MB, made in {made:.2f} s, open in {opened:.2f} s")
            measure(browser, tab, name, ["1", "2", "3"] if name == "calls" else ["1"], 120)
            tab.close()
        browser.close()


if __name__ == "__main__":
    main()
