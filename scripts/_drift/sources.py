"""Where the files of a release come from: a folder, a wheel, an sdist, an installed package, or pip."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PLATFORMS = (
    "any",
    "linux_x86_64",
    "manylinux1_x86_64",
    "manylinux2014_x86_64",
    *(f"manylinux_2_{minor}_x86_64" for minor in (24, 28, 31, 34, 35)),
)
"""What pip may pick a wheel for. Only its Python files are read, so the machine's own platform does not matter."""

_VERSION_LINE = re.compile(
    rb"^(?:__version__|version)\s*(?::\s*str)?\s*(?:=\s*version\s*)?=\s*['\"]([^'\"]+)['\"]", re.M
)


class SourceError(ValueError):
    """A release that cannot be found or read."""


@dataclass(frozen=True)
class Release:
    """One package at one version and its Python files, by path inside the package."""

    name: str
    version: Version
    files: dict[str, bytes]


def open_release(what: str) -> Release:
    """Read a release from a folder, a wheel or sdist file, or the installed package of that name.

    Raises:
        SourceError: nothing there, no Python package in it, or no version to be found.

    """
    path = Path(what)
    if path.is_dir():
        return _from_files(what, _folder(path), fallback=path.name)
    if path.is_file():
        return _from_files(what, _archive(path), fallback=path.name)
    try:
        distribution = importlib.metadata.distribution(what)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise SourceError(f"{what}: no such folder or file, and no installed package of that name") from None
    listed = ((str(file), Path(str(file.locate()))) for file in distribution.files or ())
    read = ((name, place.read_bytes()) for name, place in listed if _wanted(name) and place.is_file())
    return _from_files(what, read, fallback=f"{what}-{distribution.version}")


def download(what: str) -> Release:
    """Fetch one release with pip (`0.32.0`, or `vllm-ascend==0.23.0`), read its Python files, keep nothing else.

    Raises:
        SourceError: pip finds no wheel of it.

    """
    name, _, version = what.rpartition("==")
    requirement = f"{name or 'vllm'}=={version}"
    with tempfile.TemporaryDirectory(prefix="drift-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--dest", folder]
        command += ["--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp"]
        command += [word for platform in PLATFORMS for word in ("--platform", platform)]
        done = subprocess.run([*command, requirement], capture_output=True, text=True, check=False)
        found = sorted(Path(folder).iterdir())
        if done.returncode or not found:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise SourceError(f"{requirement}: pip cannot download it: {reason}")
        return open_release(str(found[0]))


def fingerprint(what: str) -> str:
    """Return what changes when the files behind an argument of `open_release` do; costs no reading."""
    path = Path(what)
    digest = hashlib.sha256(str(path.resolve()).encode())
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if _wanted(file.as_posix()))
    elif path.is_file():
        files = [path]
    else:
        try:
            return f"installed {what} {importlib.metadata.version(what)}"
        except (importlib.metadata.PackageNotFoundError, ValueError):
            return f"missing {what}"
    for file in files:
        state = file.stat()
        digest.update(f"{file} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _wanted(name: str) -> bool:
    return name.endswith(".py") or name.rpartition("/")[2] in ("METADATA", "PKG-INFO")


def _folder(path: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if _wanted(name) and file.is_file():
            yield name, file.read_bytes()


def _archive(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                yield from ((name, packed.read(name)) for name in sorted(packed.namelist()) if _wanted(name))
            return
        with tarfile.open(path) as bundle:
            for member in bundle:
                if member.isfile() and _wanted(member.name) and (stream := bundle.extractfile(member)):
                    yield member.name, stream.read()
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError) as error:
        raise SourceError(f"{path}: neither a wheel nor an sdist: {error}") from error


def _from_files(what: str, files: Iterable[tuple[str, bytes]], fallback: str) -> Release:
    every = dict(files)
    name, version = _identity(every, fallback)
    package = name.replace("-", "_")
    inside: dict[str, bytes] = {}
    for path, content in every.items():
        parts = path.split("/")
        # the package stands at the top (wheel, folder), below the sdist's own folder, or below its `src`
        at = next((i for i, part in enumerate(parts[:3]) if part == package), None)
        if at is not None and path.endswith(".py"):
            inside["/".join(parts[at + 1 :])] = content
    if not inside and "__init__.py" in every:  # the folder of the package itself
        inside = {path: content for path, content in every.items() if path.endswith(".py")}
    if not inside:
        raise SourceError(f"{what}: no Python package {package} in it")
    if version is None:
        raise SourceError(f"{what}: its version stands neither in its metadata, its version file nor its name")
    return Release(name, version, inside)


def _identity(files: dict[str, bytes], fallback: str) -> tuple[str, Version | None]:
    for path, content in files.items():
        if path.endswith((".dist-info/METADATA", "PKG-INFO")) and path.count("/") <= 1:
            head = content.decode("utf-8", "replace").split("\n\n")[0]
            fields = dict(re.findall(r"^(Name|Version): *(\S+)", head, re.M))
            if len(fields) == 2:
                return canonicalize_name(fields["Name"]), _version(fields["Version"])
    name = "vllm"
    stem = re.sub(r"\.(?:tar\.\w+|tgz|zip|whl)$", "", fallback)
    version = _version(stem)
    if found := re.match(r"([A-Za-z][\w.]*?(?:-[A-Za-z][\w.]*?)*)-(\d[^-]*)", stem):
        name, version = canonicalize_name(found[1]), _version(found[2])
    for path, content in files.items():
        if version is None and path.endswith(("_version.py", "version.py", "__init__.py")) and path.count("/") <= 1:
            stated = _VERSION_LINE.search(content)
            version = _version(stated[1].decode()) if stated else None
    return name, version


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
