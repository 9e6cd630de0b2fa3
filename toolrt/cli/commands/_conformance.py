"""``toolrt conformance``: hold any executor of tool calls against the laws, from outside."""

from __future__ import annotations

import sys
from json import dumps
from typing import Annotated

from cyclopts import Parameter

from toolrt.cli._exit import Exit
from toolrt.cli.experiment._input import checked_target, write_target
from toolrt.cli.experiment._options import Whole, at_least_one
from toolrt.cli.screen._screen import Screen, forgiving, print_json
from toolrt.conformance import conformance as held_against_the_laws
from toolrt.conformance import load_adapter

#: Plans that are drawn for each law unless told otherwise.
_EXAMPLES = 100


def conformance(
    adapter: Annotated[str, Parameter(help="The executor's adapter, as MODULE:ADAPTER.")],
    /,
    *,
    examples: Annotated[Whole, Parameter(help="How many batches to draw for each law.")] = _EXAMPLES,
    law: Annotated[list[str] | None, Parameter(help="Ask this law only. May be repeated.", negative=())] = None,
    json: Annotated[bool, Parameter(help="Print the result as JSON.", negative=())] = False,
    badge: Annotated[str | None, Parameter(help="Write the result as JSON to this file, too.")] = None,
) -> int:
    """Hold any executor of tool calls against the laws, from outside.

    The adapter has one method, async def execute(self, tools, calls), which gives a list of (call_id, content,
    is_error). A tool has a name and is awaited with the input of a call. Batches are drawn and run on an asyncio loop
    with virtual time, tools end at drawn instants, and what the executor does is compared with a serial run. The
    smallest batch that breaks a law is shown.
    """
    at_least_one("--examples", examples)
    target = None if badge is None else checked_target(badge, "--badge")
    found = held_against_the_laws(load_adapter(adapter), examples, adapter, law)
    if target is not None:
        write_target(target, dumps(found.to_json(), ensure_ascii=False, indent=2), "--badge", private=False)
    if json:
        print_json(found.to_json())
    else:
        screen = Screen(forgiving(sys.stdout))
        for line in str(found).splitlines():
            screen.say(line.lstrip(), indent=len(line) - len(line.lstrip()))
    return Exit.OK if found.conforms else Exit.FAILED
