"""The expected ledger: what vLLM computes from a model's configuration, its flags and the bytes left for the KV cache."""

from __future__ import annotations
