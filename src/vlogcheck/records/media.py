"""Requests whose media would need more memory than a limit allows."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = ["MediaTooLarge"]

_RAISE = " Set VLLM_MAX_AUDIO_DECODE_BYTES to increase this limit."


class MediaTooLarge(Record):
    """One request was refused: decoding its media exceeds a limit (multimodal/media/audio.py, gpu_ipc_memory.py)."""

    medium: Word
    """audio, frames or embeddings."""
    tried_gib: GiB
    """What it needs, or needed so far."""
    limit_gib: GiB
    """The limit."""

    templates = (
        Template(
            "Audio would allocate {tried_gib:.0MiB} MiB of PCM ([[{_} frames x {_} channels x 4B]][[~{_}s at {_}Hz x {_}ch]]),"
            " exceeding the {limit_gib:.0MiB} MiB limit." + _RAISE,
            versions=">=0.28.0",
            example="Audio would allocate 900 MiB of PCM (117964800 frames x 2 channels x 4B), exceeding the 512 MiB limit."
            + _RAISE,
            values={"medium": "audio"},
        ),
        Template(
            "Audio decode exceeded {limit_gib:.0MiB} MiB memory limit ({tried_gib:.0MiB} MiB decoded[[ so far]])."
            + _RAISE,
            versions=">=0.28.0",
            example="Audio decode exceeded 512 MiB memory limit (520 MiB decoded so far)." + _RAISE,
            values={"medium": "audio"},
        ),
        Template(
            "Multimodal GPU decode requested {tried_gib:bytes} bytes, which exceeds the total pool size of {limit_gib:bytes}"
            " bytes. Increase --mm-ipc-gpu-memory-gb or reduce the multimodal input size.",
            versions=">=0.25.0",
            example="Multimodal GPU decode requested 2147483648 bytes, which exceeds the total pool size of 1073741824 bytes."
            " Increase --mm-ipc-gpu-memory-gb or reduce the multimodal input size.",
            values={"medium": "frames"},
        ),
        Template(
            "`{_}` declares shape {_}, which would allocate {tried_gib:bytes} bytes ({_} MiB) once densified,"
            " exceeding the {limit_gib:bytes} byte limit. Set VLLM_MAX_EMBED_DECODE_BYTES to increase this limit.",
            versions=">=0.30.0",
            example="`prompt_embeds` declares shape (1048576, 4096), which would allocate 8589934592 bytes (8192 MiB)"
            " once densified, exceeding the 1073741824 byte limit. Set VLLM_MAX_EMBED_DECODE_BYTES to increase this"
            " limit.",
            values={"medium": "embeddings"},
        ),
    )
