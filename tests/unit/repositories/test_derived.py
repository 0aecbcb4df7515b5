"""Documents over a whole repository: fresh after every change, shared while they are built, old rather than late."""

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from pkgrepo.repositories import derived
from pkgrepo.repositories.derived import PATIENCE_S, REST_FACTOR, DerivedDocuments
from pkgrepo.repositories.index import render
from pkgrepo.storage.catalog import repositories
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository


class SlowCatalog(MemoryCatalog):
    """Scans see the catalog as it is when they begin, and end when the test says so."""

    def __init__(self):
        super().__init__()
        self.held = None

    async def scan(self, query, *args, **kwargs):
        result = query(self.tx, *args, **kwargs)
        if self.held is not None:
            waiting = Deferred()
            self.held.append(waiting)
            await waiting
        return result

    def hold(self):
        self.held = []

    def let_go(self):
        held, self.held = self.held, None
        for each in held:
            each.callback(None)


class Times:
    """How long builds take, by the clock that measures them."""

    def __init__(self):
        self.now = 0.0
        self.cost = 0.0

    def thread_time(self):
        self.now += self.cost / 2
        return self.now


@pytest.fixture
def catalog():
    return SlowCatalog()


@pytest.fixture
def repository(catalog):
    return catalog.do(add_repository)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def times(monkeypatch):
    found = Times()
    monkeypatch.setattr(derived, "time", found)
    return found


@pytest.fixture
def documents(catalog, clock):
    return DerivedDocuments(catalog, clock)


@pytest.fixture
def builds():
    return []


@pytest.fixture
def build(builds):
    def make(_reader, repository_id, serial):
        builds.append(serial)
        return render("text/plain", b"%d at %d" % (repository_id, serial), serial)

    return make


def get(documents, repository, build, kind="list"):
    return Deferred.fromCoroutine(documents.get(repository, kind, build))


def body_of(deferred):
    results = []
    deferred.addBoth(results.append)
    return results[0].body.decode()


def change(catalog, repository):
    catalog.do(repositories.names_changed, repository.id)


def test_a_document_is_built_once_and_kept(documents, repository, build, builds):
    assert documents.ready(repository, "list") is None
    first = body_of(get(documents, repository, build))
    assert documents.ready(repository, "list").body.decode() == first
    assert body_of(get(documents, repository, build)) == first
    assert len(builds) == 1
    get(documents, repository, build, "other")
    assert len(builds) == 2


def test_a_reader_sees_what_was_written_before(documents, catalog, repository, build):
    before = body_of(get(documents, repository, build))
    change(catalog, repository)
    assert documents.ready(repository, "list") is None
    assert body_of(get(documents, repository, build)) != before


def test_one_build_serves_all_who_wait(documents, catalog, repository, build, builds):
    catalog.hold()
    waiting = [get(documents, repository, build) for _ in range(5)]
    catalog.let_go()
    assert len({body_of(each) for each in waiting}) == 1
    assert len(builds) == 1


def test_a_build_that_looked_too_early_does_not_hide_a_write(documents, catalog, repository, build, builds):
    get(documents, repository, build)
    change(catalog, repository)
    catalog.hold()
    early = get(documents, repository, build)
    change(catalog, repository)
    late = get(documents, repository, build)
    catalog.let_go()
    assert builds == sorted(builds)
    assert body_of(early) == f"{repository.id} at {builds[1]}"
    assert body_of(late) == f"{repository.id} at {builds[2]}"


def test_after_an_expensive_build_the_old_document_is_served_for_a_while(
    documents, catalog, repository, build, builds, clock, times
):
    times.cost = 2.0
    old = body_of(get(documents, repository, build))
    change(catalog, repository)
    clock.advance(0.9 * REST_FACTOR * 1.0)
    assert body_of(get(documents, repository, build)) == old
    clock.advance(0.2 * REST_FACTOR * 1.0)
    assert body_of(get(documents, repository, build)) != old
    assert len(builds) == 2


def test_nobody_waits_longer_than_patience_when_there_is_an_older_document(
    documents, catalog, repository, build, clock
):
    old = body_of(get(documents, repository, build))
    change(catalog, repository)
    catalog.hold()
    waiting = get(documents, repository, build)
    clock.advance(PATIENCE_S / 2)
    assert not waiting.called
    clock.advance(PATIENCE_S / 2)
    assert body_of(waiting) == old
    catalog.let_go()  # the build ends all the same, and is kept
    assert documents.ready(repository, "list").body.decode() != old
    assert not clock.getDelayedCalls()


def test_the_first_build_is_waited_for_without_end(documents, catalog, repository, build, clock):
    catalog.hold()
    waiting = get(documents, repository, build)
    clock.advance(100 * PATIENCE_S)
    assert not waiting.called
    catalog.let_go()
    assert body_of(waiting)


def test_a_failing_build_leaves_the_next_reader_to_try_again(documents, repository, build):
    def fail(*_):
        raise ValueError("no")

    failed = get(documents, repository, fail)
    failed.addErrback(lambda failure: succeed(failure.trap(ValueError)))
    assert body_of(get(documents, repository, build))


def test_repositories_do_not_share_documents(documents, catalog, repository, build):
    get(documents, repository, build)
    other = catalog.do(add_repository, "other")
    assert documents.ready(other, "list") is None
    assert body_of(get(documents, other, build)).startswith(f"{other.id} ")
    assert documents.ready(catalog.do(add_repository, "third"), "list") is None
