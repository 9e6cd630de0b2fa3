"""The site builds without a warning, and loads nothing from elsewhere.

    python .ci/check_docs.py [--notebooks DIR] [DIRECTORY]

Builds the site into DIRECTORY (a temporary one by default) and looks at everything it has: whatever a page would load
by itself (scripts, styles, fonts, images, frames, also within frames that stand in the page) has to be a file of the
site.  Links that a person follows may lead anywhere.  DIR has executed notebooks
(`.ci/check_notebooks.py --write DIR`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[1]
#: What a browser loads because of a tag, by tag and attribute; an `a` is not among them.
_LOADED = {
    "audio": ("src",),
    "embed": ("src",),
    "feimage": ("href", "xlink:href"),
    "frame": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src", "href", "xlink:href"),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
#: Links of these kinds are only named, not loaded.
_NAMED = {"author", "canonical", "help", "index", "license", "next", "prev", "search"}
_URL = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)\s]*))\s*\)|@import\s+["']([^"']+)["']""")
_ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//|^(?:https?|wss?|ftp):", re.IGNORECASE)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self._style = tag == "style"
        if not (tag == "link" and set(given.get("rel", "").split()) <= _NAMED):
            for name in _LOADED.get(tag, ()):
                texts = given.get(name, "").split(",") if name == "srcset" else [given.get(name, "")]
                self.loads += [text.split()[0] for text in texts if text.split()]
        self.loads += loaded_by_style(given.get("style", ""))
        self.loads += loaded_by_page(given.get("srcdoc", ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._style = False

    def handle_data(self, data: str) -> None:
        if self._style:
            self.loads += loaded_by_style(data)

    def handle_endtag(self, tag: str) -> None:
        self._style = False


def loaded_by_page(text: str) -> list[str]:
    """What a page loads by itself."""
    page = _Page()
    page.feed(text)
    page.close()
    return page.loads


def loaded_by_style(text: str) -> list[str]:
    """What a style sheet loads."""
    return [next(filter(None, groups), "") for groups in _URL.findall(text)]


def problems(site: Path) -> Iterator[str]:
    """What is wrong with what the site loads."""
    for path in sorted(site.rglob("*")):
        if path.suffix not in (".html", ".css", ".svg"):
            continue
        text = path.read_text(encoding="utf-8")
        for url in loaded_by_style(text) if path.suffix == ".css" else loaded_by_page(text):
            where = path.relative_to(site)
            if _ELSEWHERE.match(url):
                yield f"{where} loads {url} from elsewhere"
            elif not url.startswith(("data:", "#")):
                file = unquote(re.split("[?#]", url)[0])
                if file and not (path.parent / file).exists():
                    yield f"{where} loads {url}, which is not there"


_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

#: Pages of each kind, which are held against the rules of axe-core where there is a browser.
_READ = (
    "index",
    "explanation/simulator",
    "how-to/explore-your-test",
    "reference/cli",
    "notebooks/07-exploring",
    "search",
)


def barriers(site: Path) -> Iterator[str]:
    """What keeps a reader with a keyboard or a screen reader from a page; nothing where there is no browser."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        return
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for width, scheme in ((1280, "light"), (390, "dark")):
            context = chromium.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
            )
            for name in _READ:
                tab = context.new_page()
                tab.goto((site.absolute() / f"{name}.html").as_uri())
                for found in Axe().run(tab).response["violations"]:
                    yield f"{name}.html, {width} wide, {scheme}: {found['id']}: {found['nodes'][0]['html'][:200]}"
                tab.close()
        chromium.close()


def build(site: Path, notebooks: str | None) -> bool:
    """Build the site, and say whether there was nothing to warn of."""
    environment = {**os.environ, **({"TOOLRT_NOTEBOOKS": notebooks} if notebooks else {})}
    with tempfile.TemporaryDirectory() as trees:
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-j",
            "2",
            "-b",
            "html",
            "-d",
            trees,
            "docs",
            str(site),
        ]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> None:
    """Build it and look at it."""
    parser = argparse.ArgumentParser(description="build the site and check what it loads")
    parser.add_argument("--notebooks", metavar="DIR", help="executed notebooks")
    parser.add_argument("directory", nargs="?", type=Path, help="where the site is to be (a temporary directory)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        site = given.directory or Path(temporary) / "site"
        built = build(site.absolute(), given.notebooks)
        found = [*problems(site), *(barriers(site) if built else ())]
        for problem in found:
            print(problem, file=sys.stderr)
        pages = sum(1 for _ in site.rglob("*.html"))
        print(f"{pages} pages, {'no warning' if built else 'with warnings'}, {len(found)} found that may not be")
    raise SystemExit(not built or bool(found))


if __name__ == "__main__":
    main()
