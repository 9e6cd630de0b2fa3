"""What the graph answers: Python by scopes, imports, classes and types; other languages by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from toolrt import MemoryDisk, Outcome, Registry, Runtime, State, ToolCall, Workspace, plugins

pytest.importorskip("tree_sitter", reason="the code extra is not installed")

Ask = Callable[..., str]


def asking(files: dict[str, Any], *, problems: bool = False) -> Ask:
    """Calls one tool on a tree of these files."""
    workspace = Workspace(MemoryDisk(files))
    code = plugins.code.CodeIndex(workspace)
    runtime = Runtime(Registry([*workspace.tools(), *code.tools()]))

    def ask(tool: str, /, **input: Any) -> str:
        [result] = trio.run(runtime.run, [ToolCall("id", tool, input)], State()).results
        assert (result.outcome is Outcome.OK) is not problems, result
        return str(result.error if problems else result.content)

    return ask


def edges(answer: str) -> list[str]:
    """The lines of calls that are known."""
    return [line for line in answer.split("\n")[1:] if not line.startswith(("maybe", "not known", "("))]


@pytest.mark.parametrize(
    "text",
    [
        "h = f\ndef c(): h()", "T = [1, f]\ndef c(): T[1]()", "T = {'x': f, 'y': 1}\ndef c(): T['x']()",
        "def c(x=f): x()", "def c():\n    for x in (f,): x()", "def c(): (f if c else c)()", "def c(): (x := f)()",
        "def c(): (f)()", "def c(): [*f()]", "import functools\np = functools.partial(f, 1)\ndef c(): p()",
        "h = f\ni = h\ndef c():\n    j = i if h else c\n    j()", "class c:\n    def d(self): self.h = f; self.h()",
        "class D:\n    run = f\ndef c(): D.run()",
    ],
)  # fmt: skip
@pytest.mark.parametrize("imported", ["", "from m import f\n", "from g import k as f\n"])
def test_callers_by_other_names_are_callers(text, imported):
    """In the function's own file, by an import, and by one that another file gives another name."""
    here = {"a.py": f"{imported}{text}\n"} if imported else {}
    ask = asking({"m.py": "def f(): ...\n" + ("" if imported else text), "g.py": "from m import f as k\n", **here})
    found = edges(ask("find_callers", symbol="f", path="m.py"))
    assert [line.partition(" in ")[2].partition(":")[0].partition(".")[0] for line in found] == ["c"], found


def test_callers_of_a_generic_class_are_those_that_name_its_types():
    """Also by another name."""
    text = "class G[T]:\n    def m(self): ...\nX = G[int]\ndef c(): G[int]()\ndef d(): X().m()\n"
    ask = asking({"m.py": text})
    assert edges(ask("find_callers", symbol="G")) == ["m.py:4 in c: G[]", "m.py:5 in d: X"]
    assert edges(ask("find_callers", symbol="m")) == ["m.py:5 in d: X().m"]


def calls_of(text: str, symbol: str = "f", files: dict[str, str] | None = None) -> list[str]:
    """What a Python function calls, as ``what is written -> where``."""
    ask = asking({"a.py": text, **(files or {})})
    return [line.partition(": ")[2] for line in edges(ask("find_callees", symbol=symbol, path="a.py"))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def g(): ...\ndef f(): g()", ["g -> a.py:1 function g"]),
        ("def f():\n    def g(): ...\n    g()\ndef g(): ...", ["g -> a.py:2 function f.g"]),
        ("class C:\n    def g(self): ...\n    def h(self): g()\ndef f(): C().h(); C().g()",
         ["C -> a.py:1 class C", "C().h -> a.py:3 method C.h", "C -> a.py:1 class C", "C().g -> a.py:2 method C.g"]),
        ("class B:\n    def g(self): ...\nclass C(B): ...\ndef f(c: C): c.g()", ["c.g -> a.py:2 method B.g"]),
        ("class C:\n    def g(self): ...\ndef f(c: 'C | None' = None): c.g()", ["c.g -> a.py:2 method C.g"]),
        ("class C:\n    def g(self): ...\ndef m() -> C: ...\ndef f():\n    x = m()\n    x.g()",
         ["m -> a.py:3 function m", "x.g -> a.py:2 method C.g"]),
        ("class C:\n    def g(self): return self\ndef f():\n    C().g().g()",
         ["C -> a.py:1 class C", "C().g -> a.py:2 method C.g", "C().g().g -> a.py:2 method C.g"]),
        ("class C:\n    def __enter__(self): return D()\nclass D:\n    def g(self): ...\n"
         "def f():\n    with C() as d: d.g()",
         ["C -> a.py:1 class C", "d.g -> a.py:4 method D.g"]),
        ("class C:\n    def g(self): ...\ndef f(cs: list[C], by: dict[str, C]):\n    for c in cs: c.g()\n    by[1].g()",
         ["c.g -> a.py:2 method C.g", "by[].g -> a.py:2 method C.g"]),
        ("class C:\n    @property\n    def p(self) -> 'D': ...\nclass D:\n    def g(self): ...\ndef f(c: C): c.p.g()",
         ["c.p.g -> a.py:5 method D.g"]),
        ("from typing import overload\n@overload\ndef g(): ...\n@overload\ndef g(x): ...\n"
         "def g(x=1): ...\ndef f(): g()",
         ["g -> a.py:6 function g"]),
        ("def f(g): g()\ndef g(): ...", []),
        ("def f(): unknown().g()\nclass C:\n    def g(self): ...", []),
    ],
)  # fmt: skip
def test_a_name_in_python_means(text, expected):
    assert calls_of(text) == expected


def test_super_and_diamonds_follow_the_order_of_classes():
    """C3: of two bases that override, the nearer one's method."""
    text = (
        "class A:\n    def g(self): ...\nclass B(A): ...\nclass C(A):\n    def g(self): ...\n"
        "class D(B, C):\n    def f(self): super().g(); self.g()\n"
    )
    assert calls_of(text, "D.f") == ["super().g -> a.py:5 method C.g", "self.g -> a.py:5 method C.g"]


def test_imports_lead_through_packages():
    """Relative, renamed, re-exported, by star and by module; circles end."""
    found = calls_of(
        "from p import one as uno\nfrom p import *\nimport p.low as low\nimport p\n"
        "def f(): uno(); two(); low.three(); p.low.three(); p.inner.four()",
        files={
            "p/__init__.py": "from .low import one\nfrom .low import *\nfrom . import inner",
            "p/low.py": "import a\nfrom p import one as again\ndef one(): ...\ndef two(): ...\ndef three(): ...",
            "p/inner.py": "from .low import three as four",
        },
    )
    assert found == [
        "uno -> p/low.py:3 function one",
        "two -> p/low.py:4 function two",
        "low.three -> p/low.py:5 function three",
        "p.low.three -> p/low.py:5 function three",
        "p.inner.four -> p/low.py:5 function three",
    ]


def test_circles_of_imports_classes_and_values_end():
    ask = asking(
        {
            "a.py": "from b import g\nclass C(D): ...\nclass D(C): ...\nx = y\ny = x\ndef f(): g(); x(); C().m()",
            "b.py": "from a import g",
        }
    )
    assert edges(ask("find_callees", symbol="f")) == ["line 6: C -> a.py:2 class C"]


@pytest.mark.parametrize(
    ("path", "text", "symbol", "count"),
    [
        ("a.py", "class Box: ...\ndef u():\n    Box[int]()\n    Box[dict[str, int]]()", "Box", 2),
        ("a.py", "class Box:\n    def g(self): ...\ndef u():\n    Box[int]().g()\n    x = Box[int]()\n    x.g()",
         "Box.g", 2),
        ("a.py", "import a\ndef make(n): ...\ndef u():\n    make[int](1)\n    a.make[int](1)", "make", 2),
        ("a.ts", "class Box<T> {}\nfunction u() { new Box<number>(); new Box<Map<string, number>>() }", "Box", 2),
        ("a.ts", "function f<T>() {}\nfunction u() { f<number>() }", "f", 1),
        ("a.go", "package a\nfunc F[T any](x T) {}\nfunc u() { F[int](1); F[[]int](nil); (F[int])(1) }", "F", 3),
        ("a.go", "package a\nfunc F[K, V any](x K, y V) {}\nfunc u() { F[int, int](1, 2) }", "F", 1),
        ("a.rs", "struct B;\nimpl B { fn make() {} }\nfn u() { B::<i32>::make(); }", "B.make", 1),
        ("a.rs", "fn f<T>() {}\nfn u() { f::<i32>(); f::<Vec<i32>>(); }", "f", 2),
        ("A.java", "class Box<T> { }\nclass A { void u() { new Box<Integer>(); new Box<>(); } }", "Box", 2),
        ("a.cpp", "template<class T> void f(T x) {}\nvoid u() { f<int>(1); ns::f<int>(1); }", "f", 2),
    ],
)  # fmt: skip
def test_a_call_that_names_its_types_is_a_call(path, text, symbol, count):
    """A generic function or class is called whether its types are written or not."""
    assert len(edges(asking({path: text})("find_callers", symbol=symbol))) == count


TREE = {
    "app/__init__.py": "",
    "app/base.py": "class Base:\n    def run(self):\n        return self.step()\n    def step(self): ...\n",
    "app/work.py": (
        "from app.base import Base as Root\nimport app.base\n\n\nclass Work(Root):\n"
        "    def step(self):\n        return helper()\n"
        "\n\ndef helper():\n    return 1\n\n\ndef start():\n    Work().run()\n    alias = helper\n    alias()\n"
    ),
    "main.py": "from app import work\n\n\ndef main(thing):\n    work.start()\n    thing.run()\n",
}


def test_callers_are_known_or_maybe():
    """Through names that stand for others; calls of the same name whose receiver is not known are apart."""
    ask = asking(TREE)
    assert ask("find_callers", symbol="Base.run").split("\n") == [
        "callers of app/base.py:2 method Base.run: 1",
        "app/work.py:15 in start: Work().run",
        "maybe: 1 call of that name whose receiver is not known",
        "main.py:6 in main: thing.run",
    ]
    assert edges(ask("find_callers", symbol="helper")) == [
        "app/work.py:7 in Work.step: helper", "app/work.py:17 in start: alias",
    ]  # fmt: skip
    assert edges(ask("find_callers", symbol="start")) == ["main.py:5 in main: work.start"]


def test_a_way_of_calls():
    ask = asking(TREE)
    assert ask("find_call_path", source="main", target="Base.step").split("\n") == [
        "main.py:4 function main, which calls at line 5",
        "app/work.py:14 function start, which calls at line 15",
        "app/base.py:2 method Base.run, which calls at line 3",
        "app/base.py:4 method Base.step",
    ]
    assert ask("find_call_path", source="helper", target="main") == "no way of known calls leads from helper to main"


def test_dependencies_of_files():
    ask = asking(TREE)
    assert ask("file_dependencies", path="app/base.py").split("\n") == [
        "app/base.py imports 0 files",
        "app/base.py is imported by 1 file",
        "  app/work.py (line 1)",
    ]
    assert "main.py (line 1)" in ask("file_dependencies", path="app/work.py")
    assert asking({"a.py": "import os\nfrom . import no\n"})("file_dependencies", path="a.py").endswith(
        "from elsewhere: ., os"
    )


def test_what_a_change_may_reach():
    """Callers, callers of what is overridden, and heirs; no further than asked."""
    ask = asking(TREE)
    assert ask("blast_radius", symbol="Work.step", depth=3).split("\n") == [
        "a change of Work.step may reach 3 symbols in 3 files, 3 calls away or less",
        "1  app/base.py:2 method Base.run, through Work.step",
        "2  app/work.py:14 function start, through Base.run",
        "3  main.py:4 function main, through start",
    ]
    assert "may reach 1 symbol in 1 file, 1 call away or less" in ask("blast_radius", symbol="Work.step", depth=1)
    assert "app/work.py:5 class Work, through Base" in ask("blast_radius", symbol="Base", depth=1)
    assert ask("blast_radius", path="app/base.py", depth=1).endswith("1 file import it: app/work.py")


@pytest.mark.parametrize(
    ("files", "symbol", "expected"),
    [
        ({"a.js": 'import {b as c} from "./b";\nfunction f() { c(); this.x(); }', "b.js": "export function b() {}",
          "x.js": "function b() {}"}, "f", ["line 2: c -> b.js:1 function b"]),
        ({"a.ts": 'import D from "./d";\nclass A extends D { f() { this.g(); this.h(); } h() {} }',
          "d.ts": "export default class Deep { g() {} }"}, "A.f",
         ["line 2: this.g -> d.ts:1 method Deep.g", "line 2: this.h -> a.ts:2 method A.h"]),
        ({"m/a.go": "package m\nfunc (s *S) f() { s.g(); h() }\n",
          "m/b.go": "package m\nfunc (s *S) g() {}\nfunc h() {}",
          "n/c.go": "package n\nfunc h() {}"}, "S.f",
         ["line 2: s.g -> m/b.go:2 method S.g", "line 2: h -> m/b.go:3 function h"]),
        ({"src/a.rs": "use crate::u::g;\nimpl P { fn f(&self) { g(); self.h(); } fn h(&self) {} }",
          "src/u.rs": "pub fn g() {}", "src/v.rs": "pub fn g() {}"}, "P.f",
         ["line 2: g -> src/u.rs:1 function g", "line 2: self.h -> src/a.rs:2 method P.h"]),
        ({"p/A.java": "package p; import q.B;\nclass A extends B { void f() { g(); C.h(); new C(); } }",
          "q/B.java": "package q; class B { void g() {} }",
          "p/C.java": "package p; class C { static void h() {} C() {} }"},
         "A.f", ["line 2: g -> q/B.java:1 method B.g", "line 2: C.h -> p/C.java:1 method C.h",
                 "line 2: C -> p/C.java:1 class C", "line 2: C -> p/C.java:1 constructor C.C"]),
        ({"a.c": '#include "b.h"\nvoid f(void) { g(); }', "b.h": "void g(void);", "b.c": "void g(void) {}",
          "z.c": "void g(void) {}"}, "f", ["line 2: g -> b.c:1 function g"]),
        ({"a.cpp": '#include "s.hpp"\nvoid S::f() { g(); n::h(); }', "s.hpp": "struct S { void f(); void g(); };",
          "n.cpp": "namespace n { void h() {} }"}, "S.f",
         ["line 2: g -> s.hpp:1 method S.g", "line 2: n.h -> n.cpp:1 function n.h"]),
        ({"a.rb": 'require_relative "b"\nclass A < B\n  def f; g(); B.h(); end\nend',
          "b.rb": "class B\n  def g; end\n  def self.h; end\nend"}, "A.f",
         ["line 3: g -> b.rb:2 method B.g", "line 3: B.h -> b.rb:3 method B.h"]),
    ],
    ids=["javascript", "typescript", "go", "rust", "java", "c", "cpp", "ruby"],
)  # fmt: skip
def test_a_call_in_other_languages_means(files, symbol, expected):
    """By name, within the file and what it imports."""
    path = next(iter(files))
    assert edges(asking(files)("find_callees", symbol=symbol, path=path)) == expected


@pytest.mark.parametrize(
    ("tool", "input", "said"),
    [
        ("find_callers", {"symbol": "nothing"}, "which nothing is called. Search for it with search_code."),
        (
            "find_callers",
            {"symbol": "f"},
            "expected one symbol, got 2 of that name: a.py:1 function f; b.py:1 function f",
        ),
        ("find_callers", {"symbol": "f", "path": "../x.py"}, "expected a path inside the workspace"),
        ("find_callees", {"symbol": "f", "path": "a.py", "limit": 0}, "limit: expected 1 to 1000, got 0"),
        ("blast_radius", {}, "symbol: expected a symbol or a path, got neither"),
        ("blast_radius", {"symbol": "f", "path": "a.py", "depth": 11}, "depth: expected 1 to 10, got 11"),
        ("file_dependencies", {"path": "c.py"}, "c.py: expected a file, got none"),
        ("list_symbols", {"path": "a.txt"}, "expected a file in a known language (c, cpp, go"),
        ("read_symbol", {"symbol": "g", "path": "a.py"}, "expected a symbol 'g', got none of that name; it defines f"),
        ("find_references", {"name": "a b"}, "name: expected one word"),
        ("search_code", {"query": " ?"}, "query: expected words to look for"),
        ("search_code", {"query": "f", "path": "no"}, "no: expected a directory or a file, got nothing of that name"),
        ("find_references", {"name": "f", "path": "/etc"}, "expected a path inside the workspace"),
    ],
)
def test_bad_input_is_refused(tool, input, said):
    """With what was expected and got, and what to do."""
    ask = asking({"a.py": "def f(): ...", "b.py": "def f(): ...", "a.txt": "x"}, problems=True)
    assert said in ask(tool, **input)


def test_one_symbol_is_read_whole():
    ask = asking({"a.py": "x = 1\n\n@deco\ndef f():\n    return 1\n\nclass C:\n    def f(self): ...\n"})
    assert ask("read_symbol", symbol="C.f") == "a.py:8-8 method C.f\n    def f(self): ..."
    assert ask("read_symbol", symbol="f", path="a.py").split("\n")[:4] == [
        "a.py:3-5 function f", "@deco", "def f():", "    return 1",
    ]  # fmt: skip
    assert ask("list_symbols", path="a.py") == "3  def f()\n7  class C\n8    def f(self)"


def test_paths_are_relative_to_the_working_directory():
    workspace = Workspace(MemoryDisk(TREE))
    code = plugins.code.CodeIndex(workspace)
    runtime = Runtime(Registry(code.tools()))
    call = ToolCall("id", "find_callers", {"symbol": "start", "path": "work.py"})
    [result] = trio.run(runtime.run, [call], State(working_dir="app")).results
    assert result.content == "callers of work.py:14 function start: 1\n../main.py:5 in main: work.start"


def test_the_only_one_of_a_name_is_told_as_such():
    """And two of them are none."""
    files = {"a.js": "function f(x) { x.go(); }\n", "b.js": "class B { go() {} }\n"}
    assert edges(asking(files)("find_callees", symbol="f")) == [
        "line 1: x.go -> b.js:1 method B.go (the only one of that name)"
    ]
    assert "a.js:1 in f: x.go (the only one of that name)" in asking(files)("find_callers", symbol="go")
    files["c.ts"] = "class C { go() {} }\n"
    assert asking(files)("find_callees", symbol="f").endswith("not known: x.go")
    assert "maybe: 1 call" in asking(files)("find_callers", symbol="B.go")
