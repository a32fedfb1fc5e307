"""Which releases' source has which template, and which messages about memory no template covers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from _drift.match import Index, Wording, lines_of, normalise
from _drift.pieces import Text, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from packaging.version import Version

    from _drift.cache import Collected
    from _drift.collect import Site
    from _drift.ignore import IgnoreList
    from vlogcheck.template import Template


@dataclass(frozen=True)
class Verdict:
    """One template against the releases of the package it is said to come from."""

    template: Template
    seen: tuple[Version, ...]
    """The package's releases that were read, ascending."""
    present: frozenset[Version]
    """Those whose source has the wording."""
    declared: frozenset[Version] | None
    """Those the template's specifier names; None: the specifier is none."""
    texts: tuple[Text, ...]
    """The source's messages it matched."""

    @property
    def compared(self) -> bool:
        return bool(self.seen)

    @property
    def absent(self) -> list[Version]:
        """Declared, but not in the source."""
        return sorted((self.declared or frozenset()) - self.present)

    @property
    def undeclared(self) -> list[Version]:
        """In the source, but not declared."""
        return sorted(self.present - (self.declared or frozenset()))

    @property
    def agrees(self) -> bool:
        return not self.compared or (self.declared is not None and not self.absent and not self.undeclared)

    @property
    def suggestion(self) -> str | None:
        """The specifier that names exactly the releases that have the wording; None: no release read has it."""
        return specifier(self.seen, self.present) if self.present else None


@dataclass
class Uncovered:
    """A memory-looking message that no template reads and no ignore rule covers."""

    package: str
    text: Text
    sites: dict[Version, Site] = field(default_factory=dict)

    @property
    def newest(self) -> Site:
        return self.sites[max(self.sites)]


@dataclass(frozen=True)
class Count:
    """Memory-looking messages (distinct texts) of one release."""

    messages: int
    covered: int
    ignored: int
    uncovered: int


class Comparison:
    """All releases against all templates."""

    def __init__(
        self,
        releases: Sequence[Collected],
        templates: Sequence[Template],
        looks_like_memory: Callable[[str], bool],
        ignore: IgnoreList,
    ) -> None:
        self.releases = sorted(releases, key=lambda release: (release.name != "vllm", release.name, release.version))
        self.templates = templates
        self._looks = looks_like_memory
        self._ignore = ignore
        self._texts: dict[Text, Text] = {}
        self._lines: dict[Text, list[Text]] = {}
        self._where: dict[Text, set[tuple[str, Version]]] = {}
        for release in self.releases:
            for site in release.sites:
                text = self._normal(site.text)
                for each in (text, *self._lines[text]):
                    self._where.setdefault(each, set()).add((release.name, release.version))
        self._index = Index(self._where)

    def _normal(self, text: Text) -> Text:
        normal = self._texts.get(text)
        if normal is None:
            normal = self._texts[text] = normalise(text)
            self._lines.setdefault(normal, lines_of(normal))
        return normal

    def versions(self, package: str) -> tuple[Version, ...]:
        """Return the releases read of one package, ascending."""
        return tuple(release.version for release in self.releases if release.name == package)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Every template's, in the registry's order."""
        return [self._verdict(template) for template in self.templates]

    def _verdict(self, template: Template) -> Verdict:
        package = canonicalize_name(template.source or "")
        seen = self.versions(package)
        texts = tuple(self._index.matching(wording(template)))
        present = frozenset(version for text in texts for name, version in self._where[text] if name == package)
        declared: frozenset[Version] | None
        try:
            specifiers = SpecifierSet(template.versions)
            declared = frozenset(version for version in seen if specifiers.contains(version, prereleases=True))
        except InvalidSpecifier:
            declared = None
        return Verdict(template, seen, present, declared, texts)

    @cached_property
    def _memory(self) -> tuple[list[Uncovered], dict[str, Count]]:
        covered = {text for verdict in self.verdicts for text in verdict.texts}
        uncovered: dict[tuple[str, Text], Uncovered] = {}
        counts: dict[str, Count] = {}
        for release in self.releases:
            states: dict[Text, str] = {}
            for site in release.sites:
                text = self._normal(site.text)
                if states.get(text) in ("covered", "uncovered") or not self._speaks(site, text):
                    continue
                if self._read(text, covered):
                    states[text] = "covered"
                elif self._ignore.covers(site):
                    states[text] = "ignored"
                else:
                    states[text] = "uncovered"
                    entry = uncovered.setdefault((release.name, text), Uncovered(release.name, text))
                    entry.sites[release.version] = site
            tally = list(states.values())
            counts[release.label] = Count(
                len(tally), tally.count("covered"), tally.count("ignored"), tally.count("uncovered")
            )
        return sorted(
            uncovered.values(), key=lambda entry: (entry.package, entry.newest.path, entry.newest.line)
        ), counts

    def _speaks(self, site: Site, text: Text) -> bool:
        """Whether a site is a message about memory; a stray string counts as one only with something to fill in."""
        return (site.call != "text" or None in text) and self._looks(sample(text))

    def _read(self, text: Text, covered: set[Text]) -> bool:
        if text in covered:
            return True
        lines = [line for line in self._lines[text] if self._looks(sample(line))]
        return bool(lines) and all(line in covered for line in lines)

    @property
    def uncovered(self) -> list[Uncovered]:
        """Messages about memory that nothing reads, by package and place."""
        return self._memory[0]

    @property
    def counts(self) -> dict[str, Count]:
        """Per release, by its label."""
        return self._memory[1]


def wording(template: Template) -> Wording:
    """Return the matcher's form of a template."""
    pieces = template.parsed()
    holes = [piece.text for piece in pieces if piece.kind == "hole"]
    expressions = [".*?" if name == "_" else template.record.hole(name).expression for name in holes]
    return Wording.build(pieces, expressions, template.example, embedded=template.embedded)


def sample(text: Text) -> str:
    """Return a message as it might be printed: every hole a digit."""
    return "".join("7" if part is None else part for part in text)


def runs(seen: Sequence[Version], chosen: Iterable[Version]) -> list[tuple[int, int]]:
    """Stretches of neighbouring releases, as first and last index into `seen`."""
    stretches: list[tuple[int, int]] = []
    picked = set(chosen)
    for index, version in enumerate(seen):
        if version not in picked:
            continue
        if stretches and stretches[-1][1] == index - 1:
            stretches[-1] = (stretches[-1][0], index)
        else:
            stretches.append((index, index))
    return stretches


def specifier(seen: Sequence[Version], present: Iterable[Version]) -> str:
    """Return the PEP 440 specifier for exactly `present` out of `seen`: bounds, and `!=` for the holes between."""
    stretches = runs(seen, present)
    first, last = stretches[0][0], stretches[-1][1]
    parts = [f">={seen[first]}"]
    if last + 1 < len(seen):
        parts.append(f"<{seen[last + 1]}")
    for (_, before), (after, _) in itertools.pairwise(stretches):
        parts += [f"!={version}" for version in seen[before + 1 : after]]
    return ",".join(parts)


def ranges(seen: Sequence[Version], present: Iterable[Version]) -> str:
    """Return the same for people: `0.9.1–0.13.0, 0.15.1`."""
    return ", ".join(
        str(seen[first]) if first == last else f"{seen[first]}–{seen[last]}" for first, last in runs(seen, present)
    )


def one_line(text: Text, width: int = 0) -> str:
    """Return a message on one line, cut to `width` where one is given."""
    line = show(text).replace("\n", "⏎")
    return line if not width or len(line) <= width else line[: width - 1] + "…"
