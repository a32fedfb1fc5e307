"""Make a virtual environment and install the project into it, with nothing but a Python of 3.10 or later.

Usage: python3 scripts/make_env.py DIRECTORY REQUIREMENT…

Works where Debian's python3 lacks `ensurepip` (python3-venv not installed, no sudo): pip then comes from the package index as
a wheel, which can run itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import venv
from pathlib import Path


def newest_python() -> None:
    """Start over with a later Python if this one is too old."""
    if sys.version_info >= (3, 10):
        return
    for minor in range(14, 9, -1):
        for directory in os.environ.get("PATH", "").split(os.pathsep):
            candidate = os.path.join(directory, f"python3.{minor}")
            if os.access(candidate, os.X_OK):
                os.execv(candidate, [candidate, *sys.argv])
    sys.exit(f"vlogcheck needs Python 3.10 or later; this is {sys.version.split()[0]} and no later one is on PATH")


def pip_wheel(directory: Path) -> Path:
    """Download pip's wheel from the package index."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    page = f"{index}/pip/"
    request = urllib.request.Request(page, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request) as answer:
        files = json.load(answer)["files"]
    wheels = [item for item in files if item["filename"].endswith("-py3-none-any.whl") and not item.get("yanked")]
    finals = [item for item in wheels if item["filename"].split("-")[1].replace(".", "").isdigit()]
    newest = max(finals, key=lambda item: tuple(map(int, item["filename"].split("-")[1].split("."))))
    target = directory / newest["filename"]
    urllib.request.urlretrieve(urllib.parse.urljoin(page, newest["url"]), target)
    return target


def main(directory: str, requirements: list[str]) -> None:
    """Make the environment and install the requirements."""
    root = Path(directory)
    python = root / "bin" / "python"
    try:
        import ensurepip  # noqa: F401

        venv.create(root, with_pip=True, clear=True, symlinks=True)
        pip = [str(python), "-m", "pip"]
    except (ImportError, subprocess.CalledProcessError):
        venv.create(root, with_pip=False, clear=True, symlinks=True)
        with tempfile.TemporaryDirectory() as scratch:
            wheel = pip_wheel(Path(scratch))
            subprocess.run([str(python), f"{wheel}/pip", "install", "--quiet", "pip"], check=True)
        pip = [str(python), "-m", "pip"]
    options = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *options, *requirements], check=True)
    if "-e" in requirements:  # pip compiles what it copies, not what stays where it is: the first run would pay for it
        subprocess.run([str(python), "-m", "compileall", "-q", "src"], check=True)
    (root / "ready").touch()


if __name__ == "__main__":
    newest_python()
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
