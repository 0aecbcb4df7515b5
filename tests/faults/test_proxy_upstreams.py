"""
Proxy repositories whose upstream misbehaves.

Clients get an error that tells them to try again, never "not found" and never wrong bytes; what is in the cache is
served all the same; and as soon as the upstream behaves again, everything works.
"""

import itertools
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import pytest
from attrs import evolve

from tests.support.data_folder import DataFolder, wait_for
from tests.support.proxied import KINDS, PRIVATE
from tests.support.server_process import restarts
from tests.support.upstreams import faults
from tests.support.upstreams.messages import Fault
from tests.support.upstreams.server import ANY, ScriptedUpstream

pytestmark = pytest.mark.faults

CONFIGURATION = (
    PRIVATE
    + """
connect_timeout = "2s"
idle_timeout = "2s"
document_timeout = "4s"
max_document_size = "1MiB"
"""
)
PRIVATE_ADDRESS = "http://10.255.255.1/"
FAILED, UNAVAILABLE, TIMEOUT = {502}, {502, 503}, {504}


def redirect_to_itself(answer):
    return faults.redirect("?again")


def shortened(answer):
    return evolve(answer, body=bytes(answer.body)[:-10])


# What the client of a document gets that is not in the cache.
ANSWERS = {
    "silent": (faults.STALL_BEFORE_HEAD, TIMEOUT),
    "stalled": (faults.STALL_IN_BODY, TIMEOUT),
    "truncated": (faults.TRUNCATED, UNAVAILABLE),
    "reset": (faults.RESET, UNAVAILABLE),
    "closed": (faults.NO_ANSWER, UNAVAILABLE),
    "unfinished": (faults.CHUNKED_WITHOUT_END, UNAVAILABLE),
    "shortened": (shortened, FAILED),
    "error": (faults.failing(500), UNAVAILABLE),
    "unavailable": (faults.failing(503, "2"), UNAVAILABLE),
    "limited": (faults.failing(429, "2"), {429, 503}),
    "unauthorized": (faults.failing(401), FAILED),
    "forbidden": (faults.failing(403), FAILED),
    "teapot": (faults.failing(418), FAILED),
    "loop": (redirect_to_itself, FAILED),
    "private": (faults.redirect(PRIVATE_ADDRESS), FAILED),
    "file": (faults.redirect("file:///etc/passwd"), FAILED),
    "unasked": (faults.not_modified, FAILED),
    "bomb": (faults.gzip_bomb(), FAILED),
    "endless": (faults.ENDLESS_BODY, FAILED),
    "head": (faults.ENDLESS_HEAD, FAILED),
    "html": (faults.HTML, FAILED),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("proxies")


@pytest.fixture(scope="module")
def server(folder):
    """One server for all tests; each has upstreams and repositories of its own."""
    with restarts(folder, CONFIGURATION) as start:
        server = start()
        yield server
        data = DataFolder(folder / "data")
        assert data.damaged() == []
        wait_for(lambda: not any(data.uploads.iterdir()), server)


NUMBERS = itertools.count()
CUT_PAGE = evolve(faults.HTML, fault=faults.TRUNCATED)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def make(server, kind):
    """Make proxy repositories of one format, with upstreams of their own."""
    upstreams = []

    def make(**settings):
        upstream_class, proxied_class = KINDS[kind]
        upstreams.append(upstream_class(**settings.pop("upstream", {})).start())
        return proxied_class(upstreams[-1], server.url, f"{kind}-{next(NUMBERS)}", **settings)

    yield make
    for each in upstreams:
        each.stop()


@pytest.mark.parametrize("fault", ANSWERS)
def test_a_document_that_does_not_come_is_an_error_of_the_gateway(make, fault):
    proxied = make()
    step, statuses = ANSWERS[fault]
    proxied.upstream.misbehave(proxied.upstream_document, step, repeat=True)
    reply = proxied.get_document()
    assert reply.status in statuses, reply
    assert "127.0.0.1" not in reply.text
    proxied.upstream.behave()
    proxied.await_document()
    assert proxied.is_file(proxied.get_file())


@pytest.mark.parametrize("kind", ["npm", "python"])  # for manifests the limit is a minute
def test_a_document_that_comes_too_slowly_is_given_up(make):
    proxied = make()
    proxied.upstream.misbehave(proxied.upstream_document, Fault(rate=40), repeat=True)
    assert proxied.get_document().status == 504
    proxied.upstream.behave()
    proxied.await_document()


@pytest.mark.parametrize("fault", ANSWERS)
def test_a_document_in_the_cache_is_served_while_the_upstream_fails(make, fault):
    proxied = make(cache_ttl=0)
    assert proxied.is_document(proxied.get_document())
    proxied.upstream.misbehave(proxied.upstream_document, ANSWERS[fault][0], repeat=True)
    for _ in range(3):
        assert proxied.is_document(proxied.get_document())


def test_everything_in_the_cache_is_served_while_the_upstream_is_down(make):
    proxied = make(cache_ttl=0)
    assert proxied.is_document(proxied.get_document())
    assert proxied.is_file(proxied.get_file())
    proxied.upstream.stop()
    for _ in range(3):
        assert proxied.is_document(proxied.get_document(Cache_Control="no-cache"))
        assert proxied.is_file(proxied.get_file(Cache_Control="no-cache"))
    proxied.upstream.start()
    assert proxied.is_document(proxied.get_document())


def test_an_upstream_that_is_down_is_an_error_of_the_gateway(make):
    proxied = make()
    proxied.upstream.stop()
    assert proxied.get_document().status in UNAVAILABLE
    assert proxied.get_file().status in UNAVAILABLE
    proxied.upstream.start()
    proxied.await_document()
    proxied.await_file()


# Of a file these come as a document; what is cut may also reach the client as far as it went.
WRONG_FILES = {
    name: step
    for name, (step, _) in ANSWERS.items()
    if name not in ("bomb", "endless")
} | {
    "corrupted": faults.corrupted,
    "small bomb": faults.gzip_bomb(64 * faults.MIB),
    "too long": lambda answer: evolve(answer, body=bytes(answer.body) + b"more"),
    "too long, cut": lambda answer: evolve(answer, fault=Fault(length=len(answer.body) + 4)),
    "reset": lambda answer: evolve(answer, ranges=False, fault=Fault(cut_at=len(answer.body) // 2, reset=True)),
    "silent": lambda answer: evolve(answer, ranges=False, fault=Fault(pause_at=len(answer.body) // 2)),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG_FILES)
def test_a_wrong_file_is_never_complete_and_not_kept(make, fault):
    proxied = make()
    assert proxied.is_document(proxied.get_document())
    proxied.upstream.misbehave(proxied.upstream_file, WRONG_FILES[fault], repeat=True)
    for _ in range(2):
        reply = proxied.get_file()
        assert reply is None or reply.status in (429, 502, 503, 504), reply.status
    proxied.upstream.behave()
    proxied.await_file()
    proxied.upstream.stop()
    assert proxied.is_file(proxied.get_file())


def test_a_file_that_breaks_off_once_is_complete(make):
    proxied = make(size=1_000_000)
    half = len(proxied.data) // 2
    proxied.upstream.misbehave(proxied.upstream_file, Fault(cut_at=half))
    assert proxied.is_file(proxied.get_file())
    resumed = proxied.upstream.requests(proxied.upstream_file)[1]
    assert resumed.fields["range"] == f"bytes={half}-"
    assert proxied.upstream.sent(proxied.upstream_file) == len(proxied.data)


def test_a_file_that_breaks_off_again_and_again_is_complete_or_cut(make):
    proxied = make(size=1_000_000)
    proxied.upstream.misbehave(proxied.upstream_file, Fault(cut_at=300_000), repeat=True)
    reply = proxied.get_file()
    assert reply is None or reply.status in (502, 503, 504) or proxied.is_file(reply)
    proxied.upstream.behave()
    proxied.await_file()


@pytest.mark.parametrize("second", [faults.without_ranges, faults.with_etag('"other"'), faults.corrupted])
def test_a_file_that_breaks_off_and_changes_is_never_wrong(make, second):
    proxied = make(size=1_000_000)
    half = Fault(cut_at=len(proxied.data) // 2)
    proxied.upstream.misbehave(proxied.upstream_file, half, second)
    reply = proxied.get_file()
    assert reply is None or reply.status in (502, 503, 504) or proxied.is_file(reply)
    proxied.await_file()


def test_a_file_that_comes_gzipped_unasked_is_right_or_refused(make):
    proxied = make()
    proxied.upstream.misbehave(proxied.upstream_file, faults.gzipped, repeat=True)
    reply = proxied.get_file()
    assert reply is None or reply.status == 502 or proxied.is_file(reply)
    proxied.upstream.behave()
    proxied.await_file()


@pytest.mark.parametrize("step", [faults.UNFRAMED, Fault(chunked=True), faults.DROPPED])
def test_unusual_answers_are_understood(make, step):
    proxied = make(cache_ttl=0)
    proxied.upstream.misbehave(ANY, step, repeat=True)
    for _ in range(2):
        assert proxied.is_document(proxied.get_document())
    assert proxied.is_file(proxied.get_file())


def test_an_unchanged_document_is_confirmed_and_stays_the_same(make):
    proxied = make(cache_ttl=0)
    first = proxied.get_document()
    assert proxied.is_document(first)
    second = proxied.get_document()
    assert (second.body, second.headers["etag"]) == (first.body, first.headers["etag"])
    last = proxied.upstream.exchanges_of(proxied.upstream_document)[-1]
    assert last.status == 304 or last.request.method == "HEAD"
    assert proxied.get_document(If_None_Match=first.headers["etag"]).status == 304


def test_another_etag_of_the_same_document_changes_nothing(make):
    proxied = make(cache_ttl=0)
    first = proxied.get_document()
    proxied.upstream.misbehave(proxied.upstream_document, faults.with_etag('"other"'), faults.without_ranges)
    for _ in range(3):
        reply = proxied.get_document()
        assert (reply.body, reply.headers["etag"]) == (first.body, first.headers["etag"])


def test_many_clients_fetch_a_file_once(make):
    proxied = make(size=1_000_000)
    proxied.upstream.misbehave(proxied.upstream_file, Fault(pause_at=1000))
    with ThreadPoolExecutor(30) as pool:
        replies = [pool.submit(proxied.get_file) for _ in range(30)]
        proxied.upstream.wait_paused(proxied.upstream_file)
        proxied.upstream.release(proxied.upstream_file)
        assert all(proxied.is_file(each.result()) for each in replies)
    assert proxied.upstream.count(proxied.upstream_file) == 1


def test_many_clients_of_a_file_that_breaks_off_get_no_wrong_bytes(make):
    proxied = make(size=1_000_000)
    proxied.upstream.misbehave(proxied.upstream_file, WRONG_FILES["reset"], repeat=True)
    with ThreadPoolExecutor(30) as pool:
        for reply in pool.map(lambda _: proxied.get_file(), range(30)):
            assert reply is None or reply.status in (502, 503, 504)
    proxied.upstream.behave()
    proxied.await_file()


@pytest.mark.parametrize("step", [faults.NO_ANSWER, CUT_PAGE, faults.failing(500), faults.STALL_BEFORE_HEAD])
def test_300_failures_at_once_leave_room_for_good_requests(make, step):
    proxied = make()
    proxied.upstream.misbehave(ANY, step, repeat=True)
    paths = [proxied.document.replace("demo", f"demo-{number}") for number in range(300)]
    with ThreadPoolExecutor(100) as pool:
        replies = pool.map(lambda path: proxied.client.get(path, Accept=proxied.accept).status, paths)
        assert {*replies} <= {502, 503, 504}
    proxied.upstream.behave()
    proxied.await_document()
    proxied.await_file()


def test_a_broken_upstream_delays_no_other_one(make):
    broken, good = make(), make()
    broken.upstream.misbehave(ANY, faults.STALL_BEFORE_HEAD, repeat=True)
    with ThreadPoolExecutor(60) as pool:
        paths = [broken.document.replace("demo", f"demo-{number}") for number in range(60)]
        waiting = [pool.submit(broken.client.get, path) for path in paths]
        broken.upstream.wait_paused()
        assert good.is_document(good.get_document())
        assert good.is_file(good.get_file())
        broken.upstream.stop()
        assert all(each.result().status in (502, 503, 504) for each in waiting)


def test_packages_that_the_upstream_does_not_have_are_not_found(make):
    proxied = make()
    missing = proxied.document.replace("demo", "missing")
    for _ in range(2):
        assert proxied.client.get(missing, Accept=proxied.accept).status == 404
    assert proxied.upstream.count(proxied.upstream_document.replace("demo", "missing")) <= 1


def test_credentials_go_to_no_other_host(server, kind):
    upstream_class, proxied_class = KINDS[kind]
    secret = "Basic " + b64encode(b"reader:an-upstream-secret").decode()
    with ScriptedUpstream() as elsewhere, ScriptedUpstream() as tokens:
        if kind == "container":
            options = {"blobs": elsewhere, "tokens": tokens, "challenge": "bearer", "credentials": secret}
        else:
            options = {"files": elsewhere, "authorization": secret}
        with upstream_class(**options) as upstream:
            auth = {"username": "reader", "password": "an-upstream-secret"}
            proxied = proxied_class(upstream, server.url, f"{kind}-{next(NUMBERS)}", auth=auth)
            assert proxied.is_document(proxied.get_document())
            assert proxied.is_file(proxied.get_file())
        asked = tokens if kind == "container" else upstream
        assert {each.fields["authorization"] for each in asked.requests()} == {secret}
        assert elsewhere.count() > 0
        assert {"authorization", "cookie"}.isdisjoint(*(each.fields for each in elsewhere.requests()))
