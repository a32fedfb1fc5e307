"""Every message one Python file can print, log or raise, as texts with holes."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from _drift.pieces import UNKNOWN, Text, Texts, concat, literal, percent, plain, union
from _drift.scope import Env, evaluate, written
from _drift.walk import Walker, interesting, parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVELS = frozenset(("debug", "info", "warning", "warn", "error", "critical", "fatal", "exception"))
_LOGGER = re.compile(r"(^|_)(log(ger|ging)?|lgr)$", re.IGNORECASE)
_SPEAKING = re.compile(r"(^|_)(log|print|warn|warning|rank_zero_\w+|echo)(_|$)|^print")
_RAISED = re.compile(r"(Error|Exception|Warning|Failure|Exit|Interrupt)$")
_ONCE = re.compile(r"_(once|rank0)$")
_SPACED = re.compile(r"(?:^|(?<=\s))[A-Za-z]{2,}")
_TEXT_MAKER = re.compile(
    r"^__(str|repr|format)__$|(^|_)(msg|messages?|summary|describe|hint|advice|report)(_|$)|^format_"
)


@dataclass(frozen=True, order=True)
class Site:
    """One place of a release's source that makes a message, and one text it may have there."""

    path: str
    line: int
    function: str
    call: str
    """`info`, `warning_once`, `raise ValueError`, `assert`, `print`, `warn`, `desc` (of a progress bar), `return` (of a
    function that makes messages), or `text`: any other string of several words, which may become a message."""
    text: Text


class BrokenError(ValueError):
    """A file that is no Python source of this interpreter."""


def collect_source(source: str | bytes, path: str) -> list[Site]:
    """All messages of one file.

    Raises:
        BrokenError: the file does not parse.

    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's literals
            tree = ast.parse(source, filename=path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BrokenError(f"{path}: {type(error).__name__}: {error}") from error
    reader = _Reader(path)
    reader.read(tree)
    said = "\n".join({literal_text(site.text) for site in reader.sites if site.call != "text"})
    sites = {site for site in reader.sites if site.call != "text" or literal_text(site.text) not in said}
    return sorted(sites, key=lambda s: (s.path, s.line, s.call, [p or "" for p in s.text]))


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = str(PurePosixPath(path))
        self.sites: list[Site] = []
        self.function = ""
        self.aliases: dict[str, str] = {}
        self.exceptions: set[str] = set()

    def read(self, tree: ast.Module) -> None:
        walker = Walker(self._visit, self._define)
        env: Env = {}
        walker.block(tree.body, env)
        module = dict(env)
        while walker.later:
            node, outer, name = walker.later.pop(0)
            self.function = name
            walker.path = name
            inside = parameters(node, {**module, **outer})
            walker.block(node.body, inside)

    def _define(self, node: ast.ClassDef) -> None:
        if any(_RAISED.search(_last_name(base)) for base in node.bases):
            self.exceptions.add(node.name)

    def _note_alias(self, name: str, value: ast.expr) -> None:
        choices = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        methods = [method for method in map(_log_method, choices) if method]
        if methods:
            self.aliases[name] = methods[0]

    def _visit(self, top: ast.AST, env: Env) -> None:
        for node in interesting(top):
            match node:
                case ast.Call():
                    self._call(node, env)
                    if written(node):
                        self._text(node, env)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._note_alias(name, value)
                case ast.Assert(msg=msg) if msg is not None:
                    self._add(msg, "assert", evaluate(msg, env))
                case ast.Raise(exc=ast.Call(func=func, args=args)) if not _RAISED.search(_last_name(func)):
                    self._exception(args, f"raise {_last_name(func)}", env)
                case ast.Constant() | ast.JoinedStr() | ast.BinOp():
                    self._text(node, env)
                case ast.Return(value=value) if value is not None and self._makes_text():
                    self._add(value, "return", evaluate(value, env))

    def _makes_text(self) -> bool:
        return bool(_TEXT_MAKER.search(self.function.rpartition(".")[2]))

    def _call(self, node: ast.Call, env: Env) -> None:
        name = _last_name(node.func)
        method = _log_method(node.func) or (self.aliases.get(name) if isinstance(node.func, ast.Name) else None)
        if method == "log":
            self._message(node.args[1:], "log", env)
        elif method or _SPEAKING.search(name):
            self._message(node.args, method or name, env)
        elif _RAISED.search(name) or name in self.exceptions:
            named = (word.value for word in node.keywords if word.arg in ("message", "msg"))
            self._exception([*node.args, *named], f"raise {name}", env)
        elif name == "__init__" and self.function.split(".")[0] in self.exceptions:
            self._exception(node.args, f"raise {self.function.split('.')[0]}", env)
        for word in node.keywords:
            if word.arg == "desc":
                self._add(word.value, "desc", concat([evaluate(word.value, env), literal(": "), UNKNOWN]))

    def _message(self, args: Sequence[ast.expr], call: str, env: Env) -> None:
        if not args or isinstance(args[0], ast.Starred):
            return
        texts = evaluate(args[0], env)
        if len(args) > 1:
            if call == "print":
                texts = union(*(evaluate(arg, env) for arg in args))
            elif any(isinstance(arg, ast.Starred | ast.Dict) for arg in args):
                texts = percent(texts, None)
            else:
                texts = percent(texts, [evaluate(arg, env) for arg in args[1:]])
        self._add(args[0], call, texts)

    def _exception(self, args: Sequence[ast.expr], call: str, env: Env) -> None:
        for arg in args:
            self._add(arg, call, evaluate(arg, env))

    def _text(self, node: ast.expr, env: Env) -> None:
        texts = percent(evaluate(node, env), None)
        self._add(node, "text", tuple(text for text in texts if len(_SPACED.findall(literal_text(text))) >= 3))

    def _add(self, node: ast.expr, call: str, texts: Texts) -> None:
        if texts == UNKNOWN:
            return
        for text in texts:
            if any(part and re.search(r"[A-Za-z]{2}", part) for part in text):
                self.sites.append(Site(self.path, node.lineno, self.function, call, text))


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=func):
            return _last_name(func)
        case ast.Subscript(value=value):
            return _last_name(value)
    return ""


def _log_method(node: ast.expr) -> str | None:
    """`info` for `logger.info`, `self.logger.info`, `init_logger(...).info`; None for anything else."""
    match node:
        case ast.Attribute(value=owner, attr=attr) if attr == "log" or _ONCE.sub("", attr) in LEVELS:
            return attr if _LOGGER.search(_last_name(owner)) or _last_name(owner) in ("warnings", "getLogger") else None
    return None


def readable(site: Site) -> str:
    """Where a site is, in the form `file.py:12 info`."""
    return f"{site.path}:{site.line} {site.call}"


def literal_text(text: Text) -> str:
    """Return the literal characters of a text, holes as one space."""
    return plain(text) or "".join(" " if part is None else part for part in text)
