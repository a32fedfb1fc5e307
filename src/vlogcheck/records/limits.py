"""Options that do not fit each other, and requests that do not fit the server."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = [
    "BatchedTokensMismatch",
    "DuplicateOptions",
    "InvalidKVCacheSpace",
    "MaxModelLenTooLarge",
    "PromptTooLong",
    "RequestTooLargeForCache",
    "SwapSpaceExhausted",
    "SwapSpaceTooLarge",
    "UtilizationOutOfRange",
]

_DERIVED = (
    "User-specified max_model_len ({max_model_len}) is greater than the derived max_model_len"
    " ({derived_from}=[[{derived_max_model_len}]][[.{_}]][[None]]"
)


class MaxModelLenTooLarge(Record):
    """The length asked for is longer than the model's (config/model.py): refused, or a warning when overridden."""

    max_model_len: int
    """The length asked for."""
    derived_from: Word
    """The key in the model's configuration that limits it."""
    derived_max_model_len: int | None = None
    """Its value without decimals (scaled RoPE prints some); None where the configuration has none."""
    model_max_length: int | None = None
    """The tokenizer's limit, where it has one."""

    templates = (
        Template(
            _DERIVED + " or model_max_length=[[{model_max_length}]][[.{_}]][[None]] in model's config.json).{_}",
            versions=">=0.4.0",
            example="User-specified max_model_len (40000) is greater than the derived max_model_len"
            " (max_position_embeddings=32768 or model_max_length=None in model's config.json). To allow overriding this"
            " maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. VLLM_ALLOW_LONG_MAX_MODEL_LEN must be used with"
            " extreme caution. If the model uses relative position encoding (RoPE), positions exceeding"
            " derived_max_model_len lead to nan. If the model uses absolute position encoding, positions exceeding"
            " derived_max_model_len will cause a CUDA array out-of-bounds error.",
        ),
        Template(
            _DERIVED + " in model's config.json).{_}",
            versions=">=0.2.0,<0.4",
            example="User-specified max_model_len (40000) is greater than the derived max_model_len"
            " (max_position_embeddings=32768 in model's config.json). This may lead to incorrect model outputs or CUDA"
            " errors. Make sure the value is correct and within the model context size.",
        ),
    )


class BatchedTokensMismatch(Record):
    """`max_num_batched_tokens` does not fit the other limits (config/scheduler.py): refused or warned of."""

    max_num_batched_tokens: int
    """Tokens of one step."""
    max_model_len: int | None = None
    """Longest request, when a step is shorter than that."""
    max_num_seqs: int | None = None
    """Requests of one step, when there are more of them than tokens."""
    reachable_tokens: int | None = None
    """max_num_seqs × max_model_len, when a step is larger than that."""

    templates = (
        Template(
            "max_num_batched_tokens ({max_num_batched_tokens}) is smaller than max_model_len ({max_model_len}). This"
            " effectively limits the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer"
            " sequences. Please increase max_num_batched_tokens or decrease max_model_len.",
            versions=">=0.2.0",
            example="max_num_batched_tokens (512) is smaller than max_model_len (4096). This effectively limits the maximum"
            " sequence length to max_num_batched_tokens and makes vLLM reject longer sequences. Please increase"
            " max_num_batched_tokens or decrease max_model_len.",
        ),
        Template(
            "max_num_batched_tokens ({max_num_batched_tokens}) must be greater than or equal to max_num_seqs"
            " ({max_num_seqs}).",
            versions=">=0.2.0",
            example="max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256).",
        ),
        Template(
            "max_num_batched_tokens ({max_num_batched_tokens}) exceeds max_num_seqs * max_model_len ({reachable_tokens})."
            " This may lead to unexpected behavior.",
            versions=">=0.9.2",
            example="max_num_batched_tokens (8192) exceeds max_num_seqs * max_model_len (4096). This may lead to unexpected"
            " behavior.",
        ),
        Template(
            "max_num_batched_tokens ({max_num_batched_tokens}) exceeds max_num_seqs* max_model_len ({reachable_tokens})."
            " This may lead to unexpected behavior.",
            versions=">=0.9.0,<0.9.2",
            example="max_num_batched_tokens (8192) exceeds max_num_seqs* max_model_len (4096). This may lead to unexpected"
            " behavior.",
        ),
    )


class UtilizationOutOfRange(Record):
    """Refused to start: a utilization above 1 (config/cache.py)."""

    gpu_memory_utilization: float
    """Share asked for."""

    templates = (
        Template(
            "GPU memory utilization must be less than 1.0. Got {gpu_memory_utilization}.",
            versions=">=0.2.0,<0.11.1",
            example="GPU memory utilization must be less than 1.0. Got 1.1.",
        ),
    )


_SWAP = "{swap_gib} GiB out of the {total_gib} GiB total CPU memory is allocated for the swap space."


class SwapSpaceTooLarge(Record):
    """The swap space takes much of the host's memory (config/cache.py): refused above 70 %, else a warning."""

    swap_gib: GiB
    """Swap space of all ranks."""
    total_gib: GiB
    """The host's memory."""
    refused: bool
    """Whether the start was refused."""

    templates = (
        Template(
            "Too large swap space. " + _SWAP,
            versions=">=0.2.0,<0.18",
            example="Too large swap space. 16.00 GiB out of the 15.50 GiB total CPU memory is allocated for the swap space.",
            values={"refused": True},
        ),
        Template(
            "Possibly too large swap space. " + _SWAP,
            versions=">=0.2.0,<0.18",
            example="Possibly too large swap space. 8.00 GiB out of the 15.50 GiB total CPU memory is allocated for the swap"
            " space.",
            values={"refused": False},
        ),
    )


class SwapSpaceExhausted(Record):
    """V0 ended because the swap space was full (core/scheduler.py)."""

    templates = (
        Template(
            "Aborted due to the lack of CPU swap space. Please increase the swap space to avoid this error.",
            versions=">=0.2.0,<0.11",
            example="Aborted due to the lack of CPU swap space. Please increase the swap space to avoid this error.",
        ),
    )


class InvalidKVCacheSpace(Record):
    """Refused to start: VLLM_CPU_KVCACHE_SPACE is no positive number (platforms/cpu.py)."""

    value: str
    """The value."""

    templates = (
        Template(
            "Invalid environment variable VLLM_CPU_KVCACHE_SPACE {value}, expect a positive integer value.",
            versions=">=0.4.0.post1,<0.10.0",
            example="Invalid environment variable VLLM_CPU_KVCACHE_SPACE -1, expect a positive integer value.",
        ),
    )


_CONTEXT = "This model's maximum context length is {max_model_len} tokens"


class PromptTooLong(Record):
    """One request was refused: it does not fit the longest length, or the KV cache."""

    max_model_len: int | None = None
    """The limit it met, in tokens."""
    prompt_tokens: int | None = None
    """Tokens of the prompt."""
    requested_tokens: int | None = None
    """Tokens asked for, prompt and output."""

    templates = (
        *(
            Template(_CONTEXT + text, versions=versions, embedded=True, example=example)
            for text, versions, example in (
                (
                    ". However, you requested {requested_tokens} tokens ({prompt_tokens} in the",
                    ">=0.2.0,<0.10.1",
                    "This model's maximum context length is 4096 tokens. However, you requested 5096 tokens (4096 in the"
                    " messages, 1000 in the completion). Please reduce the length of the messages or completion.",
                ),
                (
                    ". However, you requested {prompt_tokens} tokens in the",
                    ">=0.4.1,<0.20",
                    "This model's maximum context length is 4096 tokens. However, you requested 5096 tokens in the input for"
                    " embedding generation. Please reduce the length of the input.",
                ),
                (
                    ". However, your request has {prompt_tokens} input tokens.",
                    ">=0.10.1,<0.20",
                    "This model's maximum context length is 2044 tokens. However, your request has 400000 input tokens."
                    " Please reduce the length of the input messages.",
                ),
                (
                    " and your request has {prompt_tokens} input tokens",
                    ">=0.10.1,<0.18",
                    "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096"
                    " tokens and your request has 12 input tokens (4096 > 4096 - 12).",
                ),
                (
                    ". However, you requested {_} output tokens and your prompt contains[[ at least]] {prompt_tokens} input"
                    " tokens, for a total of[[ at least]] {requested_tokens} tokens",
                    ">=0.18.0,<0.32",
                    "This model's maximum context length is 4096 tokens. However, you requested 512 output tokens and your"
                    " prompt contains at least 3585 input tokens, for a total of at least 4097 tokens.",
                ),
                (
                    ". However, you requested {_} output tokens and your prompt contains {_} characters",
                    ">=0.18.0,<0.32",
                    "This model's maximum context length is 2048 tokens. However, you requested 4 output tokens and your"
                    " prompt contains 400000 characters (more than 24528 characters, which is the upper bound for 2044 input"
                    " tokens).",
                ),
                (
                    ". However, your prompt contains[[ at least]] {prompt_tokens} input tokens",
                    ">=0.32.0",
                    "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input"
                    " tokens, which exceeds this limit even without any output tokens.",
                ),
                (
                    ". However, your prompt contains {_} characters",
                    ">=0.32.0",
                    "This model's maximum context length is 2048 tokens. However, your prompt contains 400000 characters"
                    " (more than 24528 characters, which is the upper bound for 2044 input tokens).",
                ),
            )
        ),
        Template(
            "This maximum context length is {max_model_len} tokens. However, your request has {prompt_tokens} input tokens.",
            versions=">=0.10.2,<0.11",
            embedded=True,
            example="This maximum context length is 2044 tokens. However, your request has 400000 input tokens. Please reduce"
            " the length of the input messages.",
        ),
        *(
            Template(
                f"This model's maximum {what} length is {{max_model_len}} tokens. However, you requested {{prompt_tokens}} tokens"
                " in the input for",
                versions=">=0.10.1,<0.18.0",
                embedded=True,
                example=f"This model's maximum {what} length is 512 tokens. However, you requested 600 tokens in the input for"
                " embedding generation. Please reduce the length of the input.",
            )
            for what in ("embedding input", "position embeddings")
        ),
        Template(
            "You passed {prompt_tokens} input tokens and requested {_} output tokens. However, the model's context length is"
            " only {max_model_len} tokens, resulting in a maximum input length of",
            versions=">=0.16.0,<0.18.0",
            embedded=True,
            example="You passed 4090 input tokens and requested 512 output tokens. However, the model's context length is only"
            " 4096 tokens, resulting in a maximum input length of 3584 tokens. Please reduce the length of the input prompt.",
        ),
        Template(
            "You passed {_} input characters and requested {_} output tokens. However, the model's context length is only"
            " {max_model_len} tokens, resulting in a maximum input length of",
            versions=">=0.16.0,<0.18.0",
            embedded=True,
            example="You passed 400000 input characters and requested 512 output tokens. However, the model's context length is"
            " only 4096 tokens, resulting in a maximum input length of 3584 tokens (at most 43008 characters).",
        ),
        Template(
            "the prompt has {prompt_tokens} tokens and a canvas read adds {_}, more than max_model_len={max_model_len}",
            versions=">=0.32.0",
            embedded=True,
            example="the prompt has 4090 tokens and a canvas read adds 64, more than max_model_len=4096",
        ),
        Template(
            "Input length ({prompt_tokens}) exceeds model's maximum context length ({max_model_len}).",
            versions=">=0.18.0",
            embedded=True,
            example="Input length (5000) exceeds model's maximum context length (4096).",
        ),
        Template(
            "The {_} prompt (length {prompt_tokens}) is longer than the maximum model length of {max_model_len}. Make"
            " sure that `max_model_len` is no smaller than the number of text tokens[[.]][[ plus multimodal tokens."
            " For image inputs, the number of image tokens depends on the number of images, and possibly their aspect"
            " ratios as well.]]",
            versions=">=0.8.4",
            example="The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that"
            " `max_model_len` is no smaller than the number of text tokens.",
        ),
        Template(
            "The {_} prompt (length {prompt_tokens}) plus the number of requested output tokens (at least 1) is longer"
            " than the maximum model length of {max_model_len}. Make sure that `max_model_len` is no smaller than the"
            " number of text tokens (prompt + requested output tokens).",
            versions=">=0.11.1",
            example="The decoder prompt (length 4096) plus the number of requested output tokens (at least 1) is"
            " longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the"
            " number of text tokens (prompt + requested output tokens).",
        ),
        Template(
            "The prompt (total length {prompt_tokens}) is too long to fit into the model (context length"
            " {max_model_len}). Make sure that `max_model_len` is no smaller than the number of text tokens[[.]][["
            " plus multimodal tokens. For image inputs, the number of image tokens depends on the number of images,"
            " and possibly their aspect ratios as well.]]",
            versions=">=0.6.0,<0.8.4",
            example="The prompt (total length 5000) is too long to fit into the model (context length 4096). Make sure"
            " that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens. For image"
            " inputs, the number of image tokens depends on the number of images, and possibly their aspect ratios as"
            " well.",
        ),
        Template(
            "Input prompt ({prompt_tokens} tokens) is too long and exceeds limit of {max_model_len}",
            versions=">=0.2.0,<0.11",
            example="Input prompt (5000 tokens) is too long and exceeds limit of 4096",
        ),
        Template(
            "Input prompt ({prompt_tokens} tokens)[[ + lookahead slots ({_})]] is too long and exceeds the capacity of"
            " block_manager",
            versions=">=0.2.3,<0.11",
            example="Input prompt (5000 tokens) + lookahead slots (0) is too long and exceeds the capacity of block_manager",
        ),
    )


class RequestTooLargeForCache(Record):
    """V0 failed one request: the KV cache can never hold its whole sequence (core/scheduler.py)."""

    request: str
    """The request."""

    templates = (
        Template(
            "Failing the request {request} because there's not enough kv cache blocks to run the entire sequence.",
            versions=">=0.4.2,<0.11",
            example="Failing the request cmpl-1a2b because there's not enough kv cache blocks to run the entire sequence.",
        ),
    )


class DuplicateOptions(Record):
    """Options given more than once; the last one counts (utils/argparse_utils.py)."""

    options: str
    """Their names."""

    templates = (
        Template(
            "Found duplicate keys {options}",
            versions=">=0.9.2",
            example="Found duplicate keys --max-num-seqs, --gpu-memory-utilization",
        ),
    )
