"""Loading the model: which checkpoint, how large, how far, how long."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = [
    "CheckpointSize",
    "DrafterLoad",
    "LoadPeak",
    "LoadStart",
    "LoadStep",
    "LoraLoaded",
    "QuantizationNotice",
    "WeightFormat",
]


class LoadStart(Record):
    """A worker begins to load the model (v1/worker/gpu_model_runner.py)."""

    model: str | None = None
    """Model name or path."""

    templates = (
        Template(
            "Starting to load model {model}...",
            versions=">=0.5.3",
            example="Starting to load model meta-llama/Llama-3.1-8B-Instruct...",
        ),
        Template("Loading model from scratch...", versions=">=0.9.1", example="Loading model from scratch..."),
    )


class DrafterLoad(Record):
    """The drafter is loaded too: its weights are in the weights line that follows."""

    templates = (Template("Loading drafter model...", versions=">=0.8.3", example="Loading drafter model..."),)


class LoadStep(Record):
    """Time one step of loading took."""

    seconds: float
    """Time taken."""
    step: str
    """Which step."""

    templates = (
        Template(
            "Time spent downloading weights for {_}: {seconds} seconds",
            versions=">=0.7.3",
            example="Time spent downloading weights for meta-llama/Llama-3.1-8B-Instruct: 41.253711 seconds",
            values={"step": "download"},
        ),
        Template(
            "Partition model took {seconds} seconds",
            versions=">=0.9.1,<0.14.0",
            example="Partition model took 4.81 seconds",
            values={"step": "partition"},
        ),
        Template(
            "Reloading and processing weights took {seconds} seconds",
            versions=">=0.16.0",
            example="Reloading and processing weights took 5.12 seconds",
            values={"step": "reload"},
        ),
        Template(
            "Initializing model took {seconds} seconds",
            versions=">=0.32.0",
            example="Initializing model took 0.92 seconds",
            values={"step": "initialise"},
        ),
        Template(
            "Online quantization as part of model loading took {seconds} seconds",
            versions=">=0.32.0",
            example="Online quantization as part of model loading took 7.35 seconds",
            values={"step": "online quantisation"},
        ),
        Template(
            "Prefetching checkpoint files into page cache finished in {seconds}s",
            versions=">=0.18.0",
            example="Prefetching checkpoint files into page cache finished in 12.41s",
            values={"step": "prefetch"},
        ),
    )


class WeightFormat(Record):
    """The weight files chosen (model_executor/model_loader/weight_utils.py)."""

    patterns: str
    """File patterns, as printed."""

    templates = (
        Template(
            "Using model weights format {patterns}",
            versions=">=0.3.0",
            example="Using model weights format ['*.safetensors']",
        ),
    )


class CheckpointSize(Record):
    """Size of the checkpoint on disk (the whole model, not a rank's share) and free host memory."""

    checkpoint_gib: GiB
    """Size of the files."""
    host_available_gib: GiB | None = None
    """Free host memory."""
    filesystem: Word | None = None
    """Kind of file system."""

    templates = (
        Template(
            "Filesystem type for checkpoints: {filesystem}. Checkpoint size: {checkpoint_gib} GiB. Available RAM:"
            " {host_available_gib} GiB.",
            versions=">=0.20.0",
            example="Filesystem type for checkpoints: NFS. Checkpoint size: 15.26 GiB. Available RAM: 24.82 GiB.",
        ),
        Template(
            "Auto-prefetch is disabled because the filesystem ({filesystem}) is not a recognized network FS"
            " (NFS/Lustre) and"
            " the checkpoint size ({checkpoint_gib} GiB) exceeds {_}% of available RAM ({host_available_gib} GiB).",
            versions=">=0.20.0",
            example="Auto-prefetch is disabled because the filesystem (EXT4) is not a recognized network FS"
            " (NFS/Lustre) and"
            " the checkpoint size (361.06 GiB) exceeds 90% of available RAM (313.04 GiB).",
        ),
        Template(
            "Network filesystem ({filesystem}) detected but checkpoint total size ({checkpoint_gib} GiB) exceeds"
            " {_}% of"
            " available RAM ({host_available_gib} GiB). Skipping auto-prefetch.",
            versions=">=0.20.0",
            example="Network filesystem (LUSTRE) detected but checkpoint total size (404.92 GiB) exceeds 90% of"
            " available RAM"
            " (126.86 GiB). Skipping auto-prefetch.",
        ),
        Template(
            "NFS detected but checkpoint total size ({checkpoint_gib} GiB) exceeds {_}% of available RAM"
            " ({host_available_gib} GiB). Skipping prefetching checkpoints.",
            versions=">=0.19.0,<0.20.0",
            example="NFS detected but checkpoint total size (404.92 GiB) exceeds 90% of available RAM (126.86 GiB)."
            " Skipping"
            " prefetching checkpoints.",
            values={"filesystem": "NFS"},
        ),
        Template(
            "safetensors_load_strategy='prefetch' was explicitly specified, but checkpoint total size"
            " ({checkpoint_gib} GiB)"
            " exceeds {_}% of available RAM ({host_available_gib} GiB). This may cause out-of-memory errors.",
            versions=">=0.20.0",
            example="safetensors_load_strategy='prefetch' was explicitly specified, but checkpoint total size"
            " (404.92 GiB)"
            " exceeds 90% of available RAM (126.86 GiB). This may cause out-of-memory errors.",
        ),
    )


class LoadPeak(Record):
    """Peak device memory while loading (DEBUG; model_executor/model_loader/base_loader.py)."""

    peak_gib: GiB
    """Peak."""

    templates = (
        Template(
            "Peak GPU memory after loading weights: {peak_gib} GiB",
            versions=">=0.16.0",
            example="Peak GPU memory after loading weights: 15.87 GiB",
        ),
    )


class LoraLoaded(Record):
    """A LoRA adapter was loaded; its buffers were allocated with the weights, for max_loras × max_lora_rank."""

    name: str
    """Adapter name."""
    adapter_path: str
    """Where it came from."""

    templates = (
        Template(
            "Loaded new LoRA adapter: name '{name}', path '{adapter_path}'",
            versions=">=0.7.0",
            example="Loaded new LoRA adapter: name 'sql-lora', path '/adapters/sql-lora'",
        ),
    )


class QuantizationNotice(Record):
    """A quantised checkpoint or kernel: the weights' type is not the one of `dtype`."""

    method: str
    """Method or kernel."""

    templates = (
        Template(
            "Detected {method} checkpoint. Please note that the format is experimental and subject to change.",
            versions=">=0.4.2,<0.20.0,!=0.9.0,!=0.9.0.1,!=0.9.1,!=0.9.2,!=0.10.0,!=0.10.1,!=0.10.1.1",
            example="Detected fp8 checkpoint. Please note that the format is experimental and subject to change.",
        ),
        Template(
            "Detected ModelOpt {method} checkpoint[[ (quant_algo={_})]]. Please note that the format is experimental and could"
            " change[[ in future]].",
            versions=">=0.6.1,<0.30.0",
            example="Detected ModelOpt NVFP4 checkpoint (quant_algo=NVFP4). Please note that the format is experimental and"
            " could change in future.",
        ),
        Template(
            "The model is convertible to {method} during runtime. Using {_} kernel.",
            versions=">=0.4.3,<0.24.0",
            example="The model is convertible to gptq_marlin during runtime. Using gptq_marlin kernel.",
        ),
        Template(
            "Detected that the model can run with {_}, however you specified quantization={method} explicitly, so"
            " forcing"
            " {_}. Use quantization={_} for faster inference",
            versions=">=0.4.3,<0.24.0",
            example="Detected that the model can run with gptq_marlin, however you specified quantization=gptq"
            " explicitly, so"
            " forcing gptq. Use quantization=gptq_marlin for faster inference",
        ),
        Template(
            "Your GPU does not have native support for {method} computation but {_} quantization is being used."
            " Weight-only {_} compression will be used leveraging the Marlin kernel. This may degrade performance for"
            " compute-heavy workloads.",
            versions=">=0.5.1",
            example="Your GPU does not have native support for FP8 computation but FP8 quantization is being used."
            " Weight-only FP8 compression will be used leveraging the Marlin kernel. This may degrade performance for"
            " compute-heavy workloads.",
        ),
    )
