"""A repository follows the one of another server: documents, files, yanks and removals, and after a time apart."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.server.replication.conftest import Sites, wait_for
from tests.support.format_cases import CASES
from tests.support.images import make_image, make_index, make_oci_archive
from tests.support.npm_packages import make_tarball
from tests.support.python_packages import make_wheel

pytestmark = pytest.mark.server

JSON = "application/vnd.pypi.simple.v1+json"


def paths(sites: Sites, name: str, package: str = "demo") -> list[str]:
    """The files here of all versions of a package."""
    package = quote(package, safe="")
    reply = sites.here.client.get(f"/api/package/main%2F{name}/{package}/versions?limit=1000")
    if reply.status != 200:
        return []
    versions = [each["version"] for each in reply.json["items"]]
    of = (f"/api/package/main%2F{name}/{package}/versions/{each}/files" for each in versions)
    replies = [sites.here.client.get(each) for each in of]  # a version may go meanwhile
    return sorted(file["path"] for each in replies if each.status == 200 for file in each.json["items"])


def image(version: str) -> bytes:
    children = [make_image(version), make_image(version, architecture="arm64")]
    return make_oci_archive({version: make_index(children)}, children)


def publish(sites: Sites, format: str, version: str) -> None:
    if format == "docker":
        sites.there.upload(format, "demo.tar", image(version), image="demo", tag=version)
    else:
        filename, data, fields = CASES[format].sent("demo", version)
        sites.there.upload(format, filename, data, **fields)


# format -> the path of a document, header fields, the key of the package, the number of files of a version
DOCUMENTS: dict[str, tuple[str, dict[str, str], str, int]] = {
    name: (f"/repositories/main/{name}{case.document_of('demo')}", {}, case.name, 1) for name, case in CASES.items()
} | {
    "python": ("/repositories/main/python/simple/demo/", {"Accept": JSON}, "demo", 2),
    "docker": ("/v2/main/docker/demo/tags/list", {}, "demo", 6),
}


@pytest.mark.parametrize("format", DOCUMENTS)
def test_what_is_published_is_here_at_once_and_what_is_removed_goes(sites: Sites, format: str) -> None:
    path, fields, key, count = DOCUMENTS[format]
    publish_first(sites, format)
    assert b"1.0.0" in sites.here.client.get(path, **fields).body
    publish(sites, format, "1.1.0")
    wait_for(lambda: b"1.1.0" in sites.here.client.get(path, **fields).body)
    wait_for(
        lambda: len([each for each in paths(sites, format, key) if "1.1.0" in each or format == "docker"]) >= count
    )
    first = CASES[format].spelled("1.0.0") if format in CASES else "1.0.0"
    sites.there.api("DELETE", f"/package/main%2F{format}/{quote(key, safe='')}/versions/{first}")
    wait_for(lambda: b"1.0.0" not in sites.here.client.get(path, **fields).body)
    gone = wait_for(lambda: sites.settled(format))
    assert gone["error"] == ""
    assert not [each for each in paths(sites, format, key) if "1.0.0" in each]


def publish_first(sites: Sites, format: str) -> None:
    sites.pair(format, format, files=["*"])
    publish(sites, format, "1.0.0")
    key = DOCUMENTS[format][2]
    wait_for(lambda: paths(sites, format, key))
    sites.settled(format)


def test_a_yank_is_here_at_once(sites: Sites) -> None:
    sites.pair("yanks", "python", files=["*"])
    sites.there.upload("yanks", *make_wheel("demo", "1.0"))
    page = "/repositories/main/yanks/simple/demo/"
    wait_for(lambda: paths(sites, "yanks"))
    sites.there.api("POST", "/package/main%2Fyanks/demo/versions/1.0/yank", {"reason": "it loses data"})
    wait_for(lambda: b"it loses data" in sites.here.get(page, Accept=JSON))
    state: Any = wait_for(
        lambda: (
            (found := sites.here.api("GET", "/package/main%2Fyanks/demo/versions/1.0"))["state"] == "yanked" and found
        )
    )
    assert state["reason"] == "it loses data"


def test_only_what_is_wanted_is_fetched(sites: Sites) -> None:
    sites.pair("some", "python", files=["acme-*", "*.tar.gz"])
    for name in ("acme-tool", "other"):
        sites.there.upload("some", *make_wheel(name, "1.0"))
    wait_for(lambda: paths(sites, "some", "acme-tool"))
    sites.settled("some")
    assert paths(sites, "some", "other") == []
    assert b"other" in sites.here.get("/repositories/main/some/simple/other/")  # clients get it as from any proxy


def test_it_goes_on_after_a_time_apart_and_serves_while_the_other_is_away(sites: Sites) -> None:
    sites.pair("apart", "npm", files=["*"])
    sites.there.upload("apart", "demo-1.0.0.tgz", make_tarball("demo", "1.0.0"))
    wait_for(lambda: paths(sites, "apart"))
    sites.here.process.kill()
    for number in range(5):
        sites.there.upload("apart", f"demo-2.{number}.0.tgz", make_tarball("demo", f"2.{number}.0"))
    sites.there.api("DELETE", "/package/main%2Fapart/demo/versions/1.0.0")
    sites.here.again()
    wait_for(lambda: len(paths(sites, "apart")) == 5)
    done = sites.settled("apart")
    assert (done["state"], done["compared_because"]) == ("following", "it is followed for the first time")
    port = sites.there.process.url
    sites.there.process.stop()
    for path in paths(sites, "apart"):
        assert sites.here.get(f"/repositories/main/apart/{path}")
    assert b"2.4.0" in sites.here.get("/repositories/main/apart/demo")
    failing = wait_for(lambda: (found := sites.status("apart"))["state"] == "failing" and found)
    assert "there" in failing["error"]
    assert port not in failing["error"]
    metrics = sites.here.client.get("/metrics").body
    assert b'pkgrepo_replication_up{repo="main/apart"} 0.0' in metrics
