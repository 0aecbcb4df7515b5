"""Virtual channels: records of several members, of which the right one serves each name."""

from __future__ import annotations

import pytest

from tests.server.conda.proxied.test_proxied import shards, shown
from tests.support.conda_packages import make_conda
from tests.support.upstreams.faults import failing

pytestmark = pytest.mark.server


def named(found, *names):
    """The files of packages with these names."""
    return {each for each in found if each.rsplit("-", 2)[0] in names}


def test_hosted_names_hide_those_of_upstreams(at, upstream):
    upstream.add("secret", "99.0")
    upstream.add("public")
    every = at("all")
    assert every.put("/noarch/secret-1.0-py_0.conda", make_conda("secret")).status == 201
    for find in (shown, shards):
        assert named(find(every), "secret", "public") == {"secret-1.0-py_0.conda", "public-1.0-py_0.conda"}
    assert every.get("/noarch/secret-99.0-py_0.conda").status == 404
    assert every.get("/noarch/secret-1.0-py_0.conda").status == 200
    assert every.get("/noarch/public-1.0-py_0.conda").status == 200
    assert at("own").get("/noarch/secret-1.0-py_0.conda").status == 200


def test_an_upload_is_in_the_next_answer(at, upstream):
    upstream.add("beside")
    every = at("all")
    before = every.get("/noarch/repodata.json").headers["etag"]
    assert every.put("/noarch/uploaded-1.0-py_0.conda", make_conda("uploaded")).status == 201
    assert every.get("/noarch/repodata.json", If_None_Match=before).status == 200
    for find in (shown, shards):
        assert named(find(every), "uploaded", "beside") == {"uploaded-1.0-py_0.conda", "beside-1.0-py_0.conda"}


def test_folders_of_a_package_in_two_hosted_members_are_joined(at, api):
    for name, config in (
        ("elsewhere", {"type": "Hosted"}),
        ("halves", {"type": "Virtual", "members": ["main/own", "main/elsewhere"]}),
    ):
        body = {"name": name, "storage": "main", "format": "conda", "visibility": "public", "config": config}
        assert api.post_json("/repository", body).status == 201
    for repository, subdir in (("own", "noarch"), ("elsewhere", "linux-64")):
        package = make_conda("halved", subdir=subdir, **({"noarch": "python"} if subdir == "noarch" else {}))
        assert at(repository).put(f"/{subdir}/halved-1.0-py_0.conda", package).status == 201
    halves = at("halves")
    assert halves.get("/channeldata.json").json["packages"]["halved"]["subdirs"] == ["linux-64", "noarch"]
    for subdir in ("noarch", "linux-64"):
        assert "halved-1.0-py_0.conda" in halves.get(f"/{subdir}/repodata.json").json["packages.conda"]
        assert halves.get(f"/{subdir}/halved-1.0-py_0.conda").status == 200


def test_names_of_a_member_that_is_off_and_removed_ones_are_asked_of_nobody(at, api, upstream):
    upstream.add("hidden", "9.0")
    upstream.add("retired", "9.0")
    for name in ("hidden", "retired"):
        assert at("away").put(f"/noarch/{name}-1.0-py_0.conda", make_conda(name)).status == 201
    assert api.delete("/package/main%2Faway/retired").status in (200, 204)
    guarded = at("guarded")
    assert named(shown(guarded), "hidden", "retired") == {"hidden-1.0-py_0.conda"}
    away = api.get("/repository/main%2Faway").json
    assert api.post_json("/repository/main%2Faway", {"active": False}, method="PATCH").status == 200, away
    assert named(shown(guarded), "hidden", "retired") == set()
    for name in ("hidden", "retired"):
        assert guarded.get(f"/noarch/{name}-9.0-py_0.conda").status in (403, 404, 503)
    assert upstream.count("/noarch/hidden-9.0-py_0.conda") == 0
    assert api.post_json("/repository/main%2Faway", {"active": True}, method="PATCH").status == 200


@pytest.mark.parametrize(
    ("proxy", "expected"),
    [("both", {"twice-1.0-py_0.conda"}), ("merged", {"twice-1.0-py_0.conda", "twice-2.0-py_0.conda"})],
    ids=["first", "merge"],
)
def test_a_name_of_several_upstreams_is_that_of_the_first_or_of_all(at, upstream, second, proxy, expected):
    upstream.add("twice", "1.0", license="first")
    second.add("twice", "1.0", license="second")
    data = second.add("twice", "2.0")
    second.add("once")
    channel = at(proxy)
    for find in (shown, shards):
        found = find(channel)
        assert named(found, "twice", "once") == {*expected, "once-1.0-py_0.conda"}
        assert found["twice-1.0-py_0.conda"]["license"] == "first"
    newer = channel.get("/noarch/twice-2.0-py_0.conda")
    assert (newer.status, newer.body == data) == ((200, True) if len(expected) > 1 else (404, False))
    assert channel.get("/noarch/once-1.0-py_0.conda").status == 200


def test_reserved_names_are_not_shown(at, upstream):
    upstream.add("acme-tool")
    closed = at("closed")
    for find in (shown, shards):
        assert "acme-tool-1.0-py_0.conda" not in find(closed)
    assert closed.get("/noarch/acme-tool-1.0-py_0.conda").status == 404
    assert "acme-tool-1.0-py_0.conda" in shown(at("mirror"))


def test_a_member_that_fails_hides_nothing_that_was_seen_and_shows_nothing_that_is_not_known(at, upstream, second):
    second.add("later", subdir="win-64", noarch=None)
    upstream.misbehave("/win-64/repodata.json.zst", failing(503), repeat=True)
    assert at("shaky").get("/win-64/repodata.json").status == 503
    upstream.behave()
    assert set(shown(at("shaky"), "win-64")) == {"later-1.0-py_0.conda"}
