"""From a raw path to the repository behind it, whatever spelling, and however many."""

import pytest

from pkgrepo.errors import StorageFailed
from pkgrepo.gateway.mounts import Mounts, split
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.server import repositories
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository


class Services:
    def __init__(self, registry):
        self.registry = registry


class Format:
    name = "python"
    is_loaded = True

    def __init__(self):
        self.made = []

    def resource(self, repository, services):
        self.made.append(repository)
        return object()


@pytest.fixture
def catalog():
    return MemoryCatalog()


@pytest.fixture
def repository(catalog):
    return catalog.do(add_repository, "Py")


@pytest.fixture
def format_():
    return Format()


@pytest.fixture
def mounts(catalog, repository, format_):
    return Mounts(services=Services(Registry(catalog)), formats={"python": format_})


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        (b"/repositories/main/Py", b""),
        (b"/repositories/main/Py/", b""),
        (b"/repositories/main/Py/simple/x%2Fy/", b"simple/x%2Fy/"),
        (b"/repositories/main/Py//x", b"/x"),
        (b"/repositories/MAIN/py/x", b"x"),
        (b"/repositories/m%61in/%50y/x", b"x"),
    ],
)
def test_a_repository_is_found_with_the_rest_as_on_the_wire(mounts, repository, path, rest):
    storage, name, found = split(path)
    assert (mounts.find(storage, name).repository, found) == (repository, rest)


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"/repositories/",
        b"/repositories/main",
        b"/repositories/main/",
        b"/repositories/main/other/x",
        b"/repositories/other/Py/x",
        b"/repositories/main%2FPy/x",
        b"/Repositories/main/Py/x",
        b"/repositories//Py",
        b"/repositories/main/\xff/x",
        b"/repositories/main/%ff/x",
    ],
)
def test_nothing_else_is_found(mounts, path):
    place = split(path)
    assert place is None or mounts.find(place[0], place[1]) is None


def test_endless_spellings_make_one_mount(mounts, format_):
    found = set()
    for n in range(64):
        main, py = spelt("main", n), spelt("Py", n >> 4)
        found.add(id(mounts.find(main.encode(), py.encode())))
    assert len(found) == 1
    assert len(format_.made) == 1
    assert len(mounts._mounts) == 1


def spelt(word, which):
    """A word with some of its letters percent-encoded, one for each bit that is set."""
    return "".join(f"%{ord(letter):02x}" if which >> i & 1 else letter for i, letter in enumerate(word))


def test_a_change_of_configuration_makes_mounts_anew(mounts, catalog, repository, format_):
    before = mounts.find(b"main", b"Py")
    catalog.do(repositories.update_repository, repository.id, now_ms=NOW, description="new")
    after = mounts.find(b"main", b"Py")
    assert after is not before
    assert after.repository.description == "new"
    assert mounts.find(b"main", b"Py") is after


def test_a_repository_of_no_known_format_is_not_served(catalog, repository):
    assert Mounts(services=Services(Registry(catalog)), formats={}).find(b"main", b"Py") is None


def test_a_catalog_that_cannot_be_read_is_waited_for(mounts, catalog, monkeypatch):
    """The wait ends with an error that clients are told in their form."""

    def fail(*_):
        raise StorageFailed("catalog")

    assert mounts.refresh_now()
    catalog.do(lambda tx: None)
    monkeypatch.setattr(catalog, "peek", fail)
    assert not mounts.refresh_now()
