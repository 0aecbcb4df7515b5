"""To which repository what is published goes, and what is said of names that upstreams have."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve, frozen

from pkgrepo.errors import Forbidden, NotFound, ReadOnly, UpstreamFailed
from pkgrepo.gateway.publishing.virtual import publish_context, publishing_through
from pkgrepo.gateway.services import Context
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.resolving.serving import UpstreamMember
from tests.support.auth import make_repository

NOTHING: Any = None
TARGET = make_repository(1, format="npm")
UPSTREAM = UpstreamMember(TARGET, NOTHING, NOTHING)
HOSTED = object()
VIEW: Any = SimpleNamespace(live=SimpleNamespace(path="main/target", config={}, settings={}))


def virtual(**settings: Any) -> Repository:
    config = {"members": [TARGET.uid], "publish_to": TARGET.uid, "resolution": "first"}
    found = make_repository(2, format="npm", settings=settings)
    return evolve(found, type=RepositoryType.VIRTUAL, config=config)


class Content:
    """Keeps the check that it is given."""

    check: Any = None

    def checking(self, check: Any) -> Content:
        self.check = check
        return self


@frozen
class Shared:
    """Those services that are used, with members that serve every name but ``new``."""

    proxy: Any
    access: Any
    content: Content
    registry: Any


def services(serving: Sequence[object] | Exception = (), *, taken: bool = False) -> Any:
    async def owners(*_: object) -> Any:
        return SimpleNamespace(proxies=[1], merges=False, is_taken=taken)

    async def members(_virtual: object, document: str, _trace: object) -> Any:
        if isinstance(serving, Exception):
            raise serving
        if document.endswith("new"):
            raise NotFound("package", document)
        return SimpleNamespace(serving=serving)

    async def admit(*_: object) -> None:
        raise PermissionError

    resolver = SimpleNamespace(owners=owners, members=members)
    registry = SimpleNamespace(find_uid={TARGET.uid: TARGET}.get)
    return Shared(SimpleNamespace(resolver=resolver), SimpleNamespace(admit=admit), Content(), registry)


async def notes(shared: Any, key: str = "left", folders: Any = None, **settings: Any) -> int:
    """How many notes the publisher of a name gets."""
    request: Any = SimpleNamespace(notes=())
    await publishing_through(shared, request, virtual(**settings), folders).content.check(TARGET, key)
    return len(request.notes)


async def test_who_publishes_a_name_that_an_upstream_has_is_told_so() -> None:
    assert await notes(services([HOSTED, UPSTREAM])) == 1
    assert await notes(services([HOSTED])) == 0
    assert await notes(services([])) == 0
    assert await notes(services([UPSTREAM]), "new") == 0
    assert await notes(services([UPSTREAM], taken=True)) == 0

    async def folders() -> list[str]:
        return ["linux-64/new", "noarch"]

    assert await notes(services([UPSTREAM]), "x", folders) == 1
    assert await notes(services([UPSTREAM]), "new", folders) == 0


async def test_a_name_is_refused_if_an_upstream_has_it_or_that_is_not_known() -> None:
    refusing = {"policy": {"refuse_upstream_names": True}}
    with pytest.raises(Forbidden, match="an upstream has that name"):
        await notes(services([UPSTREAM]), **refusing)
    assert await notes(services([UPSTREAM]), "new", **refusing) == 0
    failed = UpstreamFailed("there", "away")
    with pytest.raises(UpstreamFailed):
        await notes(services(failed), **refusing)
    assert await notes(services(failed)) == 0


async def test_what_is_published_to_a_virtual_repository_goes_to_its_member() -> None:
    request: Any = None
    shared = services()
    context = Context(shared, TARGET, None)
    assert await publish_context(context, request) is context
    for other in (virtual(), evolve(TARGET, view=VIEW)):
        with pytest.raises(PermissionError):  # whether it takes anything is told to readers alone
            await publish_context(Context(shared, other, None), request)

    async def admit(*_: object) -> None:
        pass

    reading = evolve(shared, access=SimpleNamespace(admit=admit))
    assert (await publish_context(Context(reading, virtual(), None), request)).repository is TARGET
    with pytest.raises(ReadOnly):
        await publish_context(Context(reading, evolve(virtual(), type=RepositoryType.PROXY), None), request)
