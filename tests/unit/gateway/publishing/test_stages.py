"""What it takes to open a stage, whatever the road on which it is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.errors import Conflict, Forbidden, Invalid
from pkgrepo.formats.python.format import python
from pkgrepo.gateway.callers.access import CHANGES, Access
from pkgrepo.gateway.publishing.stages import LONGEST, StageContents, prepare_stage, reject
from pkgrepo.model import Action, Actor, RepositoryScope, RepositoryType, SubjectKind, TokenLimits
from pkgrepo.storage.catalog.people.grants import set_permission
from tests.support.auth import AuthServices


async def test_a_stage_is_opened_by_those_who_read_what_is_below_it_and_publish_to_its_target() -> None:
    scene = AuthServices()
    target = scene.repository(1)
    config = {"members": [target.uid], "publish_to": target.uid, "resolution": "first"}
    base = evolve(scene.repository(2), type=RepositoryType.VIRTUAL, config=config)
    alice = identity_of(scene.user("alice"), via="password")
    services: Any = SimpleNamespace(
        access=Access(scene.authenticator, scene.authorizer),
        registry=SimpleNamespace(find_uid={target.uid: target}.get),
        formats={"python": python()},
    )

    def grant(repository_id: int, *actions: Action) -> None:
        scene.catalog.do(set_permission, repository_id, SubjectKind.USER, alice.user_id, actions)

    for package in (None, "acme-x"):
        grant(1, Action.WRITE, Action.READ)
        grant(2)
        with pytest.raises(Forbidden, match=r"may not read .*main/r2"):
            await prepare_stage(services, alice, base, package=package)
        grant(1, Action.READ)
        grant(2, Action.READ)
        with pytest.raises(Forbidden, match="may not publish"):
            await prepare_stage(services, alice, base, package=package)
        grant(1, Action.WRITE)
        opening = await prepare_stage(services, alice, base, "x" * LONGEST, package=package)
        assert (opening.base, opening.target, len(opening.description)) == (base, target, LONGEST)
    scopes = RepositoryScope(base.path, frozenset({Action.READ}), ("acme-*",)), RepositoryScope(target.path, CHANGES)
    limited = evolve(alice, limits=TokenLimits(repositories=scopes))
    for package in (None, "acme-x"):  # one who reads a part of it stages what is of that
        assert await prepare_stage(services, limited, base, package=package)
    with pytest.raises(Forbidden, match=r"may not read .*main/r2"):
        await prepare_stage(services, limited, base, package="other")
    with pytest.raises(Invalid, match="more than"):
        await prepare_stage(services, alice, base, "x" * (LONGEST + 1))
    with pytest.raises(Conflict, match="open a stage of that one"):
        await prepare_stage(services, alice, evolve(target, parent=base))


async def test_a_stage_is_rejected_by_those_who_may_for_a_reason_of_some_length() -> None:
    scene = AuthServices()
    target = scene.repository(1)
    alice = identity_of(scene.user("alice"), via="password")
    stage: Any = SimpleNamespace(uid="s", user_id=None)
    staged = StageContents(stage, target, [], 0, whole=True)
    ended: list[str] = []

    async def change(_command: object, _target: object, _uid: str, reason: str, *_: object) -> Any:
        ended.append(reason)
        raise Conflict("it has ended")

    services: Any = SimpleNamespace(
        access=Access(scene.authenticator, scene.authorizer), content=SimpleNamespace(change=change)
    )
    with pytest.raises(Forbidden, match="are rejected by those who may approve them"):
        await reject(services, alice, staged, "", Actor.of(alice))
    scene.catalog.do(set_permission, target.id, SubjectKind.USER, alice.user_id, [*Action])
    with pytest.raises(Invalid, match="the reason has more than"):
        await reject(services, alice, staged, "x" * (LONGEST + 1), Actor.of(alice))
    assert ended == []
    with pytest.raises(Conflict):
        await reject(services, alice, staged, "x" * LONGEST, Actor.of(alice))
    assert ended == ["x" * LONGEST]
