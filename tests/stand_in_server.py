"""Stands in for a vLLM server: replays a recorded log, then behaves as asked.

Usage: python stand_in_server.py LOG [--delay SECONDS] [--then serve|exit|die|flood] [--ignore-term N] [--status N]
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

parser = argparse.ArgumentParser()
parser.add_argument("log", type=Path)
parser.add_argument("--delay", type=float, default=0.0)
parser.add_argument("--then", default="serve")
parser.add_argument("--ignore-term", type=int, default=0)
parser.add_argument("--status", type=int, default=0)
parser.add_argument("--upto", type=int, default=1 << 30)
options = parser.parse_args()
left = options.ignore_term


def on_signal(number: int, _: FrameType | None) -> None:
    global left
    print(f"got {signal.Signals(number).name}", flush=True)
    if number == signal.SIGTERM and left > 0:
        left -= 1
        return
    os._exit(options.status)


for wanted in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(wanted, on_signal)

for line in options.log.read_bytes().splitlines(keepends=True)[: options.upto]:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
    time.sleep(options.delay)

if options.then == "exit":
    sys.exit(options.status)
if options.then == "die":
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    if options.then == "flood":
        sys.stdout.buffer.write(b"INFO:     127.0.0.1:5 - GET /health HTTP/1.1 200 OK\n" * 500)
        sys.stdout.buffer.flush()
    else:
        time.sleep(0.02)
