"""Whether a kept file is the one that the other server lists."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pkgrepo.model import File
from pkgrepo.replication.files import _has, _is_there
from pkgrepo.replication.promotion import hosted_settings
from pkgrepo.replication.source import RemotePath

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
