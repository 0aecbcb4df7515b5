"""The legacy upload form, as each tool fills it in."""

import base64

import msgspec
import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.names import parse_filename
from pkgrepo.formats.python.upload.form import UploadForm
from pkgrepo.formats.python.upload.metadata import CoreMetadata
from pkgrepo.http.responses import Refusal

SHA, BLAKE, MD5 = "a" * 64, "b" * 64, "c" * 32
WHEEL = parse_filename("demo_pkg-1.0-py3-none-any.whl")
SDIST = parse_filename("demo_pkg-1.0.tar.gz")
METADATA = CoreMetadata(metadata_version="2.1", name="Demo.Pkg", version="1.0")

NAMED = [("metadata_version", "2.5"), ("name", "Demo.Pkg"), ("version", "1.0")]

# Fields in the order in which each tool sends them, without the texts that are the same everywhere.
TOOLS = {
    "uv": [
        (":action", "file_upload"),
        ("sha256_digest", SHA),
        ("blake2_256_digest", BLAKE),
        ("protocol_version", "1"),
        *NAMED,
        ("filetype", "sdist"),
        ("pyversion", "source"),
        ("requires_python", ""),
        ("keywords", "a,b"),
        ("license_file", "LICENSE"),
    ],
    "twine": [
        *NAMED,
        ("filetype", "sdist"),
        ("pyversion", "source"),
        ("keywords", "a, b"),
        ("sha256_digest", SHA),
        ("blake2_256_digest", BLAKE),
        ("md5_digest", MD5),
        ("comment", ""),
        (":action", "file_upload"),
        ("protocol_version", "1"),
    ],
    "flit": [
        (":action", "file_upload"),
        ("protocol_version", "1"),
        *NAMED,
        ("filetype", "sdist"),
        ("author_email", "A <a@demo.example>"),
        ("md5_digest", MD5),
        ("sha256_digest", SHA),
    ],
    "poetry": [
        (":action", "file_upload"),
        *NAMED,
        ("filetype", "sdist"),
        ("pyversion", ""),
        ("md5_digest", MD5),
        ("sha256_digest", SHA),
        ("blake2_256_digest", BLAKE),
        ("classifiers", "Programming Language :: Python :: 3"),
        ("protocol_version", "1"),
    ],
    "setuptools": [
        (":action", "file_upload\r\n"),
        ("protocol_version", "1\r\n"),
        ("name", "Demo.Pkg\r\n"),
        ("version", "1.0\r\n"),
        ("filetype", "sdist\r\n"),
        ("pyversion", "source\r\n"),
        ("md5_digest", MD5 + "\r\n"),
        ("metadata_version", "1.1\r\n"),
    ],
    "curl": [],
}


@pytest.mark.parametrize("fields", TOOLS.values(), ids=TOOLS)
def test_form_of_every_tool_is_taken(fields: list[tuple[str, str]]) -> None:
    form = UploadForm.parse(fields)
    form.check(SDIST, METADATA)
    form.check_action(required=bool(fields))
    assert form.attestations == ()
    assert set(form.digests) <= {"sha256_digest", "blake2_256_digest", "md5_digest"}


def test_form_says_what_was_sent() -> None:
    form = UploadForm.parse(
        [
            *TOOLS["uv"],
            ("classifiers", "B"),
            ("comment", "first"),
            ("classifiers", "A"),
            ("classifiers", "B"),
            ("md5_digest", MD5.upper()),
        ]
    )
    assert (form.action, form.name, form.version) == ("file_upload", "Demo.Pkg", "1.0")
    assert (form.filetype, form.pyversion, form.comment) == ("sdist", "source", "first")
    assert form.digests == {"sha256_digest": SHA, "blake2_256_digest": BLAKE, "md5_digest": MD5}
    assert form.values["classifiers"] == ("B", "A", "B")
    assert form.values["requires_python"] == ("",)


def test_single_field_may_be_repeated_but_not_contradicted() -> None:
    assert UploadForm.parse([("name", "demo"), ("name", "demo"), ("name", "")]).name == "demo"
    with pytest.raises(Invalid, match="gives name more than once"):
        UploadForm.parse([("name", "demo"), ("name", "Demo")])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("protocol_version", "2"),
        ("metadata_version", "3.0"),
        ("metadata_version", "0.9"),
        ("metadata_version", "2"),
        ("filetype", "bdist_egg"),
        ("filetype", "bdist_wininst"),
        ("filetype", "\x1b[2J"),
        ("sha256_digest", "a" * 63),
        ("sha256_digest", "g" * 64),
        ("blake2_256_digest", "a" * 128),
        ("md5_digest", "rL0Y20zC+Fzt72VPzMSk2A=="),
        ("attestations", "{"),
    ],
)
def test_field_with_an_unknown_meaning_is_refused_by_name(field: str, value: str) -> None:
    with pytest.raises(Invalid) as caught:
        UploadForm.parse([(field, value)])
    assert caught.value.pointer == field
    assert field in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("version", ["1.0", "1.2", "2.1", "2.4", "2.5", "2.6"])
def test_known_and_coming_metadata_versions_pass(version: str) -> None:
    assert UploadForm.parse([("metadata_version", version)]).values["metadata_version"] == (version,)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ([("name", "other")], "name"),
        ([("name", "not a name")], "name"),
        ([("version", "1.1")], "version"),
        ([("version", "one")], "version"),
        ([("filetype", "bdist_wheel")], "filetype"),
    ],
)
def test_form_that_contradicts_its_file_is_refused(fields: list[tuple[str, str]], pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        UploadForm.parse(fields).check(SDIST, METADATA)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("name", ["demo-pkg", "DEMO_PKG", "demo.-pkg"])
@pytest.mark.parametrize("version", ["1", "1.0.0", "v1.0"])
def test_other_spellings_of_name_and_version_pass(name: str, version: str) -> None:
    UploadForm.parse([("name", name), ("version", version), ("filetype", "bdist_wheel")]).check(WHEEL, METADATA)


@pytest.mark.parametrize("action", ["submit", "submit_pkg_info", "doc_upload"])
def test_retired_action_is_gone(action: str) -> None:
    with pytest.raises(Refusal) as caught:
        UploadForm.parse([(":action", action)]).check_action(required=False)
    assert caught.value.status == 410
    assert action in str(caught.value)


@pytest.mark.parametrize(
    ("action", "required", "why"),
    [("verify", False, "not 'verify'"), ("FILE_UPLOAD", True, "not 'FILE_UPLOAD'"), ("", True, "and is missing")],
)
def test_other_action_is_refused(action: str, required: bool, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        UploadForm.parse([(":action", action)]).check_action(required=required)


def test_action_may_be_missing_where_the_address_says_it() -> None:
    UploadForm.parse([]).check_action(required=False)


def test_attestations_are_read() -> None:
    attestation = {
        "version": 1,
        "verification_material": {"certificate": "", "transparency_entries": []},
        "envelope": {"statement": base64.b64encode(b"{}").decode(), "signature": ""},
    }
    form = UploadForm.parse([("attestations", msgspec.json.encode([attestation]).decode())])
    assert form.attestations == (attestation,)
    assert UploadForm.parse([("attestations", "[]")]).attestations == ()
