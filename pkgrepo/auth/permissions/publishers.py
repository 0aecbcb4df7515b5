"""
Publishers: which pipelines may publish where, by the claims of their identity tokens.

A publisher is an object of the setting ``publishers`` of a repository, or of a project: then it is for the packages
that the project owns, in all repositories. Its id stands for the pipelines that it recognises: when it is removed, or
recognises others, tokens that were issued by it end. Its packages and actions are those of now.

Patterns of claims are those of paths, since most claims are built with slashes:

===========  ===========================================================================
in a pattern  matches
===========  ===========================================================================
``*``        any characters but slashes
``**``       any characters
``?``        one character but a slash
``[a-c]``    one of these characters, ``[!a-c]`` another one, in no case a slash
===========  ===========================================================================
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from attrs import frozen

from pkgrepo.model import Pipeline, Project, Repository

LONGEST_CLAIM: Final = 2000  # characters; longer claims fit no pattern, since matching is quadratic
MOST_LISTED: Final = 100  # texts of a claim that is a list
STAGE: Final = "stage"  # in place of an action: publishing to stages alone
WILD: Final = frozenset("*?[")

# How many leading parts of a claim, between slashes, name the owner of the source. Of claims that are not here other
# owners can have the same value: run_number or workflow_sha by chance or at will, job_workflow_ref by calling a
# workflow that is public, actor by working for both.
_OWNER_PARTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        (
            *("sub", "repository", "repository_id", "repository_owner", "repository_owner_id", "workflow_ref"),
            *("enterprise", "enterprise_id", "project_path", "project_id", "namespace_path", "namespace_id"),
            "oidc.circleci.com/project-id",
        ),
        1,
    ),
    "ci_config_ref_uri": 2,  # begins with the host
    "oidc.circleci.com/vcs-origin": 2,
}

_PARTS: Final = re.compile(r"\*\*+|\[!?\]?[^\]]*\]|.", re.DOTALL)  # a set is read as fnmatch does
_IN_PART: Final = re.compile("[^/]")
_ANY: Final = re.compile(".", re.DOTALL)


def iter_publishers(repository: Repository) -> Iterator[Mapping[str, Any]]:
    """The publishers of a repository, as they are stored."""
    yield from repository.authority.settings.get("publishers") or ()


def publishers_of(repository: Repository, pipeline: Pipeline) -> Iterator[Mapping[str, Any]]:
    """Those publishers of a repository that a pipeline was recognised as."""
    return (each for each in iter_publishers(repository) if publisher_id(each) in pipeline.publishers)


def publishers_of_project(project: Project | None, pipeline: Pipeline) -> Iterator[Mapping[str, Any]]:
    """Those publishers of the project that owns a package that a pipeline was recognised as."""
    every = () if project is None else project.publishers
    return (each for each in every if publisher_id(each) in pipeline.projects)


def publisher_id(publisher: Mapping[str, Any]) -> str:
    """The id of what a publisher recognises: 16 hex digits, the same for all that recognise the same pipelines."""
    parts = publisher["issuer"], publisher["claims"], publisher.get("audience", ""), publisher.get("environment", "")
    return _digest(msgspec.json.encode(parts, order="deterministic"))


def entry_id(publisher: Mapping[str, Any]) -> str:
    """The id of a publisher with its packages and actions: 16 hex digits, by which people remove it."""
    given = {name: value for name, value in publisher.items() if value}
    return _digest(msgspec.json.encode(given, order="deterministic"))


def recognises(publisher: Mapping[str, Any], issuer: str, claims: Mapping[str, Any], audiences: Sequence[str]) -> bool:
    """
    Whether a publisher fits the claims of an identity token of the issuer.

    The token must be for the audience of the publisher, or without one for one of ``audiences``, those of the issuer.
    A claim that is missing, or is an object, fits no pattern; true and false are texts. A list fits only a list of
    patterns, each of which must match one of its texts.
    """
    if publisher["issuer"] != issuer:
        return False
    wanted = [publisher["audience"]] if publisher.get("audience") else audiences
    if set(wanted).isdisjoint(_listed(claims.get("aud"))):
        return False
    environment = publisher.get("environment")
    if environment and not _claim_fits(environment, claims.get("environment")):
        return False
    return all(_claim_fits(pattern, claims.get(name)) for name, pattern in publisher["claims"].items())


def claim_text(value: object) -> str | None:
    """The text of a claim that is a text, a whole number or a boolean; None for others."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else None


def literal_claim(text: str) -> str:
    """The pattern that matches exactly this text."""
    return re.sub(r"([*?[])", r"[\1]", text)


def is_anything(pattern: str) -> bool:
    """Whether a pattern names nothing: it has only asterisks, question marks and slashes."""
    return not pattern.strip("*?/")


def names_owner(claims: Mapping[str, str | Sequence[str]]) -> bool:
    """Whether one of the claims says without a wildcard who owns the source: else others may have what fits."""
    return any(
        (parts := _OWNER_PARTS.get(name, 0)) and WILD.isdisjoint("/".join(pattern.split("/")[:parts]))
        for name, value in claims.items()
        for pattern in texts_of(value)
    )


def fits(pattern: str, value: str) -> bool:
    """Whether a pattern matches the whole text. It takes time in proportion to the product of their lengths at most."""
    if len(value) > LONGEST_CLAIM:
        return False
    tokens = _tokens(pattern)
    reached = _skip(tokens, {0})
    for character in value:
        following = set()
        for at in reached:
            if at < len(tokens) and tokens[at].characters.match(character):
                following.add(at if tokens[at].many else at + 1)
        reached = _skip(tokens, following)
        if not reached:
            return False
    return len(tokens) in reached


def _claim_fits(wanted: str | Sequence[str], value: object) -> bool:
    if isinstance(wanted, str):
        text = claim_text(value)
        return text is not None and fits(wanted, text)
    texts = [text for each in value if (text := claim_text(each)) is not None] if isinstance(value, list) else []
    return all(any(fits(pattern, text) for text in texts[:MOST_LISTED]) for pattern in wanted)


def texts_of(value: str | Sequence[str]) -> tuple[str, ...]:
    """The patterns for a claim, of which there may be one without a list."""
    return (value,) if isinstance(value, str) else tuple(value)


def _listed(value: object) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


@frozen
class _Token:
    """One character of these, or with ``many`` any number of them."""

    characters: re.Pattern[str]
    many: bool = False


def _skip(tokens: Sequence[_Token], positions: Iterable[int]) -> set[int]:
    """The positions with those behind tokens that may match nothing."""
    found = set(positions)
    for start in sorted(found):
        at = start
        while at < len(tokens) and tokens[at].many:
            at += 1
            found.add(at)
    return found


@lru_cache(maxsize=4096)
def _tokens(pattern: str) -> tuple[_Token, ...]:
    found = []
    for part in _PARTS.findall(pattern):
        match part:
            case "*":
                found.append(_Token(_IN_PART, many=True))
            case "?":
                found.append(_Token(_IN_PART))
            case _ if part.startswith("**"):
                found.append(_Token(_ANY, many=True))
            case _ if len(part) > 1:
                found.append(_Token(re.compile(f"(?!/){fnmatch.translate(part)}")))
            case _:
                found.append(_Token(_character(part)))
    return tuple(found)


@lru_cache(maxsize=256)
def _character(character: str) -> re.Pattern[str]:
    return re.compile(re.escape(character))


def _digest(encoded: bytes) -> str:
    return hashlib.sha256(encoded).hexdigest()[:16]
