"""Whether a kept file is the one that the other server lists."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.model import File, RepositoryType
from pkgrepo.replication.files import FileCopies, _has, _is_there
from pkgrepo.replication.promotion import hosted_settings
from pkgrepo.replication.source import RemotePath
from tests.support.auth import make_repository

SHA256, MD5 = "a" * 64, "b" * 32


def kept(path: str, *, role: str | None = None) -> File:
    return File(
        id=1,
        repository_id=1,
        storage_id=1,
        path=path,
        package_id=1,
        version_id=1,
        sha256=SHA256,
        size=1,
        locator="x",
        media_type="",
        digests={"md5": MD5},
        attrs={} if role is None else {"role": role},
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("digests", "same"),
    [
        ({}, True),
        ({"sha256": SHA256}, True),
        ({"sha256": SHA256, "md5": MD5, "blake2b": "c"}, True),
        ({"sha256": "d" * 64}, False),
        ({"sha256": SHA256, "md5": "d" * 32}, False),
    ],
)
def test_a_file_has_all_digests_that_are_listed_and_known(digests: dict[str, str], same: bool) -> None:
    assert _has(kept("demo.whl"), digests) is same


@pytest.mark.parametrize(
    ("path", "role", "listed", "there"),
    [
        ("demo.whl", None, {"demo.whl": SHA256}, True),
        ("demo.whl", None, {"demo.whl": "d" * 64}, False),
        ("demo.whl", None, {"other.whl": SHA256}, False),
        ("demo.whl.metadata", "metadata", {"demo.whl": SHA256}, True),
        ("demo.whl.metadata", "metadata", {"other.whl": SHA256}, False),
        ("demo.whl.asc", None, {"demo.whl": SHA256}, False),
    ],
)
def test_what_is_there_stays_with_its_companions(
    path: str, role: str | None, listed: dict[str, str], there: bool
) -> None:
    found: Any = {each: RemotePath(each, 1, {"sha256": digest}) for each, digest in listed.items()}
    assert _is_there(kept(path, role=role), path, found) is there


def test_rules_stay_and_retention_goes() -> None:
    settings = {
        "cache_ttl": "1d",
        "replicate": {"files": ["*"]},
        "retention": {"rules": []},
        "page": "text",
        "policy": {"keep_removed": True, "rules": [{"name": "a"}]},
    }
    assert hosted_settings(settings) == {"page": "text", "policy": {"rules": [{"name": "a"}]}}
    assert hosted_settings({"policy": {"keep_removed": True}}) == {}


async def fetched(sizes: Mapping[str, int], *, held: int = 0, most: int | None = 10) -> list[str]:
    """The files that are fetched of those that are missing, in a repository that keeps so many bytes already."""
    found: list[str] = []

    async def fetch(_repository: object, package: str, path: str) -> File:
        found.append(path)
        return kept(path)

    unused: Any = None
    copies = FileCopies(catalog=unused, content=unused, resolver=unused, formats={}, proxied={}, fetch=fetch)
    settings: dict[str, Any] = {"replicate": {"files": ["demo/*"]}}
    mirror = evolve(
        make_repository(1, settings=settings if most is None else {**settings, "cache": {"max_bytes": most}}),
        type=RepositoryType.PROXY,
        config={"proxy": {"routes": [{"name": "there", "url": "http://there/repositories/main/b", "priority": 0}]}},
    )
    await copies._fetch_all(mirror, "demo", [RemotePath(each, size, {}) for each, size in sizes.items()], held)
    return found


async def test_files_are_fetched_as_long_as_there_is_room() -> None:
    three = {"a": 4, "b": 4, "c": 4}
    assert await fetched(three) == ["a", "b"]
    assert await fetched(three, held=2) == ["a", "b"]
    assert await fetched(three, held=3) == ["a"]
    assert await fetched(three, most=None) == ["a", "b", "c"]
    assert await fetched({"a": -1, "b": 10, "c": 1}) == ["a", "b"], "nobody has less room than there is"
