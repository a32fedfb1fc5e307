"""KV connectors while serving: blocks that could not be moved."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word
from vlogcheck.units import GiB

__all__ = ["KVTransferFailed"]


class KVTransferFailed(Record):
    """Blocks of a request could not be sent, fetched or stored, or were given up."""

    request: Word | None = None
    """The request."""
    requests: int | None = None
    """How many requests it concerns."""
    tokens: int | None = None
    """Tokens it concerns."""
    blocks: int | None = None
    """Blocks it concerns."""
    missing_blocks: int | None = None
    """Blocks the other side does not have."""
    local_blocks: int | None = None
    """Blocks of the request here."""
    remote_blocks: int | None = None
    """Blocks of the request on the other side."""
    block_size_tokens: int | None = None
    """Tokens of one block."""
    size_gib: GiB | None = None
    """Size of the tensor that could not be sent. The label GB means GiB."""
    workers: int | None = None
    """Workers that had fetched the blocks."""
    seconds: float | None = None
    """Time waited."""

    templates = (
        Template(
            "Request {request} timed out after {seconds} seconds without being sent. Freeing its blocks on the"
            " producer side.",
            versions=">=0.13.0",
            example="Request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 timed out after 480 seconds without being sent."
            " Freeing its blocks on the producer side.",
        ),
        Template(
            "Request {request}: cannot store {blocks} blocks",
            versions=">=0.11.1,<0.20.0",
            example="Request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: cannot store 24 blocks",
        ),
        Template(
            "Request {request}: cannot store blocks",
            versions=">=0.20.0,<0.26.0",
            example="Request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: cannot store blocks",
        ),
        Template(
            "Request {request}: cannot store chunks",
            versions=">=0.26.0",
            example="Request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: cannot store chunks",
        ),
        Template(
            "Cannot store {blocks} blocks",
            versions=">=0.11.0,<0.11.1",
            example="Cannot store 24 blocks",
        ),
        Template(
            "Cannot release WRITE prefill blocks for request {request}: missing [[transfer_id]][[remote notify"
            " address]]",
            versions=">=0.24.0",
            example="Cannot release WRITE prefill blocks for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908:"
            " missing transfer_id",
        ),
        Template(
            "RDMA transfer failed for request {request}: {_} (code={_}). Notifying prefill to free blocks[[; request"
            " will be aborted by timeout.]][[ and recording the load error where scheduler recovery is supported.]]",
            versions=">=0.23.0",
            example="RDMA transfer failed for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: unknown"
            " (code=unknown). Notifying prefill to free blocks and recording the load error where scheduler recovery"
            " is supported.",
        ),
        Template(
            "Deferred write task for request {request} [[timed out]][[expired]] after {seconds}s [[waiting for remote"
            " blocks]][[(remote blocks never arrived), marking done]]",
            versions=">=0.23.0",
            example="Deferred write task for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 timed out after 60.2s"
            " waiting for remote blocks",
        ),
        Template(
            "Releasing expired KV blocks for request {request} which were retrieved by {workers} [[decode worker(s)"
            " within {seconds} seconds.]][[remote worker(s) before lease expired.]]",
            versions=">=0.10.1",
            example="Releasing expired KV blocks for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 which were"
            " retrieved by 0 decode worker(s) within 480 seconds.",
        ),
        Template(
            "Potentially invalid KV blocks for unrecognized request {request} were retrieved by a decode worker. They"
            " may have expired.",
            versions=">=0.10.1",
            example="Potentially invalid KV blocks for unrecognized request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908"
            " were retrieved by a decode worker. They may have expired.",
        ),
        Template(
            "No[[ local]] blocks to push for request {request}",
            versions=">=0.24.0",
            example="No local blocks to push for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908",
        ),
        Template(
            "Handshake failed for request {request}, marking blocks as invalid",
            versions=">=0.11.1,<0.14.0",
            example="Handshake failed for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908, marking blocks as invalid",
        ),
        Template(
            "NIXL send_notif failed for request {request}: P worker blocks will be freed after timeout. This may"
            " indicate network issues.",
            versions=">=0.11.1,<0.14.0",
            example="NIXL send_notif failed for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: P worker blocks"
            " will be freed after timeout. This may indicate network issues.",
        ),
        Template(
            "NIXL transfer failed for request {request} with state {_}. Marking blocks as invalid.",
            versions=">=0.11.1,<0.14.0",
            example="NIXL transfer failed for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 with state ERR."
            " Marking blocks as invalid.",
        ),
        Template(
            "NIXL transfer [[setup/initiation failed]][[exception]] for request {request}. Marking blocks as invalid.",
            versions=">=0.11.1,<0.14.0",
            example="NIXL transfer exception for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908. Marking blocks as"
            " invalid.",
        ),
        Template(
            "req {request}: local blocks({local_blocks}) less than remote blocks({remote_blocks})!",
            versions=">=0.16.0,<0.20.0",
            example="req chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: local blocks(96) less than remote blocks(128)!",
        ),
        Template(
            "req {request}: local blocks({local_blocks}) < remote blocks({remote_blocks}) in a KV cache group[["
            " (is_mamba_group={_})]]",
            versions=">=0.20.0",
            example="req chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: local blocks(96) < remote blocks(128) in a KV"
            " cache group (is_mamba_group=False)",
        ),
        Template(
            "Error happens during transferring kvcache for {_}: {_}",
            versions=">=0.18.0,<0.30.0",
            example="Error happens during transferring kvcache for ['chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908']:"
            " Mooncake transfer engine returned -1",
        ),
        Template(
            "Error happens during tranfering kvcache for {_}, see logs in prefiller.",
            versions=">=0.13.0,<0.16.0",
            example="Error happens during tranfering kvcache for ['chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908'], see"
            " logs in prefiller.",
        ),
        Template(
            "Error happens during tranfering kvcache for {_}: {_}",
            versions=">=0.16.0,<0.18.0",
            example="Error happens during tranfering kvcache for ['chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908']:"
            " Mooncake transfer engine returned -1",
        ),
        Template(
            "Failing {requests} request(s) due to KV load failure (failure_policy=fail, {tokens} tokens affected)."
            " Request IDs: {_}",
            versions=">=0.13.0",
            example="Failing 1 request(s) due to KV load failure (failure_policy=fail, 1792 tokens affected). Request"
            " IDs: {'chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908'}",
        ),
        Template(
            "Recovered from KV load failure: {requests} request(s) rescheduled ({tokens} tokens affected).",
            versions=">=0.11.1",
            example="Recovered from KV load failure: 1 request(s) rescheduled (1792 tokens affected).",
        ),
        Template(
            "🔴Send Tensor, Peer Out Of Memory/Threshold, {_} 👉 {_}, MyRank:{_}, data:{_}, tensor:{_},"
            " size:{size_gib:.6f}GB, response:{_}",
            versions=">=0.9.2,<0.24.0",
            example="🔴Send Tensor, Peer Out Of Memory/Threshold, 192.0.2.10:21001 👉 192.0.2.11:22001, MyRank:0,"
            " data:{'cmd': 'PUT', 'tensor_id':"
            " 'chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908#model.layers.0.self_attn.attn'}, tensor:torch.Size([2, 128,"
            " 16, 8, 128]), size:0.007812GB, response:1",
        ),
        Template(
            "🔴[PUT]Recv Tensor, Out Of Memory, {_}👈{_}, data:{_}",
            versions=">=0.9.2,<0.24.0",
            example="🔴[PUT]Recv Tensor, Out Of Memory, 192.0.2.11:22001👈192.0.2.10:21001, data:{'cmd': 'PUT',"
            " 'tensor_id': 'chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908#model.layers.0.self_attn.attn'}",
        ),
        Template(
            "EC Connector: quarantined mm_hash={_} from {_}:{_} timed out; evicting blocks",
            versions=">=0.30.0",
            example="EC Connector: quarantined mm_hash=9f2c4b7a1d5e8f03 from 192.0.2.10:5600 timed out; evicting"
            " blocks",
        ),
        Template(
            "EC producer: consumer did not complete NIXL READ mm_hash={_} key={_} within the pin lease; releasing"
            " pinned blocks",
            versions=">=0.30.0",
            example="EC producer: consumer did not complete NIXL READ mm_hash=9f2c4b7a1d5e8f03 key=7 within the pin"
            " lease; releasing pinned blocks",
        ),
        Template(
            "Mooncake EC memory unregistration failed for address {_}: {_}",
            versions=">=0.30.0",
            example="Mooncake EC memory unregistration failed for address 139875241263104: -1",
        ),
        Template(
            "Mooncake EC batch memory unregistration failed: {_}",
            versions=">=0.30.0",
            example="Mooncake EC batch memory unregistration failed: -1",
        ),
        Template(
            "P2PSession {_}: fetch kv_request_id={request} round={_} demanded {blocks} blocks but {missing_blocks}"
            " have no pinned supply; failing fetch immediately",
            versions=">=0.27.0",
            example="P2PSession 192.0.2.11:7777: fetch kv_request_id=chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 round=0"
            " demanded 28 blocks but 4 have no pinned supply; failing fetch immediately",
        ),
        Template(
            "P2PSession {_}: write_blocks failed for {request} ({blocks} blocks)",
            versions=">=0.25.0",
            example="P2PSession 192.0.2.11:7777: write_blocks failed for chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 (28"
            " blocks)",
        ),
        Template(
            "Load of {blocks} blocks for job {_} failed at block {_}: {_}",
            versions=">=0.28.0",
            example="Load of 24 blocks for job 18 failed at block 3: [Errno 5] Input/output error",
        ),
        Template(
            "Failed to reset prefix cache because some blocks ({blocks}) are not freed yet",
            versions=">=0.7.0",
            example="Failed to reset prefix cache because some blocks (128) are not freed yet",
        ),
        Template(
            "The number of tokens is more than the number of blocks.Something might be wrong in scheduling logic!",
            versions=">=0.11.1",
            example="The number of tokens is more than the number of blocks.Something might be wrong in scheduling"
            " logic!",
        ),
        Template(
            "Num tokens: {tokens}, num blocks: {blocks}, block size: {block_size_tokens}",
            versions=">=0.11.1",
            example="Num tokens: 2011, num blocks: 120, block size: 16",
        ),
        Template(
            "You have some decode requests while using SimpleConnector. Their KVCache won't be sent.",
            versions=">=0.8.0,<0.10.1",
            example="You have some decode requests while using SimpleConnector. Their KVCache won't be sent.",
        ),
        Template(
            "Please install mooncake by following the instructions at"
            " https://github.com/kvcache-ai/Mooncake/blob/main/doc/en/build.md to run VLLM with"
            " MooncakeTransferEngine.",
            versions=">=0.13.0",
            example="Please install mooncake by following the instructions at"
            " https://github.com/kvcache-ai/Mooncake/blob/main/doc/en/build.md to run VLLM with"
            " MooncakeTransferEngine.",
        ),
        Template(
            "Not pairing remote {_}-token blocks with local {_}-token blocks: [[their {_}-token common unit would"
            " split each block into more than {_} transfers.]][[the remote KV layout cannot be split into {_}-token"
            " units.]]",
            versions=">=0.33.0",
            example="Not pairing remote 784-token blocks with local 528-token blocks: their 16-token common unit would"
            " split each block into more than 16 transfers.",
        ),
    )
