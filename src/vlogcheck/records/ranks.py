"""Who takes part: platform, processes, ranks."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = [
    "ApiServers",
    "DataParallelCoordinator",
    "DistributedBackend",
    "NcclVersion",
    "Platform",
    "RankAssignment",
    "WorldRank",
]


class Platform(Record):
    """The platform plug-in that is active; every process prints it (platforms/__init__.py)."""

    platform: Word
    """cuda, rocm, cpu, tpu, xpu, hpu, or a plug-in's name."""

    templates = (
        Template(
            "Automatically detected platform {platform}.",
            versions=">=0.7.0",
            example="Automatically detected platform cuda.",
        ),
        Template(
            "Platform plugin {platform} is activated", versions=">=0.7.0", example="Platform plugin ascend is activated"
        ),
    )


class NcclVersion(Record):
    """Release of the communication library (distributed/device_communicators/pynccl.py)."""

    version: Word
    """NCCL release."""

    templates = (Template("vLLM is using nccl=={version}", versions=">=0.4.0", example="vLLM is using nccl==2.27.3"),)


class RankAssignment(Record):
    """The place of one rank in every parallel group; an index is None where the release prints N/A."""

    global_rank: int
    """Rank in the world."""
    world_size: int
    """Ranks in the world; with data parallelism the engines' ranks may be counted in."""
    dp_rank: int
    """Engine index."""
    pp_rank: int
    """Pipeline stage."""
    tp_rank: int
    """Index in the tensor parallel group."""
    pcp_rank: int | None = None
    """Index in the prefill context parallel group."""
    ep_rank: int | None = None
    """Index in the expert parallel group."""

    templates = (
        Template(
            "rank {global_rank} in world size {world_size} is assigned as DP rank {dp_rank}, PP rank {pp_rank}"
            "[[, PCP rank {pcp_rank}]], TP rank {tp_rank}[[, ETP rank {_}]]"
            "[[, EP rank {ep_rank}]][[, EP rank N/A]][[, EPLB rank {_}]]",
            versions=">=0.8.0",
            example="rank 3 in world size 4 is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank 3, EP rank N/A,"
            " EPLB rank N/A",
        ),
    )


class WorldRank(Record):
    """A worker joins torch.distributed: from 0.11.1 the per-rank counter at INFO (distributed/parallel_state.py)."""

    global_rank: int
    """Rank in the world."""
    world_size: int
    """Ranks in the world."""
    local_rank: int | None = None
    """Index of its device on the node."""
    backend: Word | None = None
    """Communication back end."""

    templates = (
        Template(
            "world_size={world_size} rank={global_rank} local_rank={local_rank} distributed_init_method={_}"
            " backend={backend}",
            versions=">=0.4.1",
            example="world_size=2 rank=1 local_rank=1 distributed_init_method=tcp://127.0.0.1:51283 backend=nccl",
        ),
        Template(
            "Adjusting world_size={world_size} rank={global_rank} distributed_init_method={_} for DP",
            versions=">=0.8.0",
            example="Adjusting world_size=4 rank=2 distributed_init_method=tcp://127.0.0.1:51283 for DP",
        ),
    )


class DataParallelCoordinator(Record):
    """Several engines: the process that coordinates them was started, or an engine waits for it."""

    coordinator_pid: int | None = None
    """Process id of the coordinator."""

    templates = (
        Template(
            "Started DP Coordinator process (PID: {coordinator_pid})",
            versions=">=0.9.1",
            example="Started DP Coordinator process (PID: 4711)",
        ),
        Template(
            "Waiting for READY message from DP Coordinator...",
            versions=">=0.10.1",
            example="Waiting for READY message from DP Coordinator...",
        ),
    )


class ApiServers(Record):
    """How many API servers or engines this process starts (entrypoints/cli/serve.py)."""

    api_server_count: int | None = None
    """API server processes; with more than one there are no periodic metrics lines."""
    engine_count: int | None = None
    """Engines started on this node."""

    templates = (
        Template(
            "Started {api_server_count} API server processes",
            versions=">=0.9.1",
            example="Started 4 API server processes",
        ),
        Template(
            "Defaulting api_server_count to data_parallel_size ({api_server_count}).",
            versions=">=0.15.0",
            example="Defaulting api_server_count to data_parallel_size (4).",
        ),
        Template(
            "Defaulting api_server_count to data_parallel_size_local ({api_server_count}) for hybrid LB mode.",
            versions=">=0.15.0",
            example="Defaulting api_server_count to data_parallel_size_local (2) for hybrid LB mode.",
        ),
        Template(
            "Launching {engine_count} data parallel engine(s) in headless mode, with head node address {_}.",
            versions=">=0.9.0",
            example="Launching 2 data parallel engine(s) in headless mode, with head node address"
            " tcp://10.0.0.2:29550.",
        ),
    )


class DistributedBackend(Record):
    """How worker processes are run (config/parallel.py)."""

    backend: Word
    """mp or ray."""

    templates = (
        Template(
            "Defaulting to use {backend} for distributed inference",
            versions=">=0.5.0",
            example="Defaulting to use mp for distributed inference",
        ),
    )
