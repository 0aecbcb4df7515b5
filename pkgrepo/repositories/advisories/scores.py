"""
Base scores of CVSS 3.0, 3.1 and 4.0, and the severities that scores stand for.

Only base metrics count: what a vector says of threats and environments is left out. Section numbers are those of the
specifications at https://www.first.org/cvss/.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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

# CVSS 4.0. The values of a metric from the most to the least severe one, each a step from the one before.
_LEVELS: Final = {
    "AV": "NALP",
    "PR": "NLH",
    "UI": "NPA",
    "AC": "LH",
    "AT": "NP",
    **dict.fromkeys(("VC", "VI", "VA", "SC", "SI", "SA"), "HLN"),
}
# The groups of equivalent metrics (section 8.2): metrics, then for each level the most severe values, and the number of
# steps from these to the next level. EQ5 (exploit maturity) has one value without threat metrics. EQ4 has no level 0
# without environmental ones. EQ3 and EQ6 are one group, of whose levels base metrics have three.
_Group = tuple[Sequence[str], Mapping[int, tuple[Sequence[str], int]]]
_EQ1: Final[_Group] = (
    ("AV", "PR", "UI"),
    {0: (("NNN",), 1), 1: (("ANN", "NLN", "NNP"), 4), 2: (("PNN", "ALP"), 5)},
)
_EQ2: Final[_Group] = (("AC", "AT"), {0: (("LN",), 1), 1: (("HN", "LP"), 2)})
_EQ3: Final[_Group] = (("VC", "VI", "VA"), {0: (("HHH",), 7), 1: (("LHH", "HLH"), 8), 2: (("LLL",), 10)})
_EQ4: Final[_Group] = (("SC", "SI", "SA"), {1: (("HHH",), 5), 2: (("LLL",), 4)})
# The scores of the levels of EQ1, EQ2, EQ3 with EQ6 (00, 01, 10, 11, 21) and EQ4 (1, 2), in tenths, with attacks (E:A).
_SCORES: Final = {
    (eq1, eq2, eq36, eq4): int(text) / 10
    for (eq1, eq2), row in {
        (0, 0): "100 93 96 90 93 88 92 80 79 69",
        (0, 1): "95 92 91 81 92 84 82 70 71 63",
        (1, 0): "94 87 89 75 86 72 76 57 65 53",
        (1, 1): "90 77 77 66 74 61 59 52 58 23",
        (2, 0): "86 70 74 54 72 53 57 36 47 24",
        (2, 1): "73 54 55 43 61 46 51 18 24 10",
    }.items()
    for (eq36, eq4), text in zip(
        ((eq36, eq4) for eq36 in ("00", "01", "10", "11", "21") for eq4 in (1, 2)), row.split(), strict=True
    )
}
_NEXT_EQ36: Final = {0: ("01", "10"), 1: ("11",), 2: ()}


def base_score(vector: str) -> float | None:
    """The score, 0 to 10 in tenths; None when the text is no complete vector of CVSS 3.0, 3.1 or 4.0."""
    prefix, *parts = vector.split("/")
    given = dict(part.partition(":")[::2] for part in parts)
    try:
        if prefix == "CVSS:4.0":
            return _score_4(given)
        return _score_3(given) if prefix in ("CVSS:3.0", "CVSS:3.1") else None
    except KeyError:
        return None


def severity_of(score: float) -> str:
    """The severity of a score: ``info``, ``low``, ``moderate``, ``high`` or ``critical``."""
    return next((word for least, word in _SEVERITIES if score >= least), "info")


def _score_3(given: Mapping[str, str]) -> float:
    weights = {metric: values[given[metric]] for metric, values in _METRICS.items()}
    privileges = _PRIVILEGES[given["S"]][given["PR"]]
    changed = given["S"] == "C"
    missing = 1 - (1 - weights["C"]) * (1 - weights["I"]) * (1 - weights["A"])
    impact = 7.52 * (missing - 0.029) - 3.25 * (missing - 0.02) ** 15 if changed else 6.42 * missing
    if impact <= 0:
        return 0.0
    exploitability = 8.22 * weights["AV"] * weights["AC"] * privileges * weights["UI"]
    return _round_up(min((1.08 if changed else 1.0) * (impact + exploitability), 10))


def _round_up(value: float) -> float:
    """A value rounded up to tenths, without the errors of floating point (appendix A)."""
    hundred_thousandths = round(value * 100_000)
    if hundred_thousandths % 10_000 == 0:
        return hundred_thousandths / 100_000
    return (math.floor(hundred_thousandths / 10_000) + 1) / 10


def _score_4(given: Mapping[str, str]) -> float:
    """Section 8.2: the score of the levels, less the mean part of the way to the next levels that is covered."""
    at = {}
    for metric, values in _LEVELS.items():
        if given[metric] not in values:
            raise KeyError(metric)
        at[metric] = given[metric]
    if all(at[metric] == "N" for metric in ("VC", "VI", "VA", "SC", "SI", "SA")):
        return 0.0
    free = sum(at[metric] == "N" for metric in ("AV", "PR", "UI"))
    eq1 = 2 if at["AV"] == "P" or not free else 0 if free == 3 else 1
    eq2 = 0 if (at["AC"], at["AT"]) == ("L", "N") else 1
    eq3 = 0 if at["VC"] == at["VI"] == "H" else 1 if "H" in (at["VC"], at["VI"], at["VA"]) else 2
    eq4 = 1 if "H" in (at["SC"], at["SI"], at["SA"]) else 2
    eq36 = {0: "00", 1: "10", 2: "21"}[eq3]
    value = _SCORES[eq1, eq2, eq36, eq4]
    lower = (
        (_EQ1, eq1, [(eq1 + 1, eq2, eq36, eq4)]),
        (_EQ2, eq2, [(eq1, eq2 + 1, eq36, eq4)]),
        (_EQ3, eq3, [(eq1, eq2, each, eq4) for each in _NEXT_EQ36[eq3]]),
        (_EQ4, eq4, [(eq1, eq2, eq36, eq4 + 1)]),
    )
    covered, groups = 0.0, 1  # EQ5 has a next level, and is at the beginning of its own
    for (metrics, levels), level, following in lower:
        scores = [_SCORES[each] for each in following if each in _SCORES]
        if scores:
            groups += 1
            most, steps = levels[level]
            covered += (value - max(scores)) * _distance(at, metrics, most) / steps
    # Half up, and not to even; the small addition makes up for errors of floating point.
    return math.floor(max(0.0, value - covered / groups) * 10 + 0.5 + 1e-6) / 10


def _distance(at: Mapping[str, str], metrics: Sequence[str], most: Sequence[str]) -> int:
    """The number of steps from the first of the most severe values that are at least as severe in every metric."""
    for values in most:
        steps = [
            _LEVELS[each].index(at[each]) - _LEVELS[each].index(one) for each, one in zip(metrics, values, strict=True)
        ]
        if min(steps) >= 0:
            return sum(steps)
    raise AssertionError("one of the most severe values of a level is above each of its vectors")
