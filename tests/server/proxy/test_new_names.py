"""First publishes of names through virtual repositories, in every format, where an upstream has the name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

import pytest

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from tests.support.configurations import hosted, proxy, virtual
from tests.support.container_clients import ADMIN
from tests.support.format_cases import CASES
from tests.support.format_cases.case import Case
from tests.support.http_client import HttpClient, Reply
from tests.support.images import digest_of, make_image
from tests.support.maven_bundles import WAIT, artifact, make_zip
from tests.support.server_process import ServerProcess, running

pytestmark = pytest.mark.server

Publish = Callable[[HttpClient, str, str, str], Reply]


def publishing(case: Case) -> Publish:
    """How version 1.N.0 of a package is published; the response is the first refusal, or else the first one."""

    def publish(wire: HttpClient, repository: str, name: str, version: str) -> Reply:
        replies = case.replies(wire.below(f"repositories/main/{repository}"), name, f"1.{version}.0")
        return next((each for each in replies if each.status >= 300), replies[0])

    return publish


def publish_image(wire: HttpClient, repository: str, name: str, version: str) -> Reply:
    image = make_image(f"{repository} {name} {version}")
    for blob in image.blobs:
        wire.post(f"/v2/main/{repository}/{name}/blobs/uploads/?digest={digest_of(blob)}", bytes(blob))
    return wire.put(f"/v2/main/{repository}/{name}/manifests/{version}", image.manifest, Content_Type=image.media_type)


FORMATS: Final[dict[str, Publish]] = {
    **{name: publishing(case) for name, case in CASES.items()},
    "docker": publish_image,
}


MERGED: Final = [  # formats that merge the versions of names
    name for name, each in make_formats(Config()).items() if "merge_names" in str(each.configurations.schema())
]
MERGING: Final = (
    '{ merge_names = ["forked", "com.example:forked", "example.com/Acme/forked"], refuse_upstream_names = true }'
)


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
    case, publish = CASES[format_], FORMATS[format_]
    every = f"/repositories/main/{format_}-merged"
    forked = publish(wire, f"{format_}-merged", "forked", "2")
    assert (forked.status < 300, forked.headers.get("warning")) == (True, None), "nothing is hidden"
    assert publish(wire, f"{format_}-own", "hidden", "2").status < 300
    for name, expected in (("forked", [200, 200]), ("hidden", [404, 200])):
        listed = wire.get(f"{every}{case.document_of(name)}").body
        for version, status in zip("12", expected, strict=True):
            assert wire.get(f"{every}{case.file_of(name, f'1.{version}.0')}").status == status, (name, version)
            assert (case.listing(name, f"1.{version}.0") in listed) == (status == 200), listed
    explained = wire.get(f"/api/explain?repository=main/{format_}-merged&package={case.named('forked')}").json
    assert [each["step"] for each in explained["steps"]][:1] == ["merged"]
    assert explained["sentence"] == f"served by main/{format_}-own and main/{format_}-mirror"
    assert wire.delete(f"/api/package/main%2F{format_}-own/{quote(case.named('forked'), safe='')}").status in (200, 204)
    listed = wire.get(f"{every}{case.document_of('forked')}").body
    assert [case.listing("forked", f"1.{each}.0") in listed for each in "12"] == [True, False]
    assert wire.get(f"{every}{case.file_of('forked', '1.1.0')}").status == 200


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
