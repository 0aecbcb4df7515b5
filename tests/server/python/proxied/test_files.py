"""Files of projects of upstreams: fetched once, verified and kept."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.odd_files import archive, zip_of
from tests.support.proxied import answered
from tests.support.python_packages import make_metadata
from tests.support.upstreams.faults import corrupted, failing
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server


def test_file_is_fetched_once_and_served_as_a_hosted_one(mirror, upstream):
    name, data = upstream.add("fetched", "1.0", pad=200_000)
    path = f"/packages/fetched/1.0/{name}"
    for _ in range(2):
        reply = mirror.get(path)
        assert (reply.status, reply.body) == (200, data)
        assert reply.headers["etag"] == f'"{hashlib.sha256(data).hexdigest()}"'
        assert reply.headers["cache-control"] == "no-cache"  # the upstream may replace it
    assert upstream.count(upstream.file_path(name)) == 1
    part = mirror.get(path, Range="bytes=-100")
    assert (part.status, part.body) == (206, data[-100:])
    assert mirror.get(path, If_None_Match=reply.headers["etag"]).status == 304
    head = mirror.head(path)
    assert (head.headers["content-length"], head.headers["accept-ranges"]) == (str(len(data)), "bytes")


@pytest.mark.parametrize("pad", [0, 2_000_000])
def test_head_and_ranges_of_a_file_that_is_not_kept(mirror, upstream, pad):
    name, data = upstream.add(f"asked-in-parts-{pad}", pad=pad)
    path = f"/packages/asked-in-parts-{pad}/1.0/{name}"
    head = mirror.head(path)
    assert (head.status, head.headers["content-length"], head.headers["accept-ranges"]) == (
        200,
        str(len(data)),
        "bytes",
    )
    part = mirror.get(path, Range=f"bytes={len(data) - 50}-{len(data) - 1}")
    assert (part.status, part.body) == (206, data[-50:])
    assert part.headers["content-range"] == f"bytes {len(data) - 50}-{len(data) - 1}/{len(data)}"
    assert mirror.get(path).body == data


@pytest.mark.parametrize(
    "path", ["/packages/{0}/1.0/{1}", "/{0}/1.0/{1}", "/packages/{1}", "/simple/{0}/{1}", "/packages/{0}/1.0.0/{1}"]
)
def test_file_is_found_on_every_address(mirror, upstream, path):
    project = f"addressed-{hashlib.sha256(path.encode()).hexdigest()[:6]}"
    name, data = upstream.add(project)
    reply = mirror.get(path.format(project, name))
    assert (reply.status, reply.body) == (200, data)


def test_metadata_is_that_of_the_upstream_and_kept(mirror, upstream):
    name, _ = upstream.add("described", requires=["left"])
    path = f"/packages/described/1.0/{name}.metadata"
    expected = make_metadata("described", "1.0", fields=[("Requires-Dist", "left")])
    for _ in range(2):
        assert mirror.get(path).body == expected
    assert upstream.count(f"{upstream.file_path(name)}.metadata") == 1
    assert upstream.count(upstream.file_path(name)) == 0


def test_metadata_of_a_kept_wheel_needs_no_upstream(mirror, upstream, keep):
    for number, offered in enumerate((True, False)):
        project = f"inspected-{number}"
        name, _ = upstream.add(project, requires=["left"], metadata=offered)
        path = f"/packages/{project}/1.0/{name}"
        keep(mirror, path)
        expected = make_metadata(project, "1.0", fields=[("Requires-Dist", "left")])
        assert mirror.get(f"{path}.metadata").body == expected
        assert upstream.count(f"{upstream.file_path(name)}.metadata") == 0


def test_signature_and_provenance_come_from_the_upstream(mirror, upstream):
    provenance = "/integrity/signed-one"
    name, _ = upstream.add("signed-one", **{"gpg-sig": True, "provenance": upstream.url + provenance})
    upstream.serve(provenance, b'{"version":1}')
    upstream.serve(f"{upstream.file_path(name)}.asc", b"-----BEGIN PGP SIGNATURE-----")
    path = f"/packages/signed-one/1.0/{name}"
    assert mirror.get(f"{path}.asc").body == b"-----BEGIN PGP SIGNATURE-----"
    for each in (f"{path}.provenance", f"/integrity/signed-one/1.0/{name}/provenance"):
        reply = mirror.get(each)
        assert (reply.body, reply.headers["content-type"]) == (
            b'{"version":1}',
            "application/vnd.pypi.integrity.v1+json",
        )
    assert upstream.count(provenance) == 1
    assert mirror.get(path).status == 200


def test_corrupted_file_is_refused_and_not_kept(mirror, upstream):
    name, data = upstream.add("corrupted-one")
    path = f"/packages/corrupted-one/1.0/{name}"
    upstream.misbehave(upstream.file_path(name), corrupted, repeat=True)
    assert mirror.get(path).status == 502
    upstream.behave()
    assert mirror.get(path).body == data
    assert upstream.count(upstream.file_path(name)) == 2


def test_corrupted_metadata_is_refused(mirror, upstream):
    name, _ = upstream.add("corrupted-two")
    path = f"{upstream.file_path(name)}.metadata"
    upstream.misbehave(path, corrupted, repeat=True)
    assert mirror.get(f"/packages/corrupted-two/1.0/{name}.metadata").status == 502


def test_file_without_a_digest_is_kept_as_it_was_first(at, old_upstream, keep):
    old = at("old")
    name, data = old_upstream.add("undigested", metadata=False)
    path = f"/packages/undigested/1.0/{name}"
    keep(old, path)
    old_upstream.serve(old_upstream.file_path(name), b"other bytes")
    assert old.get(path).body == data


def test_wheel_that_a_publish_would_refuse_is_served(at, old_upstream):
    name, _ = old_upstream.add("odd-wheel", metadata=False)
    old_upstream.serve(old_upstream.file_path(name), zip_of(b"broken"))
    path = f"/packages/odd-wheel/1.0/{name}"
    assert at("old").get(path).body == zip_of(b"broken")
    assert at("old").get(f"{path}.metadata").status == 404


@pytest.mark.parametrize("body", [b"", b"Access denied by policy.\n"])
def test_file_without_a_digest_is_what_its_name_says(at, old_upstream, body):
    name, data = old_upstream.add(f"sentence-{len(body)}", metadata=False)
    old_upstream.misbehave(old_upstream.file_path(name), Answer(body=body), repeat=True)
    path = f"/packages/sentence-{len(body)}/1.0/{name}"
    assert at("old").get(path).status == 502
    old_upstream.behave()
    assert at("old").get(path).body == data


@pytest.mark.parametrize(("fault", "status"), [(500, 502), (403, 403), (451, 403), (401, 424)])
def test_failing_upstream_is_no_missing_file(mirror, upstream, fault, status):
    project = f"unavailable-{fault}"
    name, _ = upstream.add(project)
    upstream.misbehave(upstream.file_path(name), failing(fault), repeat=True)
    assert mirror.get(f"/packages/{project}/1.0/{name}").status == status


def test_missing_file_is_missing(mirror, upstream):
    name, _ = upstream.add("listed-only")
    upstream.serve(upstream.file_path(name), Answer(404, b""))
    assert mirror.get(f"/packages/listed-only/1.0/{name}").status == 404
    assert mirror.get("/packages/listed-only/1.0/listed_only-2.0-py3-none-any.whl").status == 404
    assert mirror.get("/packages/listed-only/1.0/no-distribution.txt").status == 404


def test_all_kinds_of_source_distributions_are_kept(mirror, upstream):
    name, data = upstream.add("two-sources", sdist=True)
    for ending in (".zip", ".tar.bz2", ".tgz"):
        other = name.replace(".tar.gz", ending)
        upstream.serve(upstream.file_path(other), archive(ending))
        listed = {"filename": other, "url": upstream.file_url(other), "hashes": {}, "yanked": False, "version": "1.0"}
        upstream.projects["two-sources"].append(listed)
    assert mirror.get("/simple/two-sources/").text.count("</a>") == 4
    assert mirror.get(f"/packages/two-sources/1.0/{name}").body == data
    for ending in (".zip", ".tar.bz2", ".tgz"):
        other = name.replace(".tar.gz", ending)
        assert mirror.get(f"/packages/two-sources/1.0/{other}").body == archive(ending)


@pytest.mark.parametrize("whole", [True, False], ids=["project", "release"])
def test_file_that_the_upstream_has_removed_is_served_only_if_a_policy_says_so(at, upstream, keep, whole):
    project = f"removed-{whole}".lower()
    name, data = upstream.add(project)
    path = f"/packages/{project}/1.0/{name}"
    for where in ("short", "keeping", "lonely"):
        keep(at(where), path)
        assert "warning" not in at(where).get(path).headers
    if whole:
        del upstream.projects[project]
    else:
        upstream.add(project, "2.0")
        del upstream.projects[project][0]
    for where in ("short", "keeping", "around-keeping", "lonely"):
        assert at(where).get(f"/simple/{project}/").status == (404 if whole else 200)
    assert answered(at("short"), path, lambda reply: reply.status != 200).status == 404
    for where in ("keeping", "around-keeping"):
        reply = answered(at(where), path, lambda reply: "warning" in reply.headers)
        assert (reply.body, reply.headers["warning"]) == (data, '299 - "the upstream has removed this version"')
    upstream.misbehave(f"/simple/{project}/", failing(500), repeat=True)
    at("lonely").get(f"/simple/{project}/")
    assert at("lonely").get(path).status == 502, "a failure does not bring it back"
    assert at("keeping").get(path).body == data


def test_kept_file_is_served_while_its_upstream_fails(at, upstream, keep):
    name, data = upstream.add("failing-later")
    path = f"/packages/failing-later/1.0/{name}"
    keep(at("short"), path)
    upstream.misbehave("/failing-later/", failing(500), repeat=True)
    assert at("short").get("/simple/failing-later/").status == 200
    assert at("short").get(path).body == data


def test_local_version_is_found_with_and_without_encoding(mirror, upstream):
    name, data = upstream.add("localised", "1.0+cu121")
    for each in (name, name.replace("+", "%2B")):
        for version in ("1.0+cu121", "1.0%2Bcu121"):
            assert mirror.get(f"/packages/localised/{version}/{each}").body == data


def test_preferred_file_of_a_version(mirror, upstream):
    sdist, data = upstream.add("preferred", "1.0", sdist=True)
    wheel, built = upstream.add("preferred", "1.0")
    reply = mirror.get("/pypi/preferred/1.0.0/")
    assert (reply.body, reply.headers["content-disposition"]) == (built, f'attachment; filename="{wheel}"')
    for _ in range(2):
        reply = mirror.get("/pkgindex/preferred/1.0/?packagetype=sdist")
        assert (reply.body, reply.headers["content-disposition"]) == (data, f'attachment; filename="{sdist}"')
    assert mirror.get(f"/pkgindex/preferred/1.0/?filename={sdist}").body == data
    assert mirror.get("/pkgindex/preferred/2.0/").status == 404


def test_files_of_members_are_found_through_a_virtual_repository(at, upstream, publish):
    everything = at("all")
    ours, our_data = publish("inside", "1.0.0")
    theirs, their_data = upstream.add("outside")
    assert everything.get(f"/packages/inside/1.0/{ours}").body == our_data
    assert everything.get(f"/packages/{ours}.metadata").status == 200
    assert everything.get(f"/packages/outside/1.0/{theirs}").body == their_data
    assert everything.get(f"/packages/{theirs}").body == their_data
    assert everything.get("/pypi/inside/1.0/").body == our_data
    assert everything.get("/pypi/outside/1.0/").body == their_data
