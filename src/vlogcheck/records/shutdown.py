"""How a log ends: signals, orderly shutdown, waiting on each other."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["SharedMemoryWait", "Shutdown", "SignalReceived"]

_STEPS = {
    "API server": "stopping engine client mode=abort timeout=0s",
    "Executor": "waiting for worker exit count=1",
    "WorkerProc": "terminated by shutdown signal",
    "Scheduler": "start",
    "Process manager": "send sigterm to process EngineCore",
    "Subprocess manager": "start process_count=1 timeout=5.0s",
}
"""Who shuts down, and a step of each."""
_ENGINE_STEPS = (
    ("start mode", "={_} timeout={_}s", "=abort timeout=0s"),
    ("exiting busy loop", "", ""),
    ("aborting in-flight requests", " count={_}", " count=3"),
    ("draining in-flight requests", " count={_} timeout={_}s", " count=3 timeout=30s"),
    ("request processing complete", "; starting resource teardown", "; starting resource teardown"),
    ("rejecting", " new request request_id={_}", " new request request_id=cmpl-5e1b7c2f9a0d4c6eb3d8f7a6c5b4e302-0"),
    ("rejecting", " utility call method={_}", " utility call method=reset_prefix_cache"),
    ("tearing down local resources", "", ""),
    ("local resource teardown complete", "", ""),
)
"""The engine core's steps, the rest of each line, and an example of that."""


class Shutdown(Record):
    """A step of shutting down; says nothing of the cause."""

    component: str | None = None
    """Who shuts down, where the line says it."""
    step: str | None = None
    """What it does."""

    templates = (
        *(
            Template(
                f"[shutdown] {component}: {{step}}",
                versions=">=0.23.0",
                example=f"[shutdown] {component}: {example}",
                values={"component": component},
            )
            for component, example in _STEPS.items()
        ),
        *(
            Template(
                f"[shutdown] EngineCore: {step}{rest}",
                versions=">=0.23.0",
                example=f"[shutdown] EngineCore: {step}{example}",
                values={"component": "EngineCore", "step": step},
            )
            for step, rest, example in _ENGINE_STEPS
        ),
        Template(
            "[shutdown] MPClient: start timeout={step}",
            versions=">=0.23.0",
            example="[shutdown] MPClient: start timeout=30s",
            values={"component": "MPClient"},
        ),
        *(
            Template(
                f"[shutdown] MPClient: {step}",
                versions=">=0.23.0",
                example=f"[shutdown] MPClient: {step}",
                values={"component": "MPClient", "step": step},
            )
            for step in ("stopping engine manager", "engine manager stopped", "cleaning up background resources")
        ),
        Template(
            "[shutdown] MPClient: background resource cleanup {step}",
            versions=">=0.23.0",
            example="[shutdown] MPClient: background resource cleanup start",
            values={"component": "MPClient"},
        ),
        Template(
            "[shutdown] Distributed: cleanup {step}",
            versions=">=0.23.0",
            example="[shutdown] Distributed: cleanup start shutdown_ray=False",
            values={"component": "Distributed"},
        ),
        Template(
            "[shutdown] force killing sub process {component} pid {_}",
            versions=">=0.32.0",
            example="[shutdown] force killing sub process VLLM::Worker pid 4242",
            values={"step": "force killing"},
        ),
        Template(
            "[shutdown] MPClient: complete",
            versions=">=0.23.0",
            example="[shutdown] MPClient: complete",
            values={"component": "MPClient", "step": "complete"},
        ),
        Template(
            "Shutting down FastAPI HTTP server.",
            versions=">=0.6.2,<0.23",
            example="Shutting down FastAPI HTTP server.",
            values={"component": "API server"},
        ),
        Template(
            "Gracefully stopping http server",
            versions=">=0.5.4,<0.6.2",
            example="Gracefully stopping http server",
            values={"component": "API server"},
        ),
        Template(
            "Received KeyboardInterrupt, shutting down API servers...",
            versions=">=0.9.1",
            example="Received KeyboardInterrupt, shutting down API servers...",
            values={"component": "API server"},
        ),
        Template(
            "Shutting down Ray distributed executor. If you see error log from logging.cc regarding SIGTERM received, please"
            " ignore because this is the expected termination process in Ray.",
            versions=">=0.7.3,<0.33",
            example="Shutting down Ray distributed executor. If you see error log from logging.cc regarding SIGTERM"
            " received, please ignore because this is the expected termination process in Ray.",
            values={"component": "Executor"},
        ),
        Template(
            "Got fatal signal from worker processes, shutting down. See stack trace above for root cause issue.",
            versions=">=0.7.0,<0.8.5",
            example="Got fatal signal from worker processes, shutting down. See stack trace above for root cause issue.",
            values={"component": "EngineCore", "step": "fatal signal from worker processes"},
        ),
        Template(
            "MulitprocExecutor got fatal signal from worker processes, shutting down. See stack trace above for root cause"
            " issue.",
            versions=">=0.7.0,<0.8.5",
            example="MulitprocExecutor got fatal signal from worker processes, shutting down. See stack trace above for root"
            " cause issue.",
            values={"component": "Executor", "step": "fatal signal from worker processes"},
        ),
        *(
            Template(text, versions="", source="uvicorn", example=text, values={"component": "uvicorn"})
            for text in (
                "INFO:     Shutting down",
                "Shutting down",
                "INFO:     Waiting for application shutdown.",
                "INFO:     Application shutdown complete.",
                "Waiting for application shutdown.",
                "Application shutdown complete.",
            )
        ),
        Template(
            "INFO:     Finished server process [{_}]",
            versions="",
            source="uvicorn",
            example="INFO:     Finished server process [4242]",
            values={"component": "uvicorn", "step": "finished"},
        ),
        Template(
            "Finished server process [{_}]",
            versions="",
            source="uvicorn",
            example="Finished server process [4242]",
            values={"component": "uvicorn", "step": "finished"},
        ),
    )


class SignalReceived(Record):
    """A process was told to stop (v1/engine/core.py, entrypoints; the worker's and the front end's lines are DEBUG)."""

    signal: Word | None = None
    """Name or number of the signal, where the line has it."""

    templates = (
        Template(
            "[shutdown] EngineCore: trigger received signal={signal}",
            versions=">=0.23.0",
            example="[shutdown] EngineCore: trigger received signal=SIGTERM",
        ),
        Template("Received {signal} signal.", versions=">=0.9.0", example="Received 15 signal."),
        Template(
            "WorkerProc handling signal {signal}, raising SystemExit",
            versions=">=0.15.0",
            example="WorkerProc handling signal 15, raising SystemExit",
        ),
        Template("Received shutdown signal", versions=">=0.14.0", example="Received shutdown signal"),
        Template(
            "slurmstepd: error: *** {_} ON {_} CANCELLED AT {_} ***",
            versions="",
            source="slurm",
            example="slurmstepd: error: *** JOB 77 ON gpu-07 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***",
        ),
    )


class SharedMemoryWait(Record):
    """One process waits for another over shared memory: harmless while compiling or loading (shm_broadcast.py)."""

    seconds: float
    """Time between two such lines."""

    templates = (
        Template(
            "No available shared memory broadcast block found in {seconds} seconds. This typically happens when some"
            " processes are hanging or doing some time-consuming work (e.g. compilation[[, weight/kv cache"
            " quantization]])[[.]]",
            versions=">=0.11.0",
            example="No available shared memory broadcast block found in 60 seconds. This typically happens when some"
            " processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).",
        ),
        Template(
            "No available shared memory broadcast block found in {seconds} second.",
            versions=">=0.8.2,<0.11",
            example="No available shared memory broadcast block found in 60 second.",
        ),
        Template(
            "No available shared memory broadcast block foundin {seconds} second.",
            versions=">=0.8.2,<0.9",
            example="No available shared memory broadcast block foundin 60 second.",
        ),
        Template(
            "No available block found in {seconds} second.[[ ]]",
            versions=">=0.5.1,<0.8.2",
            example="No available block found in 60 second. ",
        ),
    )
