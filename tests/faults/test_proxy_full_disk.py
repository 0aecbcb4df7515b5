"""A proxy repository whose disk becomes full in the middle of a fetch."""

from hashlib import sha256
from threading import Thread

import pytest
from attrs import evolve

from tests.support.data_folder import DataFolder, wait_for
from tests.support.full_disk import file_system, filled
from tests.support.proxied import ALL_KINDS, PRIVATE
from tests.support.server_process import restarts
from tests.support.upstreams.messages import Fault

pytestmark = pytest.mark.faults

CONFIGURATION = PRIVATE + '\n[data]\nlow_water = "256KiB"\n'
SIZE = 4_000_000


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_full_disk_in_the_middle_of_a_fetch_leaves_nothing(tmp_path, kind):
    upstream_class, proxied_class = ALL_KINDS[kind]
    with (
        file_system(tmp_path / "data", "24m") as folder,
        restarts(tmp_path, CONFIGURATION) as start,
        upstream_class() as upstream,
    ):
        server, data = start(), DataFolder(folder)
        proxied = proxied_class(upstream, server.url, "cached", size=SIZE)
        assert proxied.is_document(proxied.get_document())
        upstream.misbehave(
            proxied.upstream_file, lambda answer: evolve(answer, fault=Fault(pause_at=len(answer.body) // 2))
        )
        replies = []
        client = Thread(target=lambda: replies.append(proxied.get_file()))
        client.start()
        upstream.wait_paused(proxied.upstream_file)
        with filled(folder):
            upstream.release(proxied.upstream_file)
            client.join()
            assert replies[0] is None or replies[0].status == 507 or proxied.is_file(replies[0])
            second = proxied.get_file()
            assert second is None or second.status == 507 or proxied.is_file(second)
            assert proxied.is_document(proxied.get_document())
        while sha256(proxied.data).hexdigest() not in data.digests():  # what came meanwhile may not have been kept
            proxied.await_file()
        assert data.damaged() == []
        wait_for(lambda: not data.unfinished(), server)
        upstream.stop()
        proxied.await_file()


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_on_a_full_disk_documents_in_the_cache_are_served_and_new_ones_refused(tmp_path, kind):
    upstream_class, proxied_class = ALL_KINDS[kind]
    with (
        file_system(tmp_path / "data", "24m") as folder,
        restarts(tmp_path, CONFIGURATION) as start,
        upstream_class() as first,
        upstream_class() as second,
    ):
        server = start()
        old = proxied_class(first, server.url, "old", cache_ttl=0)
        new = proxied_class(second, server.url, "new")
        assert old.is_document(old.get_document())
        with filled(folder):
            assert old.is_document(old.get_document())
            reply = new.get_document()
            assert reply.status == 507 or new.is_document(reply), reply
        new.await_document()
