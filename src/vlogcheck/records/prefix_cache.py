"""Prefix caching: switched off by vLLM itself, and how state-space layers take part."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["MambaCacheMode", "PrefixCachingOff"]


class PrefixCachingOff(Record):
    """Prefix caching is switched off by vLLM itself."""

    reason: str
    """Why."""

    templates = (
        Template(
            "Disabling prefix caching: {reason}.",
            versions=">=0.24.0",
            example="Disabling prefix caching: model has non-causal attention layers.",
        ),
        Template(
            "{reason} detected: disabling prefix caching since it is not yet supported.",
            versions=">=0.10.2,<0.11.1",
            example="Hybrid or mamba-based model detected: disabling prefix caching since it is not yet supported.",
        ),
        Template(
            "{reason} detected without support for prefix caching: disabling.",
            versions=">=0.11.1,<0.15.0",
            example="Hybrid or mamba-based model detected without support for prefix caching: disabling.",
        ),
        Template(
            "Disabling prefix caching for {reason}, as it is not yet supported.",
            versions=">=0.13.0",
            example="Disabling prefix caching for TRITON_MLA / FLASHINFER with batch invariance, as it is not yet"
            " supported.",
        ),
        Template(
            "Unlimited-OCR: disabling prefix caching ({reason}).",
            versions=">=0.25.0",
            example="Unlimited-OCR: disabling prefix caching (R-SWA decode KV is not cacheable, and single-turn"
            " image-led"
            " prompts rarely hit the prefix cache).",
        ),
    )


class MambaCacheMode(Record):
    """How state-space layers are cached for prefix reuse; `none` without prefix caching."""

    mode: Word
    """`none`, `align` or `all`."""

    templates = (
        Template(
            "Mamba cache mode is set to '{mode}' when prefix caching is disabled",
            versions=">=0.15.0",
            example="Mamba cache mode is set to 'none' when prefix caching is disabled",
        ),
        Template(
            "Mamba cache mode is set to '{mode}' for {_} by default when prefix caching [[is]][[and speculative"
            " decoding are]] enabled",
            versions=">=0.15.0",
            example="Mamba cache mode is set to 'align' for Qwen3NextForCausalLM by default when prefix caching is"
            " enabled",
        ),
        Template(
            "Hybrid or mamba-based model detected without support for prefix caching with Mamba cache 'all' mode:"
            " falling back to '{mode}' mode.",
            versions=">=0.15.0,<0.32.0",
            example="Hybrid or mamba-based model detected without support for prefix caching with Mamba cache 'all'"
            " mode:"
            " falling back to 'align' mode.",
        ),
    )
