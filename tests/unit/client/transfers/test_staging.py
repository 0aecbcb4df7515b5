"""Staging folders become zip archives that the server's reader accepts, without copies on disk or in memory."""

import io
import zipfile

import pytest

from pkgrepo.archives.source import Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.client.transfers.deploy import read_authorization
from pkgrepo.client.transfers.staging import PIECE, read_staging, zip_pieces
from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.paths import ArtifactFile, Checksum, PlainFile, parse_text
from tests.support.maven_bundles import artifact, with_checksums

MEMBERS = with_checksums({**artifact("com.example", "app", "1.0"), **artifact("com.example", "lib", "2.0-SNAPSHOT")})


@pytest.fixture
def folder(tmp_path):
    for path, content in MEMBERS.items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return tmp_path


def test_artifacts_and_their_checksums_are_taken_and_sorted(folder):
    found = read_staging(folder)
    assert [each.path for each in found.files] == sorted(MEMBERS)
    assert [each.size for each in found.files] == [len(MEMBERS[path]) for path in sorted(MEMBERS)]
    assert found.left_out == ()


def test_metadata_is_left_out_silently_and_other_files_and_links_by_name(folder):
    directory = folder / "com/example/app"
    for name in ("maven-metadata.xml", "maven-metadata.xml.sha1"):
        (directory / name).write_bytes(b"x")
    (directory / "1.0" / "notes.txt").write_bytes(b"x")
    (directory / "1.0" / "app-1.0-link.jar").symlink_to("app-1.0.jar")
    (folder / "folder-link").symlink_to(directory)
    found = read_staging(folder)
    assert len(found.files) == len(MEMBERS)
    assert found.left_out == ("com/example/app/1.0/app-1.0-link.jar", "com/example/app/1.0/notes.txt")


@pytest.mark.parametrize(
    "path",
    [
        "com/example/app/1.0/app-1.0.jar",
        "com/example/app/1.0/app-1.0.jar.asc.sha256",
        "com/example/app/1.0/app-1.0-sources.tar.gz",
        "com/example/app/1.0/app-1.0-.jar",
        "com/example/app/1.0/app-1.0..jar",
        "com/example/app/1.0/app-1.0.",
        "com/example/app/1.0/app-1.0",
        "com/example/app/1.0/app-1.0notes.txt",
        "com/example/app/1.0/app-1.0.1.jar",
        "com/example/app/1.0/_remote.repositories",
        "com/example/app/1-a/app-1-a-b.jar",
        "com/example/app/1.1-SNAPSHOT/app-1.1-SNAPSHOT.pom",
        "com/example/app/1.1-SNAPSHOT/app-1.1-20240102.030405-6.pom",
        "com/example/app/1.1-SNAPSHOT/app-1.1-20240102.030405-6-sources.jar.md5",
        "com/example/app/1.1-SNAPSHOT/app-1.1-20240102.030405.jar",
        "com/example/app/1.1-snapshot/app-1.1-20240102.030405-6.jar",
        "com/example/app/1.1SNAPSHOT/app-1.1-20240102.030405-6.jar",
        "com/example/app/SNAPSHOT/app-20240102.030405-6.jar",
        "com/example/app/1.0/sub/app-1.0.jar",
        "com.example/app/1.0/app-1.0.jar",
        "com/a:b/1.0/a:b-1.0.jar",
        "g/app/1.0/app-1.0.jar",
        "app/1.0/app-1.0.jar",
        "app-1.0.jar",
        "maven-metadata.xml",
        "com/example/app/1.1-SNAPSHOT/maven-metadata.xml.sha512",
        "com/example/app/repo-metadata.xml",
        "com/example/app/maven-metadata-local.xml",
    ],
)
def test_what_is_taken_is_what_the_server_takes_for_a_file_of_an_artifact(tmp_path, path):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(b"x")
    found = read_staging(tmp_path)
    meant = parse_text(path)
    meant = meant.of if isinstance(meant, Checksum) else meant
    assert [each.path for each in found.files] == ([path] if isinstance(meant, ArtifactFile) else [])
    assert found.left_out == ((path,) if isinstance(meant, PlainFile) else ())


def test_the_archive_is_one_that_the_server_reads_and_always_the_same(folder):
    files = read_staging(folder).files
    steps = []
    data = b"".join(zip_pieces(files, lambda: steps.append(1)))
    assert len(steps) == len(files)
    assert data == b"".join(zip_pieces(files, lambda: None))
    archive = ZipArchive(Source(data, "x"))
    assert {name: archive.read(name, 10**6) for name in archive.entries} == MEMBERS
    with zipfile.ZipFile(io.BytesIO(data)) as other:
        assert other.testzip() is None


def test_a_large_file_comes_in_pieces(tmp_path):
    large = tmp_path / "g/a/1/a-1.jar"
    large.parent.mkdir(parents=True)
    large.write_bytes(bytes(range(256)) * 20_000)
    pieces = list(zip_pieces(read_staging(tmp_path).files, lambda: None))
    assert len(pieces) > 10
    assert max(map(len, pieces)) < 2 * PIECE
    archive = ZipArchive(Source(b"".join(pieces), "x"))
    assert b"".join(archive.pieces("g/a/1/a-1.jar")) == large.read_bytes()


def test_credentials_are_a_token_from_a_file_or_variables(tmp_path):
    file = tmp_path / "token"
    file.write_text(" t0ken\n")
    environ = {"PKGREPO_DEPLOY_TOKEN": "other", "PKGREPO_DEPLOY_USER": "ann", "PKGREPO_DEPLOY_PASSWORD": "päss"}
    assert read_authorization(environ, file) == "Bearer t0ken"
    assert read_authorization(environ, None) == "Bearer other"
    del environ["PKGREPO_DEPLOY_TOKEN"]
    assert read_authorization(environ, None) == "Basic YW5uOnDDpHNz"


@pytest.mark.parametrize("token", ["", "  ", "a b", "a\nb", "ä"])
def test_what_cannot_be_a_token_is_refused_without_showing_it(tmp_path, token):
    file = tmp_path / "token"
    file.write_text(token)
    with pytest.raises(Invalid) as raised:
        read_authorization({}, file)
    assert not token.strip() or token not in str(raised.value)


@pytest.mark.parametrize("environ", [{}, {"PKGREPO_DEPLOY_USER": "ann"}, {"PKGREPO_DEPLOY_PASSWORD": "x"}])
def test_missing_credentials_are_told(environ):
    with pytest.raises(Invalid, match="PKGREPO_DEPLOY_TOKEN"):
        read_authorization(environ, None)
