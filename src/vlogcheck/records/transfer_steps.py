"""KV connectors while serving: blocks on their way."""

from __future__ import annotations

from vlogcheck.template import Record, Template, Word

__all__ = ["KVTransferStep"]


class KVTransferStep(Record):
    """A KV connector or offload moves blocks of a request (mostly DEBUG)."""

    request: Word | None = None
    """The request."""

    templates = (
        Template(
            "Storing KV cache for {_} out of {_} for request {request}",
            versions=">=0.11.1",
            example="Storing KV cache for 16 out of 16 for request r1",
        ),
        Template(
            "Storing KV cache for {_} blocks (groups={_}) for request {request}",
            versions=">=0.22.0",
            example="Storing KV cache for 16 blocks (groups=16) for request r1",
        ),
        Template(
            "Request {request} offloading {_}",
            versions=">=0.11.0",
            example="Request r1 offloading 16",
        ),
        Template(
            "Request {request}: Scheduling store of {_} blocks to CPU ({_} groups)",
            versions=">=0.19.0",
            example="Request r1: Scheduling store of 16 blocks to CPU (16 groups)",
        ),
        Template(
            "Store event {_} completed: cached {_} blocks to CPU",
            versions=">=0.19.0",
            example="Store event 16 completed: cached 16 blocks to CPU",
        ),
        Template(
            "Delaying free of {_} blocks for request {request}",
            versions=">=0.21.0,<0.28.0",
            example="Delaying free of 16 blocks for request r1",
        ),
        Template(
            "Delaying request {request} since some of its blocks are already being loaded",
            versions=">=0.15.0,<0.26.0",
            example="Delaying request r1 since some of its blocks are already being loaded",
        ),
        Template(
            "Inject KV cache of {_} tokens to the paged memory",
            versions=">=0.8.5",
            example="Inject KV cache of 16 tokens to the paged memory",
        ),
        Template(
            "Retrieved {_} tokens",
            versions=">=0.11.1",
            example="Retrieved 16 tokens",
        ),
        Template(
            "Token matching for {_}: {_} matched ({_} blocks), {_} new hits, prompt len {_}",
            versions=">=0.20.0",
            example="Token matching for 16: 16 matched (16 blocks), 16 new hits, prompt len 16",
        ),
        Template(
            "{_}: {_} blocks in {_}s",
            versions=">=0.20.0",
            example="16: 16 blocks in 16s",
        ),
        Template(
            "Scheduled to load {_} tokens for request {request}",
            versions=">=0.11.1",
            example="Scheduled to load 16 tokens for request r1",
        ),
        Template(
            "Sending kv_caches for request {request} ({_} blocks) to {_}",
            versions=">=0.13.0",
            example="Sending kv_caches for request r1 (16 blocks) to 16",
        ),
        Template(
            "Skipping adding request {request} to NixlConnectorMetadata, as there are no remote blocks to pull",
            versions=">=0.9.0,<0.9.1",
            example="Skipping adding request r1 to NixlConnectorMetadata, as there are no remote blocks to pull",
        ),
        Template(
            "N{_}Connector request_finished({request}) waiting for {_} blocks",
            versions=">=0.11.1",
            example="NIXLConnector request_finished(r1) waiting for 480 seconds for remote decode to fetch blocks",
        ),
        Template(
            "Created {_} blocks for {_} engine {_}",
            versions=">=0.9.0",
            example="Created 16 blocks for 16 engine 16",
        ),
        Template(
            "Registering remote Mamba blocks for engine {_}",
            versions=">=0.20.0",
            example="Registering remote Mamba blocks for engine 16",
        ),
        Template(
            "Registering additional {_} Mamba blocks",
            versions=">=0.18.0,<0.20.0",
            example="Registering additional 16 Mamba blocks",
        ),
        Template(
            "Registering remote agent ({_}) memory regions with tp_ratio {_}",
            versions=">=0.14.0",
            example="Registering remote agent (16) memory regions with tp_ratio 16",
        ),
        Template(
            "Skipping layer {_}KV{_}cache spec is present.{_}",
            versions=">=0.25.0",
            example="Skipping layer 3 because no KV cache spec is present.",
        ),
        Template(
            "Skipping layer {_} as no KVCache spec is present. {_}",
            versions=">=0.24.0",
            example="Skipping layer 16 as no KVCache spec is present. 16",
        ),
        Template(
            "Per layer kv cache size: {_}",
            versions=">=0.9.0,<0.9.1",
            example="Per layer kv cache size: 16",
        ),
        Template(
            "KV cache transfer pipe is full. Waiting...",
            versions=">=0.6.5,<0.13.0",
            example="KV cache transfer pipe is full. Waiting...",
        ),
        Template(
            "UMBP store planning request={request} tokens={_}",
            versions=">=0.33.0",
            example="UMBP store planning request=r1 tokens=16",
        ),
        Template(
            "DecodeBenchConnector: {_}locks{_}",
            versions=">=0.11.1",
            example="DecodeBenchConnector: Filled 16 blocks (256 tokens) across 2 groups for request r1",
        ),
        Template(
            "DecodeBenchConnector: {_}KV cache{_}",
            versions=">=0.11.1",
            example="DecodeBenchConnector: Registered 32 KV cache layers",
        ),
        Template(
            "EC consumer: starting NIXL xfer mm_hash={_} blocks={_}",
            versions=">=0.30.0",
            example="EC consumer: starting NIXL xfer mm_hash=16 blocks=16",
        ),
        Template(
            "EC producer: serving NIXL READ request mm_hash={_} blocks={_}",
            versions=">=0.30.0",
            example="EC producer: serving NIXL READ request mm_hash=16 blocks=16",
        ),
        Template(
            "NixlTransport {_}: write_blocks NIXL.transfer peer={_} blocks={_}",
            versions=">=0.25.0",
            example="NixlTransport 16: write_blocks NIXL.transfer peer=16 blocks=16",
        ),
        Template(
            "P2P {_}: {_} blocks={_}",
            versions=">=0.25.0",
            example="P2P 16: 16 blocks=16",
        ),
        Template(
            "P2PSession {_}: {_} blocks={_}",
            versions=">=0.25.0",
            example="P2PSession 16: 16 blocks=16",
        ),
        Template(
            "Transferring remote {_}-token blocks as {_}-token kernel blocks to pair them with local {_}-token blocks.",
            versions=">=0.33.0",
            example="Transferring remote 16-token blocks as 16-token kernel blocks to pair them with local 16-token"
            " blocks.",
        ),
        Template(
            "{_} tensor {_} sender {_} (shape={_}, device={_}) via IPC queue (shared memory)",
            versions=">=0.19.0",
            example="Received tensor 3 from sender 1 for (shape=(16, 4), device=cuda:0) via IPC queue (shared memory)",
        ),
        Template(
            "Sent tensor {_} for (shape={_}, device={_}) via IPC queue (shared memory)",
            versions=">=0.19.0",
            example="Sent tensor 16 for (shape=16, device=16) via IPC queue (shared memory)",
        ),
    )
