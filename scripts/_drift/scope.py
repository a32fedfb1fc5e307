"""What an expression's text may be, given the names bound so far."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from _drift.pieces import UNKNOWN, Text, Texts, brace, concat, constant, literal, percent, tidy, union

if TYPE_CHECKING:
    from collections.abc import Callable

Env = dict[str, "Texts | Items"]


@dataclass(frozen=True)
class Items:
    """A list of texts being built up for a later `join`; an item may be absent (appended in one branch only)."""

    items: tuple[tuple[Texts, bool], ...]

    def add(self, *texts: Texts) -> Items:
        return Items((*self.items, *((text, False) for text in texts)))

    def join(self, glue: str) -> Texts:
        result: Texts = ()
        for texts, optional in self.items:
            longer = concat([result, literal(glue), texts]) if result else texts
            result = union(result, longer) if optional else longer
        return result or literal("")


_HOLE_MARK = "\0"
_DOLLAR = re.compile(r"\$(?:\w+|\{\w+\})")
_METHODS: dict[str, Callable[..., str]] = {
    "strip": str.strip,
    "lstrip": str.lstrip,
    "rstrip": str.rstrip,
    "upper": str.upper,
    "lower": str.lower,
    "title": str.title,
    "capitalize": str.capitalize,
    "replace": str.replace,
    "removesuffix": str.removesuffix,
    "removeprefix": str.removeprefix,
}
_FUNCTIONS: dict[str, Callable[[str], str]] = {"dedent": textwrap.dedent, "cleandoc": inspect.cleandoc}


def _rewrite(text: Text, change: Callable[[str], str]) -> Text:
    changed = change("".join(_HOLE_MARK if part is None else part for part in text))
    pieces: list[str | None] = []
    for index, part in enumerate(changed.split(_HOLE_MARK)):
        pieces += [None, part] if index else [part]
    return tidy(pieces)


def evaluate(node: ast.expr | None, env: Env) -> Texts:
    """Every text `node` may be; what is not known is a hole."""
    match node:
        case ast.Constant(value=str() as value):
            return literal(value)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return literal(str(value))
        case ast.JoinedStr(values=values):
            return concat([_formatted(value, env) for value in values])
        case ast.Name(id=name):
            known = env.get(name, UNKNOWN)
            return UNKNOWN if isinstance(known, Items) else known
        case ast.IfExp(body=body, orelse=orelse):
            return union(evaluate(body, env), evaluate(orelse, env))
        case ast.BoolOp(op=ast.Or(), values=values):
            return union(*(evaluate(value, env) for value in values))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return concat([evaluate(left, env), evaluate(right, env)])
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return _percent(left, right, env)
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int() as times)) if 0 <= times <= 200:
            return concat([evaluate(left, env)] * times) if isinstance(left, ast.Constant) else UNKNOWN
        case ast.Call():
            return _call(node, env)
        case ast.NamedExpr(value=inner):
            return evaluate(inner, env)
    return UNKNOWN


def _formatted(node: ast.expr, env: Env) -> Texts:
    if isinstance(node, ast.FormattedValue):
        simple = node.format_spec is None and node.conversion in (-1, ord("s"))
        return evaluate(node.value, env) if simple else UNKNOWN
    return evaluate(node, env)


def _percent(left: ast.expr, right: ast.expr, env: Env) -> Texts:
    template = evaluate(left, env)
    if template == UNKNOWN:
        return UNKNOWN
    match right:
        case ast.Tuple(elts=elts):
            return percent(template, [evaluate(item, env) for item in elts])
        case ast.Dict(keys=keys, values=values):
            named = {
                key.value: evaluate(value, env)
                for key, value in zip(keys, values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
            return percent(template, None, named)
    return percent(template, [evaluate(right, env)])


def _call(node: ast.Call, env: Env) -> Texts:
    match node.func:
        case ast.Name(id="str") if len(node.args) == 1:
            return evaluate(node.args[0], env)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _FUNCTIONS and len(node.args) == 1:
            return tuple(_rewrite(text, _FUNCTIONS[name]) for text in evaluate(node.args[0], env))
        case ast.Attribute(value=owner, attr="format"):
            named = {word.arg: evaluate(word.value, env) for word in node.keywords if word.arg}
            template = evaluate(owner, env)
            return UNKNOWN if template == UNKNOWN else brace(template, [evaluate(a, env) for a in node.args], named)
        case ast.Name(id="Template") | ast.Attribute(attr="Template") if len(node.args) == 1:
            return evaluate(node.args[0], env)
        case ast.Attribute(value=owner, attr="substitute" | "safe_substitute"):
            return tuple(_rewrite(text, lambda t: _DOLLAR.sub(_HOLE_MARK, t)) for text in evaluate(owner, env))
        case ast.Attribute(value=owner, attr="join") if len(node.args) == 1:
            return _join(evaluate(owner, env), node.args[0], env)
        case ast.Attribute(value=owner, attr=name) if name in _METHODS:
            texts = evaluate(owner, env)
            given = [evaluate(argument, env) for argument in node.args]
            if texts == UNKNOWN or not all(len(each) == 1 and constant(each) for each in given):
                return UNKNOWN
            words = ["".join(part or "" for part in each[0]) for each in given]
            try:
                return tuple(_rewrite(text, lambda t: _METHODS[name](t, *words)) for text in texts)
            except TypeError:  # a call the string method would refuse: not a string method after all
                return UNKNOWN
    return UNKNOWN


def _join(glue: Texts, argument: ast.expr, env: Env) -> Texts:
    if len(glue) != 1 or not constant(glue):
        return UNKNOWN
    between = "".join(part or "" for part in glue[0])
    items = as_items(argument, env)
    return items.join(between) if items else UNKNOWN


def as_items(node: ast.expr, env: Env) -> Items | None:
    """Return the list a node stands for, where its items are written out."""
    match node:
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return Items(()).add(*(evaluate(item, env) for item in elts))
        case ast.Name(id=name):
            known = env.get(name)
            return known if isinstance(known, Items) else None
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = as_items(left, env), as_items(right, env)
            return Items(first.items + second.items) if first and second else None
    return None


def written(node: ast.expr) -> bool:
    """Whether an expression is a string literal or built around one by `+`, `%` or `.format`."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        if isinstance(node.right, ast.JoinedStr):
            return True
        node = node.left
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        node = node.func.value
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
