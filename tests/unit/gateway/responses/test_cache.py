"""Cached answers: only while they are valid, and only for callers who may have them."""

from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve

from pkgrepo.errors import StorageFailed
from pkgrepo.gateway.cached_reads import CachedReads
from pkgrepo.gateway.mounts import Entry
from pkgrepo.gateway.responses.cache import VARIANTS, CachedResponse, ResponseCache
from pkgrepo.gateway.responses.content import sent_part
from pkgrepo.http.repeats import LONGEST_S
from pkgrepo.http.responses import Response
from pkgrepo.interfaces import NOT_NOW
from pkgrepo.model import ANONYMOUS, Action, Identity, TokenLimits
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository, publish

ALICE = Identity(user_id=1, username="alice", via="password")


class Asked:
    """The parts of a request that the cache looks at."""

    client_address = "192.0.2.1"

    def __init__(self, uri="/repositories/main/py/simple/demo/", method=b"GET", **headers):
        self.uri = uri.encode()
        self.raw_path, _, self.raw_query = self.uri.partition(b"?")
        self.method = method
        self.fields = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        self.principal = self.repository = self.cache = ""
        self.revalidates = False
        self.entry = None
        self.base_url = "http://" + headers.get("host", "localhost")

    def header(self, name):
        return self.fields.get(name)


class Access:
    """Identity and permission as the test sets them."""

    def __init__(self):
        self.identity = ANONYMOUS
        self.allowed = True
        self.asked = []
        self.used = []

    def recall(self, _request):
        return self.identity

    def count_use(self, identity):
        self.used.append(identity)

    @property
    def authorizer(self):
        return self

    def may_now(self, identity, action, repository, package):
        self.asked.append((identity, action, repository, package))
        return self.allowed


class Mount:
    def __init__(self, repository):
        self.repository = repository


class Mounts:
    def __init__(self):
        self.mount = None
        self.known = True

    def enter(self, _request):
        return Entry((b"main", b"py", b""), self.mount, current=self.known)

    def refuse_now(self, _request, _entry):
        return None

    def refresh_now(self):
        return self.known


class Images:
    def of_request(self, _request):
        return None


class Noted(list):
    """Downloads with the addresses of the clients."""

    def record(self, file, identity, address, *, whole):
        self.append((file, identity, address, whole))


class Scene:
    """One cached answer, and the reads that may get it."""

    def __init__(self):
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)
        self.file = self.catalog.do(publish, self.repository, "packages/demo/1.0/demo.whl")
        self.replaced = []
        self.response_cache = ResponseCache(self.catalog, self, lambda: self.replaced.append(1))
        self.cache = self.response_cache.caches()["answers"]
        self.cache.limit = 1_000_000
        self.mounts, self.access, self.noted = Mounts(), Access(), Noted()
        self.mounts.mount = Mount(self.repository)
        self.fresh = True
        self.fresh_asked = 0
        self.time_ms = 1_000_000
        self.negotiated = []
        self.early = CachedReads(
            mounts=self.mounts,
            images=Images(),
            access=self.access,
            downloads=self.noted,
            response_cache=self.response_cache,
        )
        self.early.add_pings({b"/v2/": Response(body=b"welcome")})

    def keep(self, request, **options):
        values = {
            "repository": self.repository,
            "package": "demo",
            "size": 10,
            "generation": self.catalog.generation(),
            **options,
        }
        self.response_cache.put(
            request,
            CachedResponse(negotiate=self.negotiate, fresh=self.is_fresh, **values),
        )

    def negotiate(self, request):
        self.negotiated.append(request)
        accept = request.header(b"accept") or b"-"
        return None if accept == b"none/such" else Response(body=accept, etag=b'"' + accept + b'"')

    def is_fresh(self, _reader):
        self.fresh_asked += 1
        return self.fresh

    def now_ms(self):
        return self.time_ms

    def body(self, request):
        prepared = self.early(request)
        return None if prepared is None else prepared.answer.body

    def commit(self):
        self.catalog.do(lambda tx: None)


@pytest.fixture
def scene():
    return Scene()


def test_a_ping_of_a_known_caller_is_answered_and_logged(scene):
    request = Asked("/v2/", authorization="Bearer x")
    scene.access.identity = ALICE
    assert scene.body(request) == b"welcome"
    assert (request.principal, request.cache) == ("alice", "hot")


def test_a_ping_without_credentials_or_with_unknown_ones_is_not_answered(scene):
    assert scene.body(Asked("/v2/")) is None
    scene.access.identity = None
    assert scene.body(Asked("/v2/", authorization="Bearer x")) is None


def test_a_catalog_that_cannot_be_read_is_left_to_the_handler(scene):
    scene.keep(Asked())

    def fail(_reader):
        raise StorageFailed("catalog")

    scene.is_fresh = fail
    scene.keep(Asked())
    scene.commit()
    assert scene.body(Asked()) is None


def test_a_cached_answer_is_served_and_logged(scene):
    scene.keep(Asked())
    scene.access.identity = ALICE
    request = Asked()
    assert scene.body(request) == b"-"
    assert (request.principal, request.repository, request.cache) == ("alice", "main/py", "hot")
    assert scene.access.asked == [(ALICE, Action.READ, scene.repository, "demo")]


@pytest.mark.parametrize(
    "uri",
    [
        "/repositories/main/py/simple/other/",
        "/repositories/main/py/simple/demo",
        "/repositories/main/py/simple/demo/?format=text/html",
        "/repositories/main/py/simple/demo/?",
        "/repositories/main/py/simple/dem%6f/",
    ],
)
def test_another_target_is_another_answer(scene, uri):
    scene.keep(Asked())
    assert scene.body(Asked(uri)) is None


def test_an_answer_to_a_query_is_not_cached(scene):
    scene.keep(Asked("/repositories/main/py/simple/demo/?a=1"))
    assert scene.body(Asked("/repositories/main/py/simple/demo/?a=1")) is None


def test_permission_is_checked_each_time(scene):
    scene.keep(Asked())
    assert scene.body(Asked()) is not None
    scene.access.allowed = False
    assert scene.body(Asked()) is None
    scene.access.allowed = True
    scene.access.identity = None  # credentials that nobody has verified yet
    assert scene.body(Asked()) is None
    assert len(scene.access.asked) == 2


def test_an_inactive_or_unknown_repository_answers_nothing(scene):
    asleep = evolve(scene.repository, active=False)
    scene.mounts.mount = Mount(asleep)
    scene.keep(Asked(), repository=asleep, generation=0)
    assert scene.body(Asked()) is None
    scene.mounts.mount = None
    assert scene.body(Asked()) is None


def test_a_changed_configuration_ends_an_entry(scene):
    scene.keep(Asked())
    scene.mounts.mount = Mount(evolve(scene.repository))
    assert scene.body(Asked()) is None
    scene.mounts.mount = Mount(scene.repository)
    assert scene.body(Asked()) is None


def test_the_catalog_is_asked_only_after_a_commit(scene):
    scene.keep(Asked())
    for _ in range(3):
        assert scene.body(Asked()) == b"-"
    assert scene.fresh_asked == 0
    scene.commit()
    for _ in range(3):
        assert scene.body(Asked()) == b"-"
    assert scene.fresh_asked == 1


def test_an_invalid_entry_is_removed(scene):
    scene.keep(Asked())
    scene.commit()
    scene.fresh = False
    assert scene.body(Asked()) is None
    scene.fresh = True
    assert scene.body(Asked()) is None


def test_a_commit_between_the_read_and_put_is_noticed(scene):
    before = scene.catalog.generation()
    scene.commit()
    scene.keep(Asked(), generation=before)
    scene.fresh = False
    assert scene.body(Asked()) is None


def test_each_variant_of_the_negotiation_fields_is_made_once(scene):
    scene.keep(Asked())
    for _ in range(3):
        assert scene.body(Asked(accept="a/b")) == b"a/b"
        assert scene.body(Asked(accept="c/d", accept_encoding="gzip")) == b"c/d"
    assert len(scene.negotiated) == 2
    assert scene.body(Asked(accept="none/such")) is None


def test_endless_variants_take_bounded_memory(scene):
    scene.keep(Asked())
    for n in range(5 * VARIANTS):
        assert scene.body(Asked(accept=f"a/{n}")) == b"a/%d" % n
    entry = scene.response_cache.find(Asked(), scene.repository)
    assert len(entry.variants) <= VARIANTS


def test_endless_spellings_of_one_address_take_bounded_memory(scene):
    for n in range(1000):
        scene.keep(Asked(f"/repositories/main/py/simple/{n}/"), size=0)
    assert scene.cache.size > 1000 * 30  # the addresses alone
    scene.cache.limit = 100_000
    for n in range(1000):
        scene.keep(Asked(f"/repositories/main/py/simple/{n}/"), size=0)
    assert 0 < len(scene.cache) < 100


def test_long_variants_and_documents_of_many_addresses_are_counted(scene):
    scene.keep(Asked())
    before = scene.cache.size
    assert scene.body(Asked(accept="a" * 10_000)) is not None
    assert scene.cache.size > before + 10_000
    scene.keep(Asked(), size=20_000, by_address=True)
    for n in range(3):
        assert scene.body(Asked(host=f"h{n}")) is not None
    assert scene.cache.size > 3 * 20_000
    for n in range(100):  # more than there is room for
        assert scene.body(Asked(host=f"i{n}")) is not None
    assert scene.cache.size <= scene.cache.largest


def test_only_whole_downloads_are_recorded(scene):
    scene.keep(Asked(), item=scene.file)
    tag = '"-"'
    assert scene.body(Asked(method=b"HEAD")) == b"-"
    assert scene.body(Asked(if_none_match=tag)) == b"-"
    assert scene.noted == []
    assert scene.body(Asked()) == b"-"
    assert scene.body(Asked(if_none_match='"old"')) == b"-"
    assert scene.noted == [(scene.file, ANONYMOUS, Asked.client_address, True)] * 2


@pytest.mark.parametrize(
    ("headers", "part"),
    [
        ({}, "all"),
        ({"range": "bytes=0-1"}, "beginning"),
        ({"range": "bytes=0-"}, "beginning"),
        ({"range": "bytes=1-"}, ""),
        ({"range": "bytes=-3"}, ""),
        ({"range": "bytes=99-"}, ""),
        ({"range": "bytes=0-1", "if_range": '"old"'}, "all"),
        ({"range": "lines=1-2"}, "all"),
        ({"if_none_match": '"x"'}, ""),
        ({"if_none_match": "*"}, ""),
    ],
)
def test_which_part_of_the_body_is_sent(headers, part):
    answer = Response(body=b"0123456789", etag=b'"x"', ranges=True)
    assert sent_part(Asked(**headers), answer) == part
    assert sent_part(Asked(method=b"HEAD", **headers), answer) == ""


def test_variants_are_made_again_once_at_expiry(scene):
    request = Asked()
    scene.keep(request, expires_at=1001)
    for time_ms, made in ((1_000_000, 1), (1_000_999, 1), (1_001_000, 2), (1_002_000, 2)):
        scene.time_ms = time_ms
        assert scene.body(request) == b"-"
        assert len(scene.negotiated) == made


def test_of_a_catalog_that_does_not_answer_at_once_nothing_is_asked_and_nothing_forgotten(scene, monkeypatch):
    scene.keep(Asked())
    monkeypatch.setattr(scene.catalog, "peek", lambda *_: NOT_NOW)
    assert scene.body(Asked()) == b"-"
    scene.commit()
    assert scene.body(Asked()) is None
    scene.keep(Asked())  # as the handler does that answered instead
    assert scene.body(Asked()) == b"-"
    assert scene.fresh_asked == 0


def test_nothing_is_answered_by_a_configuration_that_may_be_old(scene):
    scene.keep(Asked())
    scene.mounts.known = False
    assert scene.body(Asked()) is None
    scene.mounts.known = True
    assert scene.body(Asked()) == b"-"


def test_leave_that_is_not_known_without_waiting_is_no_leave(scene):
    scene.keep(Asked())
    scene.access.allowed = None
    assert scene.body(Asked()) is None


TOKEN = Identity(user_id=1, username="alice", via="token", token_id=5)


def repeatable(scene, request):
    assert scene.body(request) is not None
    return request.repeatable()


def test_each_repetition_counts_as_a_download_and_as_a_use_of_the_token(scene):
    scene.access.identity = TOKEN
    scene.keep(Asked(), item=scene.file)
    counts = repeatable(scene, Asked()).counts
    for _ in range(2):
        for count in counts:
            count("192.0.2.9")
    repeated = [(scene.file, TOKEN, "192.0.2.9", True)] * 2
    assert scene.noted == [(scene.file, TOKEN, Asked.client_address, True), *repeated]
    assert scene.access.used == [TOKEN] * 2


@pytest.mark.parametrize("partial", [{"method": b"HEAD"}, {"if_none_match": '"-"'}])
def test_a_repetition_without_the_whole_body_is_no_download(scene, partial):
    scene.keep(Asked(), item=scene.file)
    assert repeatable(scene, Asked(**partial)).counts == ()


@pytest.mark.parametrize("option", ["ends_s", "expires_at"])
def test_an_answer_is_repeatable_no_longer_than_it_is_valid(scene, option):
    scene.keep(Asked())
    assert repeatable(scene, Asked()).seconds == LONGEST_S
    scene.keep(Asked(), **{option: scene.time_ms // 1000 + 2})
    assert repeatable(scene, Asked()).seconds == 2


def test_an_answer_is_repeatable_no_longer_than_the_token_is_valid(scene):
    expires_at = datetime.now(UTC) + timedelta(seconds=3)
    scene.access.identity = evolve(TOKEN, limits=TokenLimits(expires_at=expires_at))
    scene.keep(Asked())
    assert 0 < repeatable(scene, Asked()).seconds <= 3


def test_an_answer_in_place_of_another_is_reported(scene):
    scene.keep(Asked())
    scene.body(Asked())
    assert scene.replaced == []
    scene.keep(Asked())
    assert scene.replaced == [1]
