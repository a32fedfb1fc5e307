"""Build docs/checks/ from the checks' own pages: an index and one file per check. What it writes is not committed.

    python scripts/build_docs.py [FOLDER]      # default: docs/checks

The same text is what `vlogcheck explain CODE` prints and what the tests run, so it cannot go stale. Lines marked
`# VLnnn` inside the example logs are the ones the check flags.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vlogcheck.registry import all_checks

if TYPE_CHECKING:
    from vlogcheck.registry import Check

FAMILIES = {
    "0": "The log itself",
    "1": "Device memory",
    "2": "Weights",
    "3": "KV cache",
    "4": "Concurrency",
    "5": "Ranks",
    "6": "Options vLLM changed or ignored",
    "9": "Failures",
}


def index(checks: dict[str, Check]) -> str:
    """Return the index page: one table per family."""
    out = ["# Checks", ""]
    for digit, title in FAMILIES.items():
        family = [check for code, check in checks.items() if code[2] == digit]
        if not family:
            continue
        out += [
            f"## {title} (VL{digit}xx)",
            "",
            "| code | severity | name | flags | since |",
            "| --- | --- | --- | --- | --- |",
        ]
        out += [
            f"| [{c.code}]({c.code.lower()}.md) | {c.severity.value} | `{c.name}` | {c.summary} | {c.since} |"
            for c in family
        ]
        out.append("")
    return "\n".join(out)


def page(check: Check) -> str:
    """Return a check's page with its facts below the title."""
    title, _, text = check.page.partition("\n")
    facts = f"`{check.name}` · {check.severity.value} · since {check.since}"
    scope = "the log as a whole" if check.per_log else "each start-up that is judged"
    return f"{title}\n\n{facts} · looks at {scope}\n{text}"


def build(folder: Path) -> list[Path]:
    """Write the pages; return what was written. Pages of checks that are gone are removed."""
    checks = all_checks()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {folder / "index.md": index(checks)}
    wanted |= {folder / f"{code.lower()}.md": page(check) for code, check in checks.items()}
    for old in folder.glob("vl*.md"):
        if old not in wanted:
            old.unlink()
    for path, text in wanted.items():
        path.write_text(text, "utf-8")
    return sorted(wanted)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "docs" / "checks"
    print(f"{len(build(target))} pages in {target}")
