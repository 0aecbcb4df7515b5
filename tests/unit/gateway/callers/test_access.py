"""Identities, origins, and refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.errors import (
    AuthenticationFailed,
    AuthenticationRequired,
    Forbidden,
    NotFound,
    ReadOnly,
    RepositoryInactive,
)
from pkgrepo.gateway.callers.access import Access, actor_of, require_plain_removal, unknown
from pkgrepo.http.responses import Refusal
from pkgrepo.model import ANONYMOUS, Action, RepositoryType, Visibility
from tests.support.auth import PASSWORD, AuthServices, basic

OURS = "http://registry.example"


class Asked:
    """A request: its method, its fields and where it came from."""

    def __init__(self, method: bytes = b"GET", base_url: str = OURS, **fields: bytes) -> None:
        self.method = method
        self.raw_path = b"/repositories/main/py/simple/"
        self.base_url = base_url
        self.client_address = "192.0.2.7"
        self.request_id = "the-request"
        self.principal = ""
        self.repository = ""
        self.identified = None
        self._fields = {name.replace("_", "-").encode(): value for name, value in fields.items()}

    def header(self, name: bytes) -> bytes | None:
        return self._fields.get(name)


@pytest.fixture
def scene() -> AuthServices:
    found = AuthServices()
    found.user("alice")
    return found


@pytest.fixture
def access(scene: AuthServices) -> Access:
    return Access(scene.authenticator, scene.authorizer)


ALICE = basic("alice", PASSWORD)


async def test_a_request_without_credentials_is_anonymous_at_once(access: Access) -> None:
    asked: Any = Asked(b"PUT", origin=b"https://elsewhere.example")
    assert access.recall(asked) is ANONYMOUS
    assert await access.identify(asked) is ANONYMOUS
    assert asked.principal == ""


async def test_a_caller_is_identified_and_then_recalled_without_waiting(access: Access) -> None:
    asked: Any = Asked(authorization=ALICE)
    assert access.recall(asked) is None
    identity = await access.identify(asked)
    assert (identity.username, asked.principal) == ("alice", "alice")
    assert access.recall(asked) == identity
    with pytest.raises(AuthenticationFailed):
        await access.identify(Asked(authorization=basic("alice", "wrong")))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "origin", "public_url", "passes"),
    [
        (b"POST", None, "", True),
        (b"POST", OURS, "", True),
        (b"POST", "https://public.example", "https://public.example/packages", True),
        (b"POST", OURS, "https://public.example", True),
        (b"GET", "https://elsewhere.example", "", True),
        (b"HEAD", "https://elsewhere.example", "", True),
        (b"POST", "https://elsewhere.example", "", False),
        (b"PUT", "https://elsewhere.example", "", False),
        (b"DELETE", "https://elsewhere.example", "", False),
        (b"OPTIONS", "https://elsewhere.example", "", False),
        (b"POST", OURS + ".elsewhere.example", "", False),
        (b"POST", OURS + ":81", "", False),
        (b"POST", OURS.replace("http:", "https:"), "", False),
        (b"POST", "null", "", False),
        (b"POST", "", "", False),
    ],
)
async def test_pages_of_other_sites_change_nothing(
    scene: AuthServices, method: bytes, origin: str | None, public_url: str, passes: bool
) -> None:
    access = Access(scene.authenticator, scene.authorizer, public_url)
    fields = {} if origin is None else {"origin": origin.encode()}
    asked: Any = Asked(method, authorization=ALICE, **fields)
    if passes:
        assert (await access.identify(asked)).username == "alice"
        return
    with pytest.raises(Refusal) as refused:
        await access.identify(asked)
    assert (refused.value.status, asked.principal, scene.threads.calls) == (403, "", 0)


async def test_admission_names_the_repository_and_the_rule(scene: AuthServices, access: Access) -> None:
    repository = scene.repository(visibility=Visibility.PUBLIC)
    alice: Any = Asked(authorization=ALICE)
    assert (await access.admit(alice, Action.READ, repository)).username == "alice"
    assert alice.repository == "main/r1"
    with pytest.raises(Forbidden, match=r"'alice' may not .*'demo' in main/r1"):
        await access.admit(alice, Action.WRITE, repository, "demo")
    nobody: Any = Asked()
    assert (await access.admit(nobody, Action.READ, repository)).anonymous
    with pytest.raises(AuthenticationRequired):
        await access.admit(nobody, Action.WRITE, repository)
    assert nobody.repository == "main/r1"  # for the log, also of who was refused


async def test_an_inactive_repository_is_named_only_to_callers_who_may_read_it(
    scene: AuthServices, access: Access
) -> None:
    repository = evolve(scene.repository(visibility=Visibility.PRIVATE), active=False)
    scene.user("root", admin=True)
    admin: Any = Asked(authorization=basic("root", PASSWORD))
    with pytest.raises(RepositoryInactive):
        await access.admit(admin, Action.READ, repository)
    with pytest.raises(Forbidden):
        await access.admit(Asked(authorization=ALICE), Action.READ, repository)  # type: ignore[arg-type]
    with pytest.raises(AuthenticationRequired):
        await access.admit(Asked(), Action.READ, repository)  # type: ignore[arg-type]


async def test_an_unknown_repository_does_not_ask_a_known_caller_to_log_in(access: Access) -> None:
    identity = await access.identify(Asked(authorization=ALICE))  # type: ignore[arg-type]
    assert isinstance(unknown(identity, "main/x"), NotFound)
    error = unknown(ANONYMOUS, "main/x")
    assert isinstance(error, AuthenticationRequired)
    assert "main/x" in str(error)


async def test_an_actor_has_the_address_and_the_request(access: Access) -> None:
    asked: Any = Asked(authorization=ALICE)
    actor = actor_of(asked, await access.identify(asked))
    assert (actor.name, actor.address, actor.request_id) == ("alice", "192.0.2.7", "the-request")


@pytest.mark.parametrize(
    ("owners", "asked"),
    [
        ({}, [("org.lib.notes.txt", "org/lib/")]),
        ({1: "org:lib"}, [("org:lib", None)]),
        ({2: "org:lib"}, [("org:lib", None)]),  # which the repository has for which it is staged
        ({1: "org.lib:new", 2: "org:lib"}, [("org.lib:new", None), ("org:lib", None)]),
    ],
)
async def test_a_plain_file_is_removed_by_those_who_may_remove_what_its_folder_is_of(
    scene: AuthServices, owners: dict[int, str], asked: list[tuple[str, str | None]]
) -> None:
    target = scene.repository(2)
    stage = evolve(scene.repository(1), parent=target)
    rules: list[tuple[str, str | None]] = []

    class Authorizer:
        async def may(self, *_: object) -> bool:
            return True

        async def check_push_rules(
            self, _identity: object, action: Action, _: object, package: str, *, folder: str | None = None
        ) -> None:
            assert action is Action.DELETE
            rules.append((package, folder))

    class Catalog:
        async def look(self, find: Any, *place: Any) -> Any:
            return find(None, *place)

    authorizer: Any = Authorizer()
    catalog: Any = Catalog()
    tree: Any = SimpleNamespace(package_of=lambda _, id_, __: owners.get(id_))
    access = Access(scene.authenticator, authorizer)
    await require_plain_removal(access, catalog, tree, ANONYMOUS, stage, "org/lib/notes.txt")
    assert rules == asked


async def test_who_publishes_is_asked_for_the_permission_once(
    access: Access, scene: AuthServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = scene.repository(visibility=Visibility.PUBLIC)
    scene.user("root", admin=True)
    asker: Any = Asked(authorization=basic("root", PASSWORD))
    identity = await access.identify(asker)
    asked: list[Any] = []
    may = access.authorizer.may

    async def count(*question: Any) -> bool:
        asked.append(question[1:])
        return await may(*question)

    monkeypatch.setattr(access.authorizer, "may", count)
    await access.publishing(identity, repository, "demo", actor_of(asker, identity))
    assert asked == [(Action.WRITE, repository, "demo")]


async def test_nothing_is_published_where_clients_change_nothing(access: Access, scene: AuthServices) -> None:
    repository = scene.repository(visibility=Visibility.PUBLIC)
    scene.user("root", admin=True)
    asker: Any = Asked(authorization=basic("root", PASSWORD))
    identity = await access.identify(asker)
    actor = actor_of(asker, identity)
    with pytest.raises(RepositoryInactive):
        await access.publishing(identity, evolve(repository, active=False), "demo", actor)
    with pytest.raises(ReadOnly):
        await access.publishing(identity, evolve(repository, type=RepositoryType.PROXY), "demo", actor)
    with pytest.raises(AuthenticationRequired):  # and who may not is not told the type of the repository
        await access.publishing(ANONYMOUS, evolve(repository, type=RepositoryType.PROXY), "demo", actor)
