"""Named tuples that cost little to declare.

`typing.NamedTuple` compiles each annotation of each class and `collections.namedtuple` the constructor of each: for fifty
classes, a tenth of the run of a small log. Here annotations stay text until somebody asks for types, and a constructor is
compiled when several tuples have been made: most classes of a run make a few or none. To type checkers they are
`typing.NamedTuple`; whoever uses them finds the same attributes and methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple
    from operator import itemgetter
    from types import MappingProxyType

    _MANY = namedtuple("_MANY", [f"at_{index}" for index in range(24)])
    _GETTERS = [vars(_MANY)[field] for field in _MANY._fields]
    """What reads the n-th item, as fast as an attribute."""

    _BY_HAND = 6
    """Tuples of a class that are made before it pays to compile a constructor."""
    _MADE: dict[type, int] = {}

    class _Maker(type):
        """Makes a named tuple of a class body: its annotations are the fields, what it assigns to them their defaults."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            if list(defaults) != list(fields[len(fields) - len(defaults) :]):
                raise TypeError(f"{name}: a field without a default follows one that has one")
            body["__slots__"] = ()
            body["_fields"] = body["__match_args__"] = fields
            body["_field_defaults"] = defaults
            for index, field in enumerate(fields):
                body[field] = _GETTERS[index] if index < len(_GETTERS) else property(itemgetter(index))
            return type(name, (_Tuple,), body)

    class _Tuple(tuple):
        """What all named tuples have."""

        __slots__ = ()
        _fields = ()
        _field_defaults = MappingProxyType({})

        def __new__(cls, /, *args: Any, **kwargs: Any) -> Any:
            """Make the first tuples of a class by hand, then the constructor of all others."""
            owner = next(kind for kind in cls.__mro__ if "_fields" in vars(kind))
            fields, defaults = owner._fields, owner._field_defaults
            _MADE[owner] = made = _MADE.get(owner, 0) + 1
            left = fields[len(args) :]
            if (
                made <= _BY_HAND
                and len(args) <= len(fields)
                and all(field in kwargs or field in defaults for field in left)
                and all(field in left for field in kwargs)
            ):
                return tuple.__new__(cls, (*args, *(kwargs[f] if f in kwargs else defaults[f] for f in left)))
            names = "".join(f"{field}, " for field in fields)
            make = eval(f"lambda _cls, {names}: _new(_cls, ({names}))", {"_new": tuple.__new__})
            make.__name__ = "__new__"
            make.__qualname__ = f"{owner.__qualname__}.__new__"
            make.__defaults__ = tuple(defaults.values())
            owner.__new__ = staticmethod(make)
            return make(cls, *args, **kwargs)

        @classmethod
        def _make(cls, values: Any) -> Any:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(made)}")
            return made

        def _replace(self, /, **values: Any) -> Any:
            made = self._make(map(values.pop, self._fields, self))
            if values:
                raise ValueError(f"{type(self).__name__} has no {', '.join(values)}")
            return made

        __replace__ = _replace

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            values = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({values})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
