"""Measure vlogcheck against ripgrep, GNU grep, a naive `regex` loop and `wc -l`, side by side, as whole processes.

    python benchmarks/run.py                 # a 500 MB log, cold start, many logs, number of templates
    python benchmarks/run.py --sizes         # also cost against size, 1 MB to 2 GB (and 5 GB with --huge)

Everything is the operating system's own account of each finished process: CPU time is user plus system, memory the peak
resident set. Commands take turns, figures are medians, and what counts is the ratio: absolute times are this machine's. Prints
Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from generate import START_UP, write  # type: ignore[import-not-found]  # beside this script

from vlogcheck._anchors import fixed_texts, scan_anchors, scanner
from vlogcheck.scan import BLOCK
from vlogcheck.template import all_templates

PYTHON = sys.executable
VLOGCHECK = [PYTHON, "-c", "from vlogcheck._process import process; process()"]
"""As the installed script does."""
NAIVE = """
import regex, sys
from vlogcheck.template import all_records
core = ("EngineConfig ServerArgs WeightsLoaded WeightsRead KVCacheMemory DeviceBlocks KVCacheCapacity MaxConcurrency GraphCapture"
        " EngineInit Ready FreeMemoryTooLow KVCacheTooSmall NoKVCacheMemory EngineStats").split()
names = core if sys.argv[2] == "core" else all_records()
patterns = [regex.compile(t.lines()[0].pattern) for name in names for t in all_records()[name].templates if not t.embedded]
hits = 0
for line in open(sys.argv[1], errors="replace"):
    for pattern in patterns:
        if pattern.search(line):
            hits += 1
            break
print(hits)
"""
"""What one writes first: every line against every expression, either of the ledger's own fifteen records or of all that are
known. It only counts the lines that match."""


STARTER = """
import json, os, sys, time
for request in sys.stdin:
    command, source, pipe = json.loads(request)
    feed = None
    if pipe:
        out, into = os.pipe()
        feed = os.posix_spawnp("cat", ["cat", source], os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, into, 1), (os.POSIX_SPAWN_CLOSE, out), (os.POSIX_SPAWN_CLOSE, into)])
        os.close(into)
    else:
        out = os.open(source, os.O_RDONLY)
    sink = os.open("/dev/null", os.O_WRONLY)
    result = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)
    began = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, out, 0), (os.POSIX_SPAWN_DUP2, result, 1), (os.POSIX_SPAWN_DUP2, sink, 2)])
    _, _, used = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    for descriptor in (out, sink, result):
        os.close(descriptor)
    if feed is not None:
        os.waitpid(feed, 0)
    print(json.dumps([used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024]), flush=True)
"""
"""Starts what is measured. A child's peak memory is never below that of the process that started it, so this one is small;
standard output goes to a file, because grep stops at the first match when nobody reads it."""


class Run(NamedTuple):
    cpu: float
    wall: float
    peak: int


class Starter:
    """A small process that runs commands and says what the system accounts to each alone."""

    def __init__(self, folder: Path) -> None:
        result = folder / "result.txt"
        result.touch()
        self._process = subprocess.Popen(
            [PYTHON, "-S", "-c", STARTER, str(result)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, command: list[str], source: str = os.devnull, pipe: bool = False) -> Run:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, source, pipe]) + "\n")
        self._process.stdin.flush()
        return Run(*json.loads(self._process.stdout.readline()))


def median(runs: list[Run]) -> Run:
    return Run(*(statistics.median(column) for column in zip(*runs, strict=True)))  # type: ignore[arg-type]


def compete(starter: Starter, commands: dict[str, tuple[list[str], bool]], log: Path, times: int) -> dict[str, Run]:
    """Run each command in turn, after one turn that is not counted; return the medians."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(times + 1):
        for name, (command, pipe) in commands.items():
            result = starter.run(command, str(log), pipe)
            if turn:
                runs[name].append(result)
    return {name: median(of) for name, of in runs.items()}


def naive(starter: Starter, logs: list[Path], which: str, size: int) -> Run:
    """Return what the naive loop takes for `size` bytes, from a small log and one twice as large: its start counts once."""
    small, large = (median([starter.run([PYTHON, "-c", NAIVE, str(log), which]) for _ in range(3)]) for log in logs)
    first, second = (log.stat().st_size for log in logs)
    more = (size - second) / (second - first)
    return Run(large.cpu + (large.cpu - small.cpu) * more, large.wall + (large.wall - small.wall) * more, large.peak)


def make(folder: Path, size: int, metrics: float = 0.003) -> Path:
    log = folder / f"{size}-{metrics}.log"
    if not log.exists():
        with log.open("wb") as out:
            write(out, size, metrics, 0.10, 1, START_UP.read_bytes())
    return log


def anchors_file(folder: Path, anchors: list[bytes]) -> Path:
    path = folder / f"anchors-{len(anchors)}.txt"
    path.write_bytes(b"\n".join(anchors) + b"\n")
    return path


def table(head: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join(" --- " if not at else " ---: " for at in range(len(head))) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def throughput(starter: Starter, folder: Path, size: int, times: int, anchors: Path) -> None:
    for metrics in (0.003, 0.02):
        log = make(folder, size, metrics)
        commands: dict[str, tuple[list[str], bool]] = {
            "vlogcheck LOG": ([*VLOGCHECK, str(log)], False),
            "cat LOG \\| vlogcheck -": ([*VLOGCHECK, "-"], True),
            "vlogcheck parse LOG": ([*VLOGCHECK, "parse", str(log)], False),
            "wc -l": (["wc", "-l", str(log)], False),
            "grep -c -F -f": (["grep", "-c", "-F", "-f", str(anchors), str(log)], False),
        }
        if shutil.which("rg"):
            commands["rg -c -F -f"] = (["rg", "-c", "-F", "-f", str(anchors), str(log)], False)
        found = compete(starter, commands, log, times)
        for which, name, share in (("core", "fifteen records", 25), ("all", "all records", 500)):
            found[f"naive `regex` loop, {name} (from {size // share // 10**6} MB)"] = naive(
                starter, [make(folder, size // share // part, metrics) for part in (2, 1)], which, size
            )
        base = found.get("rg -c -F -f", found["grep -c -F -f"])
        print(f"### {size // 10**6} MB, {metrics:.1%} metrics lines, 10 % request lines\n")
        rows = [
            [
                f"`{name}`",
                f"{run.cpu:.2f}",
                f"{size / run.cpu / 1e6:,.0f}",
                f"{run.cpu / base.cpu:.2f}",
                f"{run.peak / 1e6:.0f}",
            ]
            for name, run in sorted(found.items(), key=lambda item: item[1].cpu)
        ]
        table(["whole process", "CPU s", "MB per CPU s", "ratio to ripgrep", "peak MB"], rows)


def against_size(starter: Starter, folder: Path, times: int, huge: bool, anchors: Path) -> None:
    rows = []
    for size in (10**6, 10**7, 10**8, 5 * 10**8, 2 * 10**9, *((5 * 10**9,) if huge else ())):
        log = make(folder, size)
        commands = {"vlogcheck": ([*VLOGCHECK, str(log)], False)}
        if shutil.which("rg"):
            commands["rg"] = (["rg", "-c", "-F", "-f", str(anchors), str(log)], False)
        found = compete(starter, commands, log, times if size < 10**9 else 1)
        own = found["vlogcheck"]
        ratio = f"{own.cpu / found['rg'].cpu:.2f}" if "rg" in found and size >= 10**8 else "–"
        rows.append([f"{size // 10**6:,} MB", f"{own.cpu:.2f}", ratio, f"{own.peak / 1e6:.1f}"])
        if size > 5 * 10**8:
            log.unlink()
    print("### Cost against size\n")
    table(["log", "CPU s", "ratio to ripgrep", "peak MB"], rows)


def against_templates(starter: Starter, folder: Path, size: int) -> None:
    texts = fixed_texts(all_templates())
    log = make(folder, size // 5)
    data = log.read_bytes()
    rows = []
    for count in (25, 100, 250, 500, len(texts)):
        anchors = scan_anchors(texts[:: max(len(texts) // count, 1)][:count])
        find = scanner(anchors)
        began = time.process_time()
        for at in range(0, len(data), BLOCK):
            find(memoryview(data)[at : at + BLOCK])
        own = time.process_time() - began
        command = ["rg", "-c", "-F", "-f", str(anchors_file(folder, anchors)), str(log)]
        other = starter.run(command).cpu if shutil.which("rg") else float("nan")
        rows.append([f"{count}", f"{len(anchors)}", f"{len(data) / own / 1e6:,.0f}", f"{len(data) / other / 1e6:,.0f}"])
    print("### Search alone against number of templates, MB per CPU s\n")
    table(["templates", "anchors", "vlogcheck's search", "ripgrep, same anchors"], rows)


def cold_start(starter: Starter, folder: Path, times: int) -> None:
    small = make(folder, 10**5)
    rows = []
    for name, command, against in (
        ("vlogcheck --version", [*VLOGCHECK, "--version"], "import click"),
        ("vlogcheck LOG of 100 KB", [*VLOGCHECK, str(small)], "import pydantic, click, regex"),
    ):
        found = compete(starter, {"own": (command, False), "base": ([PYTHON, "-c", against], False)}, small, 3 * times)
        own, base = found["own"], found["base"]
        rows.append(
            [f"`{name}`", f"`python -c '{against}'`", f"{own.cpu:.3f}", f"{base.cpu:.3f}", f"{own.cpu / base.cpu:.2f}"]
        )
    print("### Cold start\n")
    table(["whole process", "against", "CPU s", "CPU s", "ratio"], rows)


def many_logs(starter: Starter, folder: Path, count: int) -> None:
    """Copies of a recorded start-up in one directory, on one core and on all."""
    logs = folder / "many"
    logs.mkdir(exist_ok=True)
    for number in range(count):
        (logs / f"server-{number}.log").write_bytes(START_UP.read_bytes())
    rows = []
    for jobs in sorted({1, os.cpu_count() or 1}):
        run = starter.run([*VLOGCHECK, str(logs), "--jobs", str(jobs)])
        rows.append(
            [f"{count:,}", f"{jobs}", f"{run.wall:.1f}", f"{run.cpu / count * 1e3:.0f}", f"{run.peak / 1e6:.0f}"]
        )
    print("### Many logs\n")
    table(["logs", "processes", "wall s", "CPU ms a log", "peak MB of one process"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=500, help="megabytes of the main log [500]")
    parser.add_argument("--times", type=int, default=5, help="counted runs of each command [5]")
    parser.add_argument("--sizes", action="store_true", help="also cost against size, up to 2 GB")
    parser.add_argument("--huge", action="store_true", help="up to 5 GB")
    parser.add_argument("--folder", type=Path, help="where to put the logs [a temporary folder, removed afterwards]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        starter = Starter(folder)
        size = args.size * 10**6
        anchors = anchors_file(folder, scan_anchors(fixed_texts(all_templates())))
        cold_start(starter, folder, args.times)
        many_logs(starter, folder, 300)
        throughput(starter, folder, size, args.times, anchors)
        against_templates(starter, folder, size)
        if args.sizes or args.huge:
            against_size(starter, folder, args.times, args.huge, anchors)


if __name__ == "__main__":
    main()
