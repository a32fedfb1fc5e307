"""The JSON contract as pydantic models: what `vlogcheck parse` and `--format json` print, and their JSON Schemas.

Programs may validate with these models or with the published schemas (docs/schema/). Fields are only ever added.
"""

from __future__ import annotations

from typing import Any, Literal, Optional, Union

from pydantic import BaseModel, ConfigDict, Field, create_model

from vlogcheck.template import COMMON, HOLES, Record, all_records

__all__ = ["ReportModel", "record_models", "records_schema", "report_schema"]

_TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool, "object": Any}
_COMMON_TYPES = {"line": int, "pid": int, "rank": int}


class _Model(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class TermModel(_Model):
    """One term of a ledger: its value lies between `low` and `high` (equal when exact, null when unknown)."""

    key: str
    label: str
    unit: str
    low: Optional[float]
    high: Optional[float]
    status: Literal["printed", "derived", "given", "assumed", "unknown"]
    formula: str
    origin: str
    line: Optional[int]


class LedgerModel(_Model):
    """Terms by key, in the order they are added up, and what was assumed."""

    name: str
    terms: dict[str, TermModel]
    assumptions: list[str]


class RankModel(_Model):
    """One worker's memory."""

    name: str
    process: Optional[str]
    pid: Optional[int]
    rank: Optional[int]
    ledger: LedgerModel


class EngineModel(_Model):
    """One engine's KV cache and its ranks."""

    index: int
    ledger: LedgerModel
    ranks: list[RankModel]


class CurvePointModel(_Model):
    """Requests of one length that the KV cache holds at once."""

    context: int
    low: float
    high: float


class StartupModel(_Model):
    """One start of one server."""

    number: int
    first_line: int
    last_line: int
    path: Optional[str]
    container: Optional[str]
    version: Optional[str]
    model: Optional[str]
    config: Optional[dict[str, Any]]
    args: dict[str, Any]
    phase: str
    phases: list[dict[str, Any]]
    ready: bool
    usable: bool
    curve: list[CurvePointModel]
    curve_unknown: Optional[str]
    engines: list[EngineModel]
    records: dict[str, int]


class FindingModel(_Model):
    """One thing that is not as it should be."""

    code: str = Field(pattern=r"^VL\d{3}$")
    name: str
    severity: Literal["note", "warning", "error"]
    path: Optional[str]
    line: Optional[int]
    startup: Optional[int]
    expected: str
    observed: str
    message: str
    remedy: str
    explanation: str
    fix: dict[str, Union[int, float, str]]  # noqa: UP007


class SkippedModel(_Model):
    """A check that could not be made, and why."""

    code: str
    name: str
    reason: str
    startup: Optional[int]


class ReportModel(_Model):
    """What `vlogcheck LOG --format json` prints."""

    path: str
    verdict: Literal["pass", "fail", "inconclusive"]
    exit_code: Literal[0, 1, 3]
    reason: Optional[str]
    summary: str
    lines: int
    unrecognised: int
    startups_found: int
    startups: list[StartupModel]
    findings: list[FindingModel]
    skipped: list[SkippedModel]


def record_models() -> dict[str, type[BaseModel]]:
    """Return a pydantic model for each record, with the fields of its JSON line."""
    return {name: _record_model(record) for name, record in sorted(all_records().items())}


def _record_model(record: type[Record]) -> type[BaseModel]:
    fields: dict[str, Any] = {"record": (Literal[record.__name__], ...)}
    for name in COMMON:
        kind = _COMMON_TYPES.get(name, str)
        fields[name] = (kind, ...) if name == "line" else (Optional[kind], None)
    required = set(record.required_fields())
    for name in record.field_names():
        annotation = str(record._types[name]).replace(" | None", "").strip()
        kind = _TYPES[HOLES[annotation].schema]
        fields[name] = (kind, ...) if name in required else (Optional[kind], None)
    made: type[BaseModel] = create_model(record.__name__, __base__=_Model, __doc__=record.__doc__, **fields)
    return made


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the report."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ReportModel.model_json_schema()}


def records_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of `vlogcheck parse`."""
    models = {name: model.model_json_schema() for name, model in record_models().items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One record of a vLLM log",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in models],
        "$defs": models,
    }
