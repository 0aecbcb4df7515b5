"""Names of the repositories that a request has passed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pkgrepo.concurrency import proxy_loop


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(proxy_loop, "_key", b"")
    token = proxy_loop._passed.set(())
    yield
    proxy_loop._passed.reset(token)


def test_other_processes_of_the_server_know_the_names() -> None:
    proxy_loop.use_key("a server")
    value = proxy_loop.names_with(3)
    proxy_loop.use_key("another one")  # as in another process
    proxy_loop.use_key("a server")
    proxy_loop.receive(value.encode())
    assert [proxy_loop.is_proxy_loop(each) for each in (3, 4)] == [True, False]


def test_a_copy_of_the_server_has_other_names() -> None:
    proxy_loop.use_key("a server")
    value = proxy_loop.names_with(3)
    proxy_loop.use_key("its copy")
    proxy_loop.receive(value.encode())
    assert not proxy_loop.is_proxy_loop(3)
