"""The kinds of rules about what is served, and what each of them refuses of a specimen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from tests.support.matrix.specimens import BAD, Item, Specimen
from tests.support.matrix.world import ADVISORY

ALL: Callable[[Specimen], bool] = lambda _specimen: True  # noqa: E731 - a default


@frozen
class RuleKind:
    """
    A kind of rule: its conditions for a specimen, and the items that it refuses.

    It ``applies`` to specimens whose format has such a fact. With ``by_bytes`` it is about one file and nothing else.
    """

    name: str
    match: Callable[[Specimen, str], Mapping[str, Any]]
    refuses: Callable[[Specimen, Item], bool]
    applies: Callable[[Specimen], bool] = ALL
    by_bytes: bool = False


def _every(_specimen: Specimen, _item: Item) -> bool:
    return True


def _bad(_specimen: Specimen, item: Item) -> bool:
    return item.version == BAD


def _unverified(specimen: Specimen, item: Item) -> bool:
    """Whether it has no provenance that is verified: only that of gems is, in the good version."""
    return specimen.format != "ruby" or item.version == BAD


def _scripts(_specimen: Specimen, item: Item) -> bool:
    return item.scripts is True


def _has_pth(specimen: Specimen) -> bool:
    return any(each.pth for each in specimen.items)


def _first(specimen: Specimen, item: Item) -> bool:
    """Whether it has what the version before does not have: of Python source distributions always have scripts."""
    return item.pth or (item.scripts is True and item.version == BAD and specimen.format != "python")


def _digests(specimen: Specimen, algorithm: str) -> list[str]:
    return [f"{algorithm}:{digest}" for each in specimen.bad for digest in each.digests(algorithm)]


def _unknown(specimen: Specimen) -> str:
    """An algorithm whose digests nothing tells of files; of those of Java and raw all are stored."""
    return "md5" if specimen.format == "npm" else "sha1"


def _source(_specimen: Specimen, kind: str) -> Mapping[str, Any]:
    return {"source": "hosted" if kind in ("hosted", "around") else "up"}


RULES = (
    RuleKind("name", lambda each, _: {"packages": [each.name]}, _every),
    RuleKind("spelling", lambda each, _: {"packages": [each.spelling]}, _every),
    RuleKind("pattern", lambda each, _: {"packages": [f"*{each.name[1:-1]}*"]}, _every),
    RuleKind("range", lambda each, _: {"packages": [each.name], "versions": ">=1.1"}, _bad),
    RuleKind("version", lambda each, _: {"versions": BAD}, _bad),
    RuleKind("digest", lambda each, _: {"digests": _digests(each, "sha256")}, _bad, by_bytes=True),
    RuleKind(
        "unknown_digest",
        lambda each, _: {"digests": _digests(each, _unknown(each))},
        _bad,
        lambda each: not each.labels,
        by_bytes=True,
    ),
    RuleKind("licence", lambda *_: {"licences": ["GPL-*"]}, _bad, lambda each: bool(each.items[0].licence)),
    RuleKind(
        "install_scripts",
        lambda *_: {"install_scripts": True},
        _scripts,
        lambda each: any(e.scripts is not None for e in each.items),
    ),
    RuleKind(
        "contents",
        lambda *_: {"contents": ["install_script"]},
        _scripts,
        lambda each: each.looked_into,
    ),
    RuleKind(
        "licences_inside",
        lambda *_: {"licences_inside": ["gpl-*"]},
        _bad,
        lambda each: each.looked_into or _has_pth(each),
    ),
    RuleKind("pth", lambda *_: {"contents": ["pth"]}, lambda _, item: item.pth, _has_pth),
    RuleKind(
        "no_provenance",
        lambda *_: {"trust": "none"},
        _unverified,
        lambda each: each.format in ("npm", "python", "ruby"),
    ),
    RuleKind(
        "differs",
        lambda *_: {"differs": ["install_script", "pth"]},
        _first,
        lambda each: each.looked_into or _has_pth(each),
    ),
    RuleKind(
        "licence_differs",
        lambda *_: {"differs": ["licence"]},
        _bad,
        lambda each: each.looked_into or _has_pth(each),
    ),
    RuleKind(
        "unexplained",
        lambda *_: {"differs": ["unexplained"]},
        _bad,
        lambda each: each.format in ("npm", "python"),
    ),
    RuleKind("trust_fell", lambda *_: {"trust": "fell"}, _bad, lambda each: each.format in ("npm", "python", "ruby")),
    RuleKind("later", lambda *_: {"published_after": "2000-01-01T00:00:00Z"}, _every),
    RuleKind("age", lambda *_: {"age_days": 7}, _every),
    RuleKind("advisory", lambda *_: {"advisories": "critical"}, _bad, lambda each: bool(each.ecosystem)),
    RuleKind(
        "advisory_id",
        lambda each, _: {"advisories": f"{ADVISORY}-{each.format}"},
        _bad,
        lambda each: bool(each.ecosystem),
    ),
    RuleKind("malware", lambda *_: {"advisories": "malware"}, _bad, lambda each: bool(each.ecosystem)),
    RuleKind("source", _source, _every),
    RuleKind("root_user", lambda *_: {"contents": ["root_user"]}, _bad, lambda each: each.labels),
    RuleKind("setuid", lambda *_: {"contents": ["setuid"]}, _bad, lambda each: each.labels),
    RuleKind("label", lambda *_: {"labels": {"stage": "evil"}}, _bad, lambda each: each.labels),
)

# That of the server itself: nobody wrote it.
KNOWN_MALWARE = RuleKind("known malware", lambda *_: {}, _bad, lambda each: bool(each.ecosystem))
