"""How long after the deciding line is written does `vlogcheck --follow` exit with its verdict?

    python benchmarks/follow.py --runs 100

A start-up is written line by line, into a pipe and into a growing file in turn; after the line that decides nothing more comes.
Prints the median, the worst, and the share of runs within 100 ms. What is measured includes the end of the process.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START_UP = ROOT / "fixtures/logs/0.24.0/llama-load.log"
DECIDES = b"Maximum concurrency for "
COMMAND = (sys.executable, "-m", "vlogcheck", "--follow", "--expect-concurrency", "1", "--timeout", "60s")


def lines() -> list[bytes]:
    """The start-up up to and including the line that decides."""
    whole = START_UP.read_bytes().splitlines(keepends=True)
    return whole[: 1 + next(number for number, line in enumerate(whole) if DECIDES in line)]


def until_watching(process: subprocess.Popen[bytes]) -> None:
    """Wait for the first phase to be told: from then on the command only waits for lines."""
    assert process.stderr is not None
    assert process.stderr.readline()


def one_run(folder: Path, through_pipe: bool) -> float:
    """Seconds from the deciding line to the end of the process."""
    *before, last = lines()
    log = folder / "serve.log"
    log.write_bytes(b"")
    process = subprocess.Popen(
        [*COMMAND, "-" if through_pipe else str(log)],
        stdin=subprocess.PIPE if through_pipe else subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None or not through_pipe
    with log.open("ab", buffering=0) if not through_pipe else process.stdin as sink:  # type: ignore[union-attr]
        for line in before:
            sink.write(line)
        sink.flush()
        until_watching(process)
        time.sleep(0.3)
        began = time.perf_counter()
        sink.write(last)
        sink.flush()
        status = process.wait()  # with a limit of its own, Python would look ever more seldom; the command has one
        took = time.perf_counter() - began
    if status != 0:
        raise SystemExit(f"exit status {status} instead of a pass")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        for name, through_pipe in (("pipe", True), ("file", False)):
            took = sorted(one_run(Path(folder), through_pipe) for _ in range(runs))
            within = sum(seconds <= 0.1 for seconds in took)
            print(
                f"{name}: median {statistics.median(took) * 1e3:.0f} ms, worst {took[-1] * 1e3:.0f} ms,"
                f" {within} of {runs} within 100 ms"
            )


if __name__ == "__main__":
    main()
