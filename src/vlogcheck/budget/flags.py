"""Reading ``vllm serve`` flags into typed options.

The names are vLLM's own (``vllm/engine/arg_utils.py``, all releases): dashes or underscores, ``--name=value`` or
``--name value``, ``--no-name`` for switches, the short forms ``-tp -pp -dp -dcp -pcp -ep -n -q -sc -cc``, dotted keys
of JSON flags (``--speculative-config.method eagle3``, ``-sc.num_speculative_tokens 4``) and numbers people write (``32k``
is 32000, ``32K`` is 32768, ``1.5m``, ``80GiB`` for byte counts). A flag that is not known is kept and reported as not
used: it may be a newer release's. A bad value of a known flag is a :class:`FlagError`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vlogcheck.budget._flagtypes import SHORT, Kind, known_kind
from vlogcheck.budget._flagvalues import PARSERS, FlagError
from vlogcheck.budget._serve_options import RENAMED, ServeOptions, options_from_mapping

__all__ = ["FlagError", "ServeOptions", "options_from_mapping", "parse_serve_flags"]


def parse_serve_flags(argv: Sequence[str]) -> ServeOptions:
    """Read the flags of a ``vllm serve`` command line.

    Args:
        argv: the words after ``vllm serve`` (those two words themselves may lead); the first word that is no flag and
            no flag's value is taken for the model.

    Raises:
        FlagError: a known flag lacks its value or has one that cannot be meant.

    """
    words = [str(word) for word in argv]
    if words[:2] == ["vllm", "serve"]:
        words = words[2:]
    elif words[:1] == ["serve"]:
        words = words[1:]
    given: dict[str, Any] = {}
    dotted: list[tuple[str, list[str], str]] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not _is_flag(word):
            given.setdefault("model", word)
            continue
        if len(word) == 3 and word[:2] == "-O" and word[2].isdigit():
            given["compilation_config"] = word[2]
            continue
        written, has_value, value = word.partition("=")
        name, path = _flag_name(written)
        kind = known_kind(name)
        if path:
            if not has_value:
                value, position = _take(words, position, word)
            dotted.append((name, path, value))
            continue
        if kind is None and name.startswith("no_") and known_kind(name[3:]) is Kind.SWITCH:
            given[name[3:]] = False
        elif kind is Kind.SWITCH:
            given[name] = _switch(written, value) if has_value else True
        elif kind is Kind.WORDS:
            listed = [value] if has_value else []
            while position < len(words) and not _is_flag(words[position]):
                listed.append(words[position])
                position += 1
            given[name] = listed
        elif kind is None and not has_value:
            given[name] = True
            if position < len(words) and not _is_flag(words[position]):
                given[name] = words[position]
                position += 1
        else:
            if not has_value:
                value, position = _take(words, position, word)
            given[name] = value
    _merge_dotted(given, dotted)
    return options_from_mapping(given)


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not (word[1].isdigit() or word[1] == ".")


def _flag_name(written: str) -> tuple[str, list[str]]:
    """Return the option's name and the JSON path behind it (``--a.b.c`` is ``a`` and ``[b, c]``)."""
    head, *path = written.split(".")
    if not head.startswith("--"):
        head = SHORT.get(head, head)
    elif head == "--":
        raise FlagError("a flag without a name")
    name = head.lstrip("-").replace("-", "_")
    return RENAMED.get(name, name), [part.replace("-", "_") for part in path]


def _take(words: list[str], position: int, flag: str) -> tuple[str, int]:
    if position >= len(words) or _is_flag(words[position]):
        raise FlagError(f"{flag} needs a value")
    return words[position], position + 1


def _switch(flag: str, value: str) -> bool:
    if value.lower() in {"true", "1", "yes"}:
        return True
    if value.lower() in {"false", "0", "no"}:
        return False
    raise FlagError(f"{flag} is a switch, {value!r} is neither true nor false")


def _merge_dotted(given: dict[str, Any], dotted: list[tuple[str, list[str], str]]) -> None:
    for name, path, text in dotted:
        whole = given.get(name)
        if whole is None or whole is True:
            whole = {}
        if isinstance(whole, str):
            whole = PARSERS[Kind.OBJECT](name, whole)
        if not isinstance(whole, Mapping):
            raise FlagError(f"--{name.replace('_', '-')} is given both as a value and by its keys")
        target = dict(whole)
        given[name] = target
        for part in path[:-1]:
            inner = target.get(part)
            target[part] = dict(inner) if isinstance(inner, Mapping) else {}
            target = target[part]
        try:
            target[path[-1]] = json.loads(text)
        except (ValueError, RecursionError):
            target[path[-1]] = text
