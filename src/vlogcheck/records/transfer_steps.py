"""KV connectors while serving: blocks on their way."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["KVTransferStep"]


class KVTransferStep(Record):
    """A KV connector or offload moves blocks of a request (mostly DEBUG; distributed/kv_transfer/*, v1/kv_offload/*)."""

    request: Word | None = None
    """The request."""
    engine: Word | None = None
    """The engine whose blocks are registered, by its id."""
    layer: Word | None = None
    """The layer."""
    blocks: int | None = None
    """Blocks moved, matched or registered."""
    total_blocks: int | None = None
    """Blocks of the request."""
    first_block: int | None = None
    """The first of them, counted from 0."""
    chunks: int | None = None
    """Chunks moved, each one or several blocks."""
    tokens: int | None = None
    """Tokens moved or matched, or up to which the request is stored."""
    new_tokens: int | None = None
    """Matched tokens the device does not hold yet."""
    skipped_tokens: int | None = None
    """Leading tokens that are stored already."""
    total_tokens: int | None = None
    """Tokens of the request."""
    groups: int | None = None
    """Groups of layers."""
    layers: int | None = None
    """Layers."""
    seconds: float | None = None
    """Time taken, or waited for at most."""

    templates = (
        Template(
            "Storing KV cache for {tokens} out of {total_tokens} tokens (skip_leading_tokens={skipped_tokens}) for"
            " request {request}",
            versions=">=0.11.1",
            example="Storing KV cache for 1792 out of 2048 tokens (skip_leading_tokens=256) for request"
            " chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908",
        ),
        Template(
            "Storing KV cache for {blocks} out of {total_blocks} blocks (missing_count={_}) for request {request}",
            versions=">=0.21.0,<0.22.0",
            example="Storing KV cache for 112 out of 128 blocks (missing_count=112) for request"
            " chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908",
        ),
        Template(
            "Storing KV cache for {blocks} blocks (groups={_}) for request {request}",
            versions=">=0.22.0",
            example="Storing KV cache for 112 blocks (groups={0, 1}) for request"
            " chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908",
        ),
        Template(
            "Request {request} offloading {blocks} blocks starting from block #{first_block}",
            versions=">=0.11.0,<0.20.0",
            example="Request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 offloading 24 blocks starting from block #104",
        ),
        Template(
            "Request {request} offloading {blocks} blocks upto {tokens} tokens[[ (job {_})]]",
            versions=">=0.20.0,<0.26.0",
            example="Request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 offloading 24 blocks upto 2048 tokens (job 17)",
        ),
        Template(
            "Request {request} offloading {chunks} chunks upto {tokens} tokens (job {_})",
            versions=">=0.26.0",
            example="Request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 offloading 6 chunks upto 2048 tokens (job 17)",
        ),
        Template(
            "Request {request}: Scheduling store of {blocks} blocks to CPU ({groups} groups)",
            versions=">=0.19.0",
            example="Request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: Scheduling store of 24 blocks to CPU (2"
            " groups)",
        ),
        Template(
            "Store event {_} completed: cached {blocks} blocks to CPU",
            versions=">=0.19.0",
            example="Store event 41 completed: cached 24 blocks to CPU",
        ),
        Template(
            "Delaying free of {blocks} blocks for request {request}",
            versions=">=0.21.0,<0.28.0",
            example="Delaying free of 128 blocks for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908",
        ),
        Template(
            "Delaying request {request} since some of its blocks are already being loaded",
            versions=">=0.15.0,<0.26.0",
            example="Delaying request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 since some of its blocks are already"
            " being loaded",
        ),
        Template(
            "Inject KV cache of {tokens} tokens to the paged memory",
            versions=">=0.8.5",
            example="Inject KV cache of 2048 tokens to the paged memory",
        ),
        Template(
            "Retrieved {tokens} tokens",
            versions=">=0.11.1",
            example="Retrieved 1792 tokens",
        ),
        Template(
            "Token matching for {request}: {tokens} matched ({blocks} blocks), {new_tokens} new hits, prompt len"
            " {total_tokens}",
            versions=">=0.20.0",
            example="Token matching for chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: 1792 matched (28 blocks), 1536 new"
            " hits, prompt len 2011",
        ),
        Template(
            "Saved {request}: {blocks} blocks in {seconds}s",
            versions=">=0.20.0",
            example="Saved chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: 28 blocks in 0.04s",
        ),
        Template(
            "Loaded {request}: {blocks} blocks in {seconds}s",
            versions=">=0.20.0",
            example="Loaded chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908: 28 blocks in 0.03s",
        ),
        Template(
            "Scheduled to load {tokens} tokens for request {request}",
            versions=">=0.11.1",
            example="Scheduled to load 1792 tokens for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908",
        ),
        Template(
            "Sending kv_caches for request {request} ({blocks} blocks) to {_}",
            versions=">=0.13.0",
            example="Sending kv_caches for request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 (128 blocks) to"
            " 192.0.2.11:14579",
        ),
        Template(
            "Skipping adding request {request} to NixlConnectorMetadata, as there are no remote blocks to pull",
            versions=">=0.9.0,<0.9.1",
            example="Skipping adding request cmpl-5e1b7c2f9a0d4c6eb3d8f7a6c5b4e302-0 to NixlConnectorMetadata, as"
            " there are no remote blocks to pull",
        ),
        Template(
            "NIXLConnector request_finished({request}) waiting for {seconds} seconds [[for remote decode to"
            " fetch]][[before releasing]] blocks",
            versions=">=0.11.1",
            example="NIXLConnector request_finished(chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908) waiting for 480 seconds"
            " before releasing blocks",
        ),
        Template(
            "NixlPushConnector request_finished({request}) waiting for {seconds} seconds before releasing blocks",
            versions=">=0.24.0",
            example="NixlPushConnector request_finished(chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908) waiting for 30"
            " seconds before releasing blocks",
        ),
        Template(
            "Created {blocks} blocks for src engine {engine} and rank {_}[[ on device id {_}]]",
            versions=">=0.9.0",
            example="Created 485888 blocks for src engine 6f0d3c1e-2b7a-4c58-9e41-7d1f0a9b8c23 and rank 0 on device id"
            " 0",
        ),
        Template(
            "Created {blocks} blocks for dst engine {engine}[[ with remote rank {_} and local rank {_}]][[ and rank"
            " {_}]]",
            versions=">=0.9.0",
            example="Created 485888 blocks for dst engine 6f0d3c1e-2b7a-4c58-9e41-7d1f0a9b8c23 with remote rank 0 and"
            " local rank 0",
        ),
        Template(
            "Registering remote Mamba blocks for engine {engine} rank {_}",
            versions=">=0.20.0",
            example="Registering remote Mamba blocks for engine 6f0d3c1e-2b7a-4c58-9e41-7d1f0a9b8c23 rank 0",
        ),
        Template(
            "Registering additional {blocks} local Mamba blocks",
            versions=">=0.18.0,<0.20.0",
            example="Registering additional 12288 local Mamba blocks",
        ),
        Template(
            "Registering additional {blocks} remote Mamba blocks",
            versions=">=0.18.0,<0.20.0",
            example="Registering additional 12288 remote Mamba blocks",
        ),
        Template(
            "Registering remote agent ({engine}, rank {_}) memory regions with tp_ratio {_}",
            versions=">=0.14.0",
            example="Registering remote agent (6f0d3c1e-2b7a-4c58-9e41-7d1f0a9b8c23, rank 0) memory regions with"
            " tp_ratio 1",
        ),
        Template(
            "Skipping layer {layer} because no KV cache spec is present.",
            versions=">=0.25.0",
            example="Skipping layer model.layers.3.self_attn.attn because no KV cache spec is present.",
        ),
        Template(
            "Skipping layer {layer} as no KVCache spec is present. This is likely because the layer is sharing its KV"
            " cache",
            versions=">=0.24.0",
            example="Skipping layer model.layers.30.self_attn.attn as no KVCache spec is present. This is likely"
            " because the layer is sharing its KV cache",
        ),
        Template(
            "Per layer kv cache size: {_}",
            versions=">=0.9.0,<0.9.1",
            example="Per layer kv cache size: torch.Size([2, 7592, 16, 8, 128])",
        ),
        Template(
            "KV cache transfer pipe is full. Waiting...",
            versions=">=0.6.5,<0.13.0",
            example="KV cache transfer pipe is full. Waiting...",
        ),
        Template(
            "UMBP store planning request={request} tokens={tokens} plans={_} keys={_}",
            versions=">=0.33.0",
            example="UMBP store planning request=chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 tokens=2048 plans=0 keys=()",
        ),
        Template(
            "DecodeBenchConnector: Allocated {blocks} blocks across {groups} KV cache groups for request {request}",
            versions=">=0.11.1,<0.30.0",
            example="DecodeBenchConnector: Allocated 63 blocks across 1 KV cache groups for request"
            " chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908",
        ),
        Template(
            "DecodeBenchConnector: Selected {blocks} total blocks across {groups} KV cache groups for request"
            " {request} (per-group counts: {_})",
            versions=">=0.30.0",
            example="DecodeBenchConnector: Selected 126 total blocks across 2 KV cache groups for request"
            " chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 (per-group counts: 63, 63)",
        ),
        Template(
            "DecodeBenchConnector: No blocks selected for KV cache group {_} with {tokens} external tokens for request"
            " {request}",
            versions=">=0.30.0",
            example="DecodeBenchConnector: No blocks selected for KV cache group 1 with 1007 external tokens for"
            " request chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908",
        ),
        Template(
            "DecodeBenchConnector: Filled {blocks} [[total ]]blocks ({tokens} tokens) across {groups} groups for"
            " request {request}[[ (per-group counts: {_})]]",
            versions=">=0.11.1",
            example="DecodeBenchConnector: Filled 126 total blocks (1007 tokens) across 2 groups for request"
            " chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 (per-group counts: 63, 63)",
        ),
        Template(
            "DecodeBenchConnector: Filled {blocks} blocks in group {_} with [[constant]][[random]] values (mean={_},"
            " std={_})",
            versions=">=0.11.1",
            example="DecodeBenchConnector: Filled 63 blocks in group 0 with constant values (mean=0.015, std=0.000)",
        ),
        Template(
            "DecodeBenchConnector: the engine zeroes new blocks of {groups} KV cache groups before use, so they are"
            " still filled per request.",
            versions=">=0.31.0",
            example="DecodeBenchConnector: the engine zeroes new blocks of 1 KV cache groups before use, so they are"
            " still filled per request.",
        ),
        Template(
            "DecodeBenchConnector: Registered {layers} KV cache layers",
            versions=">=0.11.1",
            example="DecodeBenchConnector: Registered 32 KV cache layers",
        ),
        Template(
            "DecodeBenchConnector: Filled {layers} KV cache layers at startup with [[constant]][[random]] values"
            " (mean={_}, std={_})",
            versions=">=0.31.0",
            example="DecodeBenchConnector: Filled 32 KV cache layers at startup with constant values (mean=0.015,"
            " std=0.000)",
        ),
        Template(
            "DecodeBenchConnector: Layer {layer} not found in KV caches",
            versions=">=0.11.1",
            example="DecodeBenchConnector: Layer model.layers.0.self_attn.attn not found in KV caches",
        ),
        Template(
            "DecodeBenchConnector: skipping [[startup ]]fill for layer {layer} whose KV cache is {_}, not a tensor or"
            " a list/tuple of tensors.",
            versions=">=0.24.0",
            example="DecodeBenchConnector: skipping startup fill for layer model.layers.0.mixer whose KV cache is"
            " dict, not a tensor or a list/tuple of tensors.",
        ),
        Template(
            "DecodeBenchConnector: {_} KV caches do not hold plain floating-point values; filling them with zeros.",
            versions=">=0.31.0",
            example="DecodeBenchConnector: torch.uint8 KV caches do not hold plain floating-point values; filling them"
            " with zeros.",
        ),
        Template(
            "EC consumer: starting NIXL xfer mm_hash={_} from {_}:{_} blocks={blocks}",
            versions=">=0.30.0",
            example="EC consumer: starting NIXL xfer mm_hash=9f2c4b7a1d5e8f03 from 192.0.2.10:5600 blocks=12",
        ),
        Template(
            "EC producer: serving NIXL READ request mm_hash={_} key={_} blocks={blocks}",
            versions=">=0.30.0",
            example="EC producer: serving NIXL READ request mm_hash=9f2c4b7a1d5e8f03 key=7 blocks=12",
        ),
        Template(
            "NixlTransport {_}: write_blocks NIXL.transfer peer={_} blocks={blocks}",
            versions=">=0.25.0",
            example="NixlTransport 6f0d3c1e-2b7a-4c58-9e41-7d1f0a9b8c23: write_blocks NIXL.transfer"
            " peer=192.0.2.11:7777 blocks=28",
        ),
        Template(
            "P2P {_}: submit_store ENTRY job_id={_} blocks={blocks} [[remote_decoder]][[decode]]={_}"
            " kv_request_id={request}",
            versions=">=0.25.0",
            example="P2P 192.0.2.10:7777: submit_store ENTRY job_id=17 blocks=28 remote_decoder=True"
            " kv_request_id=chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908",
        ),
        Template(
            "P2P {_}: parked submit_store kv_request_id={request} job_id={_} blocks={blocks}",
            versions=">=0.25.0",
            example="P2P 192.0.2.10:7777: parked submit_store kv_request_id=chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908"
            " job_id=17 blocks=28",
        ),
        Template(
            "P2P {_}: submit_load ENTRY job_id={_} blocks={blocks} kv_request_id={request} peer={_}",
            versions=">=0.25.0",
            example="P2P 192.0.2.10:7777: submit_load ENTRY job_id=18 blocks=28"
            " kv_request_id=chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 peer=192.0.2.11:7777",
        ),
        Template(
            "P2P {_}: submit_load job_id={_} -> request_blocks peer={_} kv_request_id={request} blocks={blocks}"
            " session_ready={_}",
            versions=">=0.25.0",
            example="P2P 192.0.2.10:7777: submit_load job_id=18 -> request_blocks peer=192.0.2.11:7777"
            " kv_request_id=chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 blocks=28 session_ready=True",
        ),
        Template(
            "P2PSession {_}: request_blocks job_id={_} kv_request_id={request} blocks={blocks} ready={_}",
            versions=">=0.25.0",
            example="P2PSession 192.0.2.11:7777: request_blocks job_id=18"
            " kv_request_id=chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 blocks=28 ready=True",
        ),
        Template(
            "P2PSession {_}: fetch RECEIVED kv_request_id={request}[[ round={_}]] blocks={blocks}",
            versions=">=0.25.0",
            example="P2PSession 192.0.2.11:7777: fetch RECEIVED"
            " kv_request_id=chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 round=0 blocks=28",
        ),
        Template(
            "P2PSession {_}: NIXL write_blocks SUBMITTED kv_request_id={request} transfer_id={_} blocks={blocks}",
            versions=">=0.25.0",
            example="P2PSession 192.0.2.11:7777: NIXL write_blocks SUBMITTED"
            " kv_request_id=chatcmpl-8f3c1e0b4d2a4f7c9b6e5d4c3b2a1908 transfer_id=5 blocks=28",
        ),
        Template(
            "Transferring remote {_}-token blocks as {_}-token kernel blocks to pair them with local {_}-token blocks.",
            versions=">=0.33.0",
            example="Transferring remote 128-token blocks as 32-token kernel blocks to pair them with local 32-token"
            " blocks.",
        ),
        Template(
            "Received tensor {_} from sender {_} for (shape={_}, device={_}) via IPC queue (shared memory)",
            versions=">=0.19.0",
            example="Received tensor (3, 0) from sender 1f8a2c4d for (shape=torch.Size([1, 3, 448, 448]), device=cpu)"
            " via IPC queue (shared memory)",
        ),
        Template(
            "Sent tensor {_} for (shape={_}, device={_}) via IPC queue (shared memory)",
            versions=">=0.19.0",
            example="Sent tensor {'sender_id': '1f8a2c4d', 'message_id': 3, 'tensor_id': 0} for (shape=torch.Size([1,"
            " 3, 448, 448]), device=cpu) via IPC queue (shared memory)",
        ),
    )
