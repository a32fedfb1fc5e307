"""The expected ledger: what vLLM computes from a model's configuration, its flags and the card."""

from __future__ import annotations
