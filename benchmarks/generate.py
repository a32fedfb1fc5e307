"""Write a server log of any size: a start-up, then a realistic mix of access, metrics and request lines. Seeded.

    python benchmarks/generate.py --size 500MB --metrics 0.003 --requests 0.10 mixed.log

Shares are shares of lines. The same seed and options give the same bytes.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parents[1]
START_UP = ROOT / "fixtures/logs/0.24.0/llama-load.log"
BLOCK_LINES = 20_000
BLOCKS = 8
UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "": 1}
PROSE = (
    "the of and to in is you that it for was on are as with his they at be this from have or by one had not but what all"
    " were when we there can an your which their said if do will each about how up out them then she many some so these"
    " would other into has more her two like him see time could no make than first been its who now people my made over"
    " did down only way find use may water long little very after words called just where most know summarise explain"
    " translate write python function server database table model latency error quarterly revenue customer contract"
    " paragraph sentence answer question context document"
)
WORDS = PROSE.split()
RARE = ("memory", "tokens", "blocks", "cache", "GiB")
"""Words of the subject, as prompts have them now and then: a prefilter finds the line, and it says nothing."""
RARITY = 300
PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/health", "/metrics", "/v1/models")
STATUS = ("200 OK",) * 40 + ("400 Bad Request", "422 Unprocessable Entity", "499 Client Closed Request")


def access_line(rng: random.Random) -> str:
    path = rng.choices(PATHS, (70, 10, 4, 8, 6, 2))[0]
    verb = "GET" if path in ("/health", "/metrics", "/v1/models") else "POST"
    address = f"10.{rng.randrange(4)}.{rng.randrange(256)}.{rng.randrange(1, 255)}:{rng.randrange(32768, 61000)}"
    return f'(APIServer pid=228) INFO:     {address} - "{verb} {path} HTTP/1.1" {rng.choice(STATUS)}'


def metrics_line(rng: random.Random, stamp: str) -> str:
    running = rng.randrange(0, 64)
    waiting = rng.choice((0, 0, 0, rng.randrange(40)))
    return (
        f"(APIServer pid=228) INFO {stamp} [loggers.py:310] Engine 000: Avg prompt throughput: {rng.uniform(0, 9000):.1f}"
        f" tokens/s, Avg generation throughput: {rng.uniform(0, 3000):.1f} tokens/s, Running: {running} reqs, Waiting:"
        f" {waiting} reqs, GPU KV cache usage: {rng.uniform(0, 100):.1f}%, Prefix cache hit rate: {rng.uniform(0, 99):.1f}%"
    )


def request_line(rng: random.Random, stamp: str) -> str:
    name = f"chatcmpl-{rng.getrandbits(128):032x}"
    words = rng.choices(WORDS, k=rng.randrange(5, 80))
    if rng.random() < len(words) / RARITY:
        words[len(words) // 2] = rng.choice(RARE)
    prompt = " ".join(words)
    return (
        f"(APIServer pid=228) INFO {stamp} [logger.py:40] Received request {name}: prompt: {prompt!r}, params:"
        " SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, temperature=0.6,"
        " top_p=0.95, top_k=-1, min_p=0.0, seed=None, stop=[], stop_token_ids=[], bad_words=[],"
        f" include_stop_str_in_output=False, ignore_eos=False, max_tokens={rng.randrange(16, 131072)}, min_tokens=0,"
        " logprobs=None, prompt_logprobs=None, skip_special_tokens=True, spaces_between_special_tokens=True,"
        " truncate_prompt_tokens=None, guided_decoding=None, extra_args=None), prompt_token_ids: None,"
        " prompt_embeds shape: None, lora_request: None."
    )


def block(rng: random.Random, metrics: float, requests: float) -> bytes:
    """A few megabytes of serving, the lines in random order."""
    lines = []
    for _ in range(BLOCK_LINES):
        stamp = f"03-{rng.randrange(1, 29):02} {rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
        draw = rng.random()
        if draw < metrics:
            lines.append(metrics_line(rng, stamp))
        elif draw < metrics + requests:
            lines.append(request_line(rng, stamp))
        else:
            lines.append(access_line(rng))
    return ("\n".join(lines) + "\n").encode()


def write(out: BinaryIO, size: int, metrics: float, requests: float, seed: int, start_up: bytes) -> None:
    """Write a log of about `size` bytes: it ends with a whole line."""
    rng = random.Random(seed)
    blocks = [block(rng, metrics, requests) for _ in range(min(BLOCKS, size // (1 << 21) + 1))]
    out.write(start_up)
    left = size - len(start_up)
    while left > 0:
        piece = rng.choice(blocks)
        if len(piece) > left:
            piece = piece[: piece.rfind(b"\n", 0, left) + 1]
            left = 0
        out.write(piece)
        left -= len(piece)


def byte_size(text: str) -> int:
    number = text.upper().rstrip("B")
    unit = number[-1:] if number[-1:] in UNITS else ""
    return int(float(number.rstrip("KMG")) * UNITS[unit])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="file to write, - for standard output")
    parser.add_argument("--size", type=byte_size, default=10**8, help="such as 500MB or 5GB (powers of ten)")
    parser.add_argument("--metrics", type=float, default=0.003, help="share of metrics lines [0.003]")
    parser.add_argument("--requests", type=float, default=0.10, help="share of request lines [0.10]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start-up", type=Path, default=START_UP, help="log to begin with")
    args = parser.parse_args()
    with sys.stdout.buffer if args.path == "-" else open(args.path, "wb") as out:
        write(out, args.size, args.metrics, args.requests, args.seed, args.start_up.read_bytes())


if __name__ == "__main__":
    main()
