import pytest

from pkgrepo.storage.catalog.people import users
from tests.support.catalog import MemoryCatalog, add_repository


@pytest.fixture
def catalog():
    """A catalog with the repositories 1 and 2."""
    catalog = MemoryCatalog()
    add_repository(catalog, 1)
    add_repository(catalog, 2)
    return catalog


@pytest.fixture
def alice(catalog):
    return catalog.do(users.add_user, username="alice", now_ms=1)


@pytest.fixture
def increments(catalog):
    """Run a command; returns whether it has incremented the serial of identities."""

    def run(command, *args, **kwargs):
        before = catalog.peek(users.identity_serial)
        catalog.do(command, *args, **kwargs)
        return catalog.peek(users.identity_serial) > before

    return run
