"""What is decided for the caller of a page: once for what it reads, and anew for and after each change."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.management.api.access_rules import Decided
from pkgrepo.model import ANONYMOUS, Action, Identity
from tests.support.auth import make_repository


class Server:
    """A registry with one repository and an authorizer, which count what they are asked."""

    def __init__(self) -> None:
        self.repository: Any = make_repository(1)
        self.allowed = True
        self.questions = 0
        self.refreshes = 0

    async def refresh(self) -> None:
        self.refreshes += 1

    def find(self, storage: str, name: str) -> Any:
        return self.repository if f"{storage}/{name}" == self.repository.path else None

    async def may(self, identity: Identity, action: Action, repository: Any, package: Any = None) -> bool:
        self.questions += 1
        return self.allowed


def decided(server: Any, *, kept: bool) -> Decided:
    return Decided(ANONYMOUS, server, server, kept=kept)


async def test_one_state_of_the_catalog_decides_for_all_that_a_page_reads() -> None:
    server = Server()
    found = decided(server, kept=True)
    for _ in range(3):
        await found.refresh()
        assert found.find(server.repository.path) is server.repository
        assert found.find("no/such") is None
        assert await found.may(ANONYMOUS, Action.READ, server.repository, "demo")
        server.allowed = False  # from the next page on
    assert (server.refreshes, server.questions) == (1, 1)
    assert not await found.may(ANONYMOUS, Action.READ, server.repository, "other")
    assert not await found.may(ANONYMOUS, Action.DELETE, server.repository, "demo")


async def test_after_a_change_everything_is_decided_anew() -> None:
    server = Server()
    found = decided(server, kept=True)
    assert await found.may(ANONYMOUS, Action.READ, server.repository)
    assert found.find(path := server.repository.path) is not None
    server.allowed, server.repository = False, make_repository(2)
    found.forget()
    assert not await found.may(ANONYMOUS, Action.READ, server.repository)
    assert found.find(path) is None


@pytest.mark.parametrize("kept", [True, False])
async def test_another_identity_and_requests_to_the_api_are_asked_each_time(kept: bool) -> None:
    server = Server()
    found = decided(server, kept=kept)
    other = ANONYMOUS if not kept else Identity(user_id=1, via="bearer")
    assert await found.may(other, Action.READ, server.repository)
    server.allowed = False
    assert not await found.may(other, Action.READ, server.repository)
