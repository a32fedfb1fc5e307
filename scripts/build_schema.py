"""Write the JSON Schemas of the report and of the records to docs/schema/: run it after a record or field was added."""

from __future__ import annotations

import json
from pathlib import Path

from vlogcheck.schema import records_schema, report_schema

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schema"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, schema in (("report", report_schema()), ("records", records_schema())):
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.schema.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
