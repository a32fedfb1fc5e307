"""Ranks that no longer hear each other: NCCL, HCCL, Gloo, the rendezvous store."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["CollectiveTimeout", "CommunicationError", "PeerLost", "RendezvousTimeout", "TransferPoolFull"]


class CommunicationError(Record):
    """A collective library reports an error (distributed/device_communicators/pynccl_wrapper.py; torch)."""

    library: Word
    """nccl or hccl."""
    error: str
    """The error."""

    templates = (
        Template(
            "NCCL error: {error}",
            versions=">=0.4.1",
            example="NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
            values={"library": "nccl"},
        ),
        Template(
            "NCCL error in: {error}",
            versions="",
            source="torch",
            example="NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled cuda error (run with"
            " NCCL_DEBUG=INFO for details), NCCL version 2.20.5",
            values={"library": "nccl"},
        ),
        Template(
            "HCCL error: {error}",
            versions="",
            source="vllm-ascend",
            example="HCCL error: internal error",
            values={"library": "hccl"},
        ),
    )


class CollectiveTimeout(Record):
    """A rank waited in vain for the others: one of them died, hangs, or runs another program."""

    library: Word
    """nccl, hccl or gloo."""
    operation: Word | None = None
    """The collective."""
    timeout_milliseconds: int | None = None
    """The limit."""
    waited_milliseconds: int | None = None
    """Time waited."""

    templates = (
        Template(
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={_}, OpType={operation}, {_}"
            "Timeout(ms)={timeout_milliseconds}) ran for {waited_milliseconds} milliseconds before timing out",
            versions="",
            source="nccl",
            embedded=True,
            example="[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE,"
            " NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
            values={"library": "nccl"},
        ),
        Template(
            "Process group watchdog thread terminated with exception",
            versions="",
            source="nccl",
            embedded=True,
            example="[Rank 0] Process group watchdog thread terminated with exception: CUDA error: unspecified launch"
            " failure",
            values={"library": "nccl"},
        ),
        Template(
            "Timed out waiting {waited_milliseconds}ms for {operation} operation to complete",
            versions="",
            source="gloo",
            embedded=True,
            example="[../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv"
            " operation to complete",
            values={"library": "gloo"},
        ),
        Template(
            "EI0002: {_}times out",
            versions="",
            source="cann",
            embedded=True,
            example="EI0002: The wait execution of the Notify register times out.",
            values={"library": "hccl"},
        ),
        Template(
            "EI0006: {_}times out",
            versions="",
            source="cann",
            embedded=True,
            example="EI0006: Getting socket times out.",
            values={"library": "hccl"},
        ),
    )


class RendezvousTimeout(Record):
    """Ranks did not all come together at the store within the time allowed (torch.distributed)."""

    joined: int | None = None
    """Ranks that came."""
    expected: int | None = None
    """Ranks expected."""
    seconds: float | None = None
    """Time waited."""

    templates = (
        Template(
            "Timed out after {seconds} seconds waiting for clients. {joined}/{expected} clients joined.",
            versions="",
            source="torch",
            embedded=True,
            example="Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
        ),
        Template(
            "wait timeout after {_}ms, keys: ",
            versions="",
            source="torch",
            embedded=True,
            example="wait timeout after 600000ms, keys: /default_pg/0//cuda//0",
        ),
        Template(
            "The client socket has timed out after {_}ms while trying to connect to",
            versions="",
            source="torch",
            embedded=True,
            example="The client socket has timed out after 600000ms while trying to connect to (10.0.0.2, 29500).",
        ),
    )


class PeerLost(Record):
    """Another rank closed its connection: it died before this one (Gloo)."""

    templates = (
        Template(
            "Connection closed by peer [",
            versions="",
            source="gloo",
            embedded=True,
            example="[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:29500",
        ),
    )


class TransferPoolFull(Record):
    """The pool a KV connector moves tensors through has no room (kv_connector/v1/p2p/tensor_memory_pool.py)."""

    templates = (Template("Insufficient memory", versions=">=0.9.2,<0.24", example="Insufficient memory"),)
