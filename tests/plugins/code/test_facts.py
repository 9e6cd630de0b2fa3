"""What the real parsers make of each language: symbols, calls, imports, bases.  The contract of the grammars."""

from __future__ import annotations

import pytest

from toolrt.plugins.code._facts import Facts, from_text, to_text
from toolrt.plugins.code._languages import LANGUAGES, _loaded, language_of
from toolrt.plugins.code._parsing import Grammars
from toolrt.plugins.code._reading import facts_of

tree_sitter = pytest.importorskip("tree_sitter", reason="the code extra is not installed")

GRAMMARS = Grammars()

PYTHON = b"""
import a.b, os.path as p
from .x import (
    y as z,
    w,
)
from q import *

@deco(1)
def f(x: Foo, *args, y: "Bar | None" = g(), **k) -> Optional[Baz]:
    v = await self.pool[key].get(1)
    with open() as h, A.b(): h.go()
    def inner(): return f()
    return inner

class C(B, metaclass=M):
    x: int = 3
    @property
    def foo(self):
        self.t = T()
        return self.t
    async def bar(self):
        super().bar()
        async with self.t as t: t.x()
        [i.x() for i in self.items()]

c = a or C()
"""

SCRIPT = b"""
import a, {b as c, d} from "./m"; import * as ns from 'n'; const fs = require("fs"); const {x, y: z} = require("./u");
export * from "./q";
export class A extends B {
  constructor() { this.go(1).then(f => g()); }
  static async m(a, b = h()) { return new C(a); }
  field = () => { k(); }
}
export default function main(args) { c(ns.q(2)); function inner() { d(); } }
const arrow = async (x) => x.map(arrow); exports.foo = function() { bar(); };
"""

TYPES = b"""
import type { T } from "./t"; import D, { E } from "../e";
export interface I extends J, K<T> { m(a: string): void; p: number }
abstract class X<T> extends Y<T> implements I { abstract q(): void;
  private r = (z: number): string => f(z); m(): void { this.r(1)!; } }
enum Col { A } type U = A | B; namespace N { export function nf(): void {} }
"""

GO = b"""package main
import ("fmt"; m "net/http"; "example.com/x/util")
type S struct { Base; *Other; n int }
type I interface { Do(x int) error }
type F func(int) int
type G[T any] struct { v T }
func (s *S) Run(a int) error { fmt.Println(s.n); s.helper().Go(); return util.X(func() { inner() }) }
func (g *G[T]) Get() T { return g.v }
func main() { s := S{}; s.Run(1); m.Get("x") }
"""

RUST = b"""
use std::collections::{HashMap as Map, hash_map::{self, Entry}}; use crate::util::helper;
mod sub; mod inl { pub fn g() {} }
pub struct P { x: i32 } enum E { A } trait T: Base { fn t(&self); fn d(&self) { self.t() } }
impl<A> T for P { fn t(&self) { helper(self.x); Map::<i32, i32>::new(); println!("x"); P::make().go(); } }
impl P { pub fn make() -> Self { P { x: 1 } } }
macro_rules! mm { () => {} } fn main() { let p = P::make(); p.t(); }
"""

JAVA = b"""package a.b; import java.util.List; import static a.b.C.m; import x.y.*;
public class K extends L implements M, N<String> {
  K(int a) { super(a); }
  @Override public <T> void run(List<T> x) throws E { foo(); this.bar(); x.get(0).baz(); new Q<String>(1); K.st(); }
  abstract static class In { abstract void ab(); }
}
interface Z extends Y { void zz(); } enum En { A; void e() {} } record R(int a) implements M { }
"""

C = b"""#include "foo.h"
#include <stdio.h>
#define SQ(x) ((x)*(x))
struct s { int a; }; typedef struct { int z; } tt; enum e { A };
static int helper(int a); int *ptr(void);
int main(int argc, char **argv) { helper(1); s->cb(2); return SQ(2); }
static char *name(struct s *x) { return ptr(); }
"""

CPP = b"""#include "bar.hpp"
namespace ns { class A : public B, private C<int> { public: A(); ~A(); int m(int x) const;
  void in() { m(1); } static A* mk(); }; }
int ns::A::m(int x) const { this->in(); foo(x); std::move(x); auto* p = new A(); p->v(); return tf<int>(x); }
template <typename T> T tf(T t) { return t; }
struct S : T { void q(); };
"""

RUBY = b"""require 'set'
require_relative "lib/x"
module M
  class A < B::C
    def initialize(a, b = 1)
      foo(a); bar.baz(1); self.qux
      A.new(1)
    end
    def self.make(*args) = new(*args)
    def ok?; @x.go!; end
  end
end
def top; puts 1; end
"""


def read(language: str, content: bytes) -> Facts:
    facts = facts_of(GRAMMARS, LANGUAGES[language], content)
    assert from_text(to_text(facts)) == facts
    return facts


def symbols(facts: Facts) -> dict[str, str]:
    return {symbol.qualified: symbol.kind for symbol in facts.symbols if symbol.kind not in ("impl", "prototype")}


def calls(facts: Facts) -> set[str]:
    return {call.callee for call in facts.calls}


def imports(facts: Facts) -> set[tuple[str, str, str]]:
    return {(one.bound, one.module, one.name) for one in facts.imports}


def bases(facts: Facts) -> dict[str, tuple[str, ...]]:
    return {symbol.qualified: symbol.bases for symbol in facts.symbols if symbol.bases}


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_pattern_is_known_to_its_grammar(name):
    """But for Go's older name of what is in an interface: none is left out silently."""
    loaded, _ = _loaded(name)
    for pattern in LANGUAGES[name].query.split("\n\n"):
        if pattern.strip() and "method_spec" not in pattern:
            tree_sitter.Query(loaded, pattern)


def test_python():
    facts = read("python", PYTHON)
    assert symbols(facts) == {
        "f": "function", "f.inner": "function", "C": "class", "C.foo": "method", "C.bar": "method",
    }  # fmt: skip
    assert [symbol.line for symbol in facts.symbols] == [9, 13, 16, 18, 22]
    assert facts.symbols[0].named_at == 10
    assert (facts.symbols[0].returns, facts.symbols[1].returns, facts.symbols[3].returns) == ("@Baz", "f()", "self.t")
    assert facts.symbols[3].marks == ("property",)
    assert bases(facts) == {"C": ("B",)}
    assert calls(facts) == {
        "deco", "g", "self.pool[].get", "open", "A.b", "h.go", "f", "T", "super", "super().bar", "t.x", "i.x",
        "self.items", "C",
    }  # fmt: skip
    assert [call.caller for call in facts.calls if call.callee == "g"] == [-1]
    assert imports(facts) == {
        ("a", "a", ""), ("", "a.b", ""), ("p", "os.path", ""), ("z", "x", "y"), ("w", "x", "w"), ("*", "q", "*"),
    }  # fmt: skip
    assert [one.line for one in facts.imports if one.bound in ("z", "w")] == [4, 5]
    bound = {(one.target, one.value) for one in facts.bindings}
    assert {
        ("x", "@Foo"), ("y", "@Bar"), ("v", "self.pool[].get()"), ("h", "open().__enter__()"), ("self.t", "T()"),
        ("t", "self.t.__aenter__()"), ("i", "self.items()*"), ("c", "a|C()"), ("x", "@int"),
    } <= bound  # fmt: skip


def test_javascript():
    facts = read("javascript", SCRIPT)
    assert symbols(facts) == {
        "A": "class", "A.constructor": "method", "A.m": "method", "A.field": "method", "main": "function",
        "main.inner": "function", "arrow": "function", "foo": "function",
    }  # fmt: skip
    assert bases(facts) == {"A": ("B",)}
    assert {"this.go", "this.go().then", "g", "h", "C", "k", "c", "ns.q", "d", "x.map", "bar"} <= calls(facts)
    assert imports(facts) == {
        ("a", "./m", "default"), ("c", "./m", "b"), ("d", "./m", "d"), ("ns", "n", ""), ("fs", "fs", ""),
        ("x", "./u", "x"), ("z", "./u", "y"), ("*", "./q", "*"),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["typescript", "tsx"])
def test_typescript(name):
    facts = read(name, TYPES)
    assert symbols(facts) == {
        "I": "interface", "I.m": "method", "X": "class", "X.q": "method", "X.r": "method", "X.m": "method",
        "Col": "enum", "U": "type", "N": "namespace", "N.nf": "function",
    }  # fmt: skip
    assert bases(facts) == {"I": ("J", "K"), "X": ("Y", "I")}
    assert calls(facts) == {"f", "this.r"}
    assert imports(facts) == {("T", "./t", "T"), ("E", "../e", "E"), ("D", "../e", "default")}


def test_go():
    facts = read("go", GO)
    assert symbols(facts) == {
        "S": "struct", "I": "interface", "I.Do": "method", "F": "type", "G": "struct", "S.Run": "method",
        "G.Get": "method", "main": "function",
    }  # fmt: skip
    assert facts.symbols[1].signature == "type I interface"
    assert bases(facts) == {"S": ("Base", "Other")}
    assert calls(facts) == {"fmt.Println", "s.helper", "s.helper().Go", "util.X", "inner", "s.Run", "m.Get"}
    assert imports(facts) == {("fmt", "fmt", ""), ("m", "net/http", ""), ("util", "example.com/x/util", "")}


def test_rust():
    facts = read("rust", RUST)
    assert symbols(facts) == {
        "inl": "module", "inl.g": "function", "P": "struct", "E": "enum", "T": "trait", "T.t": "method",
        "T.d": "method", "P.t": "method", "P.make": "method", "mm": "macro", "main": "function",
    }  # fmt: skip
    assert bases(facts) == {"T": ("Base",), "P": ("T",)}
    assert calls(facts) == {"self.t", "helper", "Map.new", "println", "P.make", "P.make().go", "p.t"}
    assert {("Map", "std::collections", "HashMap"), ("helper", "crate::util", "helper")} <= imports(facts)
    assert {("hash_map", "std::collections", "hash_map"), ("sub", "self::sub", "")} <= imports(facts)


def test_java():
    facts = read("java", JAVA)
    assert symbols(facts) == {
        "K": "class", "K.K": "constructor", "K.run": "method", "K.In": "class", "K.In.ab": "method",
        "Z": "interface", "Z.zz": "method", "En": "enum", "En.e": "method", "R": "record",
    }  # fmt: skip
    assert bases(facts) == {"K": ("L", "M", "N"), "Z": ("Y",), "R": ("M",)}
    assert calls(facts) == {"foo", "this.bar", "x.get", "x.get().baz", "Q", "K.st"}
    assert imports(facts) == {("List", "java.util", "List"), ("m", "a.b.C", "m"), ("*", "x.y", "*")}


def test_c():
    facts = read("c", C)
    assert symbols(facts) == {
        "SQ": "macro", "s": "struct", "tt": "type", "e": "enum", "main": "function", "name": "function",
    }  # fmt: skip
    assert [symbol.name for symbol in facts.symbols if symbol.kind == "prototype"] == ["helper", "ptr"]
    assert calls(facts) == {"helper", "s.cb", "SQ", "ptr"}
    assert {(one.module, one.level) for one in facts.imports} == {("foo.h", 1), ("stdio.h", 0)}


def test_cpp():
    facts = read("cpp", CPP)
    assert symbols(facts) == {
        "ns": "namespace", "ns.A": "class", "ns.A.A": "method", "ns.A.~A": "method", "ns.A.m": "method",
        "ns.A.in": "method", "ns.A.mk": "method", "tf": "function", "S": "struct", "S.q": "method",
    }  # fmt: skip
    assert bases(facts) == {"ns.A": ("B", "C"), "S": ("T",)}
    assert calls(facts) == {"m", "this.in", "foo", "std.move", "A", "p.v", "tf"}


def test_ruby():
    facts = read("ruby", RUBY)
    assert symbols(facts) == {
        "M": "module", "M.A": "class", "M.A.initialize": "method", "M.A.make": "method", "M.A.ok?": "method",
        "top": "function",
    }  # fmt: skip
    assert bases(facts) == {"M.A": ("B.C",)}
    assert calls(facts) == {"foo", "bar.baz", "self.qux", "A.new", "new", "@x.go!", "puts"}
    assert {(one.module, one.level) for one in facts.imports} == {("set", 0), ("lib/x", 1)}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.py", "python"),
        ("d/B.H", "cpp"),
        ("x.test.ts", "typescript"),
        ("Makefile", None),
        ("a.txt", None),
        ("a.", None),
    ],
)
def test_a_language_is_told_by_its_ending(path, name):
    found = language_of(path)
    assert (found and found.name) == name


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe\x00\x01" * 50, b"(" * 3000, b"def class function fn func {" * 50, "é = ü\n".encode() * 10],
    ids=["nothing", "no text", "brackets", "words", "letters"],
)
def test_any_bytes_have_facts(name, content):
    """Whatever they are."""
    read(name, content)
