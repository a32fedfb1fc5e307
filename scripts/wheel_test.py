"""Run an installed vlogcheck the way users do, from outside the checkout.

Usage: python scripts/wheel_test.py COMMAND FIXTURES
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def run(*arguments: str, status: int = 0, stdin: bytes | None = None) -> str:
    """Run a command, insist on its exit status, return its output."""
    done = subprocess.run(arguments, capture_output=True, input=stdin, check=False)
    assert done.returncode == status, (
        f"{arguments}: exit status {done.returncode}, not {status}\n{done.stderr.decode()}"
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.stdout.decode()


def main(command: str, fixtures: Path) -> None:
    """Check that the parts a wheel can lose (pages, typing marker, entry points) are there and work."""
    import vlogcheck

    assert (Path(vlogcheck.__file__).parent / "py.typed").exists()
    assert "site-packages" in vlogcheck.__file__, f"not the installed package: {vlogcheck.__file__}"
    assert run(command, "--version").startswith("vlogcheck ")
    codes = [line.split()[0] for line in run(command, "list", "checks").splitlines()[1:]]
    assert len(codes) > 10
    for code in codes:
        assert run(command, "explain", code).startswith(f"# {code}: ")
    log = next(path for path in sorted(fixtures.glob("0.3*/*.log")) if b"KV cache size" in path.read_bytes())
    report = json.loads(run(command, str(log), "--format", "json"))
    assert report["verdict"] == "pass", report
    assert json.loads(run(command, "parse", str(log)).splitlines()[0])["record"]
    run(command, str(log), "--expect-concurrency", "100000000", status=1)
    run(command, "-", stdin=b"no vLLM log\n", status=3)
    run(command, "/no/such/file", status=2)
    print(f"wheel test: {len(codes)} checks explained, {log.name} passes")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
