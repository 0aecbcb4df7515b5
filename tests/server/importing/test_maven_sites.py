"""Maven repositories are taken in by their addresses: with listings, and with nothing but metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.http_client import HttpClient
from tests.support.imports import counts, static, stub, take, write
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import running

pytestmark = pytest.mark.server

POM = b"<project><artifactId>app</artifactId><licenses><license><name>MIT</name></license></licenses></project>"
METADATA = b"""<metadata><groupId>com.example</groupId><artifactId>app</artifactId><versioning><release>1.0</release>
<versions><version>1.0</version></versions></versioning></metadata>"""
FILES = {
    "com/example/app/1.0/app-1.0.pom": POM,
    "com/example/app/1.0/app-1.0.jar": b"jar" * 1000,
    "com/example/app/1.0/app-1.0-sources.jar": b"sources",
    "com/example/c++ lib/2.0/c++ lib-2.0.jar": b"name with a blank",
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sums = {f"{path}.sha1": hashlib.sha1(data).hexdigest().encode() for path, data in FILES.items()}
    metadata = {"com/example/app/maven-metadata.xml": METADATA}
    return write(tmp_path_factory.mktemp("source"), {**FILES, **sums, **metadata})


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    settings = 'proxy.allow_private = ["127.0.0.1"]\n' + hosted("maven", "listed", "named", "renamed", "wrong")
    with running(tmp_path_factory.mktemp("server"), settings) as started:
        yield HttpClient(started.url, (USER, PASSWORD))


def test_a_site_with_listings_is_taken_in_once(client, source) -> None:
    with static(source) as url:
        assert counts(take(client, "maven", url, "main/listed")) == (4, 0, 0)
        again = take(client, "maven", url, "main/listed")
        assert (counts(again), again["unchanged"]) == ((0, 0, 0), 3)
        assert counts(take(client, "maven", url, "main/listed", again=True)) == (0, 4, 0)
    record = client.get("/api/package/main%2Flisted/com.example:app/versions/1.0").json
    assert (record["license"], record["published_at"][:10]) == ("MIT", "2014-05-13")
    assert client.get("/repositories/main/listed/com/example/app/1.0/app-1.0.jar").body == b"jar" * 1000


def test_a_site_without_listings_is_taken_in_by_its_metadata(client, source) -> None:
    with static(source, lists=False) as url:
        assert counts(take(client, "maven", url, "main/named", names=["com.example:app"])) == (3, 0, 0)
        assert counts(take(client, "maven", url, "main/named", names=["com.example:app"])) == (0, 0, 0)


def test_listings_may_have_the_address_of_the_settings_of_the_site(client) -> None:
    """As those of Nexus 2 behind another name; links to other pages are none of the listing."""
    base = "/nexus/content/repositories/rel"

    def page(path: str, *names: str) -> bytes:
        links = "".join(f'<a href="https://repo.corp.example{base}/{path}{name}">{name}</a>' for name in names)
        return f'<html><a href="../">Parent</a>{links}<a href="https://repo.corp.example/help">Help</a></html>'.encode()

    pages = {"": ["g/"], "g/": ["a/"], "g/a/": ["1/"], "g/a/1/": ["a-1.jar"]}
    answers = {f"{base}/{path}": page(path, *names) for path, names in pages.items()}
    with stub({**answers, f"{base}/g/a/1/a-1.jar": b"jar"}) as url:
        assert counts(take(client, "maven", f"{url}{base}", "main/renamed")) == (1, 0, 0)


def test_a_version_of_which_a_file_has_another_checksum_is_left_out_until_it_is_right(client, source, tmp_path) -> None:
    write(tmp_path, {"g/a/1/a-1.jar": b"damaged", "g/a/1/a-1.jar.sha1": b"0" * 40, "g/a/1/a-1.pom": b"<project/>"})
    with static(tmp_path) as url:
        result = take(client, "maven", url, "main/wrong")
        assert counts(result) == (0, 0, 2)
        assert [each["item"] for each in result["left_out"]] == ["g/a/1/a-1.jar", "g/a/1/a-1.pom"]
        write(tmp_path, {"g/a/1/a-1.jar.sha1": hashlib.sha1(b"damaged").hexdigest().encode()})
        assert counts(take(client, "maven", url, "main/wrong")) == (2, 0, 0)
