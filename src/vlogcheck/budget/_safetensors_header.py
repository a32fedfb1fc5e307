"""One safetensors file: what its header says, without reading a tensor."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_HEADER", "HeaderError", "SafetensorsFile", "read_header"]

#: The format's own limit on a header (the library refuses more than 100 MB).
MAX_HEADER = 100_000_000
#: Bits per element by the format's dtype names.
_BITS = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}


class HeaderError(ValueError):
    """A file is not safetensors, is cut short, or its header contradicts itself."""


@dataclass(frozen=True)
class SafetensorsFile:
    """What one file's header says.

    Attributes:
        name: file name.
        file_bytes: size of the file on disk.
        tensor_bytes: sum of its tensors.
        tensors: number of tensors.
        by_dtype: tensor bytes by the format's dtype name (``BF16``, ``F8_E4M3`` …).

    """

    name: str
    file_bytes: int
    tensor_bytes: int
    tensors: int
    by_dtype: Mapping[str, int]


def read_header(path: str | Path) -> SafetensorsFile:
    """Read one file's header.

    Raises:
        HeaderError: the file cannot be read, is no safetensors file, is truncated, or its header contradicts itself.

    """
    path = Path(path)
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(8)
            if len(prefix) < 8:
                raise HeaderError(f"{path.name}: {size} bytes are too few for a safetensors file")
            length = int.from_bytes(prefix, "little")
            if length > MAX_HEADER:
                raise HeaderError(f"{path.name}: a header of {length} bytes is beyond the format's limit")
            if 8 + length > size:
                raise HeaderError(f"{path.name}: the header of {length} bytes does not fit the file of {size} bytes")
            text = file.read(length)
    except OSError as error:
        raise HeaderError(f"{path.name}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the path
        raise HeaderError(f"{path.name!r}: {error}") from None
    if len(text) < length:
        raise HeaderError(f"{path.name}: the header ends after {len(text)} of {length} bytes")
    by_dtype, count = _sum(path.name, _object(path.name, text), size - 8 - length)
    return SafetensorsFile(path.name, size, sum(by_dtype.values()), count, by_dtype)


def _object(name: str, text: bytes) -> Mapping[str, Any]:
    try:
        header = json.loads(text)
    except RecursionError:
        raise HeaderError(f"{name}: the header is nested too deeply") from None
    except ValueError:  # bad JSON, bad encoding, an integer of too many digits
        raise HeaderError(f"{name}: the header is not JSON") from None
    if not isinstance(header, dict):
        raise HeaderError(f"{name}: the header is no JSON object")
    return header


def _sum(name: str, header: Mapping[str, Any], room: int) -> tuple[dict[str, int], int]:
    """Sum tensor bytes by dtype and count tensors, each of which must lie inside the data and fit its shape."""
    by_dtype: dict[str, int] = {}
    count = end = 0
    for tensor, entry in header.items():
        if tensor == "__metadata__":
            continue
        shown = tensor if len(tensor) <= 80 else f"{tensor[:77]}..."
        if not isinstance(entry, dict):
            raise HeaderError(f"{name}: tensor {shown!r} has no description")
        dtype, offsets = entry.get("dtype"), _offsets(entry.get("data_offsets"))
        if not isinstance(dtype, str) or offsets is None:
            raise HeaderError(f"{name}: tensor {shown!r} has no dtype or no offsets")
        size = offsets[1] - offsets[0]
        if size < 0:
            raise HeaderError(f"{name}: tensor {shown!r} ends before it begins")
        expected = _size(dtype, entry.get("shape"))
        if expected is not None and expected != size:
            raise HeaderError(f"{name}: tensor {shown!r} takes {size} bytes where its shape needs {expected}")
        by_dtype[dtype] = by_dtype.get(dtype, 0) + size
        count += 1
        end = max(end, offsets[1])
    total = sum(by_dtype.values())
    if end > room:
        raise HeaderError(f"{name}: cut short, {end} bytes of tensors announced and {room} there")
    if total != end:
        raise HeaderError(f"{name}: tensors overlap or leave holes ({total} bytes in a range of {end})")
    return by_dtype, count


def _offsets(value: object) -> tuple[int, int] | None:
    """Begin and end of a tensor, where they are two usable numbers."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    begin, end = value
    for n in (begin, end):
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < 2**63:
            return None
    return begin, end


def _size(dtype: str, shape: object) -> int | None:
    """Bytes a tensor of that shape takes; ``None`` where dtype or shape say nothing usable."""
    bits = _BITS.get(dtype)
    if bits is None or not isinstance(shape, list) or len(shape) > 16:
        return None
    elements = 1
    for n in shape:
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < 2**63:
            return None
        elements *= n
    return elements * bits // 8 if elements * bits % 8 == 0 else None
