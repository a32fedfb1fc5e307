"""The options that say what is asked of a log, shared by the commands that judge one."""

from __future__ import annotations

from typing import Any

import click

from vlogcheck.cli._types import Count, Number, Size

__all__ = ["arguments_of", "question"]

_QUESTION = (
    click.option("--expect-concurrency", type=Number(), metavar="N", help="Requests that must run at once."),
    click.option(
        "--context",
        type=Count(),
        metavar="TOKENS",
        help="Tokens per request [default: the log's own length].",
    ),
    click.option(
        "--expect-tokens", type=Count(), metavar="TOKENS", help="Tokens the KV cache of one engine must hold."
    ),
    click.option("--expect-weights", "--weights", type=Size(memory=True), help="Weights per rank, such as 15.4GiB."),
    click.option(
        "--expect-kv-bytes-per-token",
        "--kv-bytes-per-token",
        type=Size(),
        help="KV cache bytes per token, such as 64KiB.",
    ),
    click.option("--total-memory", type=Size(card=True), help="Device memory in total, such as 65520MiB."),
    click.option(
        "--gpu-memory-utilization", type=Number(1), metavar="SHARE", help="Share vLLM was to take, such as 0.9."
    ),
    click.option("--shared-card", is_flag=True, help="Other programs use the card too."),
    click.option("--model-config", type=click.Path(), help="The model's config.json or a directory holding one."),
    click.option(
        "--smi",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Saved output of nvidia-smi, rocm-smi --showmeminfo vram or npu-smi info, taken while it serves.",
    ),
    click.option(
        "--metrics",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Saved /metrics page of the server.",
    ),
    click.option(
        "--select", multiple=True, metavar="CODE", help="Only these checks (VL4 means all VL4xx). Repeatable."
    ),
    click.option("--ignore", multiple=True, metavar="CODE", help="Not these checks. Repeatable."),
    click.option(
        "--fail-on",
        type=click.Choice(["note", "warning", "error"]),
        default="error",
        show_default=True,
        help="Lowest severity that fails.",
    ),
    click.option("--strict", is_flag=True, help="Inconclusive when any check was skipped."),
    click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True),
    click.option("--verbose", "-v", is_flag=True, help="All reasons for skipped checks, notes in full."),
)


def question(command: Any) -> Any:
    """Add the options that say what is asked of a log: shared by the commands that judge one."""
    for option in reversed(_QUESTION):
        command = option(command)
    return command


def arguments_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as arguments of `vlogcheck.check`."""
    from vlogcheck.expect import Expectation

    expectation = Expectation(
        concurrency=options["expect_concurrency"], context=options["context"], tokens=options["expect_tokens"],
        weights=options["expect_weights"], kv_bytes_per_token=options["expect_kv_bytes_per_token"],
        total_memory=options["total_memory"], gpu_memory_utilization=options["gpu_memory_utilization"],
        shared_card=options["shared_card"],
    )  # fmt: skip
    return {
        "expect": expectation,
        "model": options["model_config"],
        "select": _split(options["select"]),
        "ignore": _split(options["ignore"]),
        "fail_on": options["fail_on"],
        "strict": options["strict"],
        "smi": options["smi"],
        "metrics": options["metrics"],
    }


def _split(values: tuple[str, ...]) -> list[str]:
    return [code for value in values for code in value.split(",")]
