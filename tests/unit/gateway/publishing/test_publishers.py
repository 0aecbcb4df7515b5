"""What somebody who adds a publisher may add, whatever the road on which it is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.errors import Forbidden, Invalid
from pkgrepo.gateway.publishing.publishers import prepare
from pkgrepo.model import Action, Identity, Repository, SubjectKind
from pkgrepo.oidc.issuers import Issuer, Issuers
from pkgrepo.repositories.configuration import PipelinePublisher
from pkgrepo.storage.catalog.people.grants import set_permission
from tests.support.auth import AuthServices

NOTHING: Any = None  # documents and a reactor, which are not used
PUBLIC = "https://token.actions.githubusercontent.com"


class Scene(AuthServices):
    """Alice edits a repository, reads and publishes there. Everybody has pipelines at the issuer ``public``."""

    def __init__(self) -> None:
        super().__init__()
        self.hosted: Repository = self.repository()
        self.alice: Identity = identity_of(self.user("alice"), via="password")
        self.grant(Action.EDIT, Action.READ, Action.WRITE)
        found = [("public", PUBLIC), ("forge", "https://forge.corp.example")]
        issuers = Issuers([Issuer(*each, ["a"], NOTHING, NOTHING, "") for each in found], self.clock)
        self.services: Any = SimpleNamespace(
            access=SimpleNamespace(authorizer=self.authorizer), pipelines=SimpleNamespace(issuers=issuers)
        )

    def grant(self, *actions: Action) -> None:
        self.catalog.do(set_permission, self.hosted.id, SubjectKind.USER, self.alice.user_id, actions)

    async def prepare(self, issuer: str, package: str | None = None, **given: Any) -> object:
        publisher = PipelinePublisher(issuer=issuer, claims={"repository": "acme*/x"}, **given)
        return await prepare(self.services, self.alice, self.hosted, package, publisher)


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_no_publisher_is_anybody_or_of_an_issuer_that_is_not_known(scene: Scene) -> None:
    with pytest.raises(Invalid, match="everybody has pipelines at"):
        await scene.prepare("public")
    with pytest.raises(Invalid, match="there is no issuer 'lab'"):
        await scene.prepare("lab")
    assert await scene.prepare("forge")


async def test_nobody_gives_a_pipeline_what_they_may_not_do(scene: Scene) -> None:
    for actions in (["delete"], ["write", "delete"]):
        with pytest.raises(Forbidden, match="the action 'delete'"):
            await scene.prepare("forge", actions=actions)
    scene.grant(*Action)
    assert await scene.prepare("forge", actions=["write", "delete"])
    scene.grant(Action.EDIT, Action.READ)
    with pytest.raises(Forbidden, match="the action 'write'"):
        await scene.prepare("forge", actions=["stage"])


async def test_a_publisher_of_a_package_names_no_other_one(scene: Scene) -> None:
    with pytest.raises(Invalid, match="names no other packages"):
        await scene.prepare("forge", "acme", packages=["acme", "other"])
    assert await scene.prepare("forge", "acme", packages=["acme"])
