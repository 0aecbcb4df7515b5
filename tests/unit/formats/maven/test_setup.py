"""Setup snippets of Java's build tools: well-formed, with the repository's address and the realm of its refusals."""

import re
import xml.etree.ElementTree as ET

import pytest

from pkgrepo.formats.maven.refusals import REALM as CHALLENGE
from pkgrepo.formats.maven.setup import REALM, snippets

URL = "https://packages.example:8443/prefix/repositories/main/mvn"


def by_title(entries, title):
    return next(entry["text"] for entry in entries if entry["title"] == title)


def test_every_tool_resolves_and_publishes():
    read = {entry["client"] for entry in snippets(URL, publishes=False)}
    assert read == {"maven", "gradle", "sbt", "ivy", "mill"}
    assert {entry["client"] for entry in snippets(URL, publishes=True)} == read | {"curl"}


def test_nothing_is_published_to_a_proxy():
    for entry in snippets(URL, publishes=False):
        assert not re.search("publish|deploy|distribution|curl", entry["text"].lower())


@pytest.mark.parametrize("url", [URL, "http://127.0.0.1:8081/repositories/main/mvn"])
def test_snippets_are_complete(url):
    for entry in snippets(url, publishes=True):
        assert set(entry) == {"client", "title", "file", "language", "text"}
        assert entry["text"].endswith("\n")
        assert "{insecure}" not in entry["text"]
        assert not re.search(r"\{(id|url|host|realm)\}", entry["text"])
        if entry["file"].endswith("gradle.properties"):
            continue
        assert url in entry["text"]
        if entry["language"] == "xml":
            ET.fromstring(f"<root>{entry['text']}</root>")
        for opening, closing in ("{}", "()"):
            assert entry["text"].count(opening) == entry["text"].count(closing)


def test_an_address_without_tls_is_allowed_where_tools_refuse_it():
    for url, allowed in ((URL, False), ("http://repo.example/repositories/main/mvn", True)):
        entries = snippets(url, publishes=True)
        for title in ("Gradle (Groovy)", "Publish with Gradle (Groovy)"):
            assert ("\n" + " " * 8 in by_title(entries, title)) is True
            assert ("    allowInsecureProtocol = true" in by_title(entries, title)) is allowed
        for title in ("Gradle (Kotlin)", "Publish with Gradle (Kotlin)"):
            assert ("    isAllowInsecureProtocol = true" in by_title(entries, title)) is allowed
        for title in ("Resolve with sbt", "Publish with sbt"):
            assert (".withAllowInsecureProtocol(true)" in by_title(entries, title)) is allowed


def test_credentials_are_found_by_realm_and_host():
    assert f'Basic realm="{REALM}"'.encode() == CHALLENGE
    entries = snippets(URL, publishes=True)
    for title in ("Resolve with sbt", "Publish with sbt"):
        assert 'Credentials("pkgrepo", "packages.example", ' in by_title(entries, title)
    for title in ("Resolve with Ivy", "Publish with Ivy"):
        assert 'host="packages.example" realm="pkgrepo"' in by_title(entries, title)
    settings = ET.fromstring(by_title(entries, "Credentials and repository"))
    ids = {settings.findtext(path) for path in ("servers/server/id", ".//repository/id", ".//pluginRepository/id")}
    assert ids == {"pkgrepo"}
