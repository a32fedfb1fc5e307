"""Kernels of other parts of the model than attention: which library computes the experts, which the recurrent states."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["ExpertBackend", "StateSpaceBackend"]


class ExpertBackend(Record):
    """The kernels of a mixture of experts (model_executor/layers/fused_moe/oracle/*.py)."""

    backend: Word
    """Back end, such as `TRITON`, `FLASHINFER_CUTLASS`, `MARLIN`, or the class of its kernels."""
    weights: Word | None = None
    """Kind of the experts' weights the choice was made for, such as `Fp8`, `NvFp4`, `WNA16`, `Unquantized`."""

    templates = (
        Template(
            "Using {backend} MoE backend{_}",
            versions=">=0.24.0",
            example="Using CPUUnquantizedExperts MoE backend",
        ),
        Template(
            "Using {backend} {weights} MoE backend{_}",
            versions=">=0.15.0",
            example="Using TRITON Fp8 MoE backend out of potential backends: ['AITER', 'FLASHINFER_TRTLLM', 'TRITON'].",
        ),
        Template(
            "Using '{backend}' {weights} MoE backend{_}",
            versions=">=0.10.2,!=0.11.0",
            example="Using 'MARLIN' WNA16 MoE backend.",
        ),
        Template(
            "Using {backend} backend for {weights} MoE{_}",
            versions=">=0.11.1",
            example="Using Triton backend for FP8 MoE",
        ),
    )


class StateSpaceBackend(Record):
    """The kernels that update recurrent states (model_executor/layers/mamba/ops/ssu_dispatch.py)."""

    backend: Word
    """Back end: `triton`, `flashinfer`, `cpu`."""

    templates = (
        Template(
            "Using {backend} Mamba SSU backend.",
            versions=">=0.10.2,!=0.11.0",
            example="Using triton Mamba SSU backend.",
        ),
        Template(
            "Using {backend} ReplaySSM backend.",
            versions=">=0.10.2,!=0.11.0",
            example="Using flashinfer ReplaySSM backend.",
        ),
    )
