"""How upstreams are asked for artifacts."""

from __future__ import annotations

import pytest

from pkgrepo.errors import NotFound
from pkgrepo.formats.maven.proxied.questions import file_question, metadata_question

DIRECTORY = "com/example/app/1.0"


def test_metadata_are_asked_at_their_paths() -> None:
    question = metadata_question("com.example:app")
    assert list(question.urls("https://up.example/m2")) == ["https://up.example/m2/com/example/app/maven-metadata.xml"]
    assert (question.package_key, question.merges, question.most_ttl_s) == ("com.example:app", True, None)
    snapshot = metadata_question("com.example:app:1 0+x-SNAPSHOT")
    assert list(snapshot.urls("u")) == ["u/com/example/app/1%200+x-SNAPSHOT/maven-metadata.xml"]
    assert (snapshot.package_key, snapshot.most_ttl_s) == ("com.example:app", 60)


def test_each_route_has_an_answer_of_its_own() -> None:
    question = metadata_question("com.example:app")
    keys = {question.of_route(name).key for name in ("a", "b", "a@b", "@", "a%40b")}
    assert len(keys) == 5
    assert not question.of_route("a").merges


@pytest.mark.parametrize("name", ["app-1.0.jar", "app-1.0-sources.jar.asc", "app-1.0.module"])
def test_files_of_releases_last(name: str) -> None:
    question = file_question("com.example:app", f"{DIRECTORY}/{name}")
    assert (question.lasting, question.package_key, question.version_key) == (True, "com.example:app", "1.0")


def test_literal_snapshots_do_not_last_but_builds_do() -> None:
    base = "com/example/app/1.0-SNAPSHOT/app-1.0"
    literal = file_question("com.example:app", f"{base}-SNAPSHOT.jar")
    build = file_question("com.example:app", f"{base}-20240102.030405-1.jar")
    assert (literal.lasting, literal.most_ttl_s, build.lasting) == (False, 60, True)


@pytest.mark.parametrize("path", ["favicon.ico", "com/acme/app/1.0/notes.txt", "com/acme/archetype-catalog.xml"])
def test_upstreams_are_not_asked_for_other_plain_files(path: str) -> None:
    assert file_question(path.replace("/", "."), path).only_hosted
    assert not file_question("archetype-catalog.xml", "archetype-catalog.xml").only_hosted


def test_the_key_is_that_of_the_path() -> None:
    with pytest.raises(NotFound):
        file_question("com.mine:app", f"{DIRECTORY}/app-1.0.jar")
    with pytest.raises(NotFound):
        file_question("com.mine:app", "archetype-catalog.xml")
    assert file_question("archetype-catalog.xml", "archetype-catalog.xml").package_key == ""


def test_lists_of_prefixes_are_those_of_one_upstream() -> None:
    path = ".meta/prefixes.txt"
    assert file_question(path.replace("/", "."), path).of_one_route
