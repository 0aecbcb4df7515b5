"""Levels of folders, here those of Maven, are read in pages, with what is computed, and of several repositories."""

import re
from functools import partial

import msgspec
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.concurrency.fair_semaphore import QueueFull
from pkgrepo.formats.maven.listing import FOLDERS
from pkgrepo.formats.maven.paths import ArtifactFile, parse_text
from pkgrepo.gateway.folders.levels import Member, entries_of, list_level, look
from pkgrepo.gateway.folders.pages import (
    HTML_PAGE,
    JSON_PAGE,
    Cursor,
    ListingSizes,
    ListingTurns,
    render_listing,
)
from pkgrepo.http.responses import Content
from pkgrepo.model import SYSTEM, NewFile
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import files, packages
from pkgrepo.storage.catalog.server import repositories
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, ensure_version, make_blob

SUMS = ["md5", "sha1", "sha256", "sha512"]


class World:
    """A catalog with repositories, which files are put into by their paths."""

    def __init__(self):
        self.catalog = MemoryCatalog()
        self.first = self.catalog.do(add_repository)

    def another(self, name):
        def command(tx):
            return repositories.add_repository(
                tx, storage_id=self.first.storage_id, name=name, format="maven", type="Proxy", visibility="public",
                config={}, now_ms=NOW,
            )  # fmt: skip

        return self.catalog.do(command)

    def put(self, *paths, where=None, data=b"x"):
        repository = where or self.first

        def command(tx):
            info = make_blob(data)
            info = evolve(info, digests={**info.digests, "sha1": "1" * 40})
            blob = blobs.claim_blob(tx, repository.storage_id, info, NOW)
            for path in paths:
                target, package_id, version_id = parse_text(path), None, None
                if isinstance(target, ArtifactFile):
                    at = target.coordinates
                    package, _ = packages.ensure_package(
                        tx, repository.id, key=at.package_key, name=at.package_key, serial=0, now_ms=NOW
                    )
                    version, _ = ensure_version(
                        tx, package.id, key=at.version, text=at.version, sort=b"", meta={}, publisher=SYSTEM, now_ms=NOW
                    )
                    package_id, version_id = package.id, version.id
                new = NewFile(path=path, blob=blob)
                files.add_file(tx, repository.id, repository.storage_id, new, package_id, version_id, NOW)

        self.catalog.do(command)

    def package(self, key):
        self.catalog.do(packages.ensure_package, self.first.id, key=key, name=key, serial=0, now_ms=NOW)

    def find(self, path, *, hosted=None, others=()):
        """A directory in repositories, of which the hosted ones own the packages that they have."""
        hosted = [self.first] if hosted is None else hosted
        meaning = FOLDERS.meaning(self.first, path)

        def free(key):
            return not any(self.catalog.peek(packages.package_serial, each.id, key) is not None for each in hosted)

        owner = meaning.package is None or free(meaning.package)
        owns_files = meaning.files_of is None or free(meaning.files_of[0])
        every = [*(Member(each.id) for each in hosted), *(Member(each.id, owner, owns_files) for each in others)]
        return self.catalog.peek(look, FOLDERS, path, meaning, every)

    def read(self, found, cursor, limit):
        """A page of its entries, and the next position."""
        level = self.catalog.peek(list_level, FOLDERS, found, cursor, limit)
        return entries_of(FOLDERS, found, level), level.following

    async def pages(self, found, cursor, size, render):
        """A page of its entries, rendered."""
        entries, following = self.read(found, cursor, size)
        return render(entries), following

    def names(self, path, *, hosted=None, others=(), limit=3):
        """All entries of a directory, read in small pages; None if there is none."""
        found = self.find(path, hosted=hosted, others=others)
        if found is None:
            return None
        names, cursor = [], Cursor()
        while cursor is not None:
            entries, cursor = self.read(found, cursor, limit)
            names += [each.name + "/" * each.folder for each in entries]
        return names


@pytest.fixture
def world():
    return World()


def summed(name, sums=("sha1", "sha256")):
    return [name, *(f"{name}.{each}" for each in sums)]


META = summed("maven-metadata.xml", SUMS)


def test_folders_come_before_files_and_files_have_checksums(world):
    world.put("com/example/app/1.0/app-1.0.jar", "com/example/app/1.0/notes.txt", "com/example/app/1.1/app-1.1.pom")
    world.put("com/readme.txt", "top.txt")
    assert world.names("") == ["com/", *summed("top.txt")]
    assert world.names("com") == ["example/", *summed("readme.txt")]
    assert world.names("com/example") == ["app/"]
    assert world.names("com/example/app") == ["1.0/", "1.1/", *META]
    assert world.names("com/example/app/1.0") == [*summed("app-1.0.jar"), *summed("notes.txt"), *META]


@pytest.mark.parametrize(
    "path", ["co", "com/example/app/2.0", "com/example/app/1.0/app-1.0.jar", "com/example/ap", "x"]
)
def test_what_is_no_directory_is_not_listed(world, path):
    world.put("com/example/app/1.0/app-1.0.jar")
    assert world.names(path) is None


def test_the_root_of_an_empty_repository_is_empty(world):
    assert world.names("") == []


def test_a_group_with_metadata_alone_is_listed(world):
    world.package("org.example:plugins")
    assert world.names("org/example/plugins") == META


def test_metadata_that_are_plain_files_are_listed_once(world):
    world.put("org/maven-metadata.xml")
    assert world.names("org") == summed("maven-metadata.xml")


def test_a_directory_that_is_artifact_and_group_has_both(world):
    world.put("a/b/1.0/b-1.0.jar", "a/b/c/2.0/c-2.0.jar")
    assert world.names("a/b") == ["1.0/", "c/", *META]


def test_members_are_one_level_without_duplicates(world):
    cache, other = world.another("cache"), world.another("other")
    world.put("g/a/1/a-1.jar", "g/b/1/b-1.jar", "x.txt")
    world.put("g/c/1/c-1.jar", "g/d/1/d-1.jar", "x.txt", where=cache)
    world.put("g/c/2/c-2.jar", "h/c/2/c-2.jar", where=other)
    assert world.names("", others=[cache, other]) == ["g/", "h/", *summed("x.txt")]
    assert world.names("g", others=[cache, other]) == ["a/", "b/", "c/", "d/"]
    assert world.names("g/c", others=[cache, other]) == ["1/", "2/", *META]


def test_packages_of_a_hosted_member_hide_those_that_a_proxy_has_kept(world):
    cache = world.another("cache")
    world.put("g/a/1/a-1.jar")
    world.put("g/a/1/a-1.pom", "g/a/2/a-2.jar", "g/a/3/a-3.jar", "g/a/sub/4/sub-4.jar", where=cache)
    assert world.names("g/a", others=[cache], limit=1) == ["1/", "sub/", *META]
    assert world.names("g/a/1", others=[cache]) == [*summed("a-1.jar"), *META]
    assert world.names("g/a/2", others=[cache]) == []
    assert world.names("g/a/sub/4", others=[cache]) == [*summed("sub-4.jar"), *META]


@given(
    paths=st.sets(st.sampled_from([f"{a}/{b}" for a in ("a", "a.b", "a-b", "b") for b in ("x", "y", "y/z", "é")])),
    split=st.integers(0, 20),
    limit=st.integers(1, 5),
)
def test_pages_of_several_repositories_are_those_of_one(paths, split, limit):
    paths = sorted(each for each in paths if f"{each}/z" not in paths)
    alone, shared = World(), World()
    other = shared.another("other")
    alone.put(*paths)
    shared.put(*paths[:split])
    shared.put(*paths[split:], *paths[:2], where=other)
    for path in ("", "a", "a.b", "a/y"):
        assert shared.names(path, hosted=[shared.first, other], limit=limit) == alone.names(path, limit=99)


def test_a_level_is_read_without_the_files_below(world):
    world.put(*(f"g/a/{version}/a-{version}.{ending}" for version in range(40) for ending in ("jar", "pom", "module")))
    found = world.find("g/a")
    before = world.catalog.tx.statements
    entries, _ = world.read(found, Cursor(), 10)
    assert len(entries) == 10
    assert world.catalog.tx.statements - before == 10


def render(world, directory, *args, **options):
    return render_listing(directory.path, partial(world.pages, directory), *args, **options)


NAMES = ["a:b", "1.0+build", "é", "a b", "<x>&'\"", "100%", "a;b", "~x", "a#b?c", "x\\y".replace("\\", "_")]


async def test_html_has_one_link_for_each_entry_whose_address_leads_to_it():
    world = World()
    world.put(*(f"dir/{name}/f" for name in NAMES), *(f"dir/f-{name}" for name in NAMES))
    directory = world.find("dir")
    found = await render_listing(directory.path, partial(world.pages, directory), HTML_PAGE, ListingTurns())
    text = found.body.decode()
    links = re.findall(r'<a href="([^"]*)">([^<]*)</a>', text)
    assert links[0] == ("../", "../")
    from html import unescape
    from urllib.parse import unquote, urljoin

    base = "http://repo.example/dir/"
    for href, shown in links[1:]:
        path = unquote(urljoin(base, unescape(href)).removeprefix("http://repo.example/"))
        assert path == "dir/" + unescape(shown)
        assert not {"<", ">", "'", '"'} & set(href)
    assert len(links) == 1 + len(NAMES) * (1 + 3)


async def test_json_has_names_kinds_sizes_and_times(world):
    world.put("d/e/f", "d/x")
    directory = world.find("d")
    found = await render_listing(directory.path, partial(world.pages, directory), JSON_PAGE, ListingTurns())
    value = msgspec.json.decode(found.body)
    assert value["path"] == "d"
    assert [(each["name"], each["kind"], each.get("size")) for each in value["entries"]] == [
        ("e", "folder", None), ("x", "file", 1), ("x.sha1", "file", None), ("x.sha256", "file", None),
    ]  # fmt: skip


class Client:
    """A consumer that pauses its producer after each write."""

    def __init__(self):
        self.written, self.producer = [], None

    def registerProducer(self, producer, streaming):
        assert streaming
        self.producer = producer

    def unregisterProducer(self):
        self.producer = None

    def write(self, data):
        self.written.append(data)
        self.producer.pauseProducing()


@pytest.mark.parametrize("page", [HTML_PAGE, JSON_PAGE])
async def test_a_large_listing_is_sent_in_pieces_as_fast_as_the_client_reads(world, monkeypatch, page):
    from twisted.internet.defer import Deferred

    world.put(*(f"d/{n:03}/x" for n in range(50)), *(f"d/f{n:03}" for n in range(50)))
    directory = world.find("d")
    whole = await render(world, directory, page, ListingTurns())
    found = await render_listing(
        directory.path,
        partial(world.pages, directory),
        page,
        ListingTurns(),
        sizes=ListingSizes(page=7, kept=100),
    )
    assert isinstance(found.body, Content)
    assert (found.body.size, found.etag) == (len(whole.body), whole.etag)
    client = Client()
    done = Deferred.fromCoroutine(found.body.deliver(client, 0, found.body.size))
    while not done.called:
        before = len(client.written)
        client.producer.resumeProducing()
        assert len(client.written) <= before + 1
    await done
    assert b"".join(client.written) == whole.body
    assert client.producer is None


async def test_a_client_that_leaves_ends_the_reading(world, monkeypatch):
    from twisted.internet.defer import Deferred

    world.put(*(f"d/{n:03}/x" for n in range(50)))
    directory = world.find("d")
    sizes = ListingSizes(page=7, kept=100)
    found = await render_listing(
        directory.path, partial(world.pages, directory), HTML_PAGE, ListingTurns(), sizes=sizes
    )
    client = Client()
    done = Deferred.fromCoroutine(found.body.deliver(client, 0, found.body.size))
    client.producer.stopProducing()
    await done
    assert len(client.written) == 1


async def test_nothing_is_rendered_for_a_client_that_has_gone(world, monkeypatch):
    world.put(*(f"d/{n:03}/x" for n in range(50)))
    directory = world.find("d")
    before = world.catalog.tx.statements

    def gone():
        return world.catalog.tx.statements > before

    sizes = ListingSizes(page=7)
    await render_listing(
        directory.path,
        partial(world.pages, directory),
        HTML_PAGE,
        ListingTurns(),
        gone=gone,
        sizes=sizes,
    )
    assert world.catalog.tx.statements - before < 20


async def test_listings_wait_for_their_turns_and_too_many_are_refused(world):
    from twisted.internet.defer import Deferred

    world.put("d/f")
    directory = world.find("d")
    turns = ListingTurns(at_once=1, most_waiting=1)
    async with turns.whole.hold():
        waiting = Deferred.fromCoroutine(render(world, directory, HTML_PAGE, turns))
        with pytest.raises(QueueFull):
            await render(world, directory, HTML_PAGE, turns)
        assert not waiting.called
    assert b">f</a>" in (await waiting).body
