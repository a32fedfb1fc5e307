"""What checks can ask for: one start-up with its ledgers, the user's expectation, the model and its plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from vlogcheck._ceiling import ConcurrencyCeiling, ceiling
from vlogcheck._tuples import NamedTuple
from vlogcheck.expect import Expectation
from vlogcheck.expected import ExpectedEngine, Model
from vlogcheck.failures import Outcome, outcome
from vlogcheck.observed import EngineLedger, Observation, observe
from vlogcheck.registry import Missing
from vlogcheck.runtime import RunTime
from vlogcheck.startup import Startup

__all__ = ["ConcurrencyCeiling", "Context", "LogFacts", "ceiling"]

T = TypeVar("T")


class LogFacts(NamedTuple):
    """The log as a whole."""

    path: str
    lines: int
    truncated: bool
    """Whether the last line has no newline."""
    unrecognised: int
    """Memory-looking messages that no template knows."""
    unrecognised_lines: list[tuple[int, str]]
    """The first of them."""
    damage: str | None
    """What was wrong with the file (a compressed file that ends early), or None."""
    startups: list[Startup]
    judged: list[int]
    """Which start-ups are checked: the last one of each server."""
    growing: bool = False
    """Whether the log is judged while it is being written: that it stops here says nothing."""
    forgotten: int = 0
    """Start-ups before those in `startups` that were only counted: there were too many to keep."""
    unjudged: int = 0
    """Servers among them that did not start again later, so that nothing can be said of them."""
    end: int = 0
    """Number of the last line, in its own file where several are one log."""
    damaged_at: int = 0
    """The same of the last line before the damage."""
    others: str = ""
    """What else is in a log without a start-up: `serving` (metrics lines), `vllm` (other lines of vLLM's), or nothing."""


class Context:
    """Everything known about one start-up. Values are computed at first use."""

    def __init__(
        self, startup: Startup, number: int = 0, *, expectation: Expectation | None = None, model: Model | None = None,
        facts: LogFacts | None = None,
    ) -> None:  # fmt: skip
        self.startup = startup
        self.number = number
        self.path = startup.path or (facts.path if facts else None)
        self.expectation = expectation or Expectation()
        self.model = model
        self.facts = facts
        self.attached: frozenset[type[Any]] = frozenset()
        """Types of what was read beside the log."""
        self._cache: dict[Any, Any] = {}

    @property
    def observation(self) -> Observation:
        """The observed ledgers."""
        if Observation not in self._cache:
            self._cache[Observation] = observe(self.startup, self.expectation)
        result: Observation = self._cache[Observation]
        return result

    def attach(self, value: object) -> None:
        """Keep what was read beside the log (card readings, a metrics page) for checks that ask for its type."""
        self.attached |= {type(value)}
        self._cache[type(value)] = value

    def all(self, kind: type[T]) -> list[T]:
        """Return all values of a type: records in order, or the engines' ledgers."""
        if kind is EngineLedger:
            return list(self.observation.engines)  # type: ignore[arg-type]
        return [record for record in self.startup.records if isinstance(record, kind)]

    def get(self, kind: type[T]) -> T:
        """Return the value of a type. Raises `Missing` with the reason."""
        if kind not in self._cache:
            provider = _PROVIDERS.get(kind)
            if provider is None:
                raise TypeError(f"no check can ask for {kind!r}: add a provider in context.py")
            try:
                self._cache[kind] = provider(self)
            except Missing as missing:
                self._cache[kind] = missing
        value = self._cache[kind]
        if isinstance(value, Missing):
            raise value
        return value  # type: ignore[no-any-return]


def _expectation(context: Context) -> Expectation:
    if not context.expectation.stated:
        raise Missing("nothing was expected: give --expect-concurrency or another expectation")
    return context.expectation


def _facts(context: Context) -> LogFacts:
    if context.facts is None:
        raise Missing("no log as a whole")
    return context.facts


def _runtime(context: Context) -> RunTime:
    if not context.startup.runtime.samples:
        raise Missing("the log has no metrics lines")
    return context.startup.runtime


def _model(context: Context) -> Any:
    if context.model is None:
        raise Missing("no model configuration: give --model-config")
    return context.model


def _expected(context: Context) -> ExpectedEngine:
    model = _model(context)
    engines = context.observation.engines
    if not engines:
        raise Missing("the log has no engine")
    result: ExpectedEngine = model.expected(context, engines[0])
    return result


_PROVIDERS: dict[Any, Callable[[Context], Any]] = {
    Context: lambda context: context,
    Startup: lambda context: context.startup,
    Observation: lambda context: context.observation,
    Outcome: lambda context: outcome(context.startup),
    Expectation: _expectation,
    LogFacts: _facts,
    RunTime: _runtime,
    Model: _model,
    ExpectedEngine: _expected,
    ConcurrencyCeiling: lambda context: ceiling(context, context.expectation.context),
}
"""What a check may ask for besides records, by type. Other modules register theirs with `provide`."""


def provide(kind: Any, provider: Callable[[Context], Any]) -> None:
    """Let checks ask for values of a type; the provider raises `Missing` where there is none."""
    _PROVIDERS[kind] = provider
