"""VL504: KV heads are replicated over tensor parallel ranks."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.checks._weights import parallel_sizes
from vlogcheck.context import Context
from vlogcheck.deployment import stated
from vlogcheck.expected import Model
from vlogcheck.registry import Finding, Missing, Severity, check


@check("KV heads are replicated over tensor parallel ranks", Severity.NOTE)
def kv_heads_replicated(context: Context) -> Iterator[Finding]:
    """Say how many copies of the KV cache a tensor parallel size above the KV heads keeps."""
    model = context.model
    if not isinstance(model, Model):
        raise Missing("no model configuration: give --model-config")
    tp, _ = parallel_sizes(context.startup)
    from vlogcheck.budget.model import ModelConfigError

    try:
        latent = model.config.values.has("kv_lora_rank")
        heads = 1 if latent else model.config.num_kv_heads
    except ModelConfigError as error:
        raise Missing(f"the configuration does not give the KV heads: {error}") from error
    shards = stated(context.startup, "decode_context_parallel_size")
    shards = shards if isinstance(shards, int) and not isinstance(shards, bool) and shards > 0 else 1
    if heads <= 0 or tp <= heads * shards:
        return
    config = context.startup.config
    copies = tp // (heads * shards)
    what = "the one latent of MLA" if latent else f"{heads} KV head{'s' if heads > 1 else ''}"
    yield Finding(
        f"{what} over {tp} ranks: every token is kept {copies} times",
        line=config.line if config is not None else None,
        expected=f"a tensor parallel size of at most {heads} for a KV cache without copies",
        observed=f"tensor_parallel_size={tp}",
        remedy=f"--tensor-parallel-size {heads} with {copies} engines (--data-parallel-size {copies}"
        + (", --enable-expert-parallel" if latent else "")
        + f") keeps {copies} times the tokens on the same cards, if the weights fit; or"
        f" --decode-context-parallel-size {copies * shards} where the release has it",
        explanation="beyond the number of KV heads more ranks divide the weights, not the KV cache",
        fix={"tensor_parallel_size": heads, "data_parallel_size": copies},
    )
