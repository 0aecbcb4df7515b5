"""First publishes of names through virtual repositories, in every format, where an upstream has the name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.support.conda_packages import make_conda
from tests.support.configurations import hosted, proxy, virtual
from tests.support.container_clients import ADMIN
from tests.support.gems import make_gem
from tests.support.http_client import HttpClient, Reply
from tests.support.images import digest_of, make_image
from tests.support.maven_bundles import WAIT, artifact, make_zip
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess, running

pytestmark = pytest.mark.server

Publish = Callable[[HttpClient, str, str, str], Reply]


def publish_npm(wire: HttpClient, repository: str, name: str, version: str) -> Reply:
    body = make_publish(name, f"{version}.0.0")
    return wire.put(f"/repositories/main/{repository}/{name}", body, Content_Type="application/json")


def publish_python(wire: HttpClient, repository: str, name: str, version: str) -> Reply:
    file, data = make_wheel(name, version)
    return wire.put(f"/repositories/main/{repository}/{name}/{version}/{file}", data)


def publish_gem(wire: HttpClient, repository: str, name: str, version: str) -> Reply:
    return wire.post(f"/repositories/main/{repository}/api/v1/gems", make_gem(name, version))


def publish_maven(wire: HttpClient, repository: str, name: str, version: str) -> Reply:
    return wire.put(f"/repositories/main/{repository}/com/example/{name}/{version}/{name}-{version}.jar", b"PK\x03\x04")


def publish_conda(wire: HttpClient, repository: str, name: str, version: str) -> Reply:
    return wire.put(f"/repositories/main/{repository}/noarch/{name}-{version}-py_0.conda", make_conda(name, version))


def publish_image(wire: HttpClient, repository: str, name: str, version: str) -> Reply:
    image = make_image(f"{repository} {name} {version}")
    for blob in image.blobs:
        wire.post(f"/v2/main/{repository}/{name}/blobs/uploads/?digest={digest_of(blob)}", bytes(blob))
    return wire.put(f"/v2/main/{repository}/{name}/manifests/{version}", image.manifest, Content_Type=image.media_type)


FORMATS: Final[dict[str, Publish]] = {
    "npm": publish_npm,
    "python": publish_python,
    "ruby": publish_gem,
    "maven": publish_maven,
    "conda": publish_conda,
    "docker": publish_image,
}


MERGED: Final = {  # what lists the versions of a name, and a file of version N of it
    "npm": ("{0}", "{0}/-/{0}-{1}.0.0.tgz"),
    "python": ("simple/{0}/", "{0}/{1}/{0}-{1}-py3-none-any.whl"),
    "maven": ("com/example/{0}/maven-metadata.xml", "com/example/{0}/{1}/{0}-{1}.jar"),
}
MERGING: Final = '{ merge_names = ["forked", "com.example:forked"], refuse_upstream_names = true }'


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that has some packages in each format."""
    with running(tmp_path_factory.mktemp("origin"), "".join(hosted(each, each) for each in FORMATS)) as process:
        for format_, publish in FORMATS.items():
            for name in ("taken", "forked", "hidden"):
                assert publish(HttpClient(process.url, ADMIN), format_, name, "1").status < 300
        yield process


@pytest.fixture(scope="module")
def wire(origin: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    """A server with a virtual repository in front of it that warns, and one that refuses, for each format."""
    text = 'proxy.allow_private = ["127.0.0.1"]\n'
    for format_ in FORMATS:
        there = f"{origin.url}/{'v2' if format_ == 'docker' else 'repositories'}/main/{format_}"
        text += hosted(format_, f"{format_}-own", f"{format_}-safe") + proxy(format_, f"{format_}-mirror", there)
        text += proxy(format_, f"{format_}-dead", "http://127.0.0.1:9/")
        for name, own, upstream, policy in (
            ("all", "own", "mirror", "{}"),
            ("closed", "safe", "mirror", "{ refuse_upstream_names = true }"),
            ("reserving", "safe", "mirror", '{ refuse_upstream_names = true, reserved_names = ["*taken"] }'),
            ("dark", "own", "dead", "{}"),
            ("blind", "safe", "dead", "{ refuse_upstream_names = true }"),
            *((("merged", "own", "mirror", MERGING),) if format_ in MERGED else ()),
        ):
            members = f"main/{format_}-{own}", f"main/{format_}-{upstream}"
            text += virtual(format_, f"{format_}-{name}", *members, publish_to=members[0], policy=policy)
    with running(tmp_path_factory.mktemp("server"), text) as process:
        yield HttpClient(process.url, ADMIN)


@pytest.mark.parametrize("format_", FORMATS)
def test_the_first_publish_of_a_name_that_an_upstream_has_says_so(wire: HttpClient, format_: str) -> None:
    publish = FORMATS[format_]
    first = publish(wire, f"{format_}-all", "taken", "2")
    assert first.status < 300, first.text
    assert f"an upstream of main/{format_}-all has " in first.headers["warning"]
    if format_ == "npm":
        assert "has 'taken', too" in first.headers["npm-notice"]
    if format_ == "ruby":
        assert first.text.splitlines()[1].startswith("an upstream of main/ruby-all has 'taken', too")
    for name, version in (("taken", "3"), ("other", "1")):
        later = publish(wire, f"{format_}-all", name, version)
        assert (later.status < 300, later.headers.get("warning")) == (True, None)
    unknown = publish(wire, f"{format_}-dark", "unknown", "1")
    assert (unknown.status < 300, unknown.headers.get("warning")) == (True, None)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_name_that_an_upstream_has_is_refused(wire: HttpClient, format_: str) -> None:
    publish = FORMATS[format_]
    refused = publish(wire, f"{format_}-closed", "taken", "2")
    assert (refused.status, "policy.refuse_upstream_names" in refused.text) == (403, True), refused.text
    assert publish(wire, f"{format_}-closed", "free", "1").status < 300
    assert publish(wire, f"{format_}-blind", "unasked", "1").status in (502, 503), "that is not known"
    assert publish(wire, f"{format_}-blind", "free", "2").status < 300, "the name is ours"
    assert publish(wire, f"{format_}-reserving", "taken", "3").status < 300


@pytest.mark.parametrize("format_", MERGED)
def test_versions_of_a_fork_are_served_beside_those_of_the_upstream(wire: HttpClient, format_: str) -> None:
    listing, file = MERGED[format_]
    publish, every = FORMATS[format_], f"/repositories/main/{format_}-merged"
    forked = publish(wire, f"{format_}-merged", "forked", "2")
    assert (forked.status < 300, forked.headers.get("warning")) == (True, None), "nothing is hidden"
    assert publish(wire, f"{format_}-own", "hidden", "2").status < 300
    for name, expected in (("forked", [200, 200]), ("hidden", [404, 200])):
        listed = wire.get(f"{every}/{listing.format(name)}").text
        for version, status in zip("12", expected, strict=True):
            assert wire.get(f"{every}/{file.format(name, version)}").status == status, (name, version)
            assert (shown(format_, name, version) in listed) == (status == 200), listed
    explained = wire.get(f"/api/explain?repository=main/{format_}-merged&package={named(format_, 'forked')}").json
    assert [each["step"] for each in explained["steps"]][:1] == ["merged"]
    assert explained["sentence"] == f"served by main/{format_}-own and main/{format_}-mirror"
    assert wire.delete(f"/api/package/main%2F{format_}-own/{named(format_, 'forked')}").status in (200, 204)
    listed = wire.get(f"{every}/{listing.format('forked')}").text
    assert [shown(format_, "forked", each) in listed for each in "12"] == [True, False]
    assert wire.get(f"{every}/{file.format('forked', '1')}").status == 200


def named(format_: str, name: str) -> str:
    return f"com.example:{name}" if format_ == "maven" else name


def shown(format_: str, name: str, version: str) -> str:
    """The text of a version in a list."""
    return {
        "npm": f'"version":"{version}.0.0"',
        "python": f"{name}-{version}-py3",
        "maven": f"<version>{version}</version>",
    }[format_]


def test_a_bundle_with_a_name_that_an_upstream_has_is_refused(wire: HttpClient) -> None:
    for name, status, state in (("hidden", 403, "FAILED"), ("bundled", 201, "PUBLISHED")):
        members = artifact("com.example", name, "5")
        body = make_zip(members)
        kind = {"Content-Type": "application/zip", "Accept": "application/json"}
        reply = wire.ask("POST", f"/repositories/main/maven-closed{WAIT}", body, kind)
        assert (reply.status, reply.json["state"]) == (status, state), reply.text
        assert ("policy.refuse_upstream_names" in reply.text) == (status == 403)
        jar = next(iter(members))
        assert (wire.get(f"/repositories/main/maven-safe/{jar}").status == 200) == (status == 201)
