"""Files of upstreams: found by their paths, verified, kept, and refused."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from attrs import evolve

from tests.server.maven.proxied.conftest import Fragile, record
from tests.support.http_client import HttpClient, Reply
from tests.support.maven_files import sums
from tests.support.odd_files import zip_of
from tests.support.upstreams import faults
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.messages import HEAD, Answer, Fault

pytestmark = pytest.mark.server

At = Callable[[str], HttpClient]
LARGE = bytes(range(256)) * 1000  # more than what is verified before it is sent


def test_a_file_comes_once_and_is_served_with_our_checksums(both: HttpClient, first: MavenUpstream) -> None:
    jar = first.deploy("com.example", "once", "1.0", LARGE)
    assert both.get(jar).body == LARGE
    record(both, jar)
    kept = both.get(jar)
    for algorithm, digest in sums(LARGE).items():
        assert kept.headers[f"x-checksum-{algorithm}"] == digest
        assert both.get(f"{jar}.{algorithm}").text == digest
    assert both.get(jar, Range="bytes=5-9").body == LARGE[5:10]
    assert (first.count(jar), first.count(f"{jar}.sha1"), first.count(f"{jar}.sha512")) == (1, 1, 0)


def test_a_digest_in_the_header_spares_the_request_for_the_checksum(at: At, second: MavenUpstream) -> None:
    jar = second.deploy("com.example", "announced", "1.0")
    cold = at("other").get(jar)
    assert cold.headers["x-checksum-sha1"] == hashlib.sha1(cold.body).hexdigest()
    assert second.count() == 1


def test_checksum_before_its_file_fetches_the_file(both: HttpClient, first: MavenUpstream) -> None:
    jar = first.deploy("com.example", "early", "1.0", LARGE)
    assert both.get(f"{jar}.sha256").text == sums(LARGE)["sha256"]
    assert both.get(jar).body == LARGE
    assert first.count(jar) == 1


def test_head_asks_by_head_until_the_file_is_kept(both: HttpClient, first: MavenUpstream) -> None:
    jar = first.deploy("com.example", "head", "1.0", LARGE)
    cold = both.head(jar)
    assert (cold.status, cold.headers["content-length"]) == (200, str(len(LARGE)))
    assert [each.method for each in first.requests(jar)] == ["HEAD"]
    record(both, jar)
    first.forget()
    warm = both.head(jar)
    assert (warm.status, warm.headers["x-checksum-sha1"], first.count()) == (200, sums(LARGE)["sha1"], 0)


def test_without_checksums_a_file_is_served_and_flagged(at: At, first: MavenUpstream, api: HttpClient) -> None:
    path, jar = "com/example/plain/1.0/plain-1.0.jar", zip_of(b"no checksum")
    first.serve(f"/{path}", jar)
    first.misbehave(f"/{path}.sha1", Answer(404))
    first.misbehave(f"/{path}.md5", Answer(404))
    assert at("mirror").get(f"/{path}").body == jar
    assert at("mirror").get(f"/{path}.md5").text == hashlib.md5(jar).hexdigest()


SENTENCE = Answer(body=b"Access denied by policy.\n", fields={"Content-Type": "text/plain"})


@pytest.mark.parametrize("ending", [".jar", ".pom", ".war", ".module", ".jar.asc", ".txt"])
def test_portal_that_answers_everything_with_a_sentence_is_a_failing_upstream(
    both: HttpClient, first: MavenUpstream, ending: str
) -> None:
    path = f"/com/example/portal/1.0/portal-1.0{ending}"
    for each in (path, f"{path}.sha1", f"{path}.md5"):
        first.misbehave(each, SENTENCE, repeat=True)
    assert both.get(path).status == 502
    assert both.get(f"{path}.sha1").status == 502
    first.behave()
    assert both.get(path).status == 404


@pytest.mark.parametrize("body", [b"", b"Access denied by policy.\n", b"0" * 39])
def test_checksum_that_is_none_is_not_taken_for_a_missing_one(
    both: HttpClient, first: MavenUpstream, body: bytes
) -> None:
    jar = first.deploy("com.example", f"badly-summed-{len(body)}", "1.0", zip_of(b"right"))
    first.misbehave(f"{jar}.sha1", Answer(body=body), repeat=True)
    assert both.get(jar).status == 502
    first.behave()
    assert both.get(jar).status == 200


@pytest.mark.parametrize("body", [b"", b"Access denied by policy.\n"])
@pytest.mark.parametrize("ending", [".jar", ".pom"])
def test_file_without_checksums_is_what_its_name_says(
    both: HttpClient, first: MavenUpstream, ending: str, body: bytes
) -> None:
    path = f"/com/example/unsummed-{len(body)}/1.0/unsummed-{len(body)}-1.0{ending}"
    first.serve(path, body)
    first.misbehave(f"{path}.sha1", Answer(404), repeat=True)
    first.misbehave(f"{path}.md5", Answer(404), repeat=True)
    reply = both.get(path)
    assert (reply.status, "its file is" in reply.reason) == (502, True)
    first.serve(path, zip_of(b"right") if ending == ".jar" else b"<project/>")
    assert both.get(path).status == 200


def test_lenient_forms_of_checksums_and_md5_alone_verify(both: HttpClient, first: MavenUpstream) -> None:
    jar = first.deploy("com.example", "lenient", "1.0")
    digest = hashlib.md5(b"lenient 1.0").hexdigest().upper()
    first.misbehave(f"{jar}.sha1", Answer(404))
    first.misbehave(f"{jar}.md5", Answer(body=f"{digest}  lenient-1.0.jar\n".encode()))
    assert both.get(jar).status == 200
    pom = jar.replace(".jar", ".pom")
    first.misbehave(f"{pom}.sha1", Answer(body=b"SHA1(lenient)= " + b"0" * 40), repeat=True)
    assert both.get(pom).status == 502


def test_what_no_route_has_is_not_asked_for_again_until_a_purge(
    both: HttpClient, first: MavenUpstream, second: MavenUpstream, purge: Callable[[str], Reply]
) -> None:
    path = "/com/example/absent/1.0/absent-1.0.jar"
    assert [both.get(path).status for _ in range(3)] == [404] * 3
    assert both.head(path).status == 404
    assert both.get(f"{path}.sha1").status == 404
    assert (first.count(path), second.count(path)) == (1, 1)
    first.deploy("com.example", "absent", "1.0")
    assert both.get(path).status == 404
    assert purge("both").status == 200
    assert both.get(path).status == 200


@pytest.mark.parametrize("replicas", [False, True])
@pytest.mark.parametrize("fault", [faults.failing(500), faults.failing(401), faults.NO_ANSWER])
def test_failure_of_one_route_is_no_404_and_is_not_remembered(
    fragile: Callable[..., Fragile], fault: Answer | Fault, *, replicas: bool
) -> None:
    proxied = fragile(routes_are_replicas=replicas)
    path = "/com/example/fails/1.0/fails-1.0.jar"
    proxied.first.misbehave(path, fault, repeat=True)
    assert proxied.client.get(path).status in (424, 502, 503)
    assert proxied.second.count(path) == int(replicas)
    proxied.first.behave()
    proxied.first.deploy("com.example", "fails", "1.0")
    assert proxied.client.get(path).status == 200


def test_failure_of_one_route_at_a_head_is_no_404(fragile: Callable[..., Fragile]) -> None:
    proxied = fragile(routes_are_replicas=True)
    path = "/com/example/fails/1.0/fails-1.0.jar"
    proxied.first.misbehave(path, faults.failing(500), repeat=True)
    assert proxied.client.head(path).status == 502
    assert [each.method for each in proxied.second.requests(path)] == [
        "HEAD",
        "GET",
    ]  # a HEAD that fails may be one of HEAD alone


@pytest.mark.parametrize("version", ["1.0", "1.0-SNAPSHOT"])
def test_while_a_route_fails_a_later_one_serves_only_what_it_served_before(
    fragile: Callable[..., Fragile], version: str
) -> None:
    proxied = fragile(cache_ttl="0")
    known = proxied.second.deploy("com.example", "known", version)
    assert proxied.client.get(known).status == 200
    strange = proxied.second.deploy("com.example", "strange", version)
    more = proxied.second.add(known[1:].replace(".jar", "-sources.jar"), b"sources")
    for path in (known, strange, more):
        proxied.first.misbehave(path, faults.failing(500), repeat=True)
    assert proxied.client.get(strange).status == 502
    assert proxied.client.head(strange).status == 502
    assert proxied.client.get(known).status == 200
    assert proxied.client.get(more).body == b"sources"  # of the same version
    assert proxied.second.count(strange) == 0
    proxied.first.behave()
    assert proxied.client.get(strange).status == 200


@pytest.mark.parametrize("version", ["1.0", "1.0-SNAPSHOT"])
def test_what_is_kept_of_a_route_is_not_served_for_what_is_at_its_new_address(
    fragile: Callable[..., Fragile], api: HttpClient, version: str
) -> None:
    proxied = fragile()
    kinds = ("both", "gone", "failing")
    old = {each: proxied.first.deploy("com.example", each, version, b"of the old one") for each in kinds}
    for path in old.values():
        record(proxied.client, path)
    proxied.second.deploy("com.example", "both", version, b"of the new one")
    proxied.second.misbehave(old["failing"], faults.failing(500), repeat=True)
    config = f"/repository/main%2Ffragile{proxied.first.port}/config/proxy"
    routes = {"routes": [{"name": "route0", "url": proxied.second.url}]}
    assert api.post_json(config, routes, "PUT").status == 200
    for _ in range(2):
        assert proxied.client.get(old["both"]).body == b"of the new one"
    assert proxied.client.get(old["failing"]).status == 502
    if version == "1.0":  # by its exact address; there is no other file that it could be taken for
        assert proxied.client.get(old["gone"]).body == b"of the old one"
    proxied.second.behave()
    record(proxied.client, old["both"])
    assert proxied.client.get(old["both"]).body == b"of the new one"
    assert proxied.second.count(old["both"]) <= 2  # it may be asked for before it is recorded


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_decision_of_one_route_ends_the_search(fragile: Callable[..., Fragile], method: str) -> None:
    proxied = fragile()
    path = proxied.second.deploy("com.example", "decided", "1.0")
    for each in (path, proxied.second.metadata_path("com/example/decided")):
        proxied.first.misbehave(each, Answer(403, b"blocked by policy", {"Content-Type": "text/plain"}), repeat=True)
        reply = proxied.client.ask(method, each)
        assert (reply.status, "blocked by policy" in reply.reason) == (403, True)
    assert proxied.second.count(path) == 0


def test_a_decision_about_a_checksum_is_one_about_the_file(fragile: Callable[..., Fragile]) -> None:
    proxied = fragile()
    path = proxied.first.deploy("com.example", "unsummed", "1.0")
    proxied.first.misbehave(f"{path}.sha1", faults.failing(403), repeat=True)
    assert proxied.client.get(path).status == 403


def test_a_later_route_serves_what_the_first_does_not_have(both: HttpClient, second: MavenUpstream) -> None:
    jar = second.deploy("com.example", "later", "1.0")
    assert both.get(jar).body == b"later 1.0"


def test_all_files_of_a_version_come_from_one_route(
    both: HttpClient, first: MavenUpstream, second: MavenUpstream
) -> None:
    path = first.deploy("com.example", "split", "1.0", b"of the first")
    second.deploy("com.example", "split", "1.0", b"of the second")
    sources = path.replace(".jar", "-sources.jar")
    second.add(sources[1:], b"sources of the second")
    assert both.get(path.replace(".jar", ".pom")).status == 200
    assert both.get(path).body == b"of the first"
    assert both.get(sources).status == 404
    assert second.count() == 0
    other = second.deploy("com.example", "split", "2.0", b"only there")
    assert both.get(other).body == b"only there"


def test_wrong_file_is_fetched_again_and_then_from_the_next_replica(
    at: At, both: HttpClient, first: MavenUpstream, second: MavenUpstream
) -> None:
    jar = first.deploy("com.example", "mended", "1.0")
    first.misbehave(jar, faults.corrupted)
    assert both.get(jar).body == b"mended 1.0"
    assert first.count(jar) == 2
    jar = first.deploy("com.example", "wrong", "1.0")
    second.deploy("com.example", "wrong", "1.0")
    first.misbehave(jar, faults.corrupted, repeat=True)
    assert both.get(jar).status == 502
    assert (first.count(jar), second.count(jar)) == (2, 0)
    assert at("copies").get(jar).body == b"wrong 1.0"
    assert (first.count(jar), second.count(jar)) == (4, 1)


def test_wrong_file_that_was_sent_already_is_cut_off_and_mended_the_next_time(
    at: At, first: MavenUpstream, second: MavenUpstream
) -> None:
    both = at("copies")
    jar = first.deploy("com.example", "cut", "1.0", LARGE)
    second.deploy("com.example", "cut", "1.0", LARGE)
    first.misbehave(jar, lambda answer: Answer(200, bytes(len(LARGE)), fault=Fault(rate=4_000_000)), repeat=True)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        both.get(jar)
    assert both.get(jar).body == LARGE
    assert second.count(jar) == 1


@pytest.mark.parametrize("name", ["part-1.0.jar", "part-1.0-SNAPSHOT.jar"])
def test_part_of_a_cold_file_arrives_before_the_file_but_for_its_last_byte(
    both: HttpClient, first: MavenUpstream, name: str
) -> None:
    path = first.add(f"com/example/part/{name[5:-4]}/{name}", LARGE)
    first.misbehave(path, Fault(pause_at=200_000))
    with both.connect() as connection:
        connection.sendall(both.head_lines("GET", path, Range="bytes=1000-1999"))
        received = b""
        while len(received.partition(b"\r\n\r\n")[2]) < 999:
            received += connection.recv(65536)
        head, _, part = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 206 ")
        assert b"\r\nContent-Range: bytes 1000-1999/256000\r\n" in head
        assert part == LARGE[1000:1999]
        first.release(path)
        assert connection.recv(65536) == LARGE[1999:2000]
    assert both.get(path).body == LARGE
    assert first.count(path) == 1


@pytest.mark.parametrize("name", ["spoilt-1.0.jar", "spoilt-1.0-SNAPSHOT.jar"])
def test_part_of_a_wrong_file_is_never_complete(
    both: HttpClient, first: MavenUpstream, second: MavenUpstream, name: str
) -> None:
    path = first.add(f"com/example/spoilt/{name[7:-4]}/{name}", LARGE)
    # If the whole file came at once, the request would be refused before a part of it is sent.
    first.misbehave(path, lambda answer: evolve(faults.corrupted(answer), fault=Fault(rate=4_000_000)), repeat=True)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        both.get(path, Range="bytes=1000-1999")
    first.behave()
    assert both.get(path).body == LARGE


@pytest.mark.parametrize("name", ["page-1.0.jar", "page-1.0.pom"])
def test_web_page_is_no_file(both: HttpClient, first: MavenUpstream, name: str) -> None:
    path = f"/com/example/page/1.0/{name}"
    first.misbehave(path, faults.HTML)
    assert both.get(path).status == 502
    first.deploy("com.example", "page", "1.0")
    assert both.get(path).status == 200


def test_routes_are_asked_only_for_their_packages(at: At, first: MavenUpstream, second: MavenUpstream) -> None:
    jar = first.deploy("com.example", "limited", "1.0")
    assert at("limited").get(jar).status == 404
    assert at("limited").get("/com/example/limited/maven-metadata.xml").status == 404
    assert first.count() == 0
    assert at("limited").get(first.deploy("com.only", "limited", "1.0")).status == 200


def test_poms_describe_their_versions(both: HttpClient, first: MavenUpstream, api: HttpClient) -> None:
    jar = first.deploy("com.example", "told", "1.0", name="What it is")
    both.get(jar)
    both.get(jar.replace(".jar", ".pom"))
    record(both, jar.replace(".jar", ".pom"))
    found = api.get("/package/main%2Fboth/com.example:told/versions/1.0")
    assert (found.status, "What it is" in found.text) == (200, True), found


def test_malformed_pom_is_served_as_it_is(both: HttpClient, first: MavenUpstream) -> None:
    path = first.add("com/example/broken/1.0/broken-1.0.pom", b"<project><name>&nbsp;</project>")
    assert both.get(path).body == b"<project><name>&nbsp;</project>"


def test_plain_files_are_not_asked_for(both: HttpClient, first: MavenUpstream, second: MavenUpstream) -> None:
    for path in ("/favicon.ico", "/com/acme/secret/1.0/notes.txt", "/com/acme/x/1.0/other-1.0.jar"):
        assert both.get(path).status == 404
    assert (first.count(), second.count()) == (0, 0)


def test_changes_are_refused_and_eviction_is_for_administrators(both: HttpClient, first: MavenUpstream) -> None:
    jar = first.deploy("com.example", "fixed", "1.0")
    refused = both.put(jar, b"mine")
    assert (refused.status, "is a proxy" in refused.reason) == (405, True)
    assert both.get(jar).status == 200  # it waits to be stored, see ``proxy.store_delay``
    assert both.ask("DELETE", jar, headers={"Authorization": ""}).status in (401, 405)
    assert both.delete(jar).status == 204
    assert both.get(jar).body == b"fixed 1.0"
    record(both, jar)
    assert first.count(jar) == 2
    assert both.delete(jar.rpartition("/")[0] + "/").status == 204
    assert both.delete(jar).status == 404


def test_evicted_version_may_come_from_another_route(
    both: HttpClient, first: MavenUpstream, second: MavenUpstream
) -> None:
    jar = second.deploy("com.example", "moved", "1.0", b"of the second")
    record(both, jar)
    first.deploy("com.example", "moved", "1.0", b"of the first")
    assert both.get(jar).body == b"of the second"
    assert both.delete(jar.rpartition("/")[0] + "/").status == 204
    assert both.get(jar).body == b"of the first"


def test_files_of_a_version_that_are_asked_for_at_once_come_from_one_route(
    both: HttpClient, first: MavenUpstream, second: MavenUpstream
) -> None:
    base = "com/example/atonce/1.0/atonce-1.0"
    first.add(f"{base}.jar", b"of the first")
    second.deploy("com.example", "atonce", "1.0", jar=False)
    second.add(f"{base}-sources.jar", b"of the second")
    paths = [f"/{base}{rest}" for rest in (".jar", "-sources.jar", ".pom")]
    first.misbehave(paths[0], Fault(latency_s=0.3))
    with ThreadPoolExecutor(3) as pool:
        found = [each.result() for each in [pool.submit(both.get, path) for path in paths]]
    served = [each.status == 200 for each in found]
    assert served in ([True, False, False], [False, True, True]), served


def test_a_file_of_a_version_waits_for_no_other_one_where_there_is_one_route(at: At, second: MavenUpstream) -> None:
    jar = second.deploy("com.example", "beside", "1.0")
    second.misbehave(jar, Fault(pause_at=HEAD))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(at("other").get, jar)
        second.wait_paused(jar)
        assert at("other").get(jar.replace(".jar", ".pom")).status == 200
        second.release(jar)
        assert waiting.result().body == b"beside 1.0"
