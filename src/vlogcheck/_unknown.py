"""Lines no template knows: which could be somebody's message, and which of them speak of memory."""

from __future__ import annotations

import re

from vlogcheck._lazy import pattern

__all__ = ["HALVES", "is_lone_word", "is_message", "looks_like_memory"]

HALVES = (
    "# ", "max_model_len", "Namespace(", "non-default", "args: ", "cache layers", "]+  ", "]-  ", " Killed  ", "what():  ",
    '"terminated":{', "constraint=CONSTRAINT_",
)  # fmt: skip
"""What is left of short messages when their other word is changed. In a start-up only: they are no anchors of the scan."""

_MEMORY = pattern(
    r"\d\s?(?:[KMGT]iB|[MG]B)\b(?!/s)|\bKV[ -]?cache\b|\b[a-z]*blocks\b|\d tokens\b(?!/s)|[Oo]ut of memory|\bOOM\b|\bmemory\b"
    r"|\b(?:loading|weights) took \d|\bcache layers\b"
    r"|(?-i:# [A-Z]PU\b|'max_model_len'|\bmax_model_len=|\bNamespace\(|\bnon-default\b|^args: |^\[\d+\][+-]  \S"
    r"| Killed  |^\s*what\(\):  |\"terminated\":\{|constraint=CONSTRAINT_)",  # half a known message
    re.IGNORECASE,
)
_NO_MESSAGE = pattern(
    r"\s*(?:"
    r"raise [A-Z]|return |assert |yield |await |del |import |from [\w.]+ import |@\w|(?:async )?def \w|class [A-Z]\w*[(:]"
    r"|(?:if|elif|while|with|for|except) .*:\s*$"  # statements
    r"|(?:self|cls|logger|torch)\.\w[\w.]*\s*[(=\[]"
    r"|[a-z_][\w.]*(?:\[[^\]]*\])? = (?:await )?(?:[A-Za-z_][\w.]*[(\[]|self\.)|[a-z_][\w.]*\($"
    r"|[rf]{0,2}([\"'])[^\"']*\1(?:, ([\"'])[^\"']*\2)*[,)\]]*\s*$"  # nothing but string literals
    r"|File \"[^\"]+\", line \d+(?:, in .+)?$"  # a frame
    r"|[━╸╺]{3}"  # a bar of pip
    r"|\|.*\|\s*$"  # a row of nvidia-smi or of another table
    r"|(?:[+$] )?(?:\S*/)?(?:python[\d.]*|vllm|docker|podman|torchrun|srun) .*--[a-z]"  # a command line
    r")"
)
"""Lines that stand in logs beside messages: source lines of tracebacks, tables, commands."""
_STATEMENTS = frozenset(
    ("raise", "return", "assert", "yield", "await", "del", "import", "from", "async", "def", "class", "if", "elif", "while",
     "with", "for", "except")
)  # fmt: skip
_CODE = ("self.", "cls.", "logger.", "torch.", 'File "', "@", "|", "\u2501", "\u2578", "\u257a")
_TOOLS = ("python", "vllm", "docker", "podman", "torchrun", "srun")
_SHORTEST = 3
"""Letters a single word must have more of than this: `OK` is no message."""
_COMMENT = pattern(r"\S {2,}# .*$")


def looks_like_memory(message: str) -> bool:
    """Whether a message speaks of memory, blocks or the KV cache: worth reporting when no template knows it.

    Source lines of a traceback, rows of tables, command lines and comments behind a setting are no messages.
    """
    if _MEMORY.search(message) is None or not is_message(message):
        return False
    comment = _COMMENT.search(message)
    return comment is None or _MEMORY.search(message, 0, comment.start() + 1) is not None


def is_lone_word(message: str) -> bool:
    """Whether a message is one word at the margin: as a shell says how a process ended (`Killed`), Python what it lacked."""
    return len(message) > _SHORTEST and message.isidentifier() and message.isascii() and message[0] != "_"


def is_message(text: str) -> bool:
    """Whether a line could be somebody's message: no source line of a traceback, row of a table or command line."""
    body = text.lstrip()
    command = "--" in body and any(tool in word for word in body.split(" ", 2)[:2] for tool in _TOOLS)
    odd = (
        command or " = " in body or body.endswith("(") or body.startswith(_CODE) or '"' in body[:3] or "'" in body[:3]
        or body.partition(" ")[0] in _STATEMENTS
    )  # fmt: skip
    return not odd or _NO_MESSAGE.match(text) is None  # for prose the expression need not even be compiled
