"""What a tab shows that a page stands in."""

from __future__ import annotations

from typing import Any


def here(tab: Any, side: int = 0) -> int:
    """Give the step that a pane of the view of steps marks as the present one."""
    row = tab.locator(f"#here-{side}")
    row.wait_for()
    return int(row.get_attribute("data-moment"))


def at(tab: Any, moment: int, side: int = 0) -> None:
    """Wait until that step is the present one."""
    tab.locator(f'#here-{side}[data-moment="{moment}"]').wait_for()


def wait_until(tab: Any, expression: str, arg: Any = None) -> None:
    """Ask the page until it says yes.

    Playwright's `wait_for_function` asks by eval in the page, which the page's policy forbids from the second time on.
    """
    for _ in range(3_000):
        if tab.evaluate(expression, arg):
            return
        tab.wait_for_timeout(20)
    raise AssertionError(f"the page did not come to say yes: {expression}")


def panel(tab: Any, title: str, side: int = 0) -> list[str]:
    """Give the items of one list of the panel."""
    section = tab.locator("#panel > section").nth(side)
    return [
        text
        for heading in section.locator("h3").all()
        if heading.text_content() == title
        for text in heading.locator("+ ul > li").all_text_contents()
    ]


def table(tab: Any, title: str, side: int = 0) -> list[list[str]]:
    """Give the rows of one table of the panel, without its head."""
    section = tab.locator("#panel > section").nth(side)
    rows = section.get_by_role("table", name=title).locator("tbody tr").all()
    return [row.locator("th, td").all_text_contents() for row in rows]
