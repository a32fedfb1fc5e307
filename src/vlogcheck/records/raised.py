"""Python errors that no other record knows: the last line of a traceback."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["Raised", "TracebackFrame", "UtilityFailed"]


class Raised(Record):
    """An error was raised whose text is no record of its own; whether it was handled, the line does not say."""

    error: Word
    """Class of the error with its module, without its ending."""
    ending: Word
    """`Error` or `Exception`: how the class's name ends."""
    text: str
    """What it says; empty where it says nothing."""

    templates = (
        Template(
            "{error}Error: {text}",
            versions="",
            source="python",
            example="torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            wraps="text",
            values={"ending": "Error"},
        ),
        Template(
            "{error}Exception: {text}",
            versions="",
            source="python",
            example="multiprocessing.managers.RemoteException: the shared memory of this queue is gone",
            wraps="text",
            values={"ending": "Exception"},
        ),
        *(
            Template(
                f"{name}Error",
                versions="",
                source="python",
                example=f"{name}Error",
                values={"error": name, "ending": "Error", "text": ""},
            )
            for name in ("Assertion", "NotImplemented", "Runtime", "Value", "EOF", "Timeout")
        ),
        Template(
            "Exception: {text}",
            versions="",
            source="python",
            example="Exception: the worker's memory of this is gone",
            wraps="text",
            values={"error": "", "ending": "Exception"},
        ),
    )


class TracebackFrame(Record):
    """A frame of a traceback that tells what a worker was doing when it failed."""

    function: Word
    """The function: any of a worker's own file, elsewhere those of a start-up's steps only."""

    templates = (
        *(
            Template(
                f", line {{_}}, in {function}",
                versions="",
                source="python",
                embedded=True,
                example=f'  File "/opt/vllm/v1/worker/gpu_worker.py", line 407, in {function}',
                values={"function": function},
            )
            for function in (
                "load_model",
                "determine_available_memory",
                "determine_num_available_blocks",
                "profile_num_available_blocks",
                "initialize_kv_cache",
                "initialize_cache",
                "compile_or_warm_up_model",
                "capture_model",
                "init_device",
            )
        ),
        Template(
            'worker.py", line {_}, in {function}',
            versions="",
            source="python",
            embedded=True,
            example='  File "/opt/vllm/v1/worker/gpu_worker.py", line 407, in execute_model',
        ),
    )


class UtilityFailed(Record):
    """A method that an engine was asked for failed; the engine goes on, whatever its traceback says (v1/engine/core.py)."""

    method: Word
    """The method."""

    templates = (
        Template(
            "Invocation of {method} method failed",
            versions=">=0.7.3",
            example="Invocation of profile method failed",
        ),
    )
