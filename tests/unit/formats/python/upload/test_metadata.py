"""Core metadata, old and new."""

import msgspec
import pytest
from attrs import fields_dict

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.limits import MOST_REQUIREMENTS, REQUIREMENTS_SIZE
from pkgrepo.formats.python.names import parse_filename
from pkgrepo.formats.python.upload import metadata as module
from pkgrepo.formats.python.upload.metadata import CoreMetadata, check_identity, meta_json, parse_metadata

HEAD = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"

FULL = """\
Metadata-Version: 2.5
Name: Demo.Pkg
Version: 1.0
Dynamic: Classifier
Dynamic: License
Platform: any
Platform: linux
Supported-Platform: RedHat 7.2
Summary: Jürgen's package
Description-Content-Type: text/markdown; charset=UTF-8
Keywords: a,b c
Home-page: https://demo.example/
Download-URL: https://demo.example/download
Author: Jürgen
Author-email: Jürgen <j@demo.example>
Maintainer: M
Maintainer-email: m@demo.example
License-Expression: MIT OR Apache-2.0
License-File: LICENSE
License-File: LICENSES/MIT.txt
Classifier: Private :: Do Not Upload
Classifier: Not a real one
Requires-Dist: attrs>=20 ; python_version < "4"
Requires-Dist: click ; extra == "extra"
Requires-Python: >=3.8,<4
Requires-External: libpng (>=1.5)
Project-URL: Source, https://demo.example/source
Project-URL: Source, https://demo.example/again
Provides-Extra: extra
Provides-Dist: old-demo
Obsoletes-Dist: older-demo
Import-Name: demo
Import-Namespace: demo_parent

# Hello

Name: not a field
""".encode()


def test_every_field_is_read() -> None:
    assert parse_metadata(FULL, "METADATA") == CoreMetadata(
        metadata_version="2.5",
        name="Demo.Pkg",
        version="1.0",
        dynamic=("Classifier", "License"),
        platform=("any", "linux"),
        supported_platform=("RedHat 7.2",),
        summary="Jürgen's package",
        description="# Hello\n\nName: not a field\n",
        description_content_type="text/markdown; charset=UTF-8",
        keywords="a,b c",
        home_page="https://demo.example/",
        download_url="https://demo.example/download",
        author="Jürgen",
        author_email="Jürgen <j@demo.example>",
        maintainer="M",
        maintainer_email="m@demo.example",
        license_expression="MIT OR Apache-2.0",
        license_files=("LICENSE", "LICENSES/MIT.txt"),
        classifiers=("Private :: Do Not Upload", "Not a real one"),
        requires_dist=('attrs>=20 ; python_version < "4"', 'click ; extra == "extra"'),
        requires_python=">=3.8,<4",
        requires_external=("libpng (>=1.5)",),
        project_urls=("Source, https://demo.example/source", "Source, https://demo.example/again"),
        provides_extra=("extra",),
        provides_dist=("old-demo",),
        obsoletes_dist=("older-demo",),
        import_names=("demo",),
        import_namespaces=("demo_parent",),
    )


def test_catalog_keeps_what_is_there() -> None:
    metadata = parse_metadata(FULL, "METADATA")
    stored = msgspec.json.decode(msgspec.json.encode(meta_json(metadata)))
    assert stored["classifiers"] == ["Private :: Do Not Upload", "Not a real one"]
    assert "obsoletes" not in stored
    back = {key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()}
    assert CoreMetadata(**back) == metadata
    assert set(meta_json(parse_metadata(HEAD, "METADATA"))) == {"metadata_version", "name", "version"}
    assert set(stored) <= set(fields_dict(CoreMetadata))


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_lines_may_end_in_any_way(line_end: bytes) -> None:
    data = (HEAD + b"Summary: one\n two\n\nbody").replace(b"\n", line_end)
    metadata = parse_metadata(data, "METADATA")
    assert (metadata.name, metadata.summary, metadata.description) == ("demo", "one two", "body")


def test_folded_description_of_old_tools_is_unfolded() -> None:
    old = (
        HEAD
        + b"License: MIT\n       |second\n        third\nDescription: Title\n        =====\n        \n          x\n"
    )
    metadata = parse_metadata(old, "PKG-INFO")
    assert metadata.license == "MIT\nsecond\nthird"
    assert metadata.description == "Title\n=====\n\n  x"


def test_values_that_say_nothing_are_absent() -> None:
    metadata = parse_metadata(
        HEAD + b"Home-page: UNKNOWN\nRequires-Python: \nPlatform: UNKNOWN\nSummary:\n", "PKG-INFO"
    )
    assert (metadata.home_page, metadata.requires_python, metadata.platform, metadata.summary) == ("", None, (), "")
    assert metadata.warnings == ()


def test_what_mail_would_say_of_the_body_does_not_count() -> None:
    body = b"\n--x\nName: other\n\naGVsbG8=\n--x--\n"
    data = HEAD + b"Content-Type: multipart/mixed; boundary=x\nContent-Transfer-Encoding: base64\n" + body
    metadata = parse_metadata(data, "METADATA")
    assert metadata.description.encode() == body[1:]
    assert metadata.warnings == ("METADATA has unknown fields: Content-Type, Content-Transfer-Encoding",)


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        (b"Frobnicate: yes", "unknown fields: Frobnicate"),
        (b"Requires-Python: >=3.6.*", "'>=3.6.*' is not a version specifier"),
        (b"Requires-Python: " + b">=3," * 100_000, "is not a version specifier"),
        (b"Requires-Dist: attrs\nRequires-Dist: not a requirement!", "1 of Requires-Dist cannot be read"),
        (b"Requires-Dist: a;" + b"(" * 33 + b"extra=='a'" + b")" * 33, "1 of Requires-Dist cannot be read"),
        (b"Requires-Dist: a;" + b"(" * 4000, "1 of Requires-Dist cannot be read"),
        (b"Requires-Dist: " + b"a" * 5000, "1 of Requires-Dist cannot be read"),
        (b"Summary: one\nSummary: two", "gives summary more than once"),
        (b"Author: J\xfcrgen", "Author in METADATA is not UTF-8"),
        (b"no field", "lines that are not fields"),
        (b"\nbody \xff", "Description in METADATA is not UTF-8"),
    ],
)
def test_oddities_are_warnings(line: bytes, warning: str) -> None:
    metadata = parse_metadata(HEAD + line + b"\n", "METADATA")
    assert len(metadata.warnings) == 1
    assert warning in metadata.warnings[0]
    assert len(metadata.warnings[0]) < 200


def test_odd_values_are_kept_as_they_came() -> None:
    metadata = parse_metadata(
        HEAD + b"Requires-Python: >=3.6.*\nSummary: one\nSummary: two\nAuthor: \xfc\n", "METADATA"
    )
    assert (metadata.requires_python, metadata.summary, metadata.author) == (">=3.6.*", "one", "ü")


@pytest.mark.parametrize("version", ["1.0", "1.2", "2.0", "2.1", "2.5", "2.9"])
def test_known_and_coming_metadata_versions_pass(version: str) -> None:
    data = HEAD.replace(b"2.1", version.encode())
    assert parse_metadata(data, "METADATA").metadata_version == version


@pytest.mark.parametrize(
    ("data", "why", "pointer"),
    [
        (b"", "has no Metadata-Version", "metadata_version"),
        (b"\n" + HEAD, "has no Metadata-Version", "metadata_version"),
        (HEAD.replace(b"2.1", b"3.0"), "'3.0', and 1.0 to 2.x are known", "metadata_version"),
        (HEAD.replace(b"2.1", b"2"), "'2', and", "metadata_version"),
        (HEAD.replace(b"Name", b"Nam"), "has no Name", "name"),
        (HEAD.replace(b"demo", b"-demo"), "'-demo' is not a project name", "name"),
        (HEAD.replace(b"demo", b"UNKNOWN"), "has no Name", "name"),
        (HEAD.replace(b"Version: 1.0", b"Versio: 1"), "the version '', which", "version"),
        (HEAD.replace(b"1.0", b"1" * 5000), "which PEP 440 does not allow", "version"),
        (HEAD.replace(b"1.0", b"one"), "the version 'one', which", "version"),
        (HEAD + b"Name: other\n", "gives name more than once", "name"),
        (HEAD + b"Version: 1.1\n", "gives version more than once", "version"),
    ],
)
def test_what_cannot_be_done_without_is_demanded(data: bytes, why: str, pointer: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        parse_metadata(data, "METADATA")
    assert caught.value.pointer == pointer


def test_endless_head_is_refused() -> None:
    with pytest.raises(Invalid, match="more than"):
        parse_metadata(HEAD + b"a:\n" * module.MOST_LINES, "METADATA")
    assert parse_metadata(HEAD + b"\n" * module.MOST_LINES, "METADATA").name == "demo"


def test_requirements_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    most, size = MOST_REQUIREMENTS, REQUIREMENTS_SIZE // 100
    read: list[str] = []
    monkeypatch.setattr(module, "Requirement", read.append)
    for text, count, why in (
        (b"a", most + 1, f"more than {most} Requires-Dist"),
        (b"a" * size, 101, f"of more than {REQUIREMENTS_SIZE} characters together"),
    ):
        with pytest.raises(Invalid, match=why) as caught:
            parse_metadata(HEAD + b"Requires-Dist: %b\n" % text * count, "METADATA")
        assert caught.value.pointer == "requires_dist"
        assert not read
    fitting = HEAD + b"Requires-Dist: %b\n" % (b"a" * (REQUIREMENTS_SIZE // most)) * most
    assert parse_metadata(fitting, "METADATA").requires_dist == ("a" * (REQUIREMENTS_SIZE // most),) * most
    assert len(read) == most


def test_long_lists_of_requirements_fit() -> None:
    """3,000 of 130 characters each: several times what the largest projects with many extras have."""
    marker = "(python_version >= '3.8' and platform_system != 'Windows')"
    requirement = f"a-package-of-a-long-name[one,two]<9,>=1.2.3; {marker}"
    lines = "".join(f"Requires-Dist: {requirement} and extra == 'an-extra-{number}'\n" for number in range(3000))
    metadata = parse_metadata(HEAD + lines.encode(), "METADATA")
    assert len(metadata.requires_dist) == 3000
    assert not metadata.warnings


@pytest.mark.parametrize(
    ("filename", "why"),
    [
        ("demo-1.0.tar.gz", None),
        ("Demo-1.tar.gz", None),
        ("demo-1.0.1.tar.gz", "its version is '1.0'"),
        ("demos-1.0.tar.gz", "its name is 'demo'"),
    ],
)
def test_metadata_is_held_against_the_file_name(filename: str, why: str | None) -> None:
    metadata = parse_metadata(HEAD, "PKG-INFO")
    if why is None:
        check_identity(metadata, parse_filename(filename), "PKG-INFO")
        return
    with pytest.raises(Invalid, match=f"^{filename} says in its PKG-INFO that {why}"):
        check_identity(metadata, parse_filename(filename), "PKG-INFO")
