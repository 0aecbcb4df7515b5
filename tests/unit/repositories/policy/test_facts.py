from typing import Any

import pytest

from pkgrepo.formats.npm.format import npm
from pkgrepo.formats.python.format import python
from pkgrepo.repositories.policy.facts import declared, digests_of, known_contents, licences_of
from pkgrepo.repositories.policy.schema import Datum
from pkgrepo.storage.catalog.file_facts import FileFacts, dependency_name, note_facts
from tests.support.catalog import MemoryCatalog


@pytest.mark.parametrize(
    ("meta", "licences"),
    [
        ({"license": "MIT"}, ("MIT",)),
        ({"license": {"type": "ISC", "url": "x"}}, ("ISC",)),
        ({"licenses": [{"type": "MIT"}, "BSD"]}, ("MIT", "BSD")),
        ({"license_expression": "MIT OR Apache-2.0"}, ("MIT OR Apache-2.0",)),
        ({"classifiers": ["License :: OSI Approved :: MIT License", "Topic :: x"]}, ("MIT License",)),
        ({"license": 7, "licenses": "MIT", "classifiers": None}, ("MIT",)),
        ({}, ()),
    ],
    ids=str,
)
def test_licences_are_read_in_each_form(meta: dict[str, Any], licences: tuple[str, ...]) -> None:
    assert licences_of(meta) == licences


@pytest.mark.parametrize(
    ("format_", "meta", "files", "runs"),
    [
        (npm(), {"hasInstallScript": True}, ["a.tgz"], True),
        (npm(), {"name": "a"}, ["a.tgz"], False),
        (npm(), {}, [], None),
        (python(), {}, ["a-1.tar.gz"], True),
        (python(), {}, ["a-1.tar.gz", "a-1-py3-none-any.whl"], False),
        (python(), {}, [], None),
    ],
)
def test_programs_that_run_at_the_installation(
    format_: Any, meta: dict[str, Any], files: list[str], runs: bool | None
) -> None:
    assert declared(format_, meta, files)["install_scripts"] is runs


def test_digests_are_named_by_their_algorithm() -> None:
    assert digests_of({"md5": "AB", "blake2b": "c"}, "00") == {"md5:ab", "sha256:00"}


async def test_of_other_packages_that_a_file_needs_their_age_is_known_without_an_upstream() -> None:
    catalog = MemoryCatalog()
    name, needs = dependency_name(7, "tool"), frozenset[Datum]({"differs"})
    facts = FileFacts(published_ms=1000, licences=("MIT",))
    for each in (name, "sha256:00"):
        await catalog.write(note_facts, "npm", "demo", each, facts, 2000, shown=True)
    assert await catalog.scan(known_contents, npm(), "demo", needs) == {name: facts}
    assert await catalog.scan(known_contents, npm(), "demo", frozenset[Datum]({"age"})) == {}
