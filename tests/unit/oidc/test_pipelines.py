"""For which repositories a pipeline of a project gets a token."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.auth.permissions.format_rights import make_known
from pkgrepo.errors import IdentityRefused
from pkgrepo.formats.container.format import container
from pkgrepo.formats.python.format import python
from pkgrepo.model import Actor, Repository
from pkgrepo.oidc.identity_tokens import IdentityToken
from pkgrepo.oidc.issuers import Issuer
from pkgrepo.oidc.pipelines import PipelineTokens
from pkgrepo.oidc.publishers import add_project_publisher
from pkgrepo.repositories.configuration import PipelinePublisher
from pkgrepo.storage.catalog.people.projects import add_project, bind_names
from tests.support.auth import START, AuthServices

NOTHING: Any = None  # documents and a reactor, which are not used
NOBODY = Actor(address="192.0.2.1")


class Scene(AuthServices):
    """A project whose publisher is for pipelines of ``acme``, and that owns ``acme-*`` in the first repository."""

    def __init__(self) -> None:
        super().__init__()
        self.own, self.other = self.repository(1), self.repository(2)
        self.images = self.repository(3, format="docker")
        acme, empty = (self.catalog.do(add_project, key=each, now_ms=1) for each in ("acme", "empty"))
        given = PipelinePublisher(issuer="forge", claims={"repository": "acme/x"}, packages=["acme-*"])
        self.catalog.do(add_project_publisher, acme.id, given, now_ms=1)
        self.catalog.do(bind_names, self.own.id, "acme-*", acme.id)
        self.catalog.do(bind_names, self.other.id, "empty-*", empty.id)
        self.issuer = Issuer("forge", "https://forge.example", ["here"], NOTHING, NOTHING, "")
        self.exchanged = 0

    async def exchange(
        self, *repositories: Repository, package: str | None = None, source: str = "acme/x"
    ) -> list[str]:
        """The paths of the repositories that the token is for."""
        self.exchanged += 1
        claims = {"repository": source, "aud": "here"}
        token = IdentityToken(self.issuer.url, "s", int(START) + 60, claims, str(self.exchanged).encode().ljust(32))

        async def verify(*_: object) -> tuple[Issuer, IdentityToken]:
            return self.issuer, token

        issuers: Any = SimpleNamespace(verify=verify)
        registry: Any = SimpleNamespace(listed=list)
        clock: Any = SimpleNamespace(now_ms=lambda: self.now_ms)
        pipelines = PipelineTokens(
            issuers, catalog=self.catalog, registry=registry, clock=clock, copy_entry=lambda _: None
        )
        issued = await pipelines.exchange("text", repositories, NOBODY, package=package)
        return [each.path for each in issued.repositories]


@pytest.fixture
def scene() -> Scene:
    make_known({each.name: each.rights for each in (python(), container())})
    return Scene()


async def test_a_token_is_for_the_repositories_where_the_project_owns_packages(scene: Scene) -> None:
    every = scene.own, scene.other, scene.images
    assert await scene.exchange(*every) == ["main/r1", "main/r3"], "images belong to it by their names"
    assert await scene.exchange(*every, package="acme-x") == ["main/r1"]
    for refused in ({"package": "other"}, {"package": "empty-x"}, {"source": "evil/x"}):
        with pytest.raises(IdentityRefused, match="no publisher here"):
            await scene.exchange(*every, **refused)
    with pytest.raises(IdentityRefused, match="no publisher here"):
        await scene.exchange(scene.other)


async def test_a_token_is_for_no_repository_that_is_off_or_of_another_one(scene: Scene) -> None:
    for each in (evolve(scene.own, active=False), evolve(scene.own, parent=scene.other)):
        with pytest.raises(IdentityRefused, match="no publisher here"):
            await scene.exchange(each)
