"""
Publishers of a repository: which pipelines may publish there, by the claims of their identity tokens.

A publisher is an object of the repository's setting ``publishers``. Its id stands for the pipelines that it recognises:
when it is removed, or recognises others, tokens that were issued by it end. Its packages and actions are those of now.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from pkgrepo.model import Pipeline, Repository


def iter_publishers(repository: Repository) -> Iterator[Mapping[str, Any]]:
    """The publishers of a repository, as they are stored."""
    yield from repository.authority.settings.get("publishers") or ()


def publishers_of(repository: Repository, pipeline: Pipeline) -> Iterator[Mapping[str, Any]]:
    """Those publishers of a repository that a pipeline was recognised as."""
    return (each for each in iter_publishers(repository) if publisher_id(each) in pipeline.publishers)


def publisher_id(publisher: Mapping[str, Any]) -> str:
    """The id of a publisher: 16 hex digits, the same for all that recognise the same pipelines."""
    return _id(publisher["issuer"], tuple(sorted(publisher["claims"].items())))


def recognises(publisher: Mapping[str, Any], issuer: str, claims: Mapping[str, Any]) -> bool:
    """
    Whether a publisher fits the claims of an identity token of the issuer.

    A claim that is missing, or is a list or an object, fits no pattern; true and false are texts.
    """
    return publisher["issuer"] == issuer and all(
        (value := claim_text(claims.get(name))) is not None and _matcher(pattern).match(value) is not None
        for name, pattern in publisher["claims"].items()
    )


def claim_text(value: object) -> str | None:
    """The text of a claim that is a text, a whole number or a boolean; None for others."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else None


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


@lru_cache(maxsize=4096)
def _id(issuer: str, claims: tuple[tuple[str, str], ...]) -> str:
    return hashlib.sha256(msgspec.json.encode([issuer, claims])).hexdigest()[:16]
