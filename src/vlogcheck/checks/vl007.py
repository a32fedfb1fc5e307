"""VL007: the log does not say which release wrote it."""

from __future__ import annotations

from collections.abc import Iterator

from vlogcheck.budget.releases import default_utilization, parse_release
from vlogcheck.registry import Finding, Severity, check
from vlogcheck.startup import Startup


@check("the log does not say which release wrote it", Severity.NOTE)
def release_unknown(startup: Startup) -> Iterator[Finding]:
    """Flag a start-up without a release, or with one whose rules are not known."""
    version = startup.version
    release = parse_release(version)
    if release.assumption is None:
        return
    yield Finding(
        "no line names the vLLM release"
        if version is None
        else f"the rules of release {version} are not known as such",
        line=startup.config.line if version is not None and startup.config is not None else startup.first_line,
        expected="a banner with a release, such as 'Initializing a V1 LLM engine (v0.11.0)'",
        observed=release.assumption,
        remedy=f"give what was printed before line {startup.first_line}, where the banner stands; until then utilization"
        f" {default_utilization(release):g} is taken for the default, and it may not be this release's"
        if version is None
        else f"compare with the release it is near to ({release.version}): defaults and profiling may differ",
    )
