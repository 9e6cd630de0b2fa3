"""Every link between the documents leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def _prose(page: Path) -> str:
    return _CODE.sub("`", page.read_text(encoding="utf-8"))


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(_prose(page)))
    return {heading.replace(" ", "-") for heading in plain}


def test_links_of_page_lead_somewhere(page: Path) -> None:
    """A relative link names a file of the checkout, and its anchor a heading of that file."""
    dead = []
    for groups in _LINK.findall(_prose(page)):
        link = groups[0] or groups[1]
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            dead.append(link)
    assert dead == []


def test_pages_of_docs_are_in_its_index(root: Path) -> None:
    """Whoever starts at docs/README.md finds every page: there, or on the page that lists its folder's."""
    docs = root / "docs"
    index = docs / "README.md"
    linked = _linked(index)
    for page in list(linked):
        folder = page.parent if page.name == "index.md" else page.with_suffix("")
        if page.suffix == ".md" and folder.is_dir():
            linked |= {below for below in _linked(page) if below.parent == folder}
    pages = {page.resolve() for page in docs.rglob("*.md") if not {"shop", "changes"} & set(page.parts)}
    front = docs / "index.md"  # the site's own, made of the index
    assert pages - linked - {index.resolve(), front.resolve()} == set()


def _linked(page: Path) -> set[Path]:
    names = (groups[0].partition("#")[0] for groups in _LINK.findall(_prose(page)) if groups[0])
    return {(page.parent / name).resolve() for name in names}
