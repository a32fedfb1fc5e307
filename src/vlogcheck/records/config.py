"""Configuration as vLLM resolves it before the engine starts: lengths, budgets, types, modes."""

from __future__ import annotations

from typing import Any

from vlogcheck.template import Record, Template, Word

__all__ = [
    "BudgetDefault",
    "ChunkedPrefill",
    "DraftLengthClamp",
    "DtypeCast",
    "MaxModelLen",
    "ModelArchitecture",
]


class MaxModelLen(Record):
    """Longest context one model configuration resolves to (config/model.py).

    Once per configuration: a second line with another number is a drafter's. Auto-fit and a drafter can change it later.
    """

    max_model_len: int
    """Tokens."""

    templates = (
        Template("Using max model len {max_model_len}", versions=">=0.9.2", example="Using max model len 131072"),
        Template(
            "Updated max_model_len to {max_model_len}", versions=">=0.14.0", example="Updated max_model_len to 65536"
        ),
    )


class DraftLengthClamp(Record):
    """The drafter's context is shorter and limits the target's (config/vllm.py, V2 model runner)."""

    draft_max_model_len: int
    """The drafter's longest context in tokens: the length from now on."""
    target_max_model_len: int
    """The target's longest context in tokens, given up."""

    templates = (
        Template(
            "The draft model's max_model_len ({draft_max_model_len}) is smaller than the target model's"
            " ({target_max_model_len}) and the V2 model runner can't skip speculation for longer sequences; reducing"
            " max_model_len to {_}.",
            versions=">=0.33.0",
            example="The draft model's max_model_len (4096) is smaller than the target model's (131072) and the V2"
            " model"
            " runner can't skip speculation for longer sequences; reducing max_model_len to 4096.",
        ),
    )


class ModelArchitecture(Record):
    """The model class that serves (config/model.py)."""

    architecture: Word
    """Class name, such as `LlamaForCausalLM`."""

    templates = (
        Template(
            "Resolved architecture: {architecture}",
            versions=">=0.10.1",
            example="Resolved architecture: LlamaForCausalLM",
        ),
    )


class DtypeCast(Record):
    """The engine computes in another type than the checkpoint states (config/model.py)."""

    from_dtype: Word
    """Type in the checkpoint."""
    to_dtype: Word
    """Type in the engine."""

    templates = (
        Template(
            "Casting {from_dtype} to {to_dtype}.",
            versions=">=0.2.0",
            example="Casting torch.bfloat16 to torch.float16.",
        ),
        Template(
            "Downcasting {from_dtype} to {to_dtype}.",
            versions=">=0.4.3",
            example="Downcasting torch.float32 to torch.bfloat16.",
        ),
        Template(
            "Upcasting {from_dtype} to {to_dtype}.",
            versions=">=0.4.3",
            example="Upcasting torch.float16 to torch.float32.",
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Name the types without their module."""
        return {name: value.removeprefix("torch.") for name, value in values.items()}


class ChunkedPrefill(Record):
    """Chunked prefill is on; the only INFO line that states the token budget (config/scheduler.py)."""

    max_num_batched_tokens: int | None = None
    """Tokens one step may process."""

    templates = (
        Template(
            "Chunked prefill is enabled with max_num_batched_tokens={max_num_batched_tokens}.",
            versions=">=0.5.3",
            example="Chunked prefill is enabled with max_num_batched_tokens=8192.",
        ),
        Template(
            "Chunked prefill is enabled (EXPERIMENTAL).",
            versions=">=0.4.1,<0.5.3",
            example="Chunked prefill is enabled (EXPERIMENTAL).",
        ),
        Template(
            "Chunked prefill is enabled by default for models with max_model_len > 32K. {_}",
            versions=">=0.5.3,<0.11.0",
            example="Chunked prefill is enabled by default for models with max_model_len > 32K. Chunked prefill"
            " might not work"
            " with some features or models. If you encounter any issues, please disable by launching with"
            " --enable-chunked-prefill=False.",
        ),
    )


class BudgetDefault(Record):
    """A budget nobody set, chosen for how the engine is used (engine/arg_utils.py)."""

    max_num_batched_tokens: int | None = None
    """Tokens one step may process."""
    max_num_seqs: int | None = None
    """Requests that may run at once."""
    usage_context: Word
    """Who starts the engine, such as `OPENAI_API_SERVER`."""

    templates = (
        Template(
            "Setting max_num_batched_tokens to {max_num_batched_tokens} for {usage_context} usage context.",
            versions=">=0.6.5,<0.11.1",
            example="Setting max_num_batched_tokens to 2048 for OPENAI_API_SERVER usage context.",
        ),
        Template(
            "Setting max_num_seqs to {max_num_seqs} for {usage_context} usage context.",
            versions=">=0.8.0,<0.11.1",
            example="Setting max_num_seqs to 256 for OPENAI_API_SERVER usage context.",
        ),
        Template(
            "Defaulting max_num_batched_tokens to {max_num_batched_tokens} for {usage_context} usage context.",
            versions=">=0.11.1",
            example="Defaulting max_num_batched_tokens to 8192 for LLM_CLASS usage context.",
        ),
        Template(
            "Defaulting max_num_seqs to {max_num_seqs} for {usage_context} usage context.",
            versions=">=0.11.1",
            example="Defaulting max_num_seqs to 1024 for OPENAI_API_SERVER usage context.",
        ),
    )
