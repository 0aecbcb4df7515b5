from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.model import NewFile
from pkgrepo.storage.catalog import blobs, files
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob

# Around the slash: characters right before and after it, a space, and one beyond the basic plane.
PARTS = st.text("ab-./0 😀", min_size=1, max_size=6).filter(lambda text: all(part for part in text.split("/")))


def fill(catalog, paths):
    def command(tx):
        repository = add_repository(tx)
        blob = blobs.claim_blob(tx, repository.storage_id, make_blob(b"x"), NOW)
        for path in paths:
            files.add_file(tx, repository.id, repository.storage_id, NewFile(path=path, blob=blob), None, None, NOW)
        return repository

    return catalog.do(command)


def walk(catalog, repository, prefix, limit):
    seen, after = [], ""
    while page := catalog.look(files.list_tree, repository.id, prefix, after, limit):
        assert len(page) <= limit
        seen += page
        after = page[-1].path
    return seen


def expected(paths, prefix):
    below = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    return sorted({prefix + (rest.split("/")[0] + "/" if "/" in rest else rest) for rest in below}, key=str.encode)


@given(paths=st.sets(PARTS, max_size=12), limit=st.integers(1, 5), prefix=st.sampled_from(["", "a/", "b/", "a/b/"]))
def test_pages_show_every_file_and_folder_directly_below(paths, limit, prefix):
    catalog = MemoryCatalog()
    repository = fill(catalog, paths)
    entries = walk(catalog, repository, prefix, limit)
    assert [entry.path for entry in entries] == expected(paths, prefix)
    for entry in entries:
        assert prefix + entry.name + ("" if entry.file else "/") == entry.path
        assert entry.file is None or entry.file.path == entry.path


def test_a_folder_costs_few_queries_whatever_is_in_it():
    catalog = MemoryCatalog()
    repository = fill(catalog, [f"{folder}/{n:04}" for folder in "abc" for n in range(500)])
    before = catalog.tx.statements
    assert [entry.path for entry in catalog.look(files.list_tree, repository.id)] == ["a/", "b/", "c/"]
    assert catalog.tx.statements - before <= 6


def test_many_files_in_a_folder_cost_few_queries():
    catalog = MemoryCatalog()
    repository = fill(catalog, [f"a/{n:04}" for n in range(500)])
    before = catalog.tx.statements
    assert len(catalog.look(files.list_tree, repository.id, "a/", "", 500)) == 500
    assert catalog.tx.statements - before <= 8
