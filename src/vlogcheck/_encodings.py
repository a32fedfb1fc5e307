"""What a text is encoded in, UTF-8 or UTF-16, told from its beginning."""

from __future__ import annotations

import codecs

__all__ = ["Text", "encoding_of"]

_SNIFF = 4096


class Text:
    """Turns a text that comes in pieces into UTF-8, whatever of UTF-8 and UTF-16 its beginning shows it to be."""

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        self._begun = False

    def utf8(self, data: bytes) -> bytes:
        """Return the next piece as UTF-8. The first one must hold the byte order mark, where there is one."""
        if not self._begun and data:
            self._begun = True
            encoding, mark = encoding_of(data)
            data = data[mark:]
            if encoding != "utf-8":
                self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        return data if self._decoder is None else self._decoder.decode(data).encode("utf-8", "replace")


def encoding_of(head: bytes) -> tuple[str, int]:
    """Return the encoding a text begins in, and the length of its byte order mark."""
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8", 3
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le", 2
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be", 2
    sample = head[:_SNIFF]
    pairs = len(sample) // 2
    if pairs >= 2:
        even, odd = sample[0::2].count(0), sample[1::2].count(0)
        # ASCII in UTF-16 is a zero in every other byte; a log is mostly ASCII, and UTF-8 text has no zero at all.
        if odd * 5 >= pairs * 2 and even * 20 <= pairs:
            return "utf-16-le", 0
        if even * 5 >= pairs * 2 and odd * 20 <= pairs:
            return "utf-16-be", 0
    return "utf-8", 0
