"""A view of the past and the repository that it is of."""

from attrs import evolve

from pkgrepo.repositories.past import view_of
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository


def test_rights_are_asked_of_the_repository_as_it_is_now() -> None:
    live = MemoryCatalog().do(add_repository, "Py")
    view = view_of(live, "2020-01-01", NOW)
    assert view.authority is live  # decisions are kept for each object, and clients can make up any number of views
    companion = evolve(live, id=live.id + 1, name="Py/plugins", parent=live)
    assert view_of(companion, "2020-01-01", NOW).authority is live
