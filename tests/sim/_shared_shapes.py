"""Objects that two tasks may share: how one is made, what one task reads of it, and what another one does to it."""

from __future__ import annotations

#: By name: the source of what is made, an expression, and statements.
SHAPES: dict[str, tuple[str, str, str]] = {
    "OrderedDict.move": ("import collections; o = collections.OrderedDict(a=1,b=2)", "list(o)", "o.move_to_end('a')"),
    "Counter": ("import collections; o = collections.Counter()", "o['a']", "o.update(['a'])"),
    "ChainMap": ("import collections; o = collections.ChainMap({}, {})", "o.get('a')", "o['a'] = 1"),
    "UserList": ("import collections; o = collections.UserList()", "len(o)", "o.append(1)"),
    "array": ("import array; o = array.array('i',[0])", "o[0]", "o[0] = 1"),
    "bytearray": ("o = bytearray(b'a')", "bytes(o)", "o.extend(b'b')"),
    "memoryview": ("b = bytearray(b'a'); o = memoryview(b)", "b[0]", "o[0] = 66"),
    "StringIO": ("import io; o = io.StringIO()", "o.getvalue()", "o.write('a')"),
    "BytesIO": ("import io; o = io.BytesIO()", "o.tell()", "o.write(b'a')"),
    "Random": ("import random; o = random.Random(1)", "o.random()", "o.random()"),
    "lru": (
        ("import functools\nn = [0]\n@functools.lru_cache\ndef o(x):\n    n[0] += 1\n    return n[0]"),
        "o.cache_info().misses",
        "o(1)",
    ),
    "cache": (
        ("import functools\nn = [0]\n@functools.cache\ndef o(x):\n    n[0] += 1\n    return n[0]"),
        "o(2)",
        "o(1)",
    ),
    "cached_property": (
        ("import functools\nclass C:\n    @functools.cached_property\n    def p(self):\n        return 1\no = C()"),
        "'p' in o.__dict__",
        "o.p",
    ),
    "partial.attr": ("import functools; o = functools.partial(print)", "getattr(o, 'x', 0)", "o.x = 1"),
    "func.attr": ("def o(): pass", "getattr(o, 'x', 0)", "o.x = 1"),
    "func.doc": ("def o():\n    'a'", "o.__doc__", "o.__doc__ = 'b'"),
    "func.defaults": ("def o(a=1): return a", "o()", "o.__defaults__ = (2,)"),
    "func.code": ("def o(): return 1\ndef p(): return 2", "o()", "o.__code__ = p.__code__"),
    "func.kwdefaults": ("def o(*, a=1): return a", "o()", "o.__kwdefaults__ = {'a': 2}"),
    "class.doc": ("class o:\n    'a'", "o.__doc__", "o.__doc__ = 'b'"),
    "class.name": ("class o: pass", "o.__name__", "o.__name__ = 'b'"),
    "class.bases": ("class A:\n    x = 1\nclass B:\n    x = 2\nclass o(A): pass", "o.x", "o.__bases__ = (B,)"),
    "obj.class": ("class A:\n    x = 1\nclass B:\n    x = 2\no = A()", "o.x", "o.__class__ = B"),
    "obj.dict": ("class A: pass\no = A()", "getattr(o, 'x', 0)", "o.__dict__['x'] = 1"),
    "vars": ("class A: pass\no = A()", "getattr(o, 'x', 0)", "vars(o).update(x=1)"),
    "globals": ("g = 0", "g", "globals()['g'] = 1"),
    "SimpleNamespace": ("import types; o = types.SimpleNamespace(x=0)", "o.x", "o.x = 1"),
    "mappingproxy": ("import types; d = {}; o = types.MappingProxyType(d)", "o.get('a')", "d['a'] = 1"),
    "local": ("import threading; o = threading.local(); o.x = 0", "o.x", "o.x = 1"),
    "Context": (
        ("import contextvars; v = contextvars.ContextVar('v'); o = contextvars.Context(); o.run(v.set, 0)"),
        "o[v]",
        "o.run(v.set, 1)",
    ),
    "SimpleQueue": ("import queue; o = queue.SimpleQueue()", "o.qsize()", "o.put(1)"),
    "shuffle": ("import random; o = [1,2,3]", "o[0]", "random.shuffle(o)"),
    "ExitStack": (
        "import contextlib; o = contextlib.ExitStack(); n = []",
        "len(n)",
        "o.callback(n.append, 1); o.close()",
    ),
    "contextmanager": (
        ("import contextlib; n = []\n@contextlib.contextmanager\ndef o():\n    n.append(1)\n    yield"),
        "len(n)",
        "o().__enter__()",
    ),
    "weakref": ("import weakref\nclass A: pass\nh = [A()]; o = weakref.ref(h[0])", "o() is None", "h.clear()"),
    "WeakSet": ("import weakref\nclass A: pass\nh = [A()]; o = weakref.WeakSet(h)", "len(o)", "h.clear()"),
    "WeakValue": (
        ("import weakref\nclass A: pass\nh = [A()]; o = weakref.WeakValueDictionary(a=h[0])"),
        "'a' in o",
        "h.clear()",
    ),
    "finalize": (
        ("import weakref\nclass A: pass\nh = [A()]; n = []; f = weakref.finalize(h[0], n.append, 1)"),
        "len(n)",
        "h.clear()",
    ),
    "del": ("n = []\nclass A:\n    def __del__(self, into=n): into.append(1)\nh = [A()]", "len(n)", "h.clear()"),
    "decimal": (
        "import decimal; decimal.getcontext().prec = 28",
        "decimal.getcontext().prec",
        "decimal.getcontext().prec = 5",
    ),
    "logging": ("import logging; o = logging.getLogger('zzz'); o.setLevel(10)", "o.level", "o.setLevel(20)"),
    "enum.attr": ("import enum\nclass E(enum.Enum):\n    A = 1\nE.A.x = 0", "E.A.x", "E.A.x = 1"),
    "exc.args": ("o = ValueError(1)", "o.args", "o.args = (2,)"),
    "exc.notes": ("o = ValueError(1)", "getattr(o, '__notes__', [])[:]", "o.add_note('a')"),
    "exc.cause": ("o = ValueError(1)", "o.__cause__ is None", "o.__cause__ = KeyError()"),
    "attrs.astuple": ("import attrs\n@attrs.define\nclass P:\n    x: int = 0\no = P()", "attrs.astuple(o)", "o.x = 1"),
    "attrs.evolve": ("import attrs\n@attrs.define\nclass P:\n    x: int = 0\no = P()", "attrs.evolve(o).x", "o.x = 1"),
    "attrs.eq": ("import attrs\n@attrs.define\nclass P:\n    x: int = 0\no = P()", "o == P(1)", "o.x = 1"),
    "dc.asdict": (
        ("import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 0\no = P()"),
        "dataclasses.asdict(o)['x']",
        "o.x = 1",
    ),
    "dc.replace": (
        ("import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 0\no = P()"),
        "dataclasses.replace(o).x",
        "o.x = 1",
    ),
    "dc.slots": (
        ("import dataclasses\n@dataclasses.dataclass(slots=True)\nclass P:\n    x: int = 0\no = P()"),
        "o.x",
        "o.x = 1",
    ),
    "copy": ("import copy; o = {'x': [0]}", "copy.deepcopy(o)['x'][0]", "o['x'][0] = 1"),
    "json": ("import json; o = {'x': [0]}", "json.dumps(o)", "o['x'][0] = 1"),
    "pickle": ("import pickle; o = {'x': [0]}", "len(pickle.dumps(o))", "o['x'].append('abc')"),
    "pprint": ("import pprint; o = {'x': [0]}", "pprint.pformat(o)", "o['x'][0] = 1"),
    "fstring": ("o = {'x': [0]}", "f'{o}'", "o['x'][0] = 1"),
    "operator": ("import operator; o = {'x': 0}; g = operator.itemgetter('x')", "g(o)", "operator.setitem(o, 'x', 1)"),
    "attrgetter": (
        "import operator\nclass A: x = 0\no = A(); g = operator.attrgetter('x')",
        "g(o)",
        "setattr(o, 'x', 1)",
    ),
    "methodcaller": ("import operator\no = []; g = operator.methodcaller('append', 1)", "len(o)", "g(o)"),
    "sorted.key": ("o = {'a': 2, 'b': 1}", "sorted(o, key=o.get)", "o['a'] = 0"),
    "min.key": ("o = {'a': 2, 'b': 1}", "min(o, key=o.__getitem__)", "o['a'] = 0"),
    "groupby": ("import itertools; o = [1,1]", "[k for k, _ in itertools.groupby(o)]", "o.append(3)"),
    "tee": ("import itertools; a, o = itertools.tee(iter([1,2,3,4,5,6,7,8,9]))", "next(o)", "next(o)"),
    "genexp": ("o = (x for x in [1,2,3,4,5,6,7,8,9])", "next(o)", "next(o)"),
    "gen": (("def g():\n    n = 0\n    while True:\n        n += 1\n        yield n\no = g()"), "next(o)", "next(o)"),
    "send": (
        ("def g():\n    n = 0\n    while True:\n        m = yield n\n        n += m or 1\no = g(); next(o)"),
        "next(o)",
        "o.send(5)",
    ),
    "nonlocal": (
        ("def f():\n    n = 0\n    def w():\n        nonlocal n\n        n = 1\n    return (lambda: n), w\nr, w = f()"),
        "r()",
        "w()",
    ),
    "method.attr": ("class A:\n    def m(self): pass\no = A(); A.m.x = 0", "o.m.x", "A.m.x = 1"),
    "super": (("class B:\n    x = 0\nclass A(B):\n    def g(self): return super().x\no = A()"), "o.g()", "B.x = 1"),
    "property": (("class A:\n    _x = 0\n    @property\n    def x(self): return self._x\no = A()"), "o.x", "o._x = 1"),
    "setter": (
        (
            "class A:\n"
            "    _x = 0\n"
            "    @property\n"
            "    def x(self): return self._x\n"
            "    @x.setter\n"
            "    def x(self, v): self._x = v\n"
            "o = A()"
        ),
        "o.x",
        "o.x = 1",
    ),
    "getattr": (
        (
            "class A:\n"
            "    def __init__(self): self.d = {}\n"
            "    def __getattr__(self, n):\n"
            "        return self.__dict__['d'].get(n, 0)\n"
            "o = A()"
        ),
        "o.zz",
        "o.d['zz'] = 1",
    ),
    "descriptor": (
        (
            "class D:\n"
            "    v = 0\n"
            "    def __get__(self, o, c): return self.v\n"
            "    def __set__(self, o, v): self.v = v\n"
            "class A:\n"
            "    x = D()\n"
            "o = A()"
        ),
        "o.x",
        "o.x = 1",
    ),
    "metaclass": (
        ("class M(type):\n    def __len__(c): return c.n\nclass o(metaclass=M):\n    n = 0"),
        "len(o)",
        "o.n = 1",
    ),
    "contains": (
        ("class A:\n    n = 0\n    def __contains__(self, x): return x == self.n\no = A()"),
        "1 in o",
        "o.n = 1",
    ),
    "bool": (("class A:\n    n = 0\n    def __bool__(self): return bool(self.n)\no = A()"), "1 if o else 0", "o.n = 1"),
    "iadd": ("o = [1]\nclass H: pass\nh = H(); h.o = o", "len(h.o)", "h.o += [2]"),
    "match": ("o = {'a': 1}\ndef m(o):\n    match o:\n        case {'a': x}: return x", "m(o)", "o['a'] = 2"),
    "del item": ("o = [1,2,3]", "len(o)", "del o[0:1]"),
    "set ops": ("o = {1}", "{1, 2} & o", "o |= {2}"),
    "frozenset": ("o = {1}", "frozenset(o)", "o.add(2)"),
    "dictview": ("o = {1: 1}; k = o.keys()", "list(k)", "o[2] = 1"),
    "reversed": ("o = [1,2]", "list(reversed(o))", "o.append(3)"),
    "trio.limiter": ("o = trio.CapacityLimiter(1)", "o.total_tokens", "o.total_tokens = 5"),
    "trio.scope": ("o = trio.CancelScope()", "o.deadline", "o.deadline = 9"),
    "trio.channel": ("s, r = trio.open_memory_channel(9)", "s.statistics().current_buffer_used", "s.send_nowait(1)"),
    "abc.register": ("import abc\nclass o(abc.ABC): pass\nclass P: pass", "issubclass(P, o)", "o.register(P)"),
    "singledispatch": (
        "import functools\n@functools.singledispatch\ndef o(x): return 0",
        "o(1)",
        "o.register(int, lambda x: 1)",
    ),
    "defaultdict": ("import collections; o = collections.defaultdict(list)", "len(o)", "o['a']"),
    "setdefault": ("o = {}", "len(o)", "o.setdefault('a', 1)"),
    "generic": (
        ("import typing\nX = typing.TypeVar('X')\nclass A(typing.Generic[X]):\n    n = 0\no = A[int]"),
        "o.n",
        "A.n = 1",
    ),
    "classmethod": (
        (
            "class A:\n"
            "    n = 0\n"
            "    @classmethod\n"
            "    def w(cls): cls.n = 1\n"
            "    @staticmethod\n"
            "    def r(): return A.n"
        ),
        "A.r()",
        "A.w()",
    ),
    "callable obj": ("class A:\n    n = 0\n    def __call__(self): self.n += 1\no = A()", "o.n", "o()"),
    "delattr": ("class A: pass\no = A(); o.x = 1", "hasattr(o, 'x')", "hasattr(o, 'x') and delattr(o, 'x')"),
    "contextvar token": ("import contextvars; v = contextvars.ContextVar('v', default=0)", "v.get()", "v.set(1)"),
    "struct": ("import struct; b = bytearray(4)", "struct.unpack('i', b)", "struct.pack_into('i', b, 0, 7)"),
    "hash obj": ("import hashlib; o = hashlib.sha256()", "o.hexdigest()[:5]", "o.update(b'a')"),
    "Barrier": ("import threading; o = threading.Event()", "o.is_set()", "o.set()"),
    "Lock": ("import threading; o = threading.Lock()", "o.locked()", "o.acquire(blocking=False)"),
    "configparser": (
        ("import configparser; o = configparser.ConfigParser(); o.read_dict({'a': {'x': '0'}})"),
        "o['a']['x']",
        "o['a']['x'] = '1'",
    ),
    "sqlite": (
        ("import sqlite3; o = sqlite3.connect(':memory:'); o.execute('create table t(x)')"),
        "o.execute('select count(*) from t').fetchone()",
        "o.execute('insert into t values (1)')",
    ),
    "attribute put on Trio's": ("o = trio.Lock(); o.note = 0", "o.note", "o.note = 1"),
    "format": ("import types; o = types.SimpleNamespace(x=0)", "'{0.x}'.format(o)", "o.x = 1"),
    "join": ("o = bytearray(1)", "b''.join([o])", "o[0] = 1"),
    "heap": ("import heapq; o = []", "len(o)", "heapq.heappush(o, 1)"),
    "deque": ("import collections; o = collections.deque()", "len(o)", "o.append(1)"),
    "nested": ("import types; o = {'a': [types.SimpleNamespace(x=0)]}", "o['a'][0].x", "o['a'][0].x = 1"),
    "length and item": ("o = []", "o[0] if o else None", "o.extend([7])"),
    "end and item": ("o = [1, 2]", "o[-1]", "o.append(3)"),
    "merged in place": ("o = {}", "o.get('n')", "o |= {'n': 1}"),
    "key of an operator": ("import operator; o = {}", "o.get('n')", "operator.setitem(o, 'n', 1)"),
    "pop_all": (
        "import contextlib; o = contextlib.ExitStack(); n = []",
        "(o.pop_all().close(), tuple(n))",
        "o.callback(n.append, 1)",
    ),
    "cell_contents": (
        "def mk():\n    n = 0\n    return lambda: n\nr = mk()",
        "r()",
        "r.__closure__[0].__setattr__('cell_contents', 1)",
    ),
    "context of an error": (
        "o = ValueError(1)",
        "o.__context__ is None",
        "try:\n    try: 1 / 0\n    finally: raise o\nexcept ValueError: pass",
    ),
    "frame of a generator": ("def g(): yield 1\no = g()", "o.gi_frame is None", "list(o)"),
    "frame of an async generator": (
        "async def g(): yield 1\no = g()",
        "o.ag_frame is None",
        "for _ in range(2):\n    try: o.asend(None).send(None)\n    except (StopIteration, StopAsyncIteration): pass",
    ),
    "equal numbers": ("o = {}", "o.get(-1)", "o[-1.0] = 1"),
    "equal big numbers": ("o = {}", "o.get(2**61)", "o[2.0**61] = 1"),
    "two names of a slot": ("class A:\n    __slots__ = ('x',)\nA.y = A.x\no = A(); o.x = 0", "o.x", "o.y = 1"),
    "name of a task": ("o = trio.lowlevel.current_task(); o.name = 'a'", "o.name", "o.name = 'b'"),
    "file by its path": (
        "import pathlib, tempfile\no = pathlib.Path(tempfile.mkdtemp()) / 'shared'; o.write_text('')",
        "o.read_text()",
        "o.write_text('a')",
    ),
}
