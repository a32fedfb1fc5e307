"""Exact weight bytes from the headers of safetensors files.

Only the 8-byte length and the JSON header of each file are read, never the tensors. A header is somebody else's data:
its length is bounded, its offsets are checked against the file, and what does not add up is reported instead of raised.
The format is that of the ``safetensors`` library: little-endian header length, then a JSON object that gives ``dtype``,
``shape`` and ``data_offsets`` by tensor name, then the data.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vlogcheck.budget._safetensors_header import HeaderError, SafetensorsFile, read_header

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CheckpointBytes", "HeaderError", "SafetensorsFile", "checkpoint_bytes", "read_header"]

#: More shards than any checkpoint has.
MAX_FILES = 10_000

_MAX_INDEX = 200_000_000
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors")


@dataclass(frozen=True)
class CheckpointBytes:
    """Weights of a model directory, counted from its headers. All sizes in bytes.

    Attributes:
        files: the files that could be read, in order of their names.
        tensor_bytes: sum of all tensors read.
        file_bytes: sum of the files' sizes on disk (tensors plus headers).
        by_dtype: tensor bytes by dtype.
        missing: shards the index or the file names announce and that are not there.
        problems: what is wrong with files that are there.
        index_total_bytes: ``metadata.total_size`` of the index, ``None`` without one.

    """

    files: tuple[SafetensorsFile, ...] = ()
    tensor_bytes: int = 0
    file_bytes: int = 0
    by_dtype: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    index_total_bytes: int | None = None

    @property
    def complete(self) -> bool:
        """Whether there are weights, no shard is missing and every file could be read."""
        return bool(self.files) and not self.missing and not self.problems


def checkpoint_bytes(directory: str | Path) -> CheckpointBytes:
    """Count the weights of a model directory.

    The files are those ``model.safetensors.index.json`` names, else all ``*.safetensors`` beside it; shards
    announced by an index or by ``-00001-of-00007`` names and not there are listed as missing. Consolidated copies
    (``consolidated*.safetensors``) beside a full set are not counted twice.

    Returns:
        The sums and what is missing or wrong; an empty result where the directory has no such files.

    """
    directory = Path(directory)
    problems: list[str] = []
    total: int | None = None
    names: list[str] = []
    try:
        present = sorted(entry.name for entry in directory.glob("*.safetensors") if entry.is_file())[: MAX_FILES + 1]
        indexes = sorted(entry for entry in directory.glob("*.safetensors.index.json") if entry.is_file())
    except (OSError, ValueError) as error:
        return CheckpointBytes(problems=(f"{directory.name}: {error}",))
    if len(present) > MAX_FILES:
        return CheckpointBytes(problems=(f"more than {MAX_FILES} safetensors files",))
    if indexes:
        wanted = next((entry for entry in indexes if entry.name == "model.safetensors.index.json"), indexes[0])
        names, total, problem = _index(wanted)
        if problem is not None:
            problems.append(problem)
    if not names:
        full = [name for name in present if not name.startswith("consolidated")]
        names = sorted({*(full or present), *_announced(full or present)})
    missing = [name for name in names if name not in set(present)]
    files: list[SafetensorsFile] = []
    by_dtype: dict[str, int] = {}
    for name in names:
        if name in missing:
            continue
        try:
            found = read_header(directory / name)
        except HeaderError as error:
            problems.append(str(error))
            continue
        files.append(found)
        for dtype, size in found.by_dtype.items():
            by_dtype[dtype] = by_dtype.get(dtype, 0) + size
    return CheckpointBytes(
        files=tuple(files),
        tensor_bytes=sum(file.tensor_bytes for file in files),
        file_bytes=sum(file.file_bytes for file in files),
        by_dtype=by_dtype,
        missing=tuple(missing),
        problems=tuple(problems),
        index_total_bytes=total,
    )


def _announced(names: list[str]) -> set[str]:
    """Shards the numbering of the others announces."""
    announced: set[str] = set()
    for name in names:
        match = _SHARD.fullmatch(name)
        if match is not None and int(match["count"]) <= MAX_FILES and len(announced) <= MAX_FILES:
            count = match["count"]
            announced |= {f"{match['stem']}-{number:05d}-of-{count}.safetensors" for number in range(1, int(count) + 1)}
    return announced


def _index(path: Path) -> tuple[list[str], int | None, str | None]:
    """File names an index lists, its stated total, and what is wrong with it."""
    try:
        if path.stat().st_size > _MAX_INDEX:
            return [], None, f"{path.name}: too large for an index"
        content = json.loads(path.read_bytes())
    except RecursionError:
        return [], None, f"{path.name}: nested too deeply"
    except (OSError, ValueError):
        return [], None, f"{path.name}: cannot be read as JSON"
    table = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(table, dict) or not table:
        return [], None, f"{path.name}: no 'weight_map'"
    names = {name for name in table.values() if isinstance(name, str)}
    # a name that leads out of the directory is nobody's shard
    odd = any(not isinstance(name, str) for name in table.values())
    safe = sorted(
        name for name in names if name.endswith(".safetensors") and Path(name).name == name and "\0" not in name
    )
    problem = (
        None if not odd and len(safe) == len(names) <= MAX_FILES else f"{path.name}: names files that cannot be shards"
    )
    metadata = content.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    usable = isinstance(total, int) and not isinstance(total, bool) and 0 <= total < 2**63
    return safe[:MAX_FILES], total if usable else None, problem
