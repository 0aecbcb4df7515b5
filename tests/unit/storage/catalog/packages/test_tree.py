from hypothesis import example, given
from hypothesis import strategies as st

from pkgrepo.model import NewFile
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import files, tree
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob

# The neighbours of the slash in Unicode, a space, a capital, a LIKE wildcard, a character beyond U+FFFF.
PATHS = st.text("abA_-./0 😀", min_size=1, max_size=6).filter(lambda text: all(text.split("/")))


def fill(catalog, paths):
    def command(tx):
        repository = add_repository(tx)
        blob = blobs.claim_blob(tx, repository.storage_id, make_blob(b"x"), NOW)
        for path in paths:
            files.add_file(tx, repository.id, repository.storage_id, NewFile(path=path, blob=blob), None, None, NOW)
        return repository

    return catalog.do(command)


def walk(catalog, repository, folder, limit):
    """Every page of a level, joined."""
    folders, found, after = [], [], ""
    while after is not None:
        level = catalog.peek(tree.list_tree, repository.id, folder, after=after, limit=limit)
        assert len(level.folders) + len(level.files) <= limit
        folders += level.folders
        found += [file.path for file in level.files]
        after = level.after
    return folders, found


def expected(paths, folder):
    prefix = f"{folder}/" if folder else ""
    below = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    folders = sorted({rest.split("/")[0] + "/" for rest in below if "/" in rest}, key=str.encode)
    return [each[:-1] for each in folders], sorted((prefix + rest for rest in below if "/" not in rest), key=str.encode)


@example(paths={"0./0", "0/0"}, limit=1, folder="")
@given(paths=st.sets(PATHS, max_size=12), limit=st.integers(1, 5), folder=st.sampled_from(["", "a", "b", "a/b", "_"]))
def test_pages_show_every_file_and_folder_directly_in_a_folder(paths, limit, folder):
    catalog = MemoryCatalog()
    repository = fill(catalog, paths)
    assert walk(catalog, repository, folder, limit) == expected(paths, folder)


@given(paths=st.sets(PATHS, max_size=8), path=PATHS | st.just(""))
def test_a_path_is_a_file_or_a_folder_or_nothing(paths, path):
    catalog = MemoryCatalog()
    repository = fill(catalog, paths)
    found = catalog.peek(tree.file_or_folder, repository.id, path)
    if path in paths:
        assert found.path == path
    else:
        assert found is (not path or any(each.startswith(f"{path}/") for each in paths))


def test_the_number_of_queries_does_not_grow_with_the_files_below():
    catalog = MemoryCatalog()
    repository = fill(catalog, [f"{folder}/{n:04}" for folder in "abc" for n in range(500)])
    before = catalog.tx.statements
    assert catalog.peek(tree.list_tree, repository.id, "").folders == ["a", "b", "c"]
    assert catalog.tx.statements - before <= 9


def test_files_after_more_folders_than_max_seeks_are_found():
    catalog = MemoryCatalog()
    folders = [f"{number:03}" for number in range(tree.MAX_SEEKS + 40)]
    repository = fill(catalog, [*(f"x/{folder}/f" for folder in folders), "x/000.a", "x/zz", "x/zzz"])
    assert walk(catalog, repository, "x", 50) == (folders, ["x/000.a", "x/zz", "x/zzz"])
