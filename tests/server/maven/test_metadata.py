"""Metadata: made of the stored files, merged with uploads, and what clients see of it."""

from __future__ import annotations

import hashlib
import re
from email.utils import parsedate_to_datetime

import pytest

from pkgrepo.formats.maven.metadata.plugins import DESCRIPTOR
from tests.support.http_client import HttpClient
from tests.support.maven_bundles import make_jar, make_pom
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server

ALGORITHMS = ("md5", "sha1", "sha256", "sha512")
NAMES = ("maven-metadata.xml", "repo-metadata.xml")


def put(mvn, artifact, version, content=b"jar", group="com/documents"):
    path = f"/{group}/{artifact}/{version}/{artifact}-{version}.jar"
    assert mvn.put(path, content).status == 201


def listed(mvn, artifact, group="com/documents"):
    reply = mvn.get(f"/{group}/{artifact}/maven-metadata.xml")
    return re.findall("<version>(.*?)</version>", reply.text) if reply.status == 200 else reply.status


def fields(reply):
    return {name: value for name, value in reply.headers.items() if name not in ("date", "x-request-id")}


def uploaded(*versions, group="com.documents", artifact="app", more="", latest="", release=""):
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<metadata>\n'
        f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<versioning>{latest and f'<latest>{latest}</latest>'}{release and f'<release>{release}</release>'}"
        f"<versions>{''.join(f'<version>{each}</version>' for each in versions)}</versions>"
        f"<lastUpdated>20240102030405</lastUpdated></versioning>{more}</metadata>\n"
    ).encode()


def test_metadata_of_stored_files_is_made_without_an_upload(mvn):
    for version in ("1.10", "2.0-rc1", "1.9", "2.0-SNAPSHOT"):
        put(mvn, "made", version)
    reply = mvn.get("/com/documents/made/maven-metadata.xml")
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/xml"
    assert reply.headers["cache-control"] == "no-cache"
    text = re.sub("[0-9]{14}", "TIME", reply.text)
    assert text == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<metadata>\n"
        "  <groupId>com.documents</groupId>\n"
        "  <artifactId>made</artifactId>\n"
        "  <versioning>\n"
        "    <latest>2.0-SNAPSHOT</latest>\n"
        "    <release>2.0-rc1</release>\n"
        "    <versions>\n"
        "      <version>1.9</version>\n"
        "      <version>1.10</version>\n"
        "      <version>2.0-rc1</version>\n"
        "      <version>2.0-SNAPSHOT</version>\n"
        "    </versions>\n"
        "    <lastUpdated>TIME</lastUpdated>\n"
        "  </versioning>\n"
        "</metadata>\n"
    )


def test_both_names_and_all_checksums_are_of_the_same_bytes(mvn):
    put(mvn, "names", "1.0")
    put(mvn, "names", "1.1-SNAPSHOT")
    for directory in ("/com/documents/names", "/com/documents/names/1.1-SNAPSHOT", "/com/documents/names/1.0"):
        body = mvn.get(f"{directory}/maven-metadata.xml").body
        for name in NAMES:
            reply = mvn.get(f"{directory}/{name}")
            assert reply.body == body
            assert reply.headers["etag"] == f'"{{SHA1{{{hashlib.sha1(body).hexdigest()}}}}}"'
            head = mvn.ask("HEAD", f"{directory}/{name}")
            assert fields(head) == fields(reply)
            for algorithm in ALGORITHMS:
                digest = hashlib.new(algorithm, body).hexdigest()
                assert reply.headers[f"x-checksum-{algorithm}"] == digest
                for _ in range(2):  # the second one from the cache
                    checksum = mvn.get(f"{directory}/{name}.{algorithm}")
                    assert (checksum.status, checksum.text) == (200, digest)
            again = mvn.get(f"{directory}/{name}", If_None_Match=reply.headers["etag"])
            assert again.status == 304


def test_checksums_follow_a_change(mvn):
    put(mvn, "follow", "1.0")
    path = "/com/documents/follow/maven-metadata.xml"
    before = mvn.get(f"{path}.sha1").text
    assert mvn.get(f"{path}.sha1").text == before
    put(mvn, "follow", "2.0")
    assert mvn.get(f"{path}.sha1").text == hashlib.sha1(mvn.get(path).body).hexdigest() != before


def test_the_time_of_the_last_change_is_never_in_the_future(mvn):
    for number in range(5):
        put(mvn, "often", f"1.{number}")
    for _ in range(2):
        for suffix in ("", ".sha1"):
            headers = mvn.get(f"/com/documents/often/maven-metadata.xml{suffix}").headers
            modified = headers.get("last-modified")
            assert modified is None or parsedate_to_datetime(modified) <= parsedate_to_datetime(headers["date"])


def test_an_upload_that_means_the_same_is_served_byte_for_byte(mvn):
    put(mvn, "same", "1.0")
    put(mvn, "same", "2.0")
    body = uploaded("1.0", "2.0", artifact="same", release="2.0")
    path = "/com/documents/same/maven-metadata.xml"
    assert mvn.put(path, body).status == 200
    assert mvn.get(path).body == body
    assert mvn.get(f"{path}.sha1").text == hashlib.sha1(body).hexdigest()
    put(mvn, "same", "3.0")
    assert listed(mvn, "same") == ["1.0", "2.0", "3.0"]
    assert mvn.ask("DELETE", "/com/documents/same/3.0/").status == 204
    assert mvn.get(path).body == body


@pytest.mark.parametrize("release", ["1.0", ""])
def test_an_upload_with_another_release_is_corrected(mvn, release):
    artifact = f"hotfix{release}"
    put(mvn, artifact, "1.0")
    put(mvn, artifact, "2.0")
    path = f"/com/documents/{artifact}/maven-metadata.xml"
    assert mvn.put(path, uploaded("1.0", "2.0", artifact=artifact, release=release)).status == 200
    assert "<release>2.0</release>" in mvn.get(path).text


def test_versions_of_others_are_not_lost_by_an_upload_that_has_not_seen_them(mvn):
    for version in ("1.0", "2.0", "3.0"):
        put(mvn, "race", version)
    for seen in (("1.0", "2.0"), ("1.0", "3.0")):
        assert mvn.put("/com/documents/race/maven-metadata.xml", uploaded(*seen, artifact="race")).status == 200
    assert listed(mvn, "race") == ["1.0", "2.0", "3.0"]


def test_a_version_without_files_is_not_listed_and_is_no_release(mvn):
    put(mvn, "claim", "1.0")
    path = "/com/documents/claim/maven-metadata.xml"
    assert mvn.put(path, uploaded("1.0", "9.9", artifact="claim", release="9.9")).status == 200
    assert listed(mvn, "claim") == ["1.0"]
    assert "9.9" not in mvn.get(path).text
    put(mvn, "claim", "9.9")
    assert listed(mvn, "claim") == ["1.0", "9.9"]


@pytest.mark.parametrize("repository_name", ["mvn", "fixed"])
def test_a_deleted_version_does_not_come_back_by_an_upload(repository, repository_name):
    mvn = repository(repository_name)
    put(mvn, "gone", "1.0")
    put(mvn, "gone", "2.0")
    path = "/com/documents/gone/maven-metadata.xml"
    assert mvn.put(path, uploaded("1.0", "2.0", artifact="gone", release="2.0")).status == 200
    assert mvn.ask("DELETE", "/com/documents/gone/1.0").status == 204
    assert listed(mvn, "gone") == ["2.0"]
    assert mvn.put(path, uploaded("1.0", "2.0", "3.0", artifact="gone")).status == 200
    assert listed(mvn, "gone") == ["2.0"]
    # Also when all versions were deleted between.
    assert mvn.ask("DELETE", "/com/documents/gone").status == 204
    assert listed(mvn, "gone") == 404
    put(mvn, "gone", "4.0")
    assert mvn.put(path, uploaded("1.0", "2.0", "4.0", artifact="gone")).status == 200
    assert listed(mvn, "gone") == ["4.0"]


def test_a_deleted_version_can_be_published_again(mvn):
    put(mvn, "again", "1.0")
    put(mvn, "again", "2.0")
    assert mvn.ask("DELETE", "/com/documents/again/1.0").status == 204
    put(mvn, "again", "1.0", b"other")
    assert listed(mvn, "again") == ["1.0", "2.0"]


def test_metadata_of_an_empty_directory_is_kept_as_it_is(mvn):
    for number, body in enumerate((uploaded("1.0", artifact="none"), uploaded("1.0", "2.0", artifact="none"))):
        reply = mvn.put("/com/documents/none/repo-metadata.xml", body)
        assert reply.status == (200 if number else 201)
        got = mvn.get("/com/documents/none/maven-metadata.xml")
        assert got.body == body
        assert got.headers["etag"] == f'"{{SHA1{{{hashlib.sha1(body).hexdigest()}}}}}"'
        assert mvn.get("/com/documents/none/maven-metadata.xml.sha512").text == hashlib.sha512(body).hexdigest()
    # The first file makes them a document of the stored versions.
    put(mvn, "none", "3.0")
    assert listed(mvn, "none") == ["3.0"]


def test_unknown_elements_are_kept(mvn):
    put(mvn, "other", "1.0")
    path = "/com/documents/other/maven-metadata.xml"
    more = '<build xmlns="urn:tool" id="a&amp;b"><step n="1">x &lt; y</step></build>'
    assert mvn.put(path, uploaded("1.0", "0.1", artifact="other", more=more)).status == 200
    put(mvn, "other", "2.0")
    assert more in mvn.get(path).text
    assert mvn.put(path, uploaded("1.0", "2.0", artifact="other")).status == 200
    assert more in mvn.get(path).text


def plugin(prefix, name="A plugin"):
    return (
        f"<plugin><name>{name}</name><prefix>{prefix}</prefix><artifactId>{prefix}-maven-plugin</artifactId></plugin>"
    )


def plugins(*prefixes):
    return f"<metadata><plugins>{''.join(map(plugin, prefixes))}</plugins></metadata>".encode()


def prefixes_at(mvn, path):
    return re.findall("<prefix>(.*?)</prefix>", mvn.get(path).text)


@pytest.mark.parametrize("group", ["org/team/plugins", "junit"])
def test_plugins_of_a_group_are_merged_by_prefix(mvn, group):
    path = f"/{group}/maven-metadata.xml"
    assert mvn.put(path, plugins("one")).status == 201
    assert mvn.get(path).body == plugins("one")
    assert mvn.put(path, plugins("two")).status == 200
    assert prefixes_at(mvn, path) == ["one", "two"]
    assert mvn.put(path, plugins("one", "two", "three")).status == 200
    assert mvn.get(path).body == plugins("one", "two", "three")
    assert mvn.get(f"{path}.sha1").text == hashlib.sha1(mvn.get(path).body).hexdigest()


def test_the_plugins_of_a_large_group_are_merged_too(mvn):
    path = "/org/team/many/maven-metadata.xml"
    prefixes = [f"p{number}" for number in range(2000)]
    assert mvn.put(path, plugins(*prefixes)).status == 201
    assert mvn.put(path, plugins("last")).status == 200
    assert sorted(prefixes_at(mvn, path)) == sorted([*prefixes, "last"])
    long = [f"{number:090}" for number in range(3000)]
    assert mvn.put(path, plugins(*long)).status == 413
    assert len(prefixes_at(mvn, path)) == 2001


def test_a_directory_that_is_artifact_and_group_has_both_in_one_document(mvn):
    path = "/com/documents/both/maven-metadata.xml"
    assert mvn.put(path, plugins("one")).status == 201
    put(mvn, "both", "1.0")
    assert prefixes_at(mvn, path) == ["one"]
    assert mvn.put(path, plugins("two")).status == 200
    put(mvn, "both", "2.0")
    assert prefixes_at(mvn, path) == ["one", "two"]
    assert listed(mvn, "both") == ["1.0", "2.0"]


def put_plugin(mvn, group, artifact, version, prefix, *, first):
    path = f"/{group}/{artifact}/{version}/{artifact}-{version}"
    pom = make_pom(group.replace("/", "."), artifact, version, packaging="maven-plugin")
    jar = make_jar({DESCRIPTOR: f"<plugin><goalPrefix>{prefix}</goalPrefix></plugin>".encode()})
    contents = {"pom": pom, "jar": jar}
    for extension in (first, "jar" if first == "pom" else "pom"):
        assert mvn.put(f"{path}.{extension}", contents[extension]).status == 201


@pytest.mark.parametrize("first", ["pom", "jar"])
@pytest.mark.parametrize("both", [False, True])
def test_a_plugin_is_listed_with_its_group_from_its_first_version_to_its_last(mvn, first, both):
    group = f"org/listed/{first}{both}"
    path = f"/{group}/maven-metadata.xml"
    if both:  # the directory of the group is that of an artifact, too
        assert mvn.put(f"/{group}/1/{first}{both}-1.txt", b"artifact").status == 201
    put_plugin(mvn, group, "told", "1", "spoken", first=first)
    put_plugin(mvn, group, "other-maven-plugin", "1", "", first=first)
    put_plugin(mvn, group, "told", "2", "spoken", first=first)
    assert prefixes_at(mvn, path) == ["other", "spoken"]
    assert mvn.delete(f"/{group}/told/1").status == 204
    assert prefixes_at(mvn, path) == ["other", "spoken"]
    assert mvn.delete(f"/{group}/told/2").status == 204
    assert prefixes_at(mvn, path) == ["other"]
    assert mvn.delete(f"/{group}/other-maven-plugin").status == 204
    assert (mvn.get(path).status, prefixes_at(mvn, path)) == (200 if both else 404, [])


def test_the_root_has_minimal_metadata_if_nothing_was_uploaded(repository):
    bare = repository("bare")
    assert bare.get("/maven-metadata.xml").status == 404
    assert bare.put("/any/file.txt", b"text").status == 201
    assert bare.get("/maven-metadata.xml").text == '<?xml version="1.0" encoding="UTF-8"?>\n<metadata/>\n'
    assert bare.put("/maven-metadata.xml", plugins("root")).status == 201
    assert bare.get("/repo-metadata.xml").body == plugins("root")


def test_the_directory_of_a_release_has_its_coordinates(mvn):
    put(mvn, "fixed", "1.0")
    text = mvn.get("/com/documents/fixed/1.0/maven-metadata.xml").text
    assert "<artifactId>fixed</artifactId>\n  <version>1.0</version>" in text
    assert mvn.get("/com/documents/fixed/1.1/maven-metadata.xml").status == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no XML",
        b"<metadata>",
        b"<project/>",
        b"<!DOCTYPE metadata [<!ENTITY a 'b'>]><metadata>&a;</metadata>",
        b"<metadata><groupId>" + b"x" * 2000 + b"</groupId></metadata>",
        b"<?xml version='1.0' encoding='x-none'?><metadata/>",
    ],
)
@pytest.mark.parametrize("path", ["/com/documents/bad/maven-metadata.xml", "/maven-metadata.xml"])
def test_malformed_metadata_is_refused(mvn, path, body):
    reply = mvn.put(path, body)
    assert reply.status == 400
    assert "metadata" in reply.text
    assert "Traceback" not in reply.text


def test_checksums_of_metadata_are_accepted_and_ignored(mvn):
    put(mvn, "sums", "1.0")
    path = "/com/documents/sums/maven-metadata.xml"
    for algorithm in ALGORITHMS:
        assert mvn.put(f"{path}.{algorithm}", b"0" * 32).status in (200, 201)
    assert mvn.get(f"{path}.md5").text == hashlib.md5(mvn.get(path).body).hexdigest()


def test_metadata_beyond_the_limit_is_refused(mvn):
    assert mvn.put("/com/documents/app/maven-metadata.xml", b" " * (4 * 1024 * 1024 + 1)).status == 413


def test_missing_metadata_is_not_found(mvn):
    for path in ("/com/documents/nothing", "/com/documents/nothing/1.0-SNAPSHOT", "/com", "/com/documents/nothing/1.0"):
        for name in NAMES:
            assert mvn.get(f"{path}/{name}").status == 404
            assert mvn.get(f"{path}/{name}.sha1").status == 404


def test_metadata_of_a_private_repository_needs_credentials(repository):
    private = repository("private")
    put(private, "secret", "1.0")
    reply = private.as_user().get("/com/documents/secret/maven-metadata.xml")
    assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Basic realm="pkgrepo"')
    assert private.get("/com/documents/secret/maven-metadata.xml").headers["cache-control"] == "private, no-cache"


def test_policies_concern_the_metadata_of_snapshots_alone(repository):
    releases = repository("releases")
    body = uploaded("1.0")
    assert releases.put("/com/documents/app/maven-metadata.xml", body).status == 201
    assert releases.put("/com/documents/app/1.0-SNAPSHOT/maven-metadata.xml", body).status == 409


def test_deleting_a_snapshot_removes_its_metadata(mvn):
    directory = "/com/documents/dropped/1.0-SNAPSHOT"
    assert mvn.put(f"{directory}/dropped-1.0-SNAPSHOT.jar", b"jar").status == 201
    put(mvn, "dropped", "0.9")
    assert mvn.get(f"{directory}/maven-metadata.xml").status == 200
    assert mvn.ask("DELETE", directory).status == 204
    assert mvn.get(f"{directory}/maven-metadata.xml").status == 404
    assert listed(mvn, "dropped") == ["0.9"]


def test_metadata_are_rebuilt_from_the_files(format_server, mvn, as_token) -> None:
    api = HttpClient(f"{format_server.url}/api/repository/main%2Fmvn", (USER, PASSWORD))
    assert mvn.put("/com/rebuilt/app/1.0/app-1.0.jar", b"x").status == 201
    path = "/com/rebuilt/app/maven-metadata.xml"
    before = mvn.get(path)
    done = api.post_json("/rebuild?package=com.rebuilt:app", {})
    assert (done.status, done.json["packages"], done.json["changed"]) == (200, 1, 0)
    everything = api.post_json("/rebuild", {}).json
    assert everything["packages"] >= 1
    assert everything["changed"] == 0
    assert (mvn.get(path).body, mvn.get(path).headers["etag"]) == (before.body, before.headers["etag"])
    for package, status in (("com.rebuilt:none", 404), ("no-artifact", 422)):
        assert api.post_json(f"/rebuild?package={package}", {}).status == status
    assert api.as_user().post_json("/rebuild", {}).status == 401
    token = as_token("all")
    stranger = HttpClient(api.url, token._auth)
    assert stranger.post_json("/rebuild", {}).status == 403


BUILD = "/com/documents/snap/1.1-SNAPSHOT"


def test_metadata_of_a_snapshot_lists_the_newest_file_of_each_kind(mvn):
    for name in (
        "snap-1.1-20240102.030405-1.jar",
        "snap-1.1-20240102.030405-1.pom",
        "snap-1.1-20240102.030405-1-sources.jar",
        "snap-1.1-20240103.030405-2.jar",
        "snap-1.1-20240103.030405-2.pom",
        "snap-1.1-20240104.030405-3.jar",
        "snap-1.1-SNAPSHOT.jar",
        "snap-1.1-SNAPSHOT-docs.tar.gz",
    ):
        body = b"<project/>" if name.endswith(".pom") else name.encode()
        assert mvn.put(f"{BUILD}/{name}", body).status == 201
    text = mvn.get(f"{BUILD}/maven-metadata.xml").text
    # Build 3 has no POM yet.
    assert "<timestamp>20240103.030405</timestamp>\n      <buildNumber>2</buildNumber>" in text
    entries = re.findall("<snapshotVersion>(.*?)</snapshotVersion>", text, re.DOTALL)
    assert [tuple(re.findall("<[a-z]+>(.*?)</", each)) for each in entries][:3] == [
        ("jar", "1.1-20240104.030405-3", "20240104030405"),
        ("pom", "1.1-20240103.030405-2", "20240103030405"),
        ("docs", "tar.gz", "1.1-SNAPSHOT", entries[2].split("<updated>")[1][:14]),
    ]
    assert tuple(re.findall("<[a-z]+>(.*?)</", entries[3]))[2] == "1.1-20240102.030405-1"
    assert len(entries) == 4
    assert "<version>1.1-SNAPSHOT</version>\n</metadata>" in text
    assert mvn.ask("DELETE", f"{BUILD}/2").status == 204
    assert "<buildNumber>1</buildNumber>" in mvn.get(f"{BUILD}/maven-metadata.xml").text


def test_clients_times_that_differ_from_the_names_of_files_are_mended(mvn):
    directory = "/com/documents/mended/1.0-SNAPSHOT"
    for extension, body in (("jar", b"jar"), ("pom", b"<project/>")):
        assert mvn.put(f"{directory}/mended-1.0-20240102.030405-1.{extension}", body).status == 201
    sent = """<metadata modelVersion="1.1.0"><groupId>com.documents</groupId><artifactId>mended</artifactId>
<versioning><lastUpdated>{time}</lastUpdated>
<snapshot><timestamp>20240102.030405</timestamp><buildNumber>1</buildNumber></snapshot><snapshotVersions>
<snapshotVersion><extension>jar</extension><value>1.0-20240102.030405-1</value><updated>{time}</updated></snapshotVersion>
<snapshotVersion><extension>pom</extension><value>1.0-20240102.030405-1</value><updated>{time}</updated></snapshotVersion>
</snapshotVersions></versioning><version>1.0-SNAPSHOT</version></metadata>"""
    path = f"{directory}/maven-metadata.xml"
    assert mvn.put(path, sent.format(time="20240102030406").encode()).status == 200
    assert "<updated>20240102030405</updated>" in mvn.get(path).text
    exact = sent.format(time="20240102030405").encode()
    assert mvn.put(path, exact).status == 200
    assert mvn.get(path).body == exact
