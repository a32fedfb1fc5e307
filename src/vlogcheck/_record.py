"""Records: what one log message said, frozen, with the line it stood on and who printed it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

from vlogcheck._holes import HOLES, Hole, TemplateError

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
elif TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        return lambda cls: cls


if TYPE_CHECKING:
    from collections.abc import Callable

    from vlogcheck.template import Template

__all__ = ["COMMON", "Record", "all_records", "all_templates"]

_RECORDS: dict[str, type[Record]] = {}


class _OfClass:
    """What a class finds out about itself when it is first asked: a log holds records of a few classes of hundreds."""

    def __init__(self, find: Callable[[type[Record]], dict[str, Any]]) -> None:
        self._find = find

    def __set_name__(self, owner: type[Record], name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, cls: type[Record]) -> dict[str, Any]:
        found = self._find(cls)
        if cls is not self._owner:
            setattr(cls, self._name, found)
        return found


def _own_types(cls: type[Record]) -> dict[str, str]:
    """Return the fields a class declares and their annotations: its own alone, from Python 3.10 on."""
    return {
        name: annotation
        for name, annotation in cls.__annotations__.items()
        if not name.startswith("_") and not str(annotation).startswith("ClassVar")
    }


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Record:
    """What one log message said: frozen, with the line it stood on and who printed it.

    Subclasses declare fields by annotation (a type named in `HOLES`, `| None` with a default where a wording may lack it),
    give each a docstring below it, and list their `templates`. Records hold what was said; what it means is decided later.
    """

    line: int = 0
    """Line number in the log, from 1."""
    time: str | None = None
    """Time as printed, with no claim about year or zone."""
    level: str | None = None
    """DEBUG, INFO, WARNING, ERROR or CRITICAL; None for text outside the logger."""
    process: str | None = None
    """Process tag, such as `EngineCore_DP0` or `Worker_TP1`."""
    pid: int | None = None
    """Process id from the tag."""
    rank: int | None = None
    """Rank, where the tag states one."""
    source: str | None = None
    """File and line in vLLM that logged it, such as `kv_cache_utils.py:1291`."""
    wrapper_time: str | None = None
    """Time the log's wrapper (container runtime, journal) added, as text."""
    container: str | None = None
    """What the wrapper says the line came from: container, pod, unit or task."""
    path: str | None = None
    """The file of a set of several that the line stands in."""
    template: ClassVar[Template | None] = None
    """The wording that was recognised; None for a record made otherwise."""

    templates: ClassVar[tuple[Template, ...]] = ()
    since: ClassVar[str] = ""

    _holes = _OfClass(lambda cls: {})
    _defaults = _OfClass(lambda cls: {name: cls.__dict__[name] for name in _own_types(cls) if name in cls.__dict__})
    _types = _OfClass(lambda cls: _own_types(cls))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__base__ is not Record:  # what its parent found out about itself is not for it
            for name in ("_holes", "_defaults", "_types"):
                setattr(cls, name, Record.__dict__[name])
        for template in cls.__dict__.get("templates", ()):
            template.record = cls
        if not cls.__name__.startswith("_"):
            if cls.__name__ in _RECORDS:
                raise TemplateError(f"two records named {cls.__name__}")
            _RECORDS[cls.__name__] = cls

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        given = self.__dict__
        for name in COMMON:
            if name in values:
                given[name] = values.pop(name)
        for name in cls._types:
            if name in values:
                given[name] = values.pop(name)
            elif name not in cls._defaults:
                raise TypeError(f"{cls.__name__} lacks {name}")
        if values:
            raise TypeError(f"{cls.__name__} has no {', '.join(values)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self), self.line, self.process, self.pid))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items() if name != "template")
        return f"{type(self).__name__}({values})"

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the record's values from the holes' values: for records whose payload needs taking apart."""
        return values

    @classmethod
    def field_names(cls) -> list[str]:
        """Return the record's own fields, in order, without the common ones."""
        return list(cls._types)

    @classmethod
    def required_fields(cls) -> list[str]:
        """Return the fields every wording must fill."""
        return [name for name in cls._types if name not in cls._defaults]

    @classmethod
    def hole(cls, field: str) -> Hole:
        """Return what a hole for `field` looks like. Raises `TemplateError` for a hole that is no field."""
        hole = cls._holes.get(field)
        if hole is None:
            try:
                annotation = str(cls._types[field])
                hole = HOLES[annotation.replace(" | None", "").strip()]
            except KeyError as error:
                raise TemplateError(f"{cls.__name__}: no field or hole type for {field}: {error}") from None
            cls._holes[field] = hole
        return hole

    def own_values(self) -> dict[str, Any]:
        """Return the record's own fields and values."""
        return {name: getattr(self, name) for name in self._types}

    def to_dict(self) -> dict[str, Any]:
        """Return the record as the JSON contract has it: name, line, origin, then the fields."""
        common = {name: getattr(self, name) for name in COMMON[:7]}
        for name in COMMON[7:]:
            if (value := getattr(self, name)) is not None:
                common[name] = value
        return {"record": type(self).__name__, **common, **self.own_values()}


COMMON = ("line", "time", "level", "process", "pid", "rank", "source", "wrapper_time", "container", "path")
"""The fields every record has."""


def all_records() -> dict[str, type[Record]]:
    """Return every record class by name, importing the modules that define them."""
    import vlogcheck.records  # noqa: F401  (its import fills the registry)

    return _RECORDS


def all_templates() -> list[Template]:
    """Return the templates of every record, in the order they are tried."""
    return [template for record in all_records().values() for template in record.templates]
