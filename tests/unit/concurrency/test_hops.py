"""Names of the repositories that a request has passed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pkgrepo.concurrency import hops


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(hops, "_key", b"")
    token = hops._passed.set(())
    yield
    hops._passed.reset(token)


def test_other_processes_of_the_server_know_the_names() -> None:
    hops.use_key("a server")
    value = hops.names_with(3)
    hops.use_key("another one")  # as in another process
    hops.use_key("a server")
    hops.receive(value.encode())
    assert [hops.is_circle(each) for each in (3, 4)] == [True, False]


def test_a_copy_of_the_server_has_other_names() -> None:
    hops.use_key("a server")
    value = hops.names_with(3)
    hops.use_key("its copy")
    hops.receive(value.encode())
    assert not hops.is_circle(3)
