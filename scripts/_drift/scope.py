"""What an expression's text may be, given the names bound so far, and a walk over a body that binds them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from _drift.pieces import UNKNOWN, Text, Texts, brace, concat, constant, literal, percent, tidy, union

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Env = dict[str, "Texts | Items"]
Function = ast.FunctionDef | ast.AsyncFunctionDef


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


_LEAVES = (ast.Name, ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
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


def merge(first: Env, second: Env) -> Env:
    """Names after two branches: either branch's text."""
    out: Env = {}
    for name in first.keys() | second.keys():
        one, two = first.get(name, UNKNOWN), second.get(name, UNKNOWN)
        if isinstance(one, Items) or isinstance(two, Items):
            out[name] = _merge_items(one, two)
        else:
            out[name] = one if one == two else union(one, two)
    return out


def _merge_items(one: Texts | Items, two: Texts | Items) -> Texts | Items:
    if not (isinstance(one, Items) and isinstance(two, Items)):
        return UNKNOWN
    long, short = (one, two) if len(one.items) >= len(two.items) else (two, one)
    if long.items[: len(short.items)] != short.items:
        return UNKNOWN
    return Items(short.items + tuple((text, True) for text, _ in long.items[len(short.items) :]))


@dataclass
class Walker:
    """Runs a body once, every branch of it, and shows `visit` each expression with the names bound before it."""

    visit: Callable[[ast.AST, Env], None]
    define: Callable[[ast.ClassDef], None] = lambda _: None
    later: list[tuple[Function, Env, str]] = field(default_factory=list)
    path: str = ""

    def block(self, body: Sequence[ast.stmt], env: Env) -> bool:
        """Walk `body`, binding into `env`; True when control never leaves its end."""
        return any(self.statement(stmt, env) for stmt in body)

    def statement(self, stmt: ast.stmt, env: Env) -> bool:
        match stmt:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.see(stmt.decorator_list, env)
                self.later.append((stmt, env, f"{self.path}.{stmt.name}".lstrip(".")))
                env[stmt.name] = UNKNOWN
            case ast.ClassDef():
                self.define(stmt)
                outer, self.path = self.path, f"{self.path}.{stmt.name}".lstrip(".")
                self.block(stmt.body, dict(env))
                self.path = outer
            case ast.If(test=test):
                self.see([test], env)
                return self.branches([stmt.body, stmt.orelse], env)
            case ast.For() | ast.AsyncFor():
                self.see([stmt.iter], env)
                self.forget(stmt.target, env)
                self.branches([stmt.body, []], env, loop=True)
                self.block(stmt.orelse, env)
            case ast.While(test=test):
                self.see([test], env)
                self.branches([stmt.body, []], env, loop=True)
            case ast.With() | ast.AsyncWith():
                for item in stmt.items:
                    self.see([item.context_expr], env)
                    if item.optional_vars:
                        self.forget(item.optional_vars, env)
                return self.block(stmt.body, env)
            case ast.Try():
                return self.attempt(stmt, env)
            case ast.Match(subject=subject):
                self.see([subject], env)
                self.branches([*(case.body for case in stmt.cases), []], env)
            case _:
                self.see([stmt], env)
                self.bind(stmt, env)
                return isinstance(stmt, ast.Return | ast.Raise | ast.Continue | ast.Break)
        return False

    def see(self, nodes: Iterable[ast.AST], env: Env) -> None:
        for node in nodes:
            self.visit(node, env)

    def branches(self, bodies: Sequence[Sequence[ast.stmt]], env: Env, *, loop: bool = False) -> bool:
        ends: list[Env] = []
        for body in bodies:
            after = dict(env)
            if not self.block(body, after) or (loop and body):
                ends.append(after)
        if not ends:
            return True
        joined = ends[0]
        for other in ends[1:]:
            joined = merge(joined, other)
        env.clear()
        env.update(joined)
        return False

    def attempt(self, stmt: ast.Try, env: Env) -> bool:
        before = dict(env)
        done = self.block([*stmt.body, *stmt.orelse], env)
        ends = [] if done else [dict(env)]
        for handler in stmt.handlers:
            after = merge(before, env)
            if handler.name:
                after[handler.name] = UNKNOWN
            if not self.block(handler.body, after):
                ends.append(after)
        final = ends[0] if ends else env
        for other in ends[1:]:
            final = merge(final, other)
        env.update(final)
        return self.block(stmt.finalbody, env) or not ends

    def bind(self, stmt: ast.stmt, env: Env) -> None:
        match stmt:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                items = as_items(value, env) if isinstance(value, ast.List) else None
                env[name] = items or evaluate(value, env)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                items = as_items(value, env) if isinstance(value, ast.List) else None
                env[name] = items or evaluate(value, env)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                known = env.get(name, UNKNOWN)
                if isinstance(known, Items):
                    more = as_items(value, env)
                    env[name] = Items(known.items + more.items) if more else UNKNOWN
                else:
                    env[name] = concat([known, evaluate(value, env)])
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
                listed = env.get(name)
                if isinstance(listed, Items):
                    env[name] = listed.add(evaluate(value, env))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="extend"), args=[value])):
                listed, more = env.get(name), as_items(value, env)
                if isinstance(listed, Items):
                    env[name] = Items(listed.items + more.items) if more else UNKNOWN
            case ast.Assign(targets=targets):
                for target in targets:
                    self.forget(target, env)

    @staticmethod
    def forget(target: ast.expr, env: Env) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                env[node.id] = UNKNOWN


def parameters(node: Function, env: Env) -> Env:
    """Names inside a function at its start: the enclosing ones, its parameters unknown or their default."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    inside: Env = {**env, **{each.arg: UNKNOWN for each in every if each is not None}}
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [
        *zip(positional[::-1], arguments.defaults[::-1], strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=False),
    ]
    for each, default in defaults:
        if default is not None and written(default):
            inside[each.arg] = union(evaluate(default, env), UNKNOWN)
    return inside


def interesting(top: ast.AST) -> Iterator[ast.AST]:
    """Every statement, call and written-out string below `top`; of strings inside strings the outermost."""
    stack: list[tuple[ast.AST, bool]] = [(top, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.Constant):
            if not inside and isinstance(node.value, str):
                yield node
            continue
        string = isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call) and written(node)
        if isinstance(node, ast.Call | ast.stmt) or (string and not inside):
            yield node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                stack.extend((item, inside or string) for item in value if isinstance(item, ast.AST))
            elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
                stack.append((value, inside or string))


def written(node: ast.expr) -> bool:
    """Whether an expression is a string literal or built around one by `+`, `%` or `.format`."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        if isinstance(node.right, ast.JoinedStr):
            return True
        node = node.left
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        node = node.func.value
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
