"""A proxy repository whose server is killed in the middle of a fetch."""

from threading import Thread

import pytest
from attrs import evolve

from tests.support.data_folder import pkgrepo, wait_for
from tests.support.proxied import ALL_KINDS, PRIVATE
from tests.support.upstreams.messages import Fault

pytestmark = pytest.mark.faults

REPOSITORIES = PRIVATE
SIZE = 4_000_000


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_kill_in_the_middle_of_a_fetch_leaves_nothing(run, data, kind):
    upstream_class, proxied_class = ALL_KINDS[kind]
    with upstream_class() as upstream:
        server = run()
        proxied = proxied_class(upstream, server.url, "cached", size=SIZE)
        assert proxied.is_document(proxied.get_document())
        upstream.misbehave(
            proxied.upstream_file, lambda answer: evolve(answer, fault=Fault(pause_at=len(answer.body) // 2))
        )
        replies = []
        client = Thread(target=lambda: replies.append(proxied.get_file()))
        client.start()
        upstream.wait_paused(proxied.upstream_file)
        server.kill()
        client.join()
        assert replies == [None]
        upstream.behave()

        server = run()
        proxied = proxied.at(server.url)
        wait_for(lambda: not data.unfinished(), server)
        assert data.damaged() == []
        assert proxied.is_document(proxied.get_document())
        assert proxied.is_file(proxied.get_file())
        wait_for(data.is_tidy, server)
        wait_for(data.is_in_step, server)
        assert server.stop() in (0, -15)
    checked = pkgrepo(data, "verify")
    assert (checked.returncode, checked.stderr.count("differs")) == (0, 0), checked.stderr


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_stop_in_the_middle_of_a_fetch_leaves_nothing(run, data, kind):
    upstream_class, proxied_class = ALL_KINDS[kind]
    with upstream_class() as upstream:
        server = run(PRIVATE + "\n[server]\nshutdown_grace = 0\n")
        proxied = proxied_class(upstream, server.url, "cached", size=SIZE)
        assert proxied.is_document(proxied.get_document())
        upstream.misbehave(proxied.upstream_file, Fault(pause_at=SIZE // 2))
        client = Thread(target=proxied.get_file)
        client.start()
        upstream.wait_paused(proxied.upstream_file)
        assert server.stop() in (0, -15)
        client.join()
        assert data.unfinished() == []
        assert data.damaged() == []
