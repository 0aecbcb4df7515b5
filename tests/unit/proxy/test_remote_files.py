"""Whether a kept file is the one that an upstream lists now."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pkgrepo.model import File, Origin
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.proxy.remote_files import LISTED, RemoteFile

OLD, NEW = "aa" * 32, "bb" * 32
URL = "https://files.example/demo-1.0.whl"


def remote(
    digests: dict[str, str], url: str = URL, *, listed: dict[str, str] | None = None, size: int | None = None
) -> RemoteFile:
    source = FileSource("demo.whl.asc" if listed else "demo.whl", url, size, digests, "", {})
    distribution = FileSource("demo.whl", URL, None, listed or digests, "", {})
    entry = Entry(b"", "demo.whl", "1.0", None, False, {}, [distribution, source])
    repository: Any = None
    return RemoteFile(repository, "demo", "main", source, entry)


def kept(sha256: str = OLD, *, route: str = "main", url: str = URL, **attrs: Any) -> File:
    return File(
        id=1,
        repository_id=1,
        storage_id=1,
        path="demo.whl",
        package_id=1,
        version_id=1,
        sha256=sha256,
        size=3,
        locator="x",
        media_type="",
        digests={"sha256": sha256, "md5": sha256[:32]},
        attrs={**Origin(route, url, 0, None).attrs, **attrs},
        created_at=datetime.now(UTC),
    )


@pytest.mark.parametrize(
    ("listed", "file", "same"),
    [
        (remote({"sha256": OLD}), kept(), True),
        (remote({"sha256": OLD}, "https://elsewhere.example/x"), kept(route="other"), True),
        (remote({"sha256": NEW}), kept(), False),
        (remote({"md5": OLD[:32]}), kept(), True),
        (remote({"md5": NEW[:32]}), kept(), False),
        (remote({"sha256": OLD, "md5": NEW[:32]}), kept(), False),
        (remote({"sha512": OLD}), kept(), False),  # not computed
        (remote({}), kept(), True),
        (remote({}, f"{URL}?signature=1"), kept(), True),
        (remote({}), kept(route="other"), False),
        (remote({}), kept(url="https://files.example/other"), False),
        (remote({}, size=3), kept(), True),
        (remote({}, size=4), kept(), False),
        (remote({}, listed={"sha256": OLD}), kept(**{LISTED: {"sha256": OLD}}), True),
        (remote({}, listed={"sha256": NEW}), kept(**{LISTED: {"sha256": OLD}}), False),
        (remote({}, listed={"sha256": NEW}), kept(), True),  # kept before this was recorded
    ],
)
def test_a_kept_file_is_what_is_listed_by_its_digest_or_else_by_its_route_and_url(
    listed: RemoteFile, file: File, *, same: bool
) -> None:
    assert listed.is_kept_as(file) is same


def test_another_file_has_another_identity() -> None:
    every = [
        remote({"sha256": OLD}),
        remote({"sha256": NEW}),
        remote({}),
        remote({}, "https://files.example/other"),
        remote({}, listed={"sha256": OLD}),
        remote({}, listed={"sha256": NEW}),
    ]
    assert len({each.identity for each in every}) == len(every)
    assert remote({}).identity == remote({}, f"{URL}?signature=1").identity
