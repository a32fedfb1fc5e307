"""Start a server, watch its output, and keep it only if it keeps the promise.

The server runs in its own process group. Its output is passed through unchanged; when the verdict is a failure (or the
time is up) the group is told to stop (TERM, then KILL) and the report says why; otherwise the server stays in the foreground
with signals and exit status passed through, or is left behind with its output in a file (`keep`).
"""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from vlogcheck._tail import POLL_SECONDS, Tail
from vlogcheck._tuples import NamedTuple
from vlogcheck.api import Inquiry, Report
from vlogcheck.live import Event, Watcher

__all__ = ["RunResult", "StartError", "run"]

GRACE_SECONDS = 10.0
"""How long a server that was told to stop (TERM) may take before it is killed."""
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class StartError(OSError):
    """The server's command cannot be started (not found, not executable)."""


class RunResult(NamedTuple):
    """What became of the server."""

    report: Report
    exit_status: int
    """Exit status for the caller: the server's own when it was left running and ended; 1 or 3 when it was stopped."""
    pid: int
    kept: bool
    """Whether the server was left running."""


def run(
    command: Sequence[str], inquiry: Inquiry, *, timeout: float | None = None, keep: Path | None = None,
    until: str = "decided", grace: float = GRACE_SECONDS, on_event: Callable[[Event], None] | None = None,
    on_bytes: Callable[[bytes], None] | None = None, on_report: Callable[[Report], None] | None = None,
) -> RunResult:  # fmt: skip
    """Run `command` and judge its start-up. Raises `StartError`.

    With `keep`, the server writes to that file and is left running after a pass. `on_bytes` gets the output as it comes,
    `on_report` the report the moment it is known.
    """
    with _server(command, keep) as (process, output), ExitStack() as unwatched:
        # Whatever stops this program (a full disk under its output, say): no server is left behind that nobody watches.
        unwatched.callback(_stop, process, iter(()), grace, None)
        watcher = Watcher(inquiry, name=" ".join(command)[:200], until=until)
        with _signals_to(process):
            report = _watch(process, output, watcher, timeout, on_event, on_bytes)
            if on_report is not None:
                on_report(report)
            if report.verdict != "pass":
                if process.poll() is None:
                    _stop(process, output, grace, on_bytes)
                unwatched.pop_all()
                return RunResult(report, report.exit_code, process.pid, kept=False)
            if keep is not None and process.poll() is None:
                unwatched.pop_all()
                return RunResult(report, 0, process.pid, kept=True)
            for data in output:
                if data and on_bytes is not None:
                    on_bytes(data)
            status = process.wait()
        unwatched.pop_all()
        return RunResult(report, 128 - status if status < 0 else status, process.pid, kept=False)


@contextmanager
def _server(
    command: Sequence[str], keep: Path | None
) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[bytes | None]]]:
    """Start the server; give the process and its output as it comes (b"" when there is nothing for a moment)."""
    target = _log_file(keep) if keep is not None else None
    try:
        process = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=target or subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, bufsize=0,
        )  # fmt: skip
    except OSError as error:
        raise StartError(error.errno, f"cannot start {command[0]}: {error.strerror or error}") from None
    finally:
        if target is not None:
            target.close()
    try:
        yield process, (_from_pipe(process) if keep is None else _from_file(process, keep))
    finally:
        if process.stdout is not None:
            process.stdout.close()


def _log_file(path: Path) -> IO[bytes]:
    """Open the file the server's output goes to. Raises `StartError` where it cannot be read back from there."""
    try:
        target = open(path, "ab")  # noqa: SIM115  (closed by the caller)
    except OSError as error:
        raise StartError(error.errno, f"cannot write {path}: {error.strerror or error}") from None
    if not stat.S_ISREG(os.fstat(target.fileno()).st_mode):
        target.close()
        raise StartError(f"cannot keep a log in {path}: no regular file")
    return target


def _from_pipe(process: subprocess.Popen[bytes]) -> Iterator[bytes | None]:
    assert process.stdout is not None
    number = process.stdout.fileno()
    ended = False
    while True:
        ready, _, _ = select.select([number], [], [], 0 if ended else POLL_SECONDS)
        if ready:
            data = os.read(number, 1 << 16)
            if not data:
                return
            yield data
        elif ended:
            return  # a child that outlived the server may still hold the pipe: nothing more is waited for
        else:
            ended = process.poll() is not None  # look once more after the end: the last lines may just have come
            yield b""


def _from_file(process: subprocess.Popen[bytes], path: Path) -> Iterator[bytes | None]:
    ended = False
    for data in Tail(path):
        if data:
            yield data
        elif ended:
            return
        else:
            ended = process.poll() is not None  # look once more after the end: the last lines may just have come
            yield b""
            time.sleep(POLL_SECONDS)


def _watch(
    process: subprocess.Popen[bytes], output: Iterator[bytes | None], watcher: Watcher, timeout: float | None,
    on_event: Callable[[Event], None] | None, on_bytes: Callable[[bytes], None] | None,
) -> Report:  # fmt: skip
    for data in output:
        if data:
            if on_bytes is not None:
                on_bytes(data)
            for event in watcher.feed(data):
                if on_event is not None:
                    on_event(event)
        else:
            watcher.idle()
        if watcher.report is not None:
            return watcher.report
        if timeout is not None and watcher.elapsed >= timeout:
            return watcher.time_out(timeout)
    try:  # it may have closed its output and live on
        status = process.wait(None if timeout is None else max(timeout - watcher.elapsed, 0))
    except subprocess.TimeoutExpired:
        return watcher.time_out(timeout or 0)
    report = watcher.close()
    if report.verdict == "pass" and watcher.until == "decided":
        return report
    if report.verdict == "pass":
        return watcher.inquiry.report(report.facts, f"the server ended with status {status} before it was ready")
    return report


def _stop(
    process: subprocess.Popen[bytes], output: Iterator[bytes | None], grace: float,
    on_bytes: Callable[[bytes], None] | None,
) -> None:  # fmt: skip
    """Tell the server's process group to stop; kill what is left after the grace period. Its output is still passed on."""
    _signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + grace
    for data in output:
        if data and on_bytes is not None:
            on_bytes(data)
        if time.monotonic() >= deadline:  # the output itself ends with the server
            break
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    _signal_group(process, signal.SIGKILL)  # also workers that outlived their parent
    process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        if process.poll() is None:
            process.send_signal(number)


@contextmanager
def _signals_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass the signals a foreground program gets on to the server's group."""

    def forward(number: int, _: FrameType | None) -> None:
        _signal_group(process, number)

    try:
        before = {number: signal.signal(number, forward) for number in _PASSED_ON}
    except ValueError:  # not the main thread: signals are the caller's business
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
