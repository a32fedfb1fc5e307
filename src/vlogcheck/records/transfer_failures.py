"""KV connectors while serving: blocks that could not be moved."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["KVTransferFailed"]


class KVTransferFailed(Record):
    """Blocks of a request could not be sent, fetched or stored, or were given up."""

    request: Word | None = None
    """The request."""

    templates = (
        Template(
            "Request {request} timed out after {_} seconds without being sent. Freeing its blocks on the producer"
            " side.",
            versions=">=0.13.0",
            example="Request r1 timed out after 16 seconds without being sent. Freeing its blocks on the producer"
            " side.",
        ),
        Template(
            "Request {request}: cannot store {_}",
            versions=">=0.11.1",
            example="Request r1: cannot store 16",
        ),
        Template(
            "Cannot store {_} blocks",
            versions=">=0.11.0,<0.11.1",
            example="Cannot store 16 blocks",
        ),
        Template(
            "Cannot release WRITE prefill blocks for request {request}: missing {_}",
            versions=">=0.24.0",
            example="Cannot release WRITE prefill blocks for request r1: missing 16",
        ),
        Template(
            "RDMA transfer failed for request {request}: {_} (code={_}). Notifying prefill to free blocks{_}",
            versions=">=0.23.0",
            example="RDMA transfer failed for request r1: 16 (code=16). Notifying prefill to free blocks16",
        ),
        Template(
            "Deferred write task for request {request} timed out after {_}s waiting for remote blocks",
            versions=">=0.33.0",
            example="Deferred write task for request r1 timed out after 16s waiting for remote blocks",
        ),
        Template(
            "Deferred write task for request {request} expired after {_}s (remote blocks never arrived), marking done",
            versions=">=0.23.0,<0.33.0",
            example="Deferred write task for request r1 expired after 16s (remote blocks never arrived), marking done",
        ),
        Template(
            "Releasing expired KV blocks for request {request} which were retrieved by {_}",
            versions=">=0.10.1",
            example="Releasing expired KV blocks for request r1 which were retrieved by 16",
        ),
        Template(
            "Potentially invalid KV blocks for unrecognized request {request} were retrieved by a decode worker."
            " They may have expired.",
            versions=">=0.10.1",
            example="Potentially invalid KV blocks for unrecognized request r1 were retrieved by a decode worker."
            " They may have expired.",
        ),
        Template(
            "No[[ local]] blocks to push for request {request}",
            versions=">=0.24.0",
            example="No local blocks to push for request r1",
        ),
        Template(
            "Handshake failed for request {request}, marking blocks as invalid",
            versions=">=0.11.1,<0.14.0",
            example="Handshake failed for request r1, marking blocks as invalid",
        ),
        Template(
            "NIXL send_notif failed for request {request}: P worker blocks will be freed after timeout. {_}",
            versions=">=0.11.1,<0.14.0",
            example="NIXL send_notif failed for request r1: P worker blocks will be freed after timeout. 16",
        ),
        Template(
            "NIXL transfer failed for request {request} with state {_}. Marking blocks as invalid.",
            versions=">=0.11.1,<0.14.0",
            example="NIXL transfer failed for request r1 with state ERR. Marking blocks as invalid.",
        ),
        Template(
            "NIXL transfer {_} for request {request}. Marking blocks as invalid.",
            versions=">=0.11.1,<0.14.0",
            example="NIXL transfer exception for request r1. Marking blocks as invalid.",
        ),
        Template(
            "req {request}: local blocks({_}) {_} remote blocks({_}){_}",
            versions=">=0.16.0",
            example="req r1: local blocks(16) 16 remote blocks(16)16",
        ),
        Template(
            "Error happens during {_}ferring kvcache for {_}",
            versions=">=0.18.0,<0.30.0",
            example="Error happens during transferring kvcache for r1: timeout",
        ),
        Template(
            "Error happens during tranfering kvcache for {_}",
            versions=">=0.13.0,<0.18.0",
            example="Error happens during tranfering kvcache for 16",
        ),
        Template(
            "Failing {_} request(s) due to KV load failure (failure_policy=fail, {_} tokens affected). Request IDs:"
            " {_}",
            versions=">=0.13.0",
            example="Failing 16 request(s) due to KV load failure (failure_policy=fail, 16 tokens affected). Request"
            " IDs: 16",
        ),
        Template(
            "Recovered from KV load failure: {_} request(s) rescheduled ({_} tokens affected).",
            versions=">=0.11.1",
            example="Recovered from KV load failure: 16 request(s) rescheduled (16 tokens affected).",
        ),
        Template(
            "{_}Send Tensor, Peer Out Of Memory/Threshold, {_}",
            versions=">=0.9.2,<0.24.0",
            example="16Send Tensor, Peer Out Of Memory/Threshold, 16",
        ),
        Template(
            "{_}Recv Tensor, Out Of Memory, {_}",
            versions=">=0.9.2,<0.24.0",
            example="16Recv Tensor, Out Of Memory, 16",
        ),
        Template(
            "EC Connector: quarantined mm_hash={_} from {_} timed out; evicting blocks",
            versions=">=0.30.0",
            example="EC Connector: quarantined mm_hash=16 from 16 timed out; evicting blocks",
        ),
        Template(
            "EC producer: consumer did not complete NIXL READ mm_hash={_} within the pin lease; releasing pinned"
            " blocks",
            versions=">=0.30.0",
            example="EC producer: consumer did not complete NIXL READ mm_hash=16 within the pin lease; releasing"
            " pinned blocks",
        ),
        Template(
            "Mooncake EC {_}memory unregistration failed{_}",
            versions=">=0.30.0",
            example="Mooncake EC 16memory unregistration failed16",
        ),
        Template(
            "P2PSession {_}: fetch kv_request_id={_} demanded {_} blocks but {_} have no pinned supply; failing"
            " fetch immediately",
            versions=">=0.27.0",
            example="P2PSession 16: fetch kv_request_id=16 demanded 16 blocks but 16 have no pinned supply; failing"
            " fetch immediately",
        ),
        Template(
            "P2PSession {_}: write_blocks failed for {_} ({_} blocks)",
            versions=">=0.25.0",
            example="P2PSession 16: write_blocks failed for 16 (16 blocks)",
        ),
        Template(
            "Load of {_} blocks for job {_} failed at block {_}: {_}",
            versions=">=0.28.0",
            example="Load of 16 blocks for job 16 failed at block 16: 16",
        ),
        Template(
            "Failed to reset prefix cache because some blocks ({_}) are not freed yet",
            versions=">=0.7.0",
            example="Failed to reset prefix cache because some blocks (16) are not freed yet",
        ),
        Template(
            "The number of tokens is more than the number of blocks.Something might be wrong in scheduling logic!",
            versions=">=0.11.1",
            example="The number of tokens is more than the number of blocks.Something might be wrong in scheduling"
            " logic!",
        ),
        Template(
            "Num tokens: {_}, num blocks: {_}, block size: {_}",
            versions=">=0.11.1",
            example="Num tokens: 16, num blocks: 16, block size: 16",
        ),
        Template(
            "You have some decode requests while using SimpleConnector. Their KVCache won't be sent.",
            versions=">=0.8.0,<0.10.1",
            example="You have some decode requests while using SimpleConnector. Their KVCache won't be sent.",
        ),
        Template(
            "Please install mooncake by following the instructions at {_} to run {_} with MooncakeTransferEngine.",
            versions=">=0.13.0",
            example="Please install mooncake by following the instructions at 16 to run 16 with"
            " MooncakeTransferEngine.",
        ),
        Template(
            "Not pairing remote {_}-token blocks with local {_}-token blocks: {_}",
            versions=">=0.33.0",
            example="Not pairing remote 16-token blocks with local 16-token blocks: 16",
        ),
    )
