"""Random programs whose tasks share plain Python state, as the source of a module.

Each task has a few statements with checkpoints between them; what it saw is logged in its own list, and the outcome is
all logs and all that is shared at the end.
"""

from __future__ import annotations

import itertools
import linecache
import random
import sys
import textwrap
from types import ModuleType

_HEAD = """
import bisect
import contextlib
import copy
import dataclasses
import functools
import heapq
import itertools
from collections import Counter, OrderedDict, defaultdict, deque

import attrs
import trio

TOTAL = 0
TABLE = {}
ROWS = []

class Plain:
    made = 0
    shared = []
    def __init__(self, n=0):
        self.n = n
        self.items = []
        self.table = {}
        self.inner = None
    def __repr__(self):
        return f"{type(self).__name__}({self.n})"
    def bump(self, by=1):
        self.n += by
        return self.n
    @property
    def twice(self):
        return self.n * 2
    @twice.setter
    def twice(self, value):
        self.n = value // 2
    def __getitem__(self, key):
        return self.table.get(key, self.n)
    def __setitem__(self, key, value):
        self.table[key] = value
    def __contains__(self, key):
        return key in self.items
    def __len__(self):
        return len(self.items)
    def __iter__(self):
        return iter(self.items)
    def __bool__(self):
        return self.n > 1
    def __enter__(self):
        self.n += 1
        return self
    def __exit__(self, *_):
        self.items.append(self.n)
    def __call__(self, x):
        self.n += x
        return self.n
    @classmethod
    def count(cls):
        cls.made += 1
        return cls.made

class Slots:
    __slots__ = ("n", "other")
    def __init__(self):
        self.n = 0
        self.other = None

@dataclasses.dataclass
class Data:
    n: int = 0
    items: list = dataclasses.field(default_factory=list)

@attrs.define
class Attr:
    n: int = 0
    table: dict = attrs.Factory(dict)

class Sub(Plain):
    def __init__(self):
        super().__init__(1)
        self.extra = 0
    def bump(self, by=2):
        self.extra += 1
        return super().bump(by)
    def __eq__(self, other):
        return self.n == getattr(other, "n", other)
    __hash__ = None

def default(x, seen=[]):
    seen.append(x)
    return len(seen)

def squares(of):
    for x in of:
        yield x * x

@contextlib.contextmanager
def held(box):
    box.items.append("in")
    try:
        yield len(box.items)
    finally:
        box.n += 1

def logged(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        ROWS.append(f.__name__)
        return f(*args, **kwargs)
    return inner

@logged
def swap(a, b):
    a.n, b.n = b.n, a.n
"""

_SETUP = """
async def program():
    global TOTAL
    TOTAL = 0
    TABLE.clear()
    ROWS.clear()
    Plain.made = 0
    Plain.shared = []
    default.__defaults__[0].clear()
    box, other, slots, data, attr, sub = Plain(), Plain(3), Slots(), Data(), Attr(), Sub()
    box.inner = other
    alias = box
    items, table, seen, queue = [3, 1, 2], {"a": 1}, {1, 2}, deque([1, 2])
    counts, heap, ordered, many = Counter("ab"), [2, 5], OrderedDict(a=1), defaultdict(list)
    nested = {"x": [1, [2]], "y": {"z": 0}}
    pair = (items, box)
    steps = iter(items)
    count = 0
    name = "n"
    logs = []
    send, receive = trio.open_memory_channel(9)
    await send.send(box)
"""

# Each statement may use `log` (a list of the task's own), `t` (a local) and `me` (the task's number).
_STATEMENTS = r"""
t = box.n
box.n = t + 1
box.n += 1
log.append(box.n)
alias.n += me
log.append(alias.items[:])
box.items.append(me)
box.items += [me]
box.table["k"] = me
log.append(box.table.get("k"))
box.table.setdefault("k", me)
box.inner.n = t
log.append(box.inner.n)
other.n *= 2
log.append(other.bump())
sub.bump()
log.append(sub.n)
log.append(sub == other)
log.append(box.twice)
box.twice = 6 + me
log.append(box["q"])
box["q"] = me
log.append(me in box)
log.append(len(box))
log.append([x for x in box])
log.append(bool(box))
slots.n = t
slots.n += 2
log.append(slots.n)
slots.other = [me]
log.append(repr(slots.other))
data.n = data.n + 1
data.items.append(me)
log.append(repr(data))
log.append(data == Data(1))
attr.n += 1
attr.table[me] = t
log.append(str(attr))
items.append(me)
items[0] = me
items.sort()
items.insert(0, t)
log.append(items[-1])
t = len(items)
log.append(sum(items))
log.append(max(items))
log.append(sorted(items))
log.append(f"{items}")
log.append(me in items)
items[:] = [me, 9]
items.extend(seen)
held = items; held += (me,)
held = items; held += await wait([me]); log.append(held[:])
held = seen; held |= {7 + me}
held = box.items; held *= 2
del items[0]
log.append(items.pop())
items.reverse()
log.append(items == [3, 1, 2])
items[me] = t
log.append(items[me:][:1])
log.append(items[1])
items[-1] += 1
try: items[3] = me\nexcept IndexError: log.append("end")
log.append(items[3] if len(items) > 3 else None)
items[me], items[0] = items[0], me
log.append(bool(items))
box.items.extend([0, 0]); box.items[me] = me
items.clear()
log.append([x + 1 for x in items])
a, *rest = items; log.append((a, rest))
table["a"] = me
table["b"] = me
log.append(table.get("a"))
log.append("b" in table)
log.append(list(table))
log.append(sorted(table.items()))
table.update(c=me)
table.update({"a": t})
table.pop("a", None)
table |= {"n": me}
log.append(table.get("n"))
log.append("n" in counts)
counts += Counter(n=1)
counts.subtract(["b"])
log.append(counts["zz"])
many[me] = t
log.append(many.get(0))
log.append(ordered.get("b"))
ordered |= {"b": me}
ordered.popitem()
t = len(table)
log.append(list(table.values()))
log.append({**table})
table["a"] = table.get("a", 0) + 1
seen.add(me + 2)
seen.discard(1)
log.append(sorted(seen))
log.append(1 in seen)
log.append(len(seen & {1, 2}))
queue.append(me)
queue.appendleft(me)
log.append(queue.popleft() if queue else None)
log.append(list(queue))
queue.rotate(1)
counts["a"] += 1
counts.update("b")
log.append(counts["b"])
log.append(counts.most_common(1))
heapq.heappush(heap, me)
log.append(heapq.heappop(heap) if heap else None)
log.append(heap[0] if heap else None)
bisect.insort(items, me)
log.append(bisect.bisect(heap, 2))
ordered["b"] = me
ordered.move_to_end("a")
log.append(list(ordered))
many["m"].append(me)
log.append(len(many))
log.append(many["m"][:])
nested["x"][1].append(me)
nested["y"]["z"] += 1
log.append(copy.deepcopy(nested))
log.append(str(nested))
log.append(nested["x"][0])
nested["x"] = [me, [t]]
pair[0].append(8)
log.append(pair[1].n)
count += 1
count = t
log.append(count)
log.append((lambda: count)())
TOTAL += 1
t = TOTAL
TOTAL = t + 1
log.append(TOTAL)
TABLE["g"] = me
log.append(TABLE.get("g"))
TABLE[me] = len(TABLE)
ROWS.append(me)
log.append(tuple(ROWS))
log.append(default(me))
Plain.made += 1
log.append(Plain.made)
log.append(Plain.count())
log.append(box.made)
box.made = 5
Plain.shared.append(me)
log.append(box.shared[:])
setattr(box, name, me)
log.append(getattr(other, name))
log.append(hasattr(box, "late"))
box.late = 1
vars(box)["n"] = me
log.append(vars(box)["n"])
log.append(list(squares(items)))
log.append(next(steps, None))
log.append(list(itertools.chain(items, queue)))
log.append(list(zip(items, heap)))
log.append([i for i, _ in enumerate(items)])
log.append(list(map(lambda x: x + box.n, items)))
log.append(any(x == 9 for x in items))
with box: t = box.n
with held(other) as t: log.append(t)
swap(box, other)
log.append(box(1))
log.append(functools.reduce(lambda a, b: a + b, items, 0))
log.append(min(box.n, other.n))
log.append(max([box, other], key=lambda o: o.n).n)
if (t := box.n) > 1: other.n = t
if items: items[-1] = t
while queue: log.append(queue.pop())
if not table: box.n = 9
box.n, other.n = other.n, me
match nested["x"]:\n    case [1, *r]: log.append(len(r))\n    case [x, _]: log.append(x)
match data:\n    case Data(n=0): log.append("zero")\n    case Data(n=n): log.append(n)
match table:\n    case {"a": 1}: table["one"] = me\n    case {"a": v, **r}: log.append((v, len(r)))
try: log.append(table["zz"])\nexcept KeyError: table["zz"] = me
try: box.gone\nexcept AttributeError: box.gone = me
box.inner, t = None, 0
if box.inner is None: box.inner = other
log.append(print_into(*items))
log.append(dict(table, **TABLE.copy() and {}))
log.append(" ".join(map(str, items)))
log.append("%s" % items)
log.append("{}".format(table))
log.append(items * 2)
log.append(items + [0])
log.append(items[0] < items[-1] if items else None)
log.append([*items, *queue])
log.append({k: v for k, v in table.items()})
log.append(box is alias and box.n == alias.n)
for x in items: log.append(x)
for x in list(items):\n    await trio.lowlevel.checkpoint()\n    log.append(x)\n    break
for x in items:\n    log.append(x)\n    await trio.lowlevel.checkpoint()\n    if len(log) > 2: break
items.append(me)
items.insert(0, t)
for x in items:\n    await trio.lowlevel.checkpoint()\n    log.append(x)
for k in table:\n    log.append(k)
box.n = await wait(box.n)
box.n += await wait(1)
items.append(await wait(t))
log.append(items + await wait([box.n]))
log.append(wait_twice(box)(await wait(2)))
count = count + await wait(count)
with contextlib.suppress(IndexError): log.append(items[2])
with contextlib.suppress(ValueError): items.remove(me)
t = functools.partial(box.bump, 3)()
bump = box.bump; log.append(bump())
add = items.append; add(me)
log.append(operator_get(box))
got = receive.receive_nowait() if not receive.statistics().current_buffer_used == 0 else None; log.append(got and got.n)
send.send_nowait(other)
log.append(object.__getattribute__(box, "n"))
object.__setattr__(box, "n", me)
log.append(dataclasses.asdict(data))
log.append(dataclasses.replace(data, n=4).n)
Plain.bump = lambda self, by=1: 0; Plain.bump = BUMP
log.append(isinstance(box, Plain) and len(box.items))
""".strip().splitlines()

_HELPERS = """
    async def wait(value):
        await trio.lowlevel.checkpoint()
        return value

    def wait_twice(box):
        def more(by):
            box.n += by
            return box.n
        return more

    def print_into(*values, **more):
        return len(values)
"""

_AFTER = """
    async with trio.open_nursery() as nursery:
        for number in range(@COUNT):
            log = []
            logs.append(log)
            nursery.start_soon(TASKS[number], number, log)
    def plain(x):
        if isinstance(x, (Plain, Slots)):
            return [(k, getattr(x, k)) for k in ("n", "items", "table", "late", "gone", "extra") if hasattr(x, k)]
        return x
    end = [logs, [plain(x) for x in (box, other, slots, sub)], data, attr, items, table, sorted(seen), list(queue)]
    end += [counts, heap, list(ordered.items()), dict(many), nested, count, TOTAL, TABLE, ROWS]
    end += [Plain.made, Plain.shared]
    return repr(end)
"""


def source_of(seed: int, *, slow: bool = False) -> str:
    """Give the source of a module that has an async function `program`.

    Args:
        seed: which.
        slow: with more steps.
    """
    chance = random.Random(seed)
    # A few statements that meet, so that tasks touch the same things.
    place = chance.randrange(len(_STATEMENTS))
    near = (_STATEMENTS + _STATEMENTS)[place : place + 9]
    some = [*chance.sample(near, chance.randint(2, 4)), *chance.sample(_STATEMENTS, chance.randint(0, 2))]
    shape = chance.choice([(2, 2), (2, 2), (2, 3), (3, 1), (2, 1)] + ([(3, 2)] if slow else []))
    parts = [_HEAD, "import operator\nBUMP = Plain.bump\noperator_get = operator.attrgetter('n')\n", _SETUP, _HELPERS]
    for task in range(shape[0]):
        lines = ["nonlocal count", "global TOTAL", "t = 0"]
        for step in range(shape[1]):
            if step:
                lines.append("await trio.lowlevel.checkpoint()")
            for _ in range(chance.randint(1, 2)):
                lines += chance.choice(some).replace("\\n", "\n").splitlines()
        body = textwrap.indent("\n".join(lines), "        ")
        parts.append(f"    async def task_{task}(me, log):\n{body}\n")
    names = ", ".join(f"task_{task}" for task in range(shape[0]))
    parts.append(f"    TASKS = [{names}]" + _AFTER.replace("@COUNT", str(shape[0])))
    return "\n".join(parts)


_number = itertools.count()


def module_of(source: str) -> ModuleType:
    """Make a module of `source`, whose lines `linecache` knows."""
    name = f"plain_program_{next(_number)}"
    file = f"/{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    exec(compile(source, file, "exec"), module.__dict__)
    return module
