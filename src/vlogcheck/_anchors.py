"""Anchors: the few literals whose presence makes a line of raw bytes worth decoding, and the search for them.

Every line of every template holds at least one anchor, whatever the holes are and whether or not the line stands escaped in
JSON. A template needs no care for that: if none of the shared fragments is in its fixed text, its own longest literal becomes
an anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from vlogcheck._lazy import pattern

if TYPE_CHECKING:
    from vlogcheck.template import Template

__all__ = ["METRICS", "SUSPICIOUS", "Find", "fixed_texts", "grouped", "scan_anchors", "scanner"]

SUSPICIOUS = (
    "iB", "GB", "MB", " OOM", "(OOM", "V cache", "v cache", "V Cache", "VCache", "V-cache",
    "v-cache", "blocks", " tokens", "memory", "Memory", "oom-kill", " took ",
)  # fmt: skip
"""What makes the scan look at a line that no template's literal is in (see `recognise.looks_like_memory`)."""

METRICS = "Avg prompt throughput: "
"""What every periodic metrics line holds."""

FRAGMENTS = (
    *SUSPICIOUS, METRICS, "ngine", " graph", "orker", "_model", "prefi", "shutdown", "fault", " size",
    "Using ", "illed", "rted ", " rank", "tting ", " startup", "ignal", "device", "-cache", "vLLM ", "etected ", "_ERROR_",
    "oading ", "ager ", "ache f", "imed out", "imes out", "Connect", "nitial", "llocat", "pping ", "exit ", " runn",
    "ALLOC_FAI", "CCL error", " length ", "inished ", "asting ", "_size ", "Exception", "_batched_", " enabled", "atchdog ",
    " mmap ", "SPACE ", "torch.", "Async", "Starting ", "Route: ", " code 137", "RESOURCE_E", "rror code ", " SIG",
    "::bad_allo", "Error", "(): ", "_mem:", " GPU", "Code", "oaded ",
)  # fmt: skip
"""Pieces that many templates share and that access lines, request lines and English prose hardly ever hold.

Each one that is well chosen saves several anchors. One of fewer than four bytes is searched for alone: that costs little for
one, and among others it would halve the speed of them all.
"""

GROUP = 25
"""Anchors searched for in one pass over a block that stays in the processor's cache. With more of them false alarms grow faster
than passes are saved: 100 anchors run at 2 GB/s in four or five passes, in one at 0.56 GB/s."""

_BUCKETS = 8
"""What the vectorised search tells apart at once: the n-th anchor of a group goes into bucket n modulo 8."""

_OPAQUE = ('"MESSAGE":[', '"MESSAGE" : [', '"MESSAGE": [')
"""journald writes a message with escape sequences as an array of byte values: no literal can be found in it."""

_SHORTEST = 4
_BETWEEN = "\x1e"
_OPTIONAL = pattern(r"\[\[(?:[^\[\]\x1e]|\[(?!\[)|\](?!\]))*\]\]")
_VARIABLE = pattern(
    r"[^\n\x1e !#-%'-.0-;=?-\[\]-z|~]"  # what JSON writers escape, and braces:
    r"(?:(?<=\{)(?:\{|\w+(?::[^{}]*)?\})|(?<=\})\}|)"  # `{{`, holes, `}}`
)
_COLOURED = ("INFO:     ", "WARNING:  ", "ERROR:    ")
"""How uvicorn prints levels: on a terminal an escape sequence stands in the middle."""

Find = Callable[[Any], "list[int]"]
"""Returns the offsets of anchors in a bytes-like object, in order."""


def fixed_texts(templates: Iterable[Template]) -> list[str]:
    """Return each template's text with NUL for all that is not there in every spelling of it: holes, optional parts, escapes.

    All templates are treated as one text: done one by one, this was a tenth of the run of a small log.
    """
    texts = [template.text for template in templates]
    optional = [number for number, text in enumerate(texts) if "[[" in text]
    whole = _BETWEEN.join(texts[number] for number in optional)
    count = 1
    while count:  # innermost first
        whole, count = _OPTIONAL.subn("\0", whole)
    for number, text in zip(optional, whole.split(_BETWEEN), strict=False):
        texts[number] = text
    whole = _BETWEEN.join(texts)
    for level in _COLOURED:
        whole = whole.replace(level, "\0")
    return _VARIABLE.sub("\0", whole).split(_BETWEEN)


def scan_anchors(texts: Iterable[str], fragments: Iterable[str] = FRAGMENTS) -> list[bytes]:
    """Return literals that find every line of every template (`fixed_texts`), without those that hold another one."""
    shared = [fragment.encode() for fragment in fragments]
    whole = "\n".join(texts).encode()
    wanted = {*shared, *(text.encode() for text in _OPAQUE)}
    hits = iter(scanner(shared)(whole))
    hit = next(hits, len(whole))
    at = 0
    for line in whole.split(b"\n"):
        at += len(line) + 1
        if hit >= at:
            wanted.add(max(line.split(b"\0"), key=len))
        while hit < at:
            hit = next(hits, len(whole) + 1)
    kept: list[bytes] = []
    for anchor in sorted(wanted, key=lambda a: (len(a), a)):
        for shorter in kept:  # `any` would take three times as long
            if shorter in anchor:
                break
        else:
            kept.append(anchor)
    return kept


def grouped(anchors: list[bytes]) -> list[list[bytes]]:
    """Return the anchors in groups of at most `GROUP` that are searched for together.

    The search looks whether four bytes could begin an anchor of a bucket, each byte by its two halves: anchors that begin alike
    share a bucket, so that fewer other texts can be meant (nearly twice as fast as in any order). The buckets are dealt out to
    the groups in turn: where all anchors of a group begin with one of three bytes, the library looks for those instead, and a
    space is in every line.
    """
    short = [[anchor] for anchor in anchors if len(anchor) < _SHORTEST]
    long = sorted((a for a in anchors if len(a) >= _SHORTEST), key=lambda a: (a[0], a[1] >> 4, a[2] >> 4, a[3]))
    count = -(-len(long) // GROUP)
    number = _BUCKETS * count
    buckets = [long[len(long) * n // number : len(long) * (n + 1) // number] for n in range(number)]
    groups = [sorted(buckets[n::count], key=len, reverse=True) for n in range(count)]
    return short + [[b[at] for at in range(len(group[0])) for b in group if at < len(b)] for group in groups]


def scanner(anchors: list[bytes]) -> Find:
    """Return a function from bytes to the offsets of anchors in them, in order."""
    try:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind
    except ImportError:  # no wheel for this platform: the standard library does it, slower
        return lambda data: _search(bytes(data), anchors)
    searches = [
        BytesAhoCorasick(group, matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes for group in grouped(anchors)
    ]

    def find(data: Any) -> list[int]:
        hits = [hit[1] for search in searches for hit in search(data)]
        hits.sort()
        return hits

    return find


def _search(data: bytes, anchors: list[bytes]) -> list[int]:
    """Look for one anchor after the other: three times faster than an expression of alternatives."""
    hits = []
    for anchor in anchors:
        at = data.find(anchor)
        while at >= 0:
            hits.append(at)
            at = data.find(anchor, at + 1)
    hits.sort()
    return hits
