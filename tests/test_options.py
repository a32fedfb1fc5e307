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


def test_the_fitted_length() -> None:
    fitted = (
        "INFO 03-01 10:00:09 [kv_cache_utils.py:1087] Auto-fit max_model_len: reduced from 131072 to 16896 to fit in available"
        " GPU memory (0.1 GiB available for KV cache)"
    )
    found = codes(log({"max_model_len": -1}, {"max_seq_len": 131072}, fitted, version="0.19.1"))
    assert found == {"VL601": {"max_model_len": 16896}}
    assert codes(log(found["VL601"], {"max_seq_len": 16896}, version="0.19.1")) == {}


@pytest.mark.parametrize(
    ("stated", "used", "flagged"),
    [
        ("fp8", "auto", True),
        ("fp8", "fp8_e4m3", False),
        ("fp8_e5m2", "fp8", True),
        ("auto", "auto", False),
        (None, "fp8", True),
        (None, "auto", False),
        (None, "bfloat16", False),
    ],
)
def test_types_of_the_kv_cache(stated: str | None, used: str, flagged: bool) -> None:
    arguments: dict[str, object] = {"kv_cache_dtype": stated} if stated else {}
    assert ("VL603" in codes(log(arguments, {"kv_cache_dtype": used}))) is flagged


@pytest.mark.parametrize(
    ("version", "profiled", "blocks", "stated", "flagged"),
    [
        ("0.20.2", 0, 512, None, False),
        ("0.20.2", 0, 512, 512, True),
        ("0.20.2", 0, 128, None, True),
        ("0.11.0", 0, 512, None, True),
        ("0.20.2", 1365, 85, 85, True),
    ],
)
def test_only_what_the_user_overrides(
    version: str, profiled: int, blocks: int, stated: int | None, flagged: bool
) -> None:
    line = (
        f"INFO 03-01 10:00:09 [kv_cache_utils.py:1087] Overriding num_gpu_blocks={profiled} with"
        f" num_gpu_blocks_override={blocks}"
    )
    arguments: dict[str, object] = {"num_gpu_blocks_override": stated} if stated else {}
    assert ("VL609" in codes(log(arguments, {}, line, version=version))) is flagged


@pytest.mark.parametrize("given", [{"enforce_eager": True}, {}])
def test_eager_mode_that_was_asked_for_is_no_finding(given: dict[str, object]) -> None:
    line = "WARNING 03-01 10:00:00 [config.py:1] CUDA graph is not supported on XPU, fallback to the eager mode."
    assert ("VL608" in codes(log(given, {}, line, version="0.9.1"))) is not bool(given)
