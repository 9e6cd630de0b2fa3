"""How smooth the page is: frame times while it is scrolled, stepped and zoomed, in a real browser.

    python tests/benchmarks/page.py            a hundred events and ten thousand
    python tests/benchmarks/page.py 50000      more

Prints, for each view and each way to move, how many milliseconds of a processor the page's process uses for a frame
(script, style, layout and painting) with a hundred events and with many, the ratio of the two, and the time between
frames with many as the browser showed them: the median, the 99th of a hundred, and the longest.  A key is pressed for
each frame of "key".  A frame at 60 Hz has 16.7 ms.  Each figure is the least of three rounds, in which both sizes take
turns.  On a busy machine the time between frames is longer than what the page uses.
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
    "key": "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))",
    "scroll": "view.scroll.scrollTop = (frame * 97) % (view.scroll.scrollHeight - view.scroll.clientHeight || 1)",
    "jump": "toolrt.app.goTo((frame * 37) % toolrt.app.length)",
    "zoom": "toolrt.app.zoom(frame % 2 ? 1.1 : 1 / 1.1)",
}

_FRAMES, _ROUNDS = 100, 3

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
    """Seconds of processor time that the pages' processes have used so far."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return sum(float(each["cpuTime"]) for each in processes if each["type"] == "renderer")


def opened(browser: Browser, trace: Trace, file: Path) -> Page:
    """Open the page of a trace, and say how large it is."""
    began = time.perf_counter()
    page = view.show(trace)
    size = len(page.html)
    page.save(file)
    made = time.perf_counter() - began
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    began = time.perf_counter()
    tab.goto(file.as_uri())
    tab.locator("#panel h2").wait_for()
    took = time.perf_counter() - began
    count = len(trace.events) or len(trace.steps)
    print(f"{file.stem}: {count:,}, {size / 1e6:.1f} MB, made in {made:.2f} s, open in {took:.2f} s")
    return tab


def measure(browser: Browser, tab: Page, key: int, code: str) -> tuple[float, list[float]]:
    """Open a view anew; give the processor's milliseconds for a frame, and the times between frames."""
    tab.bring_to_front()
    tab.locator("[role=tab]").nth(key).click()
    tab.evaluate("toolrt.app.goTo((toolrt.app.length - 100) >> 1)")
    before = used(browser)
    between = tab.evaluate(_MEASURE, [code, _FRAMES])
    return (used(browser) - before) / _FRAMES * 1000, between


def compare(browser: Browser, few: Page, many: Page) -> None:
    """Print a line for each view and move."""
    for key in range(many.locator("[role=tab]").count()):
        shown = str(many.locator("[role=tab]").nth(key).text_content())
        for move, code in _MOVES.items():
            if shown == "Table" and move in ("scroll", "zoom"):
                continue
            rounds = [(measure(browser, few, key, code), measure(browser, many, key, code)) for _ in range(_ROUNDS)]
            one, other = (min(each[side][0] for each in rounds) for side in (0, 1))
            between = min((each[1][1] for each in rounds), key=sum)
            print(f"    {shown:7} {move:7} {one:8.1f} {other:9.1f} {other / one:7.2f}     {told(between)}")


def main() -> None:
    """Measure."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    browser_path = os.environ.get("TOOLRT_BROWSER") or shutil.which("chromium")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as directory:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=browser_path, args=arguments)
        for name, few, many in (
            ("calls", large(10), large(events // 10)),
            ("steps", steps(100), steps(events)),
        ):
            tabs = [
                opened(browser, trace, Path(directory) / f"{name}-{size}.html")
                for size, trace in (("few", few), ("many", many))
            ]
            print("                    processor, ms per frame       between frames, ms")
            print("                         few      many   ratio      median     99%     max")
            compare(browser, *tabs)
            for tab in tabs:
                tab.close()
        browser.close()


if __name__ == "__main__":
    main()
