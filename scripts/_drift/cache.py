"""What was collected from each release: parsed once per distinct file, kept as JSON per release."""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from _drift.collect import BrokenError, Site, collect_source
from _drift.pieces import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _drift.sources import Release

Found = tuple[int, str, str, Text]
"""Line, function, call and text: a site without its path."""


@dataclass(frozen=True)
class Collected:
    """Every message of one release, and the files that could not be read."""

    name: str
    version: Version
    sites: tuple[Site, ...]
    broken: tuple[str, ...]

    @property
    def label(self) -> str:
        return str(self.version) if self.name == "vllm" else f"{self.name} {self.version}"


def collector_stamp() -> str:
    """Return what changes when the collecting code does: a cache of other code is not used."""
    here = Path(__file__).parent
    code = b"".join((here / name).read_bytes() for name in ("pieces.py", "scope.py", "walk.py", "collect.py"))
    return hashlib.sha256(code).hexdigest()[:16]


class Collector:
    """Collects releases one after the other; the same file in several releases is parsed once."""

    def __init__(self, folder: Path | None = None, jobs: int = 1) -> None:
        self.folder = folder
        self.jobs = jobs
        self.stamp = collector_stamp()
        self._known: dict[bytes, list[Found] | str] = {}

    def cached(self, mark: str) -> Collected | None:
        """Return what an earlier run kept of the release with this mark, if the collecting code is still the same."""
        if self.folder is None or not (path := self._path(mark)).is_file():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["collector"] != self.stamp:
                return None
            sites = tuple(Site(p, line, function, call, tuple(text)) for p, line, function, call, text in kept["sites"])
            return Collected(kept["name"], Version(kept["version"]), sites, tuple(kept["broken"]))
        except (ValueError, KeyError, TypeError, OSError):
            return None  # cut or foreign: collect again

    def collect(self, release: Release, mark: str) -> Collected:
        """Collect a release's messages and keep them in the cache folder under `mark`."""
        digests = {path: hashlib.sha256(content).digest() for path, content in release.files.items()}
        fresh = {digest: release.files[path] for path, digest in digests.items() if digest not in self._known}
        self._known.update(zip(fresh, self._parse(fresh.values()), strict=True))
        sites: list[Site] = []
        broken: list[str] = []
        for path, digest in sorted(digests.items()):
            found = self._known[digest]
            if isinstance(found, str):
                broken.append(f"{path}: {found}")
            else:
                sites += [Site(path, *each) for each in found]
        collected = Collected(release.name, release.version, tuple(sites), tuple(broken))
        self._keep(collected, mark)
        return collected

    def _parse(self, contents: Iterable[bytes]) -> Iterator[list[Found] | str]:
        if self.jobs <= 1:
            return map(_parse_one, contents)
        with ProcessPoolExecutor(self.jobs) as pool:
            return iter(list(pool.map(_parse_one, contents, chunksize=32)))

    def _path(self, mark: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(mark.encode()).hexdigest()[:24]}.json"

    def _keep(self, collected: Collected, mark: str) -> None:
        if self.folder is None:
            return
        path = self._path(mark)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "name": collected.name,
            "version": str(collected.version),
            "collector": self.stamp,
            "broken": collected.broken,
            "sites": [[s.path, s.line, s.function, s.call, s.text] for s in collected.sites],
        }
        part = path.with_suffix(f".{os.getpid()}.part")  # two runs may share the folder
        part.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
        part.replace(path)


def _parse_one(content: bytes) -> list[Found] | str:
    try:
        return [(site.line, site.function, site.call, site.text) for site in collect_source(content, "file")]
    except BrokenError as error:
        return str(error).removeprefix("file: ")
