"""The base score of a CVSS 3 vector (FIRST, CVSS 3.1 specification, section 7)."""

from __future__ import annotations

import math
from typing import Final

_METRICS: Final[dict[str, dict[str, float]]] = {
    "AV": {"N": 0.85, "A": 0.62, "L": 0.55, "P": 0.2},
    "AC": {"L": 0.77, "H": 0.44},
    "UI": {"N": 0.85, "R": 0.62},
    "C": {"H": 0.56, "L": 0.22, "N": 0.0},
    "I": {"H": 0.56, "L": 0.22, "N": 0.0},
    "A": {"H": 0.56, "L": 0.22, "N": 0.0},
}
# Required privileges lower the score less when the scope changes (S:C).
_PRIVILEGES: Final = {
    "U": {"N": 0.85, "L": 0.62, "H": 0.27},
    "C": {"N": 0.85, "L": 0.68, "H": 0.5},
}
_SEVERITIES: Final = ((9.0, "critical"), (7.0, "high"), (4.0, "moderate"), (0.1, "low"))


def base_score(vector: str) -> float | None:
    """The score, 0 to 10 in tenths; None when the text is no complete vector of CVSS 3.0 or 3.1."""
    prefix, *parts = vector.split("/")
    if prefix not in ("CVSS:3.0", "CVSS:3.1"):
        return None
    given = dict(part.partition(":")[::2] for part in parts)
    try:
        weights = {metric: values[given[metric]] for metric, values in _METRICS.items()}
        privileges = _PRIVILEGES[given["S"]][given["PR"]]
    except KeyError:
        return None
    changed = given["S"] == "C"
    missing = 1 - (1 - weights["C"]) * (1 - weights["I"]) * (1 - weights["A"])
    impact = 7.52 * (missing - 0.029) - 3.25 * (missing - 0.02) ** 15 if changed else 6.42 * missing
    if impact <= 0:
        return 0.0
    exploitability = 8.22 * weights["AV"] * weights["AC"] * privileges * weights["UI"]
    return _round_up(min((1.08 if changed else 1.0) * (impact + exploitability), 10))


def severity_of(score: float) -> str:
    """Npm's severity for a score: ``info``, ``low``, ``moderate``, ``high`` or ``critical``."""
    return next((word for least, word in _SEVERITIES if score >= least), "info")


def _round_up(value: float) -> float:
    """A value rounded up to tenths, without the errors of floating point (appendix A)."""
    hundred_thousandths = round(value * 100_000)
    if hundred_thousandths % 10_000 == 0:
        return hundred_thousandths / 100_000
    return (math.floor(hundred_thousandths / 10_000) + 1) / 10
