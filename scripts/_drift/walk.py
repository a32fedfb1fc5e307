"""A walk over a body that binds names as it goes, and over what there is to see in it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from _drift.pieces import UNKNOWN, Texts, concat, union
from _drift.scope import Env, Items, as_items, evaluate, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = (ast.Name, ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


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
