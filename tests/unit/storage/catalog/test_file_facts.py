"""What files of upstreams say of themselves is kept by digest, and at most so much of it."""

import pytest

from pkgrepo.storage.catalog import file_facts
from pkgrepo.storage.catalog.file_facts import (
    FileFacts,
    attested_name,
    dependency_name,
    facts_of_format,
    facts_of_package,
    is_dependency_name,
    name_of,
    note_facts,
    place_of,
    remove_oldest_facts,
    serial_of_format,
    serial_of_package,
)
from tests.support.catalog import MemoryCatalog

GPL = FileFacts(("GPL-3.0",), install_scripts=True, digests=("sha256:00",))


async def test_what_was_noted_last_is_known_and_counts_only_if_documents_did_not_tell_it() -> None:
    catalog = MemoryCatalog()
    await catalog.write(note_facts, "python", "x", "sha256:00", FileFacts(unreadable=True), 1000, shown=True)
    assert await catalog.scan(serial_of_package, "python", "x") == 0
    for _ in range(2):
        await catalog.write(note_facts, "python", "x", "sha256:00", GPL, 1000, shown=False)
    await catalog.write(note_facts, "python", "y", "7:y-1.0.tar.gz", FileFacts(()), 2000, shown=False)
    await catalog.write(note_facts, "ruby", "x", "sha256:00", FileFacts(), 3000, shown=False)
    assert await catalog.scan(facts_of_package, "python", "x") == (1001, {"sha256:00": GPL})
    assert await catalog.scan(serial_of_format, "python") == 2000
    assert await catalog.scan(facts_of_package, "python", "z") == (0, {})


def test_only_digests_that_nobody_can_give_to_another_file_name_it() -> None:
    place = place_of(7, "x-1.0.whl")
    assert name_of({"md5": "1", "sha1": "2"}, place) == "7:x-1.0.whl"
    assert name_of({"md5": "1", "sha512": "AB"}, place) == "sha512:ab"
    assert name_of({"sha512": "ab", "sha256": "cd"}, place) == "sha256:cd"


async def test_the_oldest_rows_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = MemoryCatalog()
    monkeypatch.setattr(file_facts, "MOST", 2)
    for number in range(5):
        await catalog.write(note_facts, "python", "x", str(number), GPL, 1000 + number, shown=False)
    assert [await catalog.write(remove_oldest_facts, 0, 2) for _ in range(3)] == [2, 1, 0]
    assert set((await catalog.scan(facts_of_package, "python", "x"))[1]) == {"3", "4"}


async def test_of_all_packages_those_that_are_wanted_are_known_as_in_one_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_facts, "PAGE", 2)
    catalog = MemoryCatalog()
    names = ("sha256:00", "7:noarch/x-1.0-0.conda", "7:sha256:00", "8:noarch/x-1.0-0.conda", "77:sha256:00")
    for package in ("x", "y", "z"):
        for name in names:
            await catalog.write(note_facts, "conda", package, name, GPL, 1000, shown=False)
    found = await catalog.scan(facts_of_format, "conda", 7, {"x", "z"}.__contains__)
    assert {key: {*some} for key, some in found.items()} == {key: {*names[:3]} for key in ("x", "z")}


def test_the_name_of_a_dependency_is_that_of_no_file_or_version() -> None:
    name = dependency_name(7, "@acme/tool")
    assert name == "7: @acme/tool"
    others = ["sha256:00", place_of(7, "a b/c-1.0.tgz"), place_of(7, "1.0"), attested_name("sha256:00", "x/a b.whl")]
    assert [is_dependency_name(each) for each in (name, *others)] == [True, False, False, False, False]
