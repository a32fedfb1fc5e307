"""Named tuples are what `typing.NamedTuple` makes of the same class."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from vlogcheck._tuples import NamedTuple


class Ours(NamedTuple):
    """A docstring."""

    first: int
    second: str | None = None
    third: tuple[int, ...] = ()

    @property
    def both(self) -> str:
        """Of two."""
        return f"{self.first}{self.second}"

    @classmethod
    def of(cls, first: int) -> Ours:
        """Another way to one."""
        return cls(first, "of")


class Theirs(typing.NamedTuple):
    """A docstring."""

    first: int
    second: str | None = None
    third: tuple[int, ...] = ()


class Narrow(Ours):
    """With a constructor of its own."""

    __slots__ = ()

    def __new__(cls, first: int) -> Narrow:
        return super().__new__(cls, first, "narrow")


class Names(NamedTuple):
    """Fields with the names of what a constructor uses."""

    new: int
    cls: int
    fields: int = 0


class Empty(NamedTuple):
    """Nothing."""


class Wide(NamedTuple):
    """More fields than most."""

    f0: int
    f1: int
    f2: int
    f3: int
    f4: int
    f5: int
    f6: int
    f7: int
    f8: int
    f9: int
    g0: int
    g1: int
    g2: int
    g3: int
    g4: int
    g5: int
    g6: int
    g7: int
    g8: int
    g9: int
    h0: int
    h1: int
    h2: int
    h3: int
    h4: int
    h5: int
    h6: int
    h7: int
    h8: int
    h9: int


def test_the_same_tuple() -> None:
    for args in ((1,), (1, "a"), (1, "a", (2,))):
        ours, theirs = Ours(*args), Theirs(*args)  # type: ignore[arg-type]
        assert tuple(ours) == tuple(theirs)
        assert ours == theirs
        assert hash(ours) == hash(theirs)
        assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
        assert ours._asdict() == theirs._asdict()
        assert (ours.first, ours.second, ours.third) == tuple(theirs)
        assert ours._replace(second="b") == theirs._replace(second="b")
    assert Ours(first=3, third=(1,)) == Theirs(first=3, third=(1,))
    assert Ours._fields == Theirs._fields
    assert Ours._field_defaults == Theirs._field_defaults
    assert Ours.__match_args__ == Theirs.__match_args__  # type: ignore[attr-defined]
    assert Ours.__doc__ == "A docstring."
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)
    assert Ours._make([1, "a", ()]) == (1, "a", ())


def test_the_same_refusals() -> None:
    for kind in (Ours, Theirs):
        for call in (
            lambda kind=kind: kind(),
            lambda kind=kind: kind(1, other=2),
            lambda kind=kind: kind(1, first=2),
            lambda kind=kind: kind(1, "a", (), 4),
            lambda kind=kind: kind._make([1]),
        ):
            with pytest.raises(TypeError):
                call()
        with pytest.raises((TypeError, ValueError)):
            kind(1)._replace(other=2)
        with pytest.raises(AttributeError):
            kind(1).first = 2
        with pytest.raises(AttributeError):
            kind(1).other = 2
    with pytest.raises(TypeError):
        type(NamedTuple)("Odd", (), {"__annotations__": {"a": "int", "b": "int"}, "a": 1})


def test_the_hundredth_is_as_the_first() -> None:
    for number in range(100):
        assert Names(number, cls=2) == (number, 2, 0)
        assert Names(cls=number, new=1, fields=3) == (1, number, 3)
        assert Narrow(number) == (number, "narrow", ())
        assert type(Narrow(number)) is Narrow
        assert Empty() == ()
        with pytest.raises(TypeError):
            Names(1)  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            Names(1, 2, new=3)  # type: ignore[misc]


def test_methods_and_subclasses() -> None:
    assert Ours.of(2).both == "2of"
    assert Narrow(4) == (4, "narrow", ())
    assert type(Narrow(4)) is Narrow
    assert Narrow(4)._replace(first=5) == (5, "narrow", ())
    assert Ours(1) == (1, None, ())
    assert Empty() == ()
    wide = Wide(*range(30))
    assert [getattr(wide, field) for field in Wide._fields] == list(range(30))


def test_copies() -> None:
    for value in (Ours(1, "a"), Ours(2)):
        for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert other == value
            assert type(other) is Ours
    match Ours(1, "x"):
        case Ours(first, second):
            assert (first, second) == (1, "x")
