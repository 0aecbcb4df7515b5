"""
What proxies of every format keep survives the loss of the catalog: it is restored from the readable layout.

One server has a proxy of each format, and lives three times: with its upstreams, then with a catalog that was rebuilt
and without upstreams, and at last with them again.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest

from tests.server.conda.proxied.test_proxied import files, shards, shown
from tests.support.configurations import hosted, proxy
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step, wait_for
from tests.support.http_client import HttpClient
from tests.support.images import digest_of, make_image, make_index
from tests.support.npm_packages import make_tarball
from tests.support.odd_files import EMPTY_ZIP
from tests.support.proxied import PRIVATE
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, restarts
from tests.support.upstreams.conda import CondaUpstream
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import JSON, PythonUpstream
from tests.support.upstreams.rubygems import RubyUpstream
from tests.support.upstreams.server import ScriptedUpstream

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]


class Kept:
    """
    Packages of one format, kept by proxies.

    ``upstreams`` are not started yet. ``server`` is a client of the server as it runs now, and ``mirror`` of the proxy.
    """

    name: str
    upstreams: tuple[ScriptedUpstream, ...]
    server: HttpClient
    mirror: HttpClient

    def connect(self, server: ServerProcess) -> None:
        """Use the server as it runs now."""
        self.server = HttpClient(server.url, (USER, PASSWORD))
        self.mirror = HttpClient(f"{server.url}/repositories/main/{self.name}", (USER, PASSWORD))

    def sections(self) -> str:
        """Publish at the upstreams, which run now; return the sections of the proxies."""
        raise NotImplementedError

    def keep(self, server: ServerProcess, data: DataFolder) -> None:
        """Read what is to be kept, and remember how it is answered."""

    def check_layout(self, data: DataFolder) -> None:
        """Check what the readable layout shows after the first life."""

    def check_restored(self) -> None:
        """Check what is answered after the catalog was rebuilt, while the upstreams are down."""

    def check_renewed(self) -> None:
        """Check what is answered when the upstreams are there again."""


class KeptConda(Kept):
    name = "channel"
    places = ("/noarch/kept-1.0-py_0.conda", "/noarch/kept-0.9-py_0.tar.bz2", "/linux-64/native-1.0-py_0.conda")

    def __init__(self) -> None:
        self.upstream = CondaUpstream()
        self.upstreams = (self.upstream,)

    def sections(self) -> str:
        upstream = self.upstream
        package = upstream.add("kept", "1.0", depends=["other >=1"], record={"patched": True})
        old = upstream.add("kept", "0.9", ending=".tar.bz2")
        native = upstream.add("native", "1.0", subdir="linux-64", noarch=None)
        upstream.add("kept", "2.0")
        self.contents = dict(zip(self.places, (package, old, native), strict=True))
        return proxy("conda", self.name, upstream.url)

    def keep(self, server: ServerProcess, data: DataFolder) -> None:
        for place, content in self.contents.items():
            assert self.mirror.get(place).body == content
        self.before = shown(self.mirror)

    def check_restored(self) -> None:
        mirror, before = self.mirror, self.before
        kept = {file: before[file] for file in ("kept-1.0-py_0.conda", "kept-0.9-py_0.tar.bz2")}
        assert before.keys() - kept.keys() == {"kept-2.0-py_0.conda"}
        for document in ("repodata.json", "current_repodata.json"):
            assert shown(mirror, document=document) == kept
            assert shown(mirror, "linux-64", document).keys() == {"native-1.0-py_0.conda"}
        assert shards(mirror).keys() == kept.keys()
        assert files(mirror.get("/noarch/run_exports.json").json).keys() == kept.keys()
        channel = mirror.get("/channeldata.json").json
        assert (sorted(channel["packages"]), channel["subdirs"]) == (["kept", "native"], ["noarch", "linux-64"])
        for place, content in self.contents.items():
            assert mirror.get(place).body == content
        assert mirror.get("/osx-64/repodata.json").status == 503

    def check_renewed(self) -> None:
        assert shown(self.mirror) == self.before


class KeptPython(Kept):
    name = "py"

    def __init__(self) -> None:
        self.upstream = PythonUpstream()
        self.upstreams = (self.upstream,)

    def sections(self) -> str:
        upstream = self.upstream
        self.wheel, data = upstream.add("Kept.Lib", "1.0", requires=["left"], metadata=False, yanked="bad")
        sdist, source = upstream.add("Kept.Lib", "1.0", sdist=True)
        other = sdist.replace(".tar.gz", ".zip")
        upstream.serve(upstream.file_path(other), EMPTY_ZIP)
        listed = {"filename": other, "url": upstream.file_url(other), "hashes": {}, "yanked": False, "version": "1.0"}
        upstream.projects["kept-lib"].append(listed)
        upstream.add("Kept.Lib", "1.1")
        self.kept = {self.wheel: data, sdist: source, other: EMPTY_ZIP}
        return proxy("python", self.name, upstream.simple)

    def files(self) -> dict[str, Any]:
        """The files on the project's page by their names."""
        page = self.mirror.get("/simple/kept-lib/", Accept=JSON).json
        return {each["filename"]: each for each in page["files"]}

    def keep(self, server: ServerProcess, data: DataFolder) -> None:
        for name in self.kept:
            path = f"/packages/kept-lib/1.0/{name}"
            wait_for(lambda path=path: "last-modified" in self.mirror.get(path).headers, server)
            assert self.mirror.get(path).status == 200
        self.metadata = self.mirror.get(f"/packages/{self.wheel}.metadata").body
        self.before = self.files()

    def check_layout(self, data: DataFolder) -> None:
        layout = data.layout / self.name / "kept-lib" / "1.0"
        for name, body in self.kept.items():
            assert (layout / name).read_bytes() == body
        assert (layout / f"{self.wheel}.metadata").read_bytes() == self.metadata
        assert not (layout.parent / "1.1").exists()

    def check_restored(self) -> None:
        mirror, before = self.mirror, self.before
        for name, body in self.kept.items():
            assert mirror.get(f"/packages/kept-lib/1.0/{name}").body == body
        assert mirror.get(f"/packages/{self.wheel}.metadata").body == self.metadata
        assert mirror.get("/simple/kept-lib/", Accept=JSON).json["versions"] == ["1.0"]
        after = self.files()
        assert after.keys() == self.kept.keys()
        for name, body in self.kept.items():
            assert after[name]["hashes"]["sha256"] == hashlib.sha256(body).hexdigest()
            for member in ("url", "yanked", "requires-python"):
                assert after[name].get(member) == before[name].get(member)
        assert after[self.wheel]["upload-time"] == before[self.wheel]["upload-time"]
        assert after[self.wheel]["core-metadata"] == {"sha256": hashlib.sha256(self.metadata).hexdigest()}
        assert mirror.get("/packages/kept-lib/1.1/kept_lib-1.1-py3-none-any.whl").status == 503

    def check_renewed(self) -> None:
        page = self.mirror.get("/simple/kept-lib/", Accept=JSON, Cache_Control="no-cache").json
        assert page["versions"] == ["1.0", "1.1"]
        assert {file["filename"]: file["yanked"] for file in page["files"]}[self.wheel] == "bad"
        assert self.mirror.get("/pypi/kept-lib/1.0/json").json["info"]["requires_dist"] == ["left"]


class KeptGems(Kept):
    name = "gems"

    def __init__(self) -> None:
        self.upstream = RubyUpstream()
        self.upstreams = (self.upstream,)

    def sections(self) -> str:
        upstream = self.upstream
        upstream.add("left", created="2024-01-02T00:00:00Z")
        dependencies = {"left": [(">=", "1.0"), ("<", "3")]}
        self.gem = upstream.add("kept", dependencies=dependencies, created="2024-01-02T00:00:00Z")
        self.second = upstream.add("kept", "1.1.0.pre", created="2024-01-01T00:00:00Z")
        upstream.add("kept", "2.0.0")
        return proxy("ruby", self.name, upstream.url)

    def keep(self, server: ServerProcess, data: DataFolder) -> None:
        assert self.mirror.get("/gems/kept-1.1.0.pre.gem").body == self.second
        assert self.mirror.get("/gems/kept-1.0.0.gem").body == self.gem
        self.lines = self.mirror.get("/info/kept").text.splitlines()

    def check_restored(self) -> None:
        mirror, lines = self.mirror, self.lines
        info = mirror.get("/info/kept")
        # In the order of their publication, and with the requirements of the gem itself.
        assert info.text.splitlines() == ["---", lines[2], lines[1].replace("left:>= 1.0&< 3", "left:< 3&>= 1.0")]
        listed = mirror.get("/versions").text.partition("---\n")[2]
        assert listed == f"kept 1.1.0.pre,1.0.0 {hashlib.md5(info.body).hexdigest()}\n"
        assert mirror.get("/names").text == "---\nkept\n"
        assert b"kept" in gzip.decompress(mirror.get("/specs.4.8.gz").body)
        assert b"1.1.0.pre" in gzip.decompress(mirror.get("/prerelease_specs.4.8.gz").body)
        assert b"1.0.0" in gzip.decompress(mirror.get("/latest_specs.4.8.gz").body)
        assert mirror.get("/gems/kept-1.0.0.gem").body == self.gem
        assert mirror.get("/info/left").status == 503

    def check_renewed(self) -> None:
        assert self.mirror.get("/versions").body == self.upstream.versions
        assert self.mirror.get("/info/kept").body == self.upstream.info("kept")


class KeptNpm(Kept):
    name = "node"
    short = "application/vnd.npm.install-v1+json"
    theirs = {"signatures": [{"keyid": "theirs", "sig": "s"}]}

    def __init__(self) -> None:
        self.upstream = NpmUpstream()
        self.upstreams = (self.upstream,)

    def sections(self) -> str:
        options = {"dist": self.theirs, "dependencies": {"left": "^1.0.0"}, "deprecated": "use another"}
        self.tarball = self.upstream.add("@sc/kept", **options)
        self.upstream.add("@sc/kept", "1.1.0", dist=self.theirs)
        return proxy("npm", self.name, self.upstream.url)

    def keep(self, server: ServerProcess, data: DataFolder) -> None:
        assert self.mirror.get("/@sc/kept/-/kept-1.0.0.tgz").body == self.tarball
        self.before = self.mirror.get("/@sc%2fkept").json

    def check_layout(self, data: DataFolder) -> None:
        layout = data.layout / self.name / "@sc" / "kept" / "1.0.0"
        assert (layout / "kept-1.0.0.tgz").read_bytes() == self.tarball
        assert not (layout.parent / "1.1.0").exists()

    def check_restored(self) -> None:
        mirror, before = self.mirror, self.before
        assert mirror.get("/@sc/kept/-/kept-1.0.0.tgz").body == self.tarball
        document = mirror.get("/@sc%2fkept").json
        # Of the server's address the port is another one.
        tarballs = [each["versions"]["1.0.0"]["dist"].pop("tarball") for each in (before, document)]
        path = f"/repositories/main/{self.name}/@sc/kept/-/kept-1.0.0.tgz"
        assert [urlsplit(each).path for each in tarballs] == [path] * 2
        assert document["versions"] == {"1.0.0": before["versions"]["1.0.0"]}
        assert (document["dist-tags"], document["time"]["1.0.0"]) == ({"latest": "1.0.0"}, before["time"]["1.0.0"])
        short = mirror.get("/@sc%2fkept", Accept=self.short).json
        assert short["versions"]["1.0.0"]["dependencies"] == {"left": "^1.0.0"}
        assert mirror.get("/@sc/kept/-/kept-1.1.0.tgz").status == 503
        found = mirror.get("/-/v1/search?text=kept").json["objects"]
        assert [each["package"]["version"] for each in found] == ["1.0.0"]

    def check_renewed(self) -> None:
        document = self.mirror.get("/@sc%2fkept", Cache_Control="no-cache").json
        assert list(document["versions"]) == ["1.0.0", "1.1.0"]
        assert document["versions"]["1.0.0"]["dist"]["signatures"] == self.theirs["signatures"]


class KeptMaven(Kept):
    name = "java"
    directory = "/com/example/kept"

    def __init__(self) -> None:
        self.upstreams = self.first, self.second = (MavenUpstream(), MavenUpstream())

    def sections(self) -> str:
        first = self.first
        self.jar = first.deploy("com.example", "kept", "1.0")
        self.later = first.deploy("com.example", "kept", "1.10")
        first.deploy("com.example", "kept", "2.0")
        self.other = self.second.deploy("com.example", "kept", "1.9")
        self.build = first.build("com.example", "kept", "3-SNAPSHOT", "20240102.030405", 6, b"a build")
        routes = ", ".join(f'{{ url = "{each.url}", priority = 7 }}' for each in self.upstreams)
        return hosted("maven", **{self.name: f'config = {{ type = "Proxy", proxy = {{ routes = [{routes}] }} }}'})

    def versions(self, **fields: str) -> list[str]:
        """The versions that the metadata list."""
        reply = self.mirror.get(f"{self.directory}/maven-metadata.xml", **fields)
        assert reply.status == 200
        return [each.partition("<")[0] for each in reply.text.split("<version>")[1:]]

    def keep(self, server: ServerProcess, data: DataFolder) -> None:
        for each in (self.jar, self.later, self.later.replace(".jar", ".pom"), self.other, self.build):
            assert self.mirror.get(each).status == 200
        assert "2.0" in self.versions()

    def check_restored(self) -> None:
        mirror = self.mirror
        assert mirror.get(self.jar).body == b"kept 1.0"
        assert self.versions() == ["1.0", "1.9", "1.10", "3-SNAPSHOT"]
        metadata = mirror.get(f"{self.directory}/maven-metadata.xml")
        assert "<release>1.10</release>" in metadata.text
        digest = hashlib.sha1(metadata.body).hexdigest()
        assert mirror.get(f"{self.directory}/maven-metadata.xml.sha1").text == digest
        snapshot = mirror.get(f"{self.directory}/3-SNAPSHOT/maven-metadata.xml").text
        assert "<timestamp>20240102.030405</timestamp><buildNumber>6<" in "".join(snapshot.split())
        assert "<value>3-20240102.030405-6</value>" in snapshot
        assert mirror.get(self.build).body == b"a build"
        assert mirror.get("/com/example/lost/maven-metadata.xml").status == 503

    def check_renewed(self) -> None:
        assert self.versions(Cache_Control="no-cache") == ["1.0", "1.9", "1.10", "2.0", "3-SNAPSHOT"]


class KeptImages(Kept):
    name = "images"
    one, two = make_image("one"), make_image("two")

    def __init__(self) -> None:
        self.upstream = ContainerUpstream()
        self.upstreams = (self.upstream,)

    def sections(self) -> str:
        self.index = make_index([self.one, self.two])
        self.upstream.push("team/app", self.index, "1", children=(self.one, self.two))
        return proxy("docker", self.name, self.upstream.url)

    def pull(self) -> None:
        """Pull the index and one of its images, and check each byte."""
        path = f"/v2/main/{self.name}/team/app"
        for image, reference in ((self.index, "1"), (self.one, self.one.digest)):
            assert self.server.get(f"{path}/manifests/{reference}").body == image.manifest
            for blob in image.blobs:
                assert self.server.get(f"{path}/blobs/{digest_of(blob)}").body == bytes(blob)

    def keep(self, server: ServerProcess, data: DataFolder) -> None:
        self.pull()

    def check_layout(self, data: DataFolder) -> None:
        entry = json.loads((data.layout / self.name / "team/app/index.json").read_text())["manifests"][0]
        assert entry["digest"] == self.index.digest

    def check_restored(self) -> None:
        self.pull()
        warning = self.server.get(f"/v2/main/{self.name}/team/app/manifests/1").headers["warning"]
        assert warning == '110 - "stale"', "no upstream has confirmed it"


class Origins(Kept):
    """The records of the management API, with where the files came from and when."""

    name = "origins"
    paths = ("origins/@sc%2ftool/versions/1.0.0", "origins-py/demo/versions/1.0")

    def __init__(self) -> None:
        self.upstreams = self.registry, self.index = (NpmUpstream(), PythonUpstream())

    def sections(self) -> str:
        self.registry.add("@sc/tool")
        self.wheel, self.data = self.index.add("demo", "1.0")
        return proxy("npm", "origins", self.registry.url) + proxy("python", "origins-py", self.index.simple)

    def versions(self) -> list[Any]:
        """The records of the kept versions."""
        found = []
        for path in self.paths:
            record = self.server.get(f"/api/package/main%2F{path}").json
            for file in record["files"]:
                file.pop("url")  # the port of the server
            found.append(record)
        return found

    def keep(self, server: ServerProcess, data: DataFolder) -> None:
        assert self.mirror.get("/@sc%2ftool").status == 200
        assert self.mirror.get("/@sc/tool/-/tool-1.0.0.tgz").body == make_tarball("@sc/tool", "1.0.0")
        page = "/repositories/main/origins-py/simple/demo/"
        [file] = self.server.get(page, Accept=JSON).json["files"]
        assert self.server.get(urlsplit(urljoin(page, file["url"])).path).body == self.data
        wait_for(
            lambda: all(self.server.get(f"/api/package/main%2F{each}").status == 200 for each in self.paths), server
        )
        self.before = self.versions()
        assert [file["upstream"]["route"] for each in self.before for file in each["files"] if file["upstream"]]

    def check_layout(self, data: DataFolder) -> None:
        found = data.shown()
        assert {"origins/@sc/tool/1.0.0/tool-1.0.0.tgz", "origins/@sc/tool/1.0.0/tool-1.0.0.json"} <= found
        assert any(each.startswith("origins-py/demo/") and each.endswith(self.wheel) for each in found)

    def check_restored(self) -> None:
        assert self.versions() == self.before
        assert self.mirror.get("/@sc/tool/-/tool-1.0.0.tgz").body == make_tarball("@sc/tool", "1.0.0")
        listed = self.server.get("/api/repository/main%2Forigins/packages").json["items"]
        [route] = self.server.get("/api/repository/main%2Forigins/upstream").json["routes"]
        found = [(each["name"], each["source"], each["route"]) for each in listed]
        assert found == [("@sc/tool", "cached", route["name"])]


class KeptRaw(Kept):
    """Files at the top of a tree and deeper, which change in a hosted repository, and one that a proxy keeps."""

    name = "tree"
    lasts = "/tool/1.2/deep/a-1.2.bin"
    places = {"/top.txt": b"top", "/tool/notes.txt": b"notes", lasts: b"deep"}

    def __init__(self) -> None:
        self.upstream = ScriptedUpstream(self.places)
        self.upstreams = (self.upstream,)

    def connect(self, server: ServerProcess) -> None:
        super().connect(server)
        self.own = self.server.below("repositories/main/own-tree")

    def sections(self) -> str:
        return proxy("raw", self.name, self.upstream.url) + hosted("raw", "own-tree")

    def keep(self, server: ServerProcess, data: DataFolder) -> None:
        for place, body in self.places.items():
            assert self.mirror.get(place).body == body
            assert self.own.put(place, b"old").status == 201
            assert self.own.put(place, body).status == 200
            assert self.own.put(f"{place}.gone", b"old").status == 201
        wait_for(lambda: all((data.layout / f"own-tree{place}.gone").exists() for place in self.places), server)
        for place in self.places:
            assert self.own.put(f"{place}.gone", b"new").status == 200
            assert self.own.delete(f"{place}.gone").status == 204

    def check_layout(self, data: DataFolder) -> None:
        shown = {each for each in data.shown() if each.startswith(("tree/", "own-tree/")) and "/." not in each}
        assert shown == {f"tree{self.lasts}", *(f"own-tree{place}" for place in self.places)}
        assert all((data.layout / f"own-tree{place}").read_bytes() == body for place, body in self.places.items())

    def check_restored(self) -> None:
        assert self.mirror.get(self.lasts).body == b"deep"
        for place, body in self.places.items():
            assert self.own.get(place).body == body
            assert self.own.get(f"{place}.gone").status == 404


class Lives:
    """The lives of the server, each of which begins when the one before has ended."""

    def __init__(self, stack: ExitStack, factory: pytest.TempPathFactory) -> None:
        folder = factory.mktemp("lost")
        self.data = DataFolder(folder / "data")
        self.every = [
            each() for each in (KeptConda, KeptPython, KeptGems, KeptNpm, KeptMaven, KeptImages, KeptRaw, Origins)
        ]
        for each in self.upstreams():
            stack.enter_context(each)
        sections = "".join(each.sections() for each in self.every)
        self._start = stack.enter_context(restarts(folder, PRIVATE + sections))
        self._server = self._begin()
        for each in self.every:
            each.keep(self._server, self.data)
        stop_in_step(self._server, self.data)
        self.life = "kept"

    def upstreams(self) -> list[ScriptedUpstream]:
        return [upstream for each in self.every for upstream in each.upstreams]

    def restore(self) -> None:
        """Rebuild the catalog; the upstreams are down then."""
        if self.life != "kept":
            return
        self.life = "restored"
        for command in (["verify"], ["verify", "--repair"]):
            done = pkgrepo(self.data, *command)
            assert (done.returncode, "0 differences in the readable layout" in done.stdout) == (0, True), done
        self.data.delete_catalog()
        done = pkgrepo(self.data, "reindex")
        assert (done.returncode, "2 images and 1 tags" in done.stdout) == (0, True), done
        self._server = self._begin()
        for upstream in self.upstreams():
            upstream.stop()

    def renew(self) -> None:
        """Begin anew: a server would not ask the upstreams again for a while."""
        self.restore()
        if self.life != "restored":
            return
        self.life = "renewed"
        stop_in_step(self._server, self.data)
        for upstream in self.upstreams():
            upstream.start()
        self._begin()

    def _begin(self) -> ServerProcess:
        server = self._start()
        for each in self.every:
            each.connect(server)
        return server


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    with ExitStack() as stack:
        yield Lives(stack, tmp_path_factory)


KINDS = ("channel", "py", "gems", "node", "java", "images", "tree", "origins")


def kept(lives: Lives, kind: str) -> Kept:
    return next(each for each in lives.every if each.name == kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_layout_shows_what_is_kept(lives: Lives, kind: str) -> None:
    kept(lives, kind).check_layout(lives.data)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_survives_a_lost_catalog(lives: Lives, kind: str) -> None:
    lives.restore()
    kept(lives, kind).check_restored()
    assert lives.data.damaged() == []


@pytest.mark.parametrize("kind", KINDS)
def test_upstreams_are_asked_again_after_a_restoration(lives: Lives, kind: str) -> None:
    lives.renew()
    kept(lives, kind).check_renewed()
