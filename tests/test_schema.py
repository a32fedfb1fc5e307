from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from vlogcheck import check, parse
from vlogcheck.schema import record_models, records_schema, report_schema

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "docs" / "schema"
LOGS = sorted((ROOT / "fixtures" / "logs").glob("0.*/*.log"))[::9]


def published(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8"))


def test_published_schemas_are_those_of_the_models() -> None:
    message = "run scripts/build_schema.py"
    assert published("report") == json.loads(json.dumps(report_schema())), message
    assert published("records") == json.loads(json.dumps(records_schema())), message


@pytest.mark.parametrize("log", LOGS, ids=lambda p: p.name)
def test_output_follows_the_schemas(log: Path) -> None:
    report = json.loads(json.dumps(check(log).to_dict(), default=str))
    jsonschema.validate(report, published("report"))
    models = record_models()
    definitions = published("records")["$defs"]
    for record in parse(log):
        line = json.loads(json.dumps(record.to_dict(), default=str))
        models[line["record"]].model_validate(line)
        jsonschema.validate(line, definitions[line["record"]])


def test_a_wrong_report_is_refused() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"verdict": "maybe"}, published("report"))
