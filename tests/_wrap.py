"""Writers: what a wrapper makes of a server's lines. One small function each, written from the wrapper's own format.

Every writer takes the lines of a log (without newline) and gives the lines of the wrapped file. `LOSSY` names what a
wrapper changes in the text itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

Writer = Callable[[Iterable[str]], Iterator[str]]

_CRI_PIECE = 16384


def _stamp(number: int, digits: int = 9) -> str:
    seconds = 6 + number // 40
    return f"2026-11-29T16:{seconds // 60:02d}:{seconds % 60:02d}." + f"{(number * 7919) % 10**9:09d}"[:digits]


def docker_logs_t(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{_stamp(number)}Z {line}"


def docker_json_file(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield json.dumps({"log": line + "\n", "stream": "stderr", "time": _stamp(number) + "Z"}, separators=(",", ":"))


def cri(lines: Iterable[str], piece: int = _CRI_PIECE) -> Iterator[str]:
    for number, line in enumerate(lines):
        while len(line) > piece:
            yield f"{_stamp(number)}Z stdout P {line[:piece]}"
            line = line[piece:]
        yield f"{_stamp(number)}Z stdout F {line}"


def kubectl_prefix(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"[pod/vllm-6d9f7c5b8d-x2x7q/vllm] {line}"


def kubectl_prefix_timestamps(lines: Iterable[str]) -> Iterator[str]:
    return kubectl_prefix(docker_logs_t(lines))


def compose_v1(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"vllm_1   | {line}"


def compose_v2(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"vllm-1  | {line}"


def compose_container_name(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"llm.server  | {line}"


def compose_colour_t(lines: Iterable[str]) -> Iterator[str]:
    for line in docker_logs_t(lines):
        yield f"\x1b[36mvllm-1  | \x1b[0m{line}"


def swarm(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"stack_vllm.1.k1v2w3x4y5z6@gpu-host-1    | {line}"


def podman_t(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{_stamp(number)}+00:00 {line}"


def journal_short(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"Nov 29 16:10:53 gpu-host-1 vllm[13833]: {line}"


def journal_short_precise(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"Nov  9 16:10:53.768236 gpu-host-1 vllm[13833]: {line}"


def journal_short_iso(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"2026-11-29T16:10:53+0000 gpu-host-1 vllm[13833]: {line}"


def journal_short_full(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"Sun 2026-11-29 16:10:53 UTC gpu-host-1 vllm[13833]: {line}"


def journal_with_unit(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"Sun 2026-11-29 16:10:53 UTC gpu-host-1 vllm.service/vllm[13833]: {line}"


def journal_monotonic(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"[ 3250.288105] gpu-host-1 vllm[13833]: {line}"


def journal_unix(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"1795968653.768236 gpu-host-1 vllm[13833]: {line}"


def journal_json(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        unclean = any(ord(char) < 32 and char != "\t" for char in line)
        message = list(line.encode()) if unclean else line
        yield json.dumps(
            {"_HOSTNAME": "gpu-host-1", "SYSLOG_IDENTIFIER": "vllm", "_PID": "13833", "MESSAGE": message,
             "__REALTIME_TIMESTAMP": "1795968653768236", "PRIORITY": "6"}
        )  # fmt: skip


def journal_json_pretty(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield '\t"MESSAGE" : ' + json.dumps(line) + ","


def syslog_3164(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"<13>Nov 29 16:56:58 gpu-host-1 vllm[77]: {line}"


def syslog_5424(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f'<14>1 {_stamp(number, 6)}Z gpu-host-1 vllm 77 - [meta sequenceId="{number}"] {line}'


def logger_stderr(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        data = line.encode()
        for start in range(0, max(len(data), 1), 1024):
            yield f"<13>Nov 29 16:56:58 vllm: {data[start : start + 1024].decode('utf-8', 'replace')}"


def ts_default(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"Nov 29 16:10:47 {line}"


def ts_iso(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{_stamp(number, 6)}+0000 {line}"


def ts_since_start(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{number / 1000:.6f} {line}"


def ts_incremental(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"00:{number // 60 % 60:02d}:{number % 60:02d} {line}"


def github_actions(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        mark = "" if number else "\ufeff"
        yield f"{mark}{_stamp(number, 7)}Z {line}"


def gh_run_view(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"e2e (gpu)\tStart the server\t{_stamp(number, 7)}Z {line}"


def gitlab(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{_stamp(number, 6)}Z 00O {line}"


def buildkite(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"\x1b_bk;t={1700000000000 + number}\x07{line}"


def ci_page(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"  | {line}"


def jenkins(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"[{_stamp(number, 3)}Z] {line}"


def kaggle(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        yield f"{number / 10:.1f}s {number} {line}"


def notebook(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield "      " + json.dumps(line + "\n") + ","


def srun(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f" 3: {line}"


def mpirun(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"[1,3]<stdout>:{line}"


def torchrun(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"[default3]:{line}"


def ray_actor(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"\x1b[36m(ServeReplica:default:VLLMDeployment pid=4711, ip=10.0.0.2)\x1b[0m {line}"


def ray_anonymous(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"(pid=4711, ip=10.0.0.2) {line}"


def skypilot(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"(worker1, rank=1, pid=4711, ip=10.0.0.2) {line}"


def stern(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"vllm-6d9f7c5b8d-x2x7q vllm {line}"


def stern_colour(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"\x1b[38;5;2mvllm-6d9f7c5b8d-x2x7q\x1b[0m \x1b[32mvllm\x1b[0m {line}"


def kail(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"default/vllm-0[vllm]: {line}"


def fluentbit(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        kubernetes = {"pod_name": "vllm-0", "container_name": "vllm"}
        yield json.dumps({"date": 1795968362.5 + number, "stream": "stdout", "log": line, "kubernetes": kubernetes})


def datadog(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield json.dumps({"timestamp": "2026-11-29T16:06:02Z", "message": line, "service": "vllm", "status": "info"})


def loki(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        labels = {"pod": "vllm-0", "container": "vllm"}
        yield json.dumps({"labels": labels, "line": line, "timestamp": "2026-11-29T16:06:02Z"})


def vector(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield json.dumps({"container_name": "vllm", "message": line, "source_type": "docker_logs", "stream": "stdout"})


def cloudwatch(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield json.dumps({"logStreamName": "ecs/vllm/1", "timestamp": 1795968362000, "message": line})


def cloudwatch_tail(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"2026-11-29T16:06:02.123000+00:00 ecs/vllm/0123456789abcdef0123456789abcdef {line}"


def gcp(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        labels = {"pod_name": "vllm-0", "container_name": "vllm"}
        yield json.dumps({"textPayload": line + "\n", "severity": "ERROR", "resource": {"labels": labels}})


def fields_json(line_fields: dict[str, object], names: dict[str, str]) -> str:
    """A record of a JSON logging formatter, with the key names a team has chosen."""
    return json.dumps({names[key]: value for key, value in line_fields.items() if key in names})


SOURCES: dict[Writer, str | None] = {
    docker_logs_t: None,
    docker_json_file: None,
    cri: None,
    kubectl_prefix: "vllm-6d9f7c5b8d-x2x7q/vllm",
    kubectl_prefix_timestamps: "vllm-6d9f7c5b8d-x2x7q/vllm",
    compose_v1: "vllm_1",
    compose_v2: "vllm-1",
    compose_container_name: "llm.server",
    compose_colour_t: "vllm-1",
    swarm: "stack_vllm.1.k1v2w3x4y5z6@gpu-host-1",
    podman_t: None,
    journal_short: "gpu-host-1 vllm",
    journal_short_precise: "gpu-host-1 vllm",
    journal_short_iso: "gpu-host-1 vllm",
    journal_short_full: "gpu-host-1 vllm",
    journal_with_unit: "gpu-host-1 vllm.service/vllm",
    journal_monotonic: "gpu-host-1 vllm",
    journal_unix: "gpu-host-1 vllm",
    journal_json: "gpu-host-1 vllm",
    journal_json_pretty: None,
    syslog_3164: "gpu-host-1 vllm",
    syslog_5424: "gpu-host-1 vllm",
    logger_stderr: "vllm",
    ts_default: None,
    ts_iso: None,
    ts_since_start: None,
    ts_incremental: None,
    github_actions: None,
    gh_run_view: "e2e (gpu)",
    gitlab: None,
    buildkite: None,
    ci_page: None,
    jenkins: None,
    kaggle: None,
    notebook: None,
    srun: "rank 3",
    mpirun: "rank 3",
    torchrun: "rank 3",
    ray_actor: "ServeReplica:default:VLLMDeployment pid=4711, ip=10.0.0.2",
    ray_anonymous: "pid=4711, ip=10.0.0.2",
    skypilot: "worker1, rank=1, pid=4711, ip=10.0.0.2",
    stern: "vllm-6d9f7c5b8d-x2x7q/vllm",
    stern_colour: "vllm-6d9f7c5b8d-x2x7q/vllm",
    kail: "default/vllm-0/vllm",
    fluentbit: "vllm-0/vllm",
    datadog: "vllm",
    loki: "vllm-0/vllm",
    vector: "vllm",
    cloudwatch: "ecs/vllm/1",
    cloudwatch_tail: "ecs/vllm/0123456789abcdef0123456789abcdef",
    gcp: "vllm-0/vllm",
}
"""Every writer, and the source its lines have."""

WRITERS: tuple[Writer, ...] = tuple(SOURCES)

NESTED: tuple[tuple[Writer, Writer], ...] = (
    (cri, docker_json_file),
    (docker_json_file, compose_v2),
    (compose_v2, docker_logs_t),
    (journal_short, compose_v2),
    (journal_json, docker_logs_t),
    (fluentbit, docker_logs_t),
    (kubectl_prefix, ts_default),
    (github_actions, compose_v2),
    (srun, ts_iso),
    (cri, srun),
    (kaggle, srun),
    (ts_default, journal_short),
    (docker_json_file, docker_json_file),
)
"""Outer and inner wrapper of lines wrapped twice."""
