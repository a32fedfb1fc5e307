"""Factor diagnosis: which single mistake of a hand ledger explains that two figures disagree.

Every entry of the registry (`mistakes`) changes one term and computes the ledger again, with vLLM's own rounding and grouping;
it explains a figure only if the recomputed one lies inside the printed rounding. One explanation is named, several are
listed as three candidates at most, none is said to be none.
"""

from __future__ import annotations

from vlogcheck.diagnose._case import Case, case_of
from vlogcheck.diagnose._result import Candidate, Diagnosis, Reading
from vlogcheck.diagnose.mistakes import MISTAKES, Mistake
from vlogcheck.diagnose.quantities import (
    Evidence,
    diagnose_bytes_per_token,
    diagnose_concurrency,
    diagnose_stated_bytes,
    diagnose_tokens,
)
from vlogcheck.diagnose.ratios import diagnose_ratio, diagnose_weights

__all__ = [
    "MISTAKES",
    "Candidate",
    "Case",
    "Diagnosis",
    "Evidence",
    "Mistake",
    "Reading",
    "case_of",
    "diagnose_bytes_per_token",
    "diagnose_concurrency",
    "diagnose_ratio",
    "diagnose_stated_bytes",
    "diagnose_tokens",
    "diagnose_weights",
]
