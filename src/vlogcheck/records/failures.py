"""Engines and workers that fail, die or never answer."""

from __future__ import annotations

from typing import Any

from vlogcheck.template import Literal, Record, Template

__all__ = [
    "ApplicationFailed",
    "EngineDead",
    "EngineDied",
    "EngineFailed",
    "EngineInitFailed",
    "EngineTimeout",
    "ServerProcessDied",
    "WorkerDied",
    "WorkerFailed",
]


class EngineFailed(Record):
    """The engine gives up; its traceback follows (v1/engine/core.py; V0: engine/async_llm_engine.py)."""

    phase: str
    """start, serve (the engine had come up), or run where the wording is the same for both."""
    error: str | None = None
    """First line of the error, where the line has it."""

    templates = (
        Template(
            "EngineCore failed to start.",
            versions=">=0.8.5",
            example="EngineCore failed to start.",
            values={"phase": "start"},
        ),
        Template(
            "EngineCore encountered a fatal error.",
            versions=">=0.8.5",
            example="EngineCore encountered a fatal error.",
            values={"phase": "serve"},
        ),
        Template(
            "EngineCore hit an exception: {error}",
            versions=">=0.7.0,<0.8.5",
            example="EngineCore hit an exception: Traceback (most recent call last):",
            values={"phase": "run"},
        ),
        Template(
            "Engine process failed to start[[. See stack trace for the root cause.]]",
            versions=">=0.6.2,<0.11",
            example="Engine process failed to start. See stack trace for the root cause.",
            values={"phase": "start"},
        ),
        Template(
            "Engine background task failed",
            versions=">=0.4.0,<0.11",
            example="Engine background task failed",
            values={"phase": "serve"},
        ),
        Template(
            "[vllm] Failed to start engine: ",
            versions="",
            source="triton",
            embedded=True,
            example="[vllm] Failed to start engine: Traceback",
            values={"phase": "start"},
        ),
    )


class EngineInitFailed(Record):
    """The front end's last word on an engine that never started; the cause stands above (v1/engine/utils.py)."""

    exit_codes: Literal | None = None
    """Exit code by name of the processes that ended: -9 is a process killed from outside."""

    templates = (
        Template(
            "Engine core initialization failed. See root cause above. Failed core proc(s): {exit_codes}, failed frontend"
            " proc(s): {_}",
            versions=">=0.9.0",
            example="Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1},"
            " failed frontend proc(s): {'ApiServer_0': 1}",
        ),
        Template(
            "Engine core initialization failed. See root cause above. Failed core proc(s): {exit_codes}",
            versions=">=0.9.0",
            example="Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}",
        ),
        Template(
            "Engine core initialization failed. See root cause above.",
            versions=">=0.7.0,<0.9.0",
            example="Engine core initialization failed. See root cause above.",
        ),
        Template(
            "Frontend process failed during engine core initialization. {_} Failed frontend proc(s): {exit_codes}",
            versions=">=0.28.0",
            example="Frontend process failed during engine core initialization. See root cause above. Failed frontend"
            " proc(s): {'ApiServer_0': 1}",
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Drop what is no mapping."""
        codes = values.get("exit_codes")
        return {**values, "exit_codes": codes if isinstance(codes, dict) else None}


class ApplicationFailed(Record):
    """The web server's last word on an application that did not start; the cause stands above (uvicorn)."""

    templates = (
        Template(
            "Application startup failed. Exiting.",
            versions="",
            source="uvicorn",
            example="Application startup failed. Exiting.",
        ),
        Template(
            "ERROR:    Application startup failed. Exiting.",
            versions="",
            source="uvicorn",
            example="ERROR:    Application startup failed. Exiting.",
        ),
    )


class EngineDied(Record):
    """An engine process ended while it should serve (v1/engine/core_client.py, v1/utils.py)."""

    engine: str | None = None
    """Name of the process."""

    templates = (
        Template(
            "Engine core proc {engine} died unexpectedly, shutting down client.",
            versions=">=0.10.1,<0.20",
            example="Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
        ),
        Template(
            "Engine core process {engine} died unexpectedly.",
            versions=">=0.20.0",
            example="Engine core process EngineCore_DP0 died unexpectedly.",
        ),
        Template(
            "Engine process (pid {_}) died.",
            versions=">=0.6.4,<0.11",
            example="Engine process (pid 4242) died.",
        ),
        Template("Engine loop has died", versions=">=0.6.2,<0.6.4", example="Engine loop has died"),
        Template(
            "RPCServer process died before responding to readiness probe",
            versions=">=0.5.5,<0.6.2",
            example="RPCServer process died before responding to readiness probe",
        ),
        Template(
            "[shutdown] MPClient: engine core exited unexpectedly; starting cleanup",
            versions=">=0.23.0",
            example="[shutdown] MPClient: engine core exited unexpectedly; starting cleanup",
        ),
    )


class ServerProcessDied(Record):
    """A front-end process ended while it should serve (v1/utils.py)."""

    name: str
    """Name of the process."""
    exit_code: int
    """Its exit code."""

    templates = (
        Template(
            "Process {name} (PID: {_}) died with exit code {exit_code}",
            versions=">=0.9.1",
            example="Process ApiServer_0 (PID: 4242) died with exit code 1",
        ),
    )


class EngineDead(Record):
    """A request met an engine that is gone; the cause stands above."""

    templates = (
        Template(
            "EngineCore encountered an issue. See stack trace (above) for the root cause.",
            versions=">=0.8.5",
            example="EngineCore encountered an issue. See stack trace (above) for the root cause.",
        ),
        Template(
            "AsyncLLM output_handler failed.",
            versions=">=0.8.5",
            example="AsyncLLM output_handler failed.",
        ),
        Template(
            "Background loop is not running. If it was running, inspect the output to find the stacktrace of the error that"
            " caused the background loop to stop (AsyncEngineDeadError).",
            versions=">=0.2.0,<0.11",
            example="Background loop is not running. If it was running, inspect the output to find the stacktrace of the"
            " error that caused the background loop to stop (AsyncEngineDeadError).",
        ),
        Template(
            "Background loop has errored already.",
            versions=">=0.4.0,<0.11",
            example="Background loop has errored already.",
        ),
        Template("Engine is dead.", versions=">=0.4.0,<0.6.1.post1", example="Engine is dead."),
        Template(
            "Engine loop is not running. Inspect the stacktrace to find the original error: {_}",
            versions=">=0.6.2,<0.11",
            example="Engine loop is not running. Inspect the stacktrace to find the original error: TimeoutError().",
        ),
        Template(
            "AsyncLLMEngine has failed, terminating server process",
            versions=">=0.5.5,<0.8.5",
            example="AsyncLLMEngine has failed, terminating server process",
        ),
        Template(
            "AsyncLLMEngine is already dead, terminating server process",
            versions=">=0.5.5,<0.8.5",
            example="AsyncLLMEngine is already dead, terminating server process",
        ),
        Template(
            "MQLLMEngine is already dead, terminating server process",
            versions=">=0.6.2,<0.8.5",
            example="MQLLMEngine is already dead, terminating server process",
        ),
        Template(
            "EngineCore output handler hit an error: {_}",
            versions=">=0.7.0,<0.8.5",
            example="EngineCore output handler hit an error: list index out of range",
        ),
    )


class WorkerFailed(Record):
    """One rank failed; its error, unless it is a record of its own (v1/executor, executor/multiproc_worker_utils.py)."""

    phase: str
    """start or run."""
    error: str | None = None
    """The error, where the line has it."""
    worker: str | None = None
    """Name of the worker, where the line has it."""

    templates = (
        Template(
            "Worker failed with error '{error}', please check the stack trace above for the root cause",
            versions=">=0.8.4",
            example="Worker failed with error 'shape mismatch: value tensor of shape [5] cannot be broadcast', please check"
            " the stack trace above for the root cause",
            values={"phase": "run"},
            wraps="error",
        ),
        Template(
            "Worker failed with error {error}, please check the stack trace above for the root cause",
            versions=">=0.8.4",
            example="Worker failed with error list index out of range, please check the stack trace above for the root cause",
            values={"phase": "run"},
            wraps="error",
        ),
        Template(
            "WorkerProc hit an exception.",
            versions=">=0.8.5",
            example="WorkerProc hit an exception.",
            values={"phase": "run"},
        ),
        Template(
            "WorkerProc hit an exception: {error}",
            versions=">=0.7.0,<0.8.5",
            example="WorkerProc hit an exception: list index out of range",
            values={"phase": "run"},
            wraps="error",
        ),
        Template("Worker failed", versions=">=0.4.2,<0.11", example="Worker failed", values={"phase": "run"}),
        Template(
            "WorkerProc failed to start.",
            versions=">=0.6.5",
            example="WorkerProc failed to start.",
            values={"phase": "start"},
        ),
        *(
            Template(
                f"ACLgraph has insufficient available streams to capture the configured number of sizes.{blank}Please"
                " verify{_}",
                versions="",
                source="vllm-ascend",
                example=f"ACLgraph has insufficient available streams to capture the configured number of sizes.{blank}Please"
                " verify the size count.",
                values={
                    "phase": "start",
                    "error": "RuntimeError: too few streams of the device for the sizes of ACL graphs",
                },
            )
            for blank in ("", " ")
        ),
        Template("WorkerProc failed.", versions=">=0.8.5", example="WorkerProc failed.", values={"phase": "run"}),
        Template(
            "RayWorkerProc failed: {error}",
            versions=">=0.20.0",
            example="RayWorkerProc failed: list index out of range",
            values={"phase": "run"},
            wraps="error",
        ),
        Template(
            "Exception in worker {worker} while processing method {_}: {error}, Traceback (most recent call last):",
            versions=">=0.4.2,<0.6.3.post1",
            example="Exception in worker VllmWorkerProcess while processing method load_model: list index out of range,"
            " Traceback (most recent call last):",
            values={"phase": "run"},
            wraps="error",
        ),
        Template(
            "Exception in worker {worker} while processing method {_}.",
            versions=">=0.6.3.post1,<0.11",
            example="Exception in worker VllmWorkerProcess while processing method load_model.",
            values={"phase": "run"},
        ),
    )


class WorkerDied(Record):
    """A worker process ended while it should run (v1/executor)."""

    worker: str | None = None
    """Name of the worker or rank."""
    exit_code: int | None = None
    """Its exit code, where the line has one: -9 is a process killed from outside."""

    templates = (
        Template(
            "Worker proc {worker} died unexpectedly (exit code: {exit_code}), shutting down executor.",
            versions=">=0.26.0",
            example="Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.",
        ),
        Template(
            "Worker proc {worker} died unexpectedly (exit code: None), shutting down executor.",
            versions=">=0.26.0",
            example="Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor.",
        ),
        Template(
            "Worker proc {worker} died unexpectedly, shutting down executor.",
            versions=">=0.8.5,<0.26.0",
            example="Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
        ),
        Template(
            "RayWorkerProc rank={worker} died unexpectedly, shutting down executor.",
            versions=">=0.20.0",
            example="RayWorkerProc rank=[1] died unexpectedly, shutting down executor.",
        ),
        Template("worker died", versions=">=0.4.2,<0.11", example="worker died"),
        Template(
            "Worker {worker} pid {_} died, exit code: {exit_code}",
            versions=">=0.4.2,<0.11",
            example="Worker VllmWorkerProcess pid 4242 died, exit code: -9",
        ),
    )


class RayWorkerDied(Record):
    """Ray lost a process of its own, vLLM's or another program's."""

    worker_pid: int | None = None
    """Its process id."""

    templates = (
        Template(
            "A worker died or was killed while executing a task by an unexpected system error.{_} Worker PID: {worker_pid} Worker"
            " exit type: {_}",
            versions="",
            source="ray",
            embedded=True,
            example="A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the"
            " problem, check the logs for the dead worker. RayTask ID: ff Worker ID: 9b Node ID: 81 Worker IP address: 10.48.2.3"
            " Worker port: 37523 Worker PID: 4855 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits.",
        ),
    )


class EngineTimeout(Record):
    """An engine did not come up or did not answer in time."""

    seconds: float | None = None
    """Time waited, where the line has it."""

    templates = (
        Template(
            "Timed out waiting for engine core processes to start. This is often caused by slow weight loading for large"
            " models. Waited {seconds}s (configured by VLLM_ENGINE_READY_TIMEOUT_S). {_}",
            versions=">=0.17.0",
            example="Timed out waiting for engine core processes to start. This is often caused by slow weight loading for"
            " large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S). To increase the timeout, set the"
            " environment variable: VLLM_ENGINE_READY_TIMEOUT_S=<seconds>",
        ),
        Template(
            "Timed out waiting for new engine core processes to start. Waited {seconds}s (configured by"
            " VLLM_ENGINE_READY_TIMEOUT_S). {_}",
            versions=">=0.17.0",
            example="Timed out waiting for new engine core processes to start. Waited 600s (configured by"
            " VLLM_ENGINE_READY_TIMEOUT_S). To increase the timeout, set the environment variable:"
            " VLLM_ENGINE_READY_TIMEOUT_S=<seconds>",
        ),
        Template("RPC call to {_} timed out.", versions=">=0.6.5", example="RPC call to execute_model timed out."),
        Template(
            "Engine iteration timed out. This should never happen!",
            versions=">=0.4.0,<0.11",
            example="Engine iteration timed out. This should never happen!",
        ),
    )
