"""What each step did, in words: whom it met, what it read and wrote with values, how it ended.

Rules.
    1. A thing has one name, which does not depend on the schedule: the variable, or the attribute or item of one, by
       which the program reaches it; two things of one name are numbered.  Without one it is called by its kind and the
       task that made it.
    2. A primitive of Trio's is told by what the program called: a lock is acquired, waited for, released.
    3. What was not seen is told only where nothing else is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolrt.errors import Deadlock, SimulationStopped
from toolrt.probe import ANYTHING, Resource
from toolrt.sim._paths import CALLBACKS, CANCEL, CLOCK, DEADLINE, ROOT
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._source_lines import SourceLines
from toolrt.sim.programs.tracking._guard import variable_at
from toolrt.trace import Access, Step

#: Trio's primitives, and what is no variable either.
NO_VARIABLES = frozenset(
    {"Semaphore", "CapacityLimiter", "Lock", "StrictFIFOLock", "Condition", "Event", "ParkingLot", "MemoryChannel"}
    | {"Nursery", "CancelScope", "RunVar", "Task"}
)

# What a thing that a task made is called: its kind, the task, a number.  What belongs to it has more parts.
_MADE = 3

# Of a value so many characters stand in a row; an old one beside it only within them.
_MOST_OF_A_VALUE = 24

# What is called of Trio, and what that does to a primitive.
_VERBS = {
    **dict.fromkeys(("acquire", "__aenter__", "acquire_on_behalf_of", "__enter__"), "acquires"),
    **dict.fromkeys(("acquire_nowait", "acquire_on_behalf_of_nowait"), "tries to acquire"),
    **dict.fromkeys(("release", "__aexit__", "release_on_behalf_of", "__exit__"), "releases"),
    **dict.fromkeys(("locked", "is_set", "statistics", "value", "available_tokens", "borrowed_tokens"), "looks at"),
    **dict.fromkeys(("notify", "notify_all"), "notifies"),
    **dict.fromkeys(("receive", "__anext__"), "receives from"),
    **dict.fromkeys(("close", "aclose"), "closes"),
    **dict.fromkeys(("unpark", "unpark_all"), "wakes who waits in"),
    "send": "sends to",
    "send_nowait": "tries to send to",
    "receive_nowait": "tries to receive from",
    "set": "sets",
    "wait": "waits for",
    "park": "waits in",
    "cancel": "cancels",
    "clone": "clones",
}

# The verbs of what a task may have to wait for, and what it does then.
_WAITING = {
    "acquires": "waits for",
    "waits for": "waits for",
    "waits in": "waits in",
    "sends to": "waits to send to",
    "receives from": "waits to receive from",
}

# What Trio has for its threads.
_OF_THREADS = frozenset({"Thread", "run_sync_soon"})

# How the words of a wait begin that is told in other words, and those.
_WAITS = (
    ("trio to_thread_run_sync", "waits for its thread"),
    ("a sleep to end", "sleeps"),
    ("nothing (sleep_forever)", "sleeps for ever"),
    ("its nursery's children", "waits for its children"),
)


def tell(places: SourceLines, execution: Execution) -> SourceLines:
    """Give `places` with names and words for the steps of `execution`, which is over."""
    steps, error = execution.schedule.steps, execution.error
    if steps and steps[-1].task == ROOT and error is not None and not isinstance(error, SimulationStopped):
        places.note_raised(len(steps) - 1, error)
    places.is_noting = True
    places.find_variables()
    _find_names(places)
    seen: dict[Resource, str | None] = {}
    passing = _passing(places, steps)
    for step, after in zip(steps, (*steps[1:], None), strict=False):
        done = _of_no_task(step, after)
        goes_on = after is not None and step.task in after.enabled
        places.told[step.index] = [done] if done else _parts(step, places, seen, passing, goes_on)
    if steps and isinstance(error, Deadlock):
        places.told[steps[-1].index].append("then nobody can run")
    return places


# ---------------------------------------------------------------------- names


def _find_names(places: SourceLines) -> None:
    found = places.variables.found
    parted = {resource: _parted(resource, found) for resource in dict.fromkeys(key[1] for key in places.of_accesses)}
    things: dict[str, set[Resource]] = {}
    for base, _ in parted.values():
        if base is not None:
            things.setdefault(found[base], set()).add(base)
    for resource, (base, part) in parted.items():
        if base is not None:
            # Things of one name are numbered in the order in which they were made.
            places.names[resource] = _of_thing(base, found[base], sorted(things[found[base]], key=str)) + part
    known = {*places.names.values()}
    for (_, resource, _), place in places.of_accesses.items():
        if resource not in places.names and resource[0] not in ("cell", "watched") and len(resource) > 1:
            written = variable_at(place.path, place.line, resource) if place.path else None
            # A line may have the name of another thing alone.
            places.names[resource] = written if written and written not in known else _by_maker(resource)
    # An attribute and the list that it holds have one name; two things have not.
    is_part = {resource: parted[resource][0] != resource for resource in places.names}
    often = Counter((name, is_part[resource]) for resource, name in places.names.items())
    for resource, name in list(places.names.items()):
        if often[name, is_part[resource]] > 1:
            places.names[resource] = _by_maker(resource)


def _of_thing(thing: Resource, name: str, same: Sequence[Resource]) -> str:
    """Give the name of a thing, behind the kind of a primitive, and its number among the `same` if it is not alone."""
    number = f" {same.index(thing) + 1}" if len(same) > 1 else ""
    if thing[0] in NO_VARIABLES:
        return f"{thing[0]} of {name[:-6]}{number}" if name.endswith("._lock") else f"{thing[0]} {name}{number}"
    if name.partition(".")[0] in ("self", "cls"):
        return f"{thing[0]}{number}{name[4:]}"
    return f"{name}{number}"


def _parted(resource: Resource, found: Mapping[Resource, str]) -> tuple[Resource | None, str]:
    """Give the thing that a resource is or belongs to, if the program has a name for it, and how a part is written."""
    if resource in found:
        return resource, ""
    if resource[-2:-1] == ("key",) and resource[:-2] in found:
        return resource[:-2], f"[{resource[-1]!r}]"
    if len(resource) > 1 and resource[:-1] in found:
        return resource[:-1], f" {resource[-1]}" if resource[0] in NO_VARIABLES else f".{resource[-1]}"
    return None, ""


def _by_maker(resource: Resource) -> str:
    kind, *rest = map(str, resource)
    if kind == "class attribute":
        return f"{rest[0]} of its class"
    if kind in NO_VARIABLES:
        return " ".join((kind, *rest))
    if len(resource) < _MADE or not isinstance(resource[2], int):
        return ".".join((kind, *rest))
    part = resource[_MADE:]
    written = f"[{part[1]!r}]" if part[:1] == ("key",) else f".{part[0]}" if part else ""
    return f"{kind} {resource[2]} of {rest[0]}{written}"


def called(resource: Resource, places: SourceLines | None) -> str:
    """Give what people call a resource: the program's own name, if it has one."""
    if places is not None and (name := places.names.get(resource)):
        return name
    first, *rest = map(str, resource)
    return " ".join(rest if first in ("cell", "watched") and rest else (first, *rest))


def who(task: str, places: SourceLines | None) -> str:
    """Give what a task is called in a sentence: its name alone where no other task has it."""
    name = None if places is None or task == ROOT else places.functions.get(task)
    if places is None or name is None:
        return task
    return name if list(places.functions.values()).count(name) == 1 else f"{name} ({task})"


def _with_names(words: str, places: SourceLines) -> str:
    return re.sub(r"\bmain(?:\.\d+)+\b", lambda found: who(found[0], places), words)


# ---------------------------------------------------------------------- words


def _passing(places: SourceLines, steps: Sequence[Step]) -> set[Resource]:
    """Give what belongs to something without a name that one task alone touches: a list made to be compared, say."""
    tasks: dict[Resource, set[str]] = {}
    for step in steps:
        for access in step.accesses:
            resource = access.resource
            if resource[0] not in NO_VARIABLES and len(resource) >= _MADE and isinstance(resource[2], int):
                tasks.setdefault(resource[:_MADE], set()).add(step.task)
    alone = {base for base, found in tasks.items() if len(found) == 1 and base not in places.variables.found}
    return {access.resource for step in steps for access in step.accesses if access.resource[:_MADE] in alone}


def _parts(
    step: Step, places: SourceLines, seen: dict[Resource, str | None], passing: set[Resource], goes_on: bool
) -> list[str]:
    place = places.of_steps.get(step.index)
    waits = _with_names(places.waits.get((step.index, step.task), ""), places)
    if goes_on and not waits.startswith("a sleep"):
        waits = ""  # a checkpoint; only the clock can have come in between
    said = []
    if step.index in places.woken:
        said.append("wakes")
    if step.index in places.cancelled:
        said.append("gets Cancelled" if place is None else f"gets Cancelled at {place}")
    ends = places.raised.get(step.index)
    accesses = list(_told(step.accesses, places, step.index, ends is not None, passing))
    said += _without_repeats([_access(step, access, places, seen, waits) for access in accesses])
    waited = any(part.startswith(tuple(_WAITING.values())) for part in said)
    if ends is not None:
        said.append(f"raises {_short(ends[0])}" if ends[0] else "raises")
    elif waits and not waited:
        said.append(next((told for begin, told in _WAITS if waits.startswith(begin)), f"waits for {waits}"))
    if not said and any(access.resource[0] == "run_sync_soon" for access in step.accesses):
        said.append("hands something to Trio's thread")
    if not said and any(access.resource == ANYTHING for access in step.accesses):
        said.append("does what is not seen")
    return list(dict.fromkeys(said)) or ["runs" if place is None else f"runs from {place}"]


def _without_repeats(told: list[tuple[str, str, str]]) -> list[str]:
    """Leave out a read of what is written, and one without a value where others have theirs."""
    written = {name for did, name, _ in told if did == "writes"}
    known = any(" = " in text or " -> " in text for _, _, text in told)
    return [
        text for did, name, text in told if did != "reads" or not (name in written or (known and " = " not in text))
    ]


def _told(
    accesses: Iterable[Access], places: SourceLines, step: int, raises: bool, passing: set[Resource]
) -> Iterator[Access]:
    """Leave out what says nothing more: a read of what is written, a container beside the one item that is meant."""
    accesses = list(accesses)
    written = {access.resource for access in accesses if access.write}
    items = Counter(access.resource[:-2] for access in accesses if access.resource[-2:-1] == ("key",))
    touched = {access.resource for access in accesses}
    for access in accesses:
        resource = access.resource
        if resource == ANYTHING or (not access.write and resource in written):
            continue
        if _is_trios_own(step, resource, places):
            continue
        if raises and resource[0] in ("Nursery", "CancelScope") and not places.deeds.get((step, resource)):
            continue  # what Trio does with what it raised
        if items[resource] == 1 and resource[0] not in NO_VARIABLES:
            continue
        if resource[0] == "class attribute" and any(resource[-1] == each[-1] for each in touched - {resource}):
            continue
        if resource in passing:
            continue
        container = resource[:-2]
        if resource[-2:-1] == ("key",) and items[container] > 1 and container in touched:
            continue
        yield access


def _is_trios_own(step: int, resource: Resource, places: SourceLines) -> bool:
    """Say whether it is a thing of Trio's that the program neither names nor calls, as the limiter of threads."""
    if resource[0] not in NO_VARIABLES | _OF_THREADS or _parted(resource, places.variables.found)[0] is not None:
        return False
    return _VERBS.keys().isdisjoint(places.deeds.get((step, resource), ()))


def _access(
    step: Step, access: Access, places: SourceLines, seen: dict[Resource, str | None], waits: str
) -> tuple[str, str, str]:
    """Say what is done, to what, and both with the value."""
    resource, name = access.resource, called(access.resource, places)
    did = "writes" if access.write else "reads"
    if resource[0] in NO_VARIABLES:
        return "", name, _deed(step, resource, places, waits, f"{did} {name}")
    value = places.values.get((step.index, resource, access.write))
    old = places.before.get((step.index, resource), seen.get(resource))
    if access.write or value is not None:
        seen[resource] = value
    if value is None:
        return did, name, f"{did} {name}"
    value = _short(value)
    if access.write and old is not None and len(old) <= min(len(value) + 8, _MOST_OF_A_VALUE):
        return did, name, f"{did} {name} {old} -> {value}"
    return did, name, f"{did} {name} = {value}"


def _deed(step: Step, resource: Resource, places: SourceLines, waits: str, otherwise: str) -> str:
    """Say what was done to a primitive of Trio's, and who holds what its task waits for."""
    name = called(resource, places)
    verbs = [_VERBS[deed] for deed in places.deeds.get((step.index, resource), ()) if deed in _VERBS]
    if resource[0] == "MemoryChannel":
        verbs = ["closes" if verb == "releases" else verb for verb in verbs]
    if resource[0] == "Lock":  # that of a Condition, perhaps: who waits there gives it back, to notify takes none
        verbs = ["releases" if verb == "waits for" else verb for verb in verbs if verb != "notifies"]
        waits = "" if "releases" in verbs else waits
    if not verbs:
        return otherwise
    if waits and verbs[-1] in _WAITING and not waits.startswith(tuple(begin for begin, _ in _WAITS)):
        holder = re.search(r" held by (.+)", waits)
        verbs[-1] = _WAITING[verbs[-1]]
        name += f", held by {holder[1]}" if holder else ""
    return f"{' and '.join(dict.fromkeys(verbs))} {name}"


def _short(value: str) -> str:
    value = " ".join(value.split())
    return value if len(value) <= _MOST_OF_A_VALUE else f"{value[: _MOST_OF_A_VALUE - 1]}…"


def _of_no_task(step: Step, after: Step | None) -> str:
    """Say what is done by a step that is no task's; "" for one that is."""
    if step.task == CLOCK:
        return moves(step, after)
    if step.task.partition(".")[0] == CANCEL:
        return "cancels its scope"
    if step.task.partition(".")[0] == DEADLINE:
        return "comes"
    if step.task == CALLBACKS:
        return "takes what threads have handed over"
    task, _, choice = step.task.partition("=")
    return f"chooses {choice} of 0 to {len(step.enabled) - 1}" if choice and task else ""


def moves(step: Step, after: Step | None) -> str:
    """Say what a step of the clock does."""
    return f"moves to {after.time:g}" if after is not None and after.time > step.time else "moves"


def place_of(step: Step, places: SourceLines) -> str:
    """Give the line of a step with its text: that of what it raised, of its first access, or where it went on."""
    ends = places.raised.get(step.index)
    lines = [ends[1]] if ends is not None else []
    met = [access for access in step.accesses if not _is_trios_own(step.index, access.resource, places)]
    lines += [places.of_access(step.index, access.resource, access.write) for access in met]
    line = next(filter(None, lines), places.of_steps.get(step.index))
    return "" if line is None else f"{line}  {line.text}"
