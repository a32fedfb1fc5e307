"""Checks of options: taking the remedy removes the finding."""

from __future__ import annotations

import pytest

from vlogcheck.api import check

BANNER = "INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v{version}) with config: model='m', {config}"


def log(arguments: dict[str, object], config: dict[str, object], *lines: str, version: str = "0.11.0") -> bytes:
    settings = {"dtype": "torch.bfloat16", "max_seq_len": 4096, **config}
    return "\n".join(
        [
            f"INFO 03-01 10:00:00 [api_server.py:1] vLLM API server version {version}",
            f"INFO 03-01 10:00:00 [utils.py:233] non-default args: { ({'model': 'm', **arguments})!r}",
            BANNER.format(version=version, config=", ".join(f"{k}={v}" for k, v in settings.items())),
            *lines,
            "INFO:     Application startup complete.\n",
        ]
    ).encode()


def codes(data: bytes) -> dict[str, dict[str, object]]:
    return {f.code: dict(f.fix) for f in check(data).findings if f.code.startswith("VL6")}


def test_the_stated_number_of_requests() -> None:
    lines = ("INFO 03-01 10:00:09 [kv_cache_utils.py:1091] Maximum concurrency for 512 tokens per request: 770.88x",)
    found = codes(log({"max_model_len": 512}, {"max_seq_len": 512}, *lines))
    assert found == {"VL611": {"max_num_seqs": 770}}
    assert codes(log({"max_model_len": 512, **found["VL611"]}, {"max_seq_len": 512}, *lines)) == {}


@pytest.mark.parametrize(
    ("stated", "used", "flagged"), [(4096, 4096, False), (32768, 4096, True), (-1, 4096, False), ("auto", 4096, False)]
)
def test_a_length_that_is_not_the_one_asked_for(stated: object, used: int, flagged: bool) -> None:
    found = codes(log({"max_model_len": stated}, {"max_seq_len": used}))
    assert ("VL601" in found) is flagged
    if flagged:
        assert "VL601" not in codes(log(found["VL601"], {"max_seq_len": used}))


@pytest.mark.parametrize(
    ("stated", "used", "flagged"),
    [
        ("fp8", "fp8_e4m3", False),
        ("auto", "auto", False),
        (None, "fp8", True),
        (None, "auto", False),
        (None, "bfloat16", False),
    ],
)
def test_a_quantised_kv_cache_nobody_asked_for(stated: str | None, used: str, flagged: bool) -> None:
    arguments: dict[str, object] = {"kv_cache_dtype": stated} if stated else {}
    found = codes(log(arguments, {"kv_cache_dtype": used}))
    assert ("VL603" in found) is flagged
    if flagged:
        assert "VL603" not in codes(log(found["VL603"], {"kv_cache_dtype": used}))


@pytest.mark.parametrize(("stated", "weight"), [(None, "note"), (32, "warning"), (64, None)])
def test_a_block_size_chosen_by_the_back_end(stated: int | None, weight: str | None) -> None:
    line = "INFO 03-01 10:00:02 [cuda.py:322] Setting kv cache block size to 64 for FLASHMLA backend."
    arguments: dict[str, object] = {"block_size": stated} if stated else {}
    found = [f for f in check(log(arguments, {}, line, version="0.20.2")).findings if f.code == "VL604"]
    assert [f.severity.value for f in found if f.severity] == ([weight] if weight else [])


@pytest.mark.parametrize("given", [{"enforce_eager": True}, {}])
def test_eager_mode_that_was_asked_for_is_no_finding(given: dict[str, object]) -> None:
    line = "WARNING 03-01 10:00:00 [config.py:1] CUDA graph is not supported on XPU, fallback to the eager mode."
    assert ("VL608" in codes(log(given, {}, line, version="0.9.1"))) is not bool(given)
