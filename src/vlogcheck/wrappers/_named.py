"""Wrappers that begin with a name: compose, kubectl, stern, Ray, Slurm, MPI, CI agents."""

from __future__ import annotations

from vlogcheck._lazy import pattern

from ._base import DIGITS, ESC, LETTERS, UVICORN, VLLM_START, Layer, Registration, State

# Kubernetes draws suffixes from an alphabet without vowels, so an English word is never taken for one.
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_POD = rf"[a-z0-9][a-z0-9.\-]*-(?:[a-f0-9bcdfghjklmnpqrstvwxz]{{6,10}}-{_RANDOM}|{_RANDOM})"
_DNS = r"[a-z0-9](?:[a-z0-9.\-]*[a-z0-9])?"

_COMPOSE = pattern(r"(?:(?P<time>\d\d:\d\d:\d\d) )?(?P<name>(?:\d+\|)?[A-Za-z0-9][\w.\-@/]*)(?P<pad> *)\|(?: |$)")
_REPLICA = pattern(r"[-_.]\d+$")
_KUBECTL = pattern(rf"\[pod/(?P<pod>{_DNS})/(?P<container>{_DNS})\](?: |$)")
_KUBETAIL = pattern(rf"\[(?P<pod>{_POD})(?:[ /](?P<container>{_DNS}))?\](?: |$)")
_KAIL = pattern(rf"(?P<pod>{_DNS}/{_DNS})\[(?P<container>{_DNS})\]:(?: |$)")
_STERN = pattern(rf"(?P<pod>{_DNS})(?:{ESC})* (?:› )?(?:{ESC})*(?P<container>{_DNS})(?:{ESC})*(?: |$)")
_RANDOM_POD = pattern(rf"{_POD}$")
_RAY = pattern(rf"\((?P<tag>[^()\r\n]{{0,120}}?\bpid=\d+[^()\r\n]{{0,80}})\)(?:{ESC})*(?: |$)")
_RAY_SERVICE = pattern(rf"\((?P<tag>(?:raylet|autoscaler|gcs_server|dashboard)\b[^()\r\n]{{0,80}})\)(?:{ESC})*(?: |$)")
_RAY_REPEATED = pattern(
    rf"\[repeated \d+x across cluster\](?: \(Ray deduplicates[^()]*(?:\([^()]*\)[^()]*)*\))?(?:{ESC})*\s*$"
)
_TRAILING_ESC = pattern(rf"{ESC}$")
_MOST_RESETS = 8
_SRUN = pattern(r" {0,6}(?P<rank>\d{1,6}):(?: |$)")
_MPI = pattern(r"\[(?:[\w.\-]+@)?\d+,(?P<rank>\d+)\]<(?P<stream>stdout|stderr)>:")
_TORCHRUN = pattern(r"\[(?:(?P<kind>default)(?P<local>\d+)\]:|rank\d+\]: )")
_MARKUP = pattern(r"(?:(?:[>#*|`\u2502\u2503\u2551\u258c-\u2590]{1,4}|//) {0,4}){1,3}")
_BUILDKITE = pattern(r"\x1b_bk;t=(?P<time>\d+)\x07")
_COLUMN = "  | "


def without_ray_count(text: str) -> str:
    """Drop Ray's `[repeated 3x across cluster]` and the hint that follows it the first time."""
    if " across " not in text:
        return text
    at = text.rfind("[repeated ")
    if at < 0 or not _RAY_REPEATED.match(text, at):
        return text
    head = text[:at].rstrip()
    for _ in range(_MOST_RESETS):
        found = _TRAILING_ESC.search(head[-12:])
        if not found:
            break
        head = head[: len(head) - len(found[0])].rstrip()
    return head


def _compose(text: str, state: State) -> Layer | None:
    """`name-1  | message` (compose v1 and v2, swarm `name.1.id@node  | `, pm2 `0|name  | `, honcho `time name | `)."""
    found = _COMPOSE.match(text) if "|" in text else None
    if not found:
        return None
    name, pad = found["name"], len(found["pad"])
    if name not in state.names:
        # One blank may stand in any table; compose pads with two, or the name has a replica number.
        if not (pad >= 2 or (pad == 1 and _REPLICA.search(name)) or VLLM_START.match(text, found.end())):
            return None
        state.remember(name)
    rest = text[found.end() :]
    if rest.startswith("\x1b[0m"):
        rest = rest[4:]
    return Layer(rest, found["time"], name)


def _kubectl(text: str, state: State) -> Layer | None:
    """`[pod/name/container] ` of `kubectl logs --prefix`, `[pod container] ` of kubetail."""
    form = _KUBECTL if text.startswith("[pod/") else _KUBETAIL if "-" in text.partition("]")[0] else None
    found = form.match(text) if form else None
    if not found:
        return None
    source = found["pod"] + (f"/{found['container']}" if found["container"] else "")
    return Layer(text[found.end() :], source=source)


def _stern(text: str, state: State) -> Layer | None:
    """`pod container message` of stern, `namespace/pod[container]: message` of kail."""
    if found := _KAIL.match(text):
        return Layer(text[found.end() :], source=f"{found['pod']}/{found['container']}")
    found = _STERN.match(text)
    if not found:
        return None
    source = f"{found['pod']}/{found['container']}"
    rest = text[found.end() :]
    if source not in state.names:
        # Two words in front of a message are two words, unless the first is a pod's name or vLLM's line follows.
        if not (_RANDOM_POD.match(found["pod"]) or ("-" in found["pod"] and VLLM_START.match(rest))):
            return None
        state.remember(source)
    return Layer(rest, source=source)


def _ray(text: str, state: State) -> Layer | None:
    """Ray's and SkyPilot's tags. Those with a vLLM process name never come here: they are part of the line."""
    found = _RAY.match(text) or _RAY_SERVICE.match(text)
    return Layer(text[found.end() :], source=found["tag"]) if found else None


def _srun(text: str, state: State) -> Layer | None:
    """`3: message` of `srun -l`."""
    found = _SRUN.match(text)
    return Layer(text[found.end() :], source=f"rank {found['rank']}") if found else None


def _launcher(text: str, state: State) -> Layer | None:
    """`[1,3]<stdout>:` of mpirun, `[default3]:` of torchrun, `[rank3]: ` of torch's own tracebacks."""
    if found := _MPI.match(text):
        return Layer(text[found.end() :], source=f"rank {found['rank']}", stream=found["stream"])
    if found := _TORCHRUN.match(text):
        # torch writes [rank3] only before tracebacks: as a source it would part them from the rest of the process.
        return Layer(text[found.end() :], source=f"rank {found['local']}" if found["kind"] else None)
    return None


def _buildkite(text: str, state: State) -> Layer | None:
    found = _BUILDKITE.match(text)
    return Layer(text[found.end() :], found["time"]) if found else None


def _markup(text: str, state: State) -> Layer | None:
    """Take off what keeps a line as a comment or a quotation: `# `, `> `, `// `, bold type."""
    if text[:1] == "/" != text[1:2]:
        return None
    found = _MARKUP.match(text)
    if found and (VLLM_START.match(text, found.end()) or UVICORN.match(text[found.end() :])):
        end = len(text.rstrip("*`")) if "*" in found[0] or "`" in found[0] else len(text)
        return Layer(text[found.end() : end])
    return None


def _page(text: str, state: State) -> Layer | None:
    """`  | message`: the empty column of times, as a CI's page is copied; Python bars the lines of an exception group so."""
    return Layer(text[len(_COLUMN) :]) if text.startswith(_COLUMN) else None


def _bom(text: str, state: State) -> Layer | None:
    """Drop a byte order mark inside a file: where files with one were put together."""
    return Layer(text[1:])


FAMILIES: tuple[Registration, ...] = (
    ("[", _kubectl),
    ("[", _launcher),
    ("(", _ray),
    (DIGITS + " ", _srun),
    (" ", _page),
    (LETTERS + DIGITS, _compose),
    ("abcdefghijklmnopqrstuvwxyz" + DIGITS, _stern),
    ("\x1b", _buildkite),
    (">#*|`/\u2502\u2503\u2551\u258c\u258d\u258e\u258f\u2590", _markup),
    ("\ufeff", _bom),
)
