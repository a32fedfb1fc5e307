"""Named tuples whose annotations stay text until somebody asks for types.

`typing.NamedTuple` compiles each annotation of each class, by hundreds a tenth of what importing the package takes. To type
checkers it is the very same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    _GIVEN = frozenset({"__module__", "__qualname__", "__annotations__", "__classcell__"})

    class _Maker(type):
        """Makes a named tuple of a class body: its annotations are the fields, what it assigns to them their defaults."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            made.__qualname__ = body["__qualname__"]
            made.__annotations__ = fields
            for key, value in body.items():
                if key not in _GIVEN and key not in fields:
                    setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
