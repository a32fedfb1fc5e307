"""The host's side: memory of the host, of its shared-memory folder, and processes killed from outside."""

from __future__ import annotations

from typing import Any

from vlogcheck.template import Record, Size, Template, Word
from vlogcheck.units import GiB

__all__ = [
    "CgroupMemory",
    "Crashed",
    "HostAllocationFailed",
    "NoSpaceLeft",
    "OOMKilled",
    "ProcessKilled",
    "SleepMemoryGrew",
]


class ProcessKilled(Record):
    """A process was ended by signal 9: on a server nearly always the host's memory. Says nothing of who sent it."""

    killed_pid: int | None = None
    """The process, where the line has it."""
    command: str | None = None
    """Its command line, where the line has it."""

    templates = (
        Template("Killed", versions="", source="shell", example="Killed"),
        Template(
            "srun: error: {_}: task{_}: Killed",
            versions="",
            source="slurm",
            example="srun: error: gpu-07: tasks 0-3: Killed",
        ),
        Template(
            "{_}: line {_}:{_} {killed_pid} Killed {command}",
            versions="",
            source="shell",
            example='./serve.sh: line 193: 124064 Killed                  vllm serve "$MODEL" --dtype auto',
        ),
        Template(
            "{_}: line {_}:{_} {killed_pid} Killed",
            versions="",
            source="shell",
            example="./serve.sh: line 193: 124064 Killed",
        ),
        *(
            Template(
                f"[{{_}}]{mark}  Killed {{command}}",
                versions="",
                source="shell",
                example=f"[1]{mark}  Killed                  vllm serve meta-llama/Llama-3.1-8B",
            )
            for mark in "+-"
        ),
        *(
            Template(text, versions="", source=source, embedded=True, example=example)
            for text, source, example in (
                ("exited with code 137", "docker", "vllm-1 exited with code 137"),
                ("exit code 137", "shell", "##[error]Process completed with exit code 137."),
                ("exit code: 137", "shell", "command failed (exit code: 137)"),
                ("Exit Code:    137", "kubernetes", "      Exit Code:    137"),
                ('"exitCode":137', "kubernetes", '"state":{"terminated":{"exitCode":137,"reason":"Error"}}'),
                ("exit status 137", "supervisord", "exited: vllm (exit status 137; not expected)"),
                ("terminated by SIGKILL", "supervisord", "exited: vllm (terminated by SIGKILL; not expected)"),
                (
                    "code=killed, status=9/KILL",
                    "systemd",
                    "vllm.service: Main process exited, code=killed, status=9/KILL",
                ),
                ("received signal 9", "shell", "process 4242 received signal 9"),
                ("Signal 9 (SIGKILL) received by PID {killed_pid}", "torch", "Signal 9 (SIGKILL) received by PID 4242"),
                (
                    "(exitcode: -9) local_rank: {_} (pid: {killed_pid})",
                    "torch",
                    "failed (exitcode: -9) local_rank: 0 (pid: 42)",
                ),
                (
                    "died with <Signals.SIGKILL: 9>",
                    "python",
                    "Command '['vllm', 'serve']' died with <Signals.SIGKILL: 9>.",
                ),
            )
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Drop what the shell puts between its columns."""
        command = values.get("command")
        return values if command is None else {**values, "command": command.strip()}


class OOMKilled(Record):
    """The kernel, the container runtime or Ray says that it ended a process for want of host memory."""

    killed_pid: int | None = None
    """The process, where the line has it."""
    name: str | None = None
    """Its name."""
    resident_gib: GiB | None = None
    """Its resident anonymous memory."""

    templates = (
        Template(
            "ut of memory: Killed process {killed_pid} ({name}) total-vm:{_}kB, anon-rss:{resident_gib:KiB}kB,",
            versions="",
            source="kernel",
            embedded=True,
            example="Memory cgroup out of memory: Killed process 4242 (VLLM::EngineCor) total-vm:98765432kB,"
            " anon-rss:31457280kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:70000kB oom_score_adj:0",
        ),
        Template(
            "oom-kill:constraint={_},task={name},pid={killed_pid},",
            versions="",
            source="kernel",
            embedded=True,
            example="oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=VLLM::EngineCor,pid=4242,uid=0",
        ),
        Template(
            "srun: error: {_}: task{_}: Out Of Memory",
            versions="",
            source="slurm",
            example="srun: error: gpu-07: task 0: Out Of Memory",
        ),
        *(
            Template(text, versions="", source=source, embedded=True, example=example)
            for text, source, example in (
                ("Reason:       OOMKilled", "kubernetes", "      Reason:       OOMKilled"),
                ("OOMKilled", "kubernetes", '{"lastState":{"terminated":{"reason":"OOMKilled","signal":9}}}'),
                ("killed by the OOM killer", "systemd", "A process of this unit has been killed by the OOM killer."),
                ("Failed with result 'oom-kill'", "systemd", "vllm.service: Failed with result 'oom-kill'."),
                ("invoked oom-killer: gfp_mask=", "kernel",
                 "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"),
                ("Detected {_} oom_kill event", "slurm", "slurmstepd: error: Detected 1 oom_kill event in StepId=77.batch."),
                ("exceeded memory limit ({_}), being killed", "slurm",
                 "slurmstepd: error: Job 77 exceeded memory limit (4352240 > 4194304), being killed"),
                ("Some of the step tasks have been OOM Killed", "slurm",
                 "slurmstepd: error: Some of the step tasks have been OOM Killed."),
                ("due to the node running low on memory", "ray",
                 "Task was killed due to the node running low on memory."),
                ("actors) killed due to memory pressure (OOM)", "ray",
                 "1 Workers (tasks / actors) killed due to memory pressure (OOM)"),
                ("which exceeds the memory usage threshold of {_}. Ray killed this worker", "ray",
                 "12.49GB / 13.15GB (0.95), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: 79)"),
                ("Refer to the documentation on how to address the out of memory issue: ", "ray",
                 "Refer to the documentation on how to address the out of memory issue: https://docs.ray.io/oom.html."),
            )
        ),
    )  # fmt: skip


class HostAllocationFailed(Record):
    """An allocation of host memory failed inside a process."""

    tried_gib: Size | None = None
    """Size asked for, where the line has it."""
    pinned: bool = False
    """Whether the memory was to be locked in place: the limit on locked memory bounds it too."""

    templates = (
        Template(
            "Resource_Error_Insufficient_Host_Memory(EL0018): Failed to allocate {tried_gib:bytes} bytes host memory",
            versions="",
            source="cann",
            embedded=True,
            example="[PID: 1119] 2026-10-10-01:49:39.813.031 Resource_Error_Insufficient_Host_Memory(EL0018): Failed to"
            " allocate 134217728 bytes host memory requested by the RUNTIME module.",
            values={"pinned": True},
        ),
        *(
            Template(text, versions="", source="cann", embedded=True, example=example, values={"pinned": True})
            for text, example in (
                (
                    "NPU function error: aclrtMallocHost[[WithCfg]], error code is 207001",
                    "allocate_host_memory_slowpath:../torch_npu/csrc/core/npu/CachingHostAllocator.cpp:252 NPU function error:"
                    " aclrtMallocHostWithCfg, error code is 207001",
                ),
                (
                    "rtsHostRegister execution failed, reason=driver error:out of memory",
                    "rtsHostRegister execution failed, reason=driver error:out of memory[FUNC:FuncErrorReason]",
                ),
                (
                    "rtsMallocHost execution failed, reason=driver error:out of memory",
                    "rtsMallocHost execution failed, reason=driver error:out of memory[FUNC:FuncErrorReason]"
                    "[FILE:error_message_manage.cc][LINE:69]",
                ),
            )
        ),
        Template(
            "not enough memory: you tried to allocate {tried_gib:bytes} bytes",
            versions="",
            source="torch",
            embedded=True,
            example="DefaultCPUAllocator: not enough memory: you tried to allocate 17179869184 bytes.",
        ),
        Template(
            "can't allocate memory: you tried to allocate {tried_gib:bytes} bytes",
            versions="",
            source="torch",
            embedded=True,
            example="[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to"
            " allocate 17179869184 bytes. Error code 12 (Cannot allocate memory)",
        ),
        Template(
            "unable to mmap {tried_gib:bytes} bytes from file",
            versions="",
            source="torch",
            embedded=True,
            example="unable to mmap 4976698672 bytes from file </models/m/model-00001-of-00004.safetensors>: Cannot allocate"
            " memory (12)",
        ),
        Template(
            "Unable to allocate {tried_gib} for an array with shape",
            versions="",
            source="numpy",
            embedded=True,
            example="Unable to allocate 1.50 GiB for an array with shape (201326592,) and data type float64",
        ),
        *(
            Template(text, versions="", source=source, embedded=True, example=example)
            for text, source, example in (
                ("terminate called after throwing an instance of 'std::bad_alloc'", "shell",
                 "terminate called after throwing an instance of 'std::bad_alloc'"),
                ("what():  std::bad_alloc", "shell", "  what():  std::bad_alloc"),
                ("std::bad_alloc", "shell",
                 "libc++abi: terminating due to uncaught exception of type std::bad_alloc: std::bad_alloc"),
                ("Cannot allocate memory", "shell", "[Errno 12] Cannot allocate memory"),
                ("CUDA error: OS call failed or operation not supported on this OS", "torch",
                 "CUDA error: OS call failed or operation not supported on this OS"),
            )
        ),
        Template("failed to allocate pinned memory", versions="", source="torch", embedded=True,
                 example="failed to allocate pinned memory", values={"pinned": True}),
        Template("MemoryError", versions="", source="python", example="MemoryError"),
    )  # fmt: skip


class NoSpaceLeft(Record):
    """A file system is full: the shared-memory folder of a container, or the disk a model is downloaded to."""

    file: str | None = None
    """The file, where the line has it."""
    shared_memory: bool = False
    """Whether it is the shared-memory folder (`/dev/shm`, torch's or NCCL's segments)."""

    templates = (
        Template(
            "[Errno 28] No space left on device: '{file}'",
            versions="",
            source="python",
            embedded=True,
            example="[Errno 28] No space left on device: '/dev/shm/psm_1a2b3c4d'",
        ),
        Template(
            "unable to write to file <{file}>: No space left on device",
            versions="",
            source="torch",
            embedded=True,
            example="unable to write to file </torch_4242_1>: No space left on device (28)",
            values={"shared_memory": True},
        ),
        Template(
            "Error while creating shared memory segment {file} (size",
            versions="",
            source="nccl",
            embedded=True,
            example="NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Ab12Cd (size 9637888)",
            values={"shared_memory": True},
        ),
        Template(
            "This might be caused by insufficient shared memory (shm)",
            versions="",
            source="torch",
            embedded=True,
            example="Unexpected bus error encountered in worker. This might be caused by insufficient"
            " shared memory (shm).",
            values={"shared_memory": True},
        ),
        Template(
            "No space left on device",
            versions="",
            source="python",
            embedded=True,
            example="[Errno 28] No space left on device",
        ),
    )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Tell shared memory from disk by the path."""
        shared = values.get("shared_memory") or (values.get("file") or "").startswith("/dev/shm")
        return {**values, "shared_memory": bool(shared)}


class Crashed(Record):
    """A process ended itself or hit a fault: bus error (often too little shared memory), segmentation fault, abort, GPU."""

    fault: Word
    """bus, segmentation, abort or gpu (ROCm ends the process of a kernel that faulted)."""

    templates = tuple(
        Template(
            text, versions="", source="shell", embedded=True, example=text + " (core dumped)", values={"fault": fault}
        )
        for text, fault in (
            ("Bus error", "bus"),
            ("Signal 7 (SIGBUS)", "bus"),
            ("Segmentation fault", "segmentation"),
            ("Segfault encountered", "segmentation"),
            ("Signal 11 (SIGSEGV)", "segmentation"),
            ("*** SIGSEGV received at", "segmentation"),  # Ray's handler
            ("*** SIGBUS received at", "bus"),
            ("*** SIGABRT received at", "abort"),
            ("Aborted (core dumped)", "abort"),
            ("Signal 6 (SIGABRT)", "abort"),
            ("double free or corruption (", "abort"),
            ("free(): invalid pointer", "abort"),
            ("free(): invalid size", "abort"),
            ("malloc(): corrupted", "abort"),
            ("malloc(): invalid", "abort"),
            ("corrupted size vs. prev_size", "abort"),
            ("Memory access fault by GPU", "gpu"),
            ("HW Exception by GPU", "gpu"),
        )
    )


class CgroupMemory(Record):
    """The container's memory limit before a large host allocation (utils/cpu_resource_utils.py)."""

    purpose: str
    """What is allocated."""
    required_gib: GiB
    """Its size."""
    used_gib: GiB
    """In use now; page cache counts."""
    available_gib: GiB
    """Left under the limit."""
    limit_gib: GiB
    """The limit."""
    remaining_gib: GiB
    """Left after the allocation; negative when it does not fit."""

    templates = (
        Template(
            "Cgroup memory preflight for {purpose}: {required_gib:.0MiB} MiB required, {used_gib:.0MiB} MiB current usage,"
            " {available_gib:.0MiB} MiB available under {limit_gib:.0MiB} MiB limit, {remaining_gib:.0MiB} MiB remaining"
            " after allocation based on current usage; {_}.",
            versions=">=0.31.0",
            example="Cgroup memory preflight for KV offload buffer: 16384 MiB required, 40000 MiB current usage, 25536 MiB"
            " available under 65536 MiB limit, 9152 MiB remaining after allocation based on current usage; current headroom"
            " meets the requested allocation.",
        ),
    )


class SleepMemoryGrew(Record):
    """Putting the engine to sleep left more device memory in use than before (v1/worker/gpu_worker.py)."""

    templates = (
        Template(
            "Memory usage increased after sleeping.",
            versions=">=0.7.0",
            example="Memory usage increased after sleeping.",
        ),
    )
