"""Lines that were made to cost: of a known wording but for a word, or beginnings of messages that never go on.

Each is of a size at which anything but one pass over it would take minutes.
"""

from __future__ import annotations

import json

import pytest

import vlogcheck
from vlogcheck.smi import read_smi

from .conftest import ROOT

P = "INFO 02-20 00:01:02 [core.py:77] "


def told(log: str) -> list[str]:
    """Return the messages that are told of as unrecognised."""
    seen: list[str] = []
    list(vlogcheck.parse(log.encode(), on_unrecognised=lambda line: seen.append(line.message)))
    return seen


@pytest.mark.parametrize("wording", ["exit code {}", "{} by SIGKILL", "CUDA {} out of memory", "MPS backend {} memory"])
def test_a_reworded_line_with_one_very_long_word(wording: str) -> None:
    lines = [
        wording.format(f"{chr(97 + first)}{chr(97 + second)}" + "x" * 900) for first in range(26) for second in range(8)
    ]
    assert told("".join(f"{P}{line}\n" for line in lines)) == lines


@pytest.mark.parametrize("opening", ["GPU KV cache size: 1", "Free memory on device", "CUDA out of memory."])
@pytest.mark.parametrize("piece", ["", "GiB memory\n", "Try increasing\n"])
def test_messages_that_begin_and_never_go_on(opening: str, piece: str) -> None:
    log = "".join(f"(Worker pid={number}) {P}{opening}\n{piece}" for number in range(1, 4001))
    records = list(vlogcheck.parse(log.encode()))
    assert len(records) in (0, 4000)


def test_no_blocks_by_hand() -> None:
    banner = P + "Initializing a V1 LLM engine (v0.12.0) with config: model='m', max_seq_len=4096,\n"
    log = f"{banner}{P}Overriding num_gpu_blocks=512 with num_gpu_blocks_override=0\n"
    report = vlogcheck.check(log.encode(), select="VL314")
    (finding,) = report.findings
    assert finding.observed == "0 blocks, 0.00% of it"


@pytest.mark.parametrize(
    "row", ["|  0 a " + " " * 200_000, "|  0 a " + "x  " * 60_000, "| 0 N/A N/A 1 C " + "1 " * 90_000, "| 1 x" * 50_000]
)
def test_a_row_of_a_card_tool_without_an_end(row: str) -> None:
    head = "NVIDIA-SMI 550.54 Driver Version: 550.54 CUDA Version: 12.4\n"
    card = (
        "|   0  NVIDIA A10                     On  | 00000000:00:1E.0 Off |                    0 |\n"
        "|  0%   23C    P8               9W / 150W |     100MiB / 23028MiB |      0%      Default |\n"
    )
    (found,) = read_smi(f"{head}{row}\n{card}{row}\n".encode()).cards
    assert (found.name, found.total.mid) == ("NVIDIA A10", 23028 << 20)


# What users write

PASTED = sorted((ROOT / "fixtures/logs").glob("0.*/*.log"))[::6]
REQUESTS = (
    "INFO 02-20 00:01:02 [logger.py:39] Received request cmpl-1-0: prompt: {}, params: SamplingParams(n=1), lora_request: None.",
    "INFO 02-20 00:01:02 logger.py:39] Received request cmpl-1-0: params: SamplingParams(stop=[{}]), lora_request: None.",
    "DEBUG 02-20 00:01:02 [entrypoints/logger.py:38] Request cmpl-1-0 details: prompt: {}, prompt_token_ids: [1].",
    "(APIServer pid=7) INFO 02-20 00:01:02 [logger.py:76] Generated response cmpl-1-0: output: {}, finish_reason: stop",
)


@pytest.mark.parametrize("line", REQUESTS)
@pytest.mark.parametrize("way", ["as it is", "in one line", "cut"])
def test_a_log_that_a_user_asks_about_is_not_the_servers(line: str, way: str) -> None:
    for path in PASTED:
        log = path.read_text("utf-8", "replace")[:30_000]
        prompt = repr("Why's that?\n" + (log.replace("\n", " ") if way == "in one line" else log))
        text = line.partition("{}")[0] + prompt[:-1] if way == "cut" else line.replace("{}", prompt)
        assert not list(vlogcheck.parse((text + "\n").encode())), path
        assert not told(text + "\n"), path


def test_a_request_body_that_is_a_log() -> None:
    body = json.dumps({"prompt": P + "GPU KV cache size: 1 tokens " + P + 'it\'s "x"'})
    for text in (body, body[:-5]):
        line = f"DEBUG 02-20 00:01:02 [request_logger.py:74] Request cmpl-1 JSON body: {text}\n"
        assert not told(line)
        assert not list(vlogcheck.parse(line.encode()))


def test_what_stands_behind_a_logged_request_is_read() -> None:
    request = REQUESTS[0].replace("{}", repr(P + "GPU KV cache size: 1 tokens " + P + "it's"))
    (record,) = vlogcheck.parse(f"{request}{P}GPU KV cache size: 2 tokens\n".encode())
    assert record.to_dict()["tokens"] == 2


@pytest.mark.parametrize("before", ["", "(APIServer pid=7) ", "vllm-1  | ", "0: "])
@pytest.mark.parametrize("behind", ["", P + "GPU KV cache size: 2,000 tokens"])
def test_lines_of_the_web_server_in_a_prompt(before: str, behind: str) -> None:
    request = REQUESTS[0].replace("{}", repr("why INFO: Application startup complete. INFO:     Shutting down"))
    assert not told(f"{before}{request}{behind}\n")
    assert not [r for r in vlogcheck.parse(f"{before}{request}{behind}\n".encode()) if r.source is None]


def test_quotes_nobody_closes() -> None:
    request = REQUESTS[0].partition("{}")[0]
    assert not told(request + "'' " * 100_000 + P + "\n")
    assert not told(request + (P + "'\"'") * 5_000 + "\n")
    assert not told(request + "\\" * 300_000 + "'" + P + "\n")
