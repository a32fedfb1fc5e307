"""Loading the weights: time and memory per rank."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = ["WeightsLoaded", "WeightsRead"]


class WeightsLoaded(Record):
    """Device memory one rank's model takes after loading. Always GiB, also where the label says GB."""

    gib: GiB
    """Memory taken."""
    seconds: float | None = None
    """Time it took."""
    unit_label: Word
    """The unit the line claims."""

    templates = (
        Template(
            "Model loading took {gib} GiB memory and {seconds} seconds",
            versions=">=0.11.1",
            example="Model loading took 14.2488 GiB memory and 2.612394 seconds",
            values={"unit_label": "GiB"},
        ),
        Template(
            "Model loading took {gib} GiB and {seconds} seconds",
            versions=">=0.8.3,<0.28.0,!=0.11.1,!=0.11.2",
            example="Model loading took 14.2488 GiB and 2.612394 seconds",
            values={"unit_label": "GiB"},
        ),
        Template(
            "Model loading took {gib} GB and {seconds} seconds",
            versions=">=0.8.0,<0.8.3",
            example="Model loading took 14.2487 GB and 2.612394 seconds",
            values={"unit_label": "GB"},
        ),
        Template(
            "Loading model weights took {gib} GB and {seconds} seconds",
            versions=">0.7.3,<0.8.0",  # builds between the two releases
            example="Loading model weights took 14.9888 GB and 3.214532 seconds",
            values={"unit_label": "GB"},
        ),
        Template(
            "Loading model weights took {gib} GB",
            versions=">=0.4.0,<0.8.3",
            example="Loading model weights took 14.9888 GB",
            values={"unit_label": "GB"},
        ),
        Template(
            "Loading model weights took {gib} GiB",
            versions=">=0.8.3,<0.10",
            example="Loading model weights took 14.9888 GiB",
            values={"unit_label": "GiB"},
        ),
        *(
            Template(
                f"Loading model weights took in total {{gib{spec}}} {unit} of device memory ({{_}} used) and {{_}} of host memory"
                " ({_} used)",
                versions="",
                source="vllm-hpu-extension",
                example=f"Loading model weights took in total {size} {unit} of device memory (15.1 GiB/94.62 GiB used) and 2.95"
                " GiB of host memory (475.2 GiB/1007 GiB used)",
                values={"unit_label": unit},
            )
            for unit, spec, size in (("GiB", "", "14.97"), ("MiB", ":MiB", "988.1"))
        ),
    )


class WeightsRead(Record):
    """Time one rank took to read the checkpoint (default_loader.py)."""

    seconds: float
    """Time taken."""

    templates = (
        Template(
            "Loading weights took {seconds} seconds",
            versions=">=0.8.0",
            example="Loading weights took 3.15 seconds",
        ),
    )
