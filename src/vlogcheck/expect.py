"""What the user promised or computed by hand: the figures a log is held against."""

from __future__ import annotations

from typing import Any

from vlogcheck._tuples import NamedTuple
from vlogcheck.units import LARGEST_SIZE, Interval

__all__ = ["Expectation", "ExpectationError"]


class ExpectationError(ValueError):
    """An expectation that makes no sense, such as a negative concurrency."""


def _bytes(value: Any, what: str) -> Interval | None:
    if value is None or isinstance(value, Interval):
        return value
    if isinstance(value, str):
        from vlogcheck._sizes import parse_size

        size = parse_size(value)
        if what != "kv_bytes_per_token" and value.strip().isdigit() and 0 < size.hi < 1 << 20:
            raise ExpectationError(f"{what}: {value} is that many bytes, say '{value}GiB' if you mean it")
        return size
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_SIZE:
        return Interval.exactly(value)
    raise ExpectationError(f"{what} must be a size such as '15.4GiB' or a whole number of bytes, not {value!r}")


class _Stated(NamedTuple):
    """What can be stated."""

    concurrency: float | None = None
    """Requests of `context` tokens that are to be served at once."""
    context: int | None = None
    """Tokens per request (prompt and answer), by default the length in the log's concurrency line. Alone it judges nothing."""
    tokens: int | None = None
    """Tokens the KV cache of one engine is to hold."""
    weights: Interval | str | int | None = None
    """Weights per rank."""
    kv_bytes_per_token: Interval | str | int | None = None
    """KV cache bytes per token, per rank or for the whole model (the report says which one fits)."""
    total_memory: Interval | str | int | None = None
    """Device memory in total."""
    gpu_memory_utilization: float | None = None
    """Share of it vLLM may take."""
    shared_card: bool = False
    """Whether other programs use the card too."""


class Expectation(_Stated):
    """The hand-computed budget. Every field is optional; what is not stated is not judged.

    Sizes are text with a unit (`"15.4GiB"`, `"65520MiB"`, `"64GB"`) or whole bytes, and are kept as an `Interval` of bytes.
    Raises `ExpectationError` or `SizeError` with a message for people.
    """

    __slots__ = ()

    def __new__(
        cls, concurrency: float | None = None, context: int | None = None, tokens: int | None = None,
        weights: Interval | str | int | None = None, kv_bytes_per_token: Interval | str | int | None = None,
        total_memory: Interval | str | int | None = None, gpu_memory_utilization: float | None = None,
        shared_card: bool = False,
    ) -> Expectation:  # fmt: skip
        """Check what is stated and read sizes."""
        held = _bytes(weights, "weights")
        per_token = _bytes(kv_bytes_per_token, "kv_bytes_per_token")
        total = _bytes(total_memory, "total_memory")
        if total is not None and total.hi <= 0:
            raise ExpectationError(f"total_memory must be above 0: {total_memory!r:.60} is no card's memory")
        for name, value in (("concurrency", concurrency), ("context", context), ("tokens", tokens)):
            if value is None:
                continue
            kinds = (int, float) if name == "concurrency" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < 1e15:
                whole = "" if float in kinds else "whole "
                raise ExpectationError(f"{name} must be a positive {whole}number below 10**15, not {value!r:.60}")
        share = gpu_memory_utilization
        if share is not None and (isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1):
            raise ExpectationError(f"gpu_memory_utilization must lie above 0 and at most 1, not {share!r}")
        return super().__new__(cls, concurrency, context, tokens, held, per_token, total, share, shared_card)

    def size(self, name: str) -> Interval | None:
        """Return a stated size as bytes."""
        value = getattr(self, name)
        return value if isinstance(value, Interval) else None

    @property
    def stated(self) -> dict[str, Any]:
        """The fields that were given."""
        return {
            name: value
            for name, value in zip(self._fields, self, strict=True)
            if value is not None and value is not False
        }
