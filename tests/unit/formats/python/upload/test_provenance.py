"""Attestations and the provenance made of them."""

import base64
from typing import Any

import msgspec
import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.limits import ATTESTATION_VALUES, ATTESTATIONS_SIZE, MOST_ATTESTATIONS
from pkgrepo.formats.python.upload.provenance import parse_attestations, provenance_document
from pkgrepo.model import Pipeline
from tests.support.fulcio import attest, extensions_of

NAME = "demo_pkg-1.0-py3-none-any.whl"
SHA = "ab" * 32
PUBLISH, BUILD = "https://demo.example/publish/v1", "https://slsa.dev/provenance/v1"


def attestation(
    name: str = NAME, sha256: str = SHA, kind: str = PUBLISH, statement: bytes | None = None, **changes: Any
) -> dict[str, Any]:
    if statement is None:
        value = {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": name, "digest": {"sha256": sha256}}],
            "predicateType": kind,
            "predicate": None,
            **changes,
        }
        statement = msgspec.json.encode(value)
    return {
        "version": 1,
        "verification_material": {"certificate": "MII=", "transparency_entries": [{"logIndex": "1"}]},
        "envelope": {"statement": base64.b64encode(statement).decode(), "signature": "c2ln"},
        "unknown": {"kept": True},
    }


def document(*attestations: dict[str, Any], filename: str = NAME) -> Any:
    parsed = parse_attestations(msgspec.json.encode(list(attestations)).decode())
    return msgspec.json.decode(provenance_document(parsed, filename, SHA))


def test_provenance_holds_the_attestations_as_they_came() -> None:
    both = attestation(), attestation(kind=BUILD)
    assert document(*both) == {
        "version": 1,
        "attestation_bundles": [{"publisher": {"kind": "unverified", "claims": None}, "attestations": list(both)}],
    }


def test_provenance_names_the_pipeline_that_publishes_and_no_other() -> None:
    claims = {"iss": "https://forge.example", "repository": "acme/widget"}
    pipeline = Pipeline("pipeline", "forge", "", frozenset(), claims)
    right = attest(NAME, SHA, extensions_of(claims["iss"]))
    value = msgspec.json.decode(provenance_document([right], NAME, SHA, pipeline=pipeline))
    assert value["attestation_bundles"][0]["publisher"]["repository"] == "acme/widget"
    wrong = attest(NAME, SHA, extensions_of(claims["iss"], _12="https://forge.example/evil/widget"))
    for each, why in ((wrong, "evil/widget"), (attestation(), "cannot be read")):
        with pytest.raises(Invalid, match=why):
            provenance_document([each], NAME, SHA, pipeline=pipeline)
    keyed = {**right, "verification_material": {}}
    assert provenance_document([keyed], NAME, SHA, pipeline=pipeline)


@pytest.mark.parametrize("name", ["Demo.Pkg-1.0-py3-none-any.whl", "demo_pkg-1.0.0-py3-none-any.whl"])
def test_subject_may_spell_the_file_otherwise(name: str) -> None:
    assert document(attestation(name=name))["version"] == 1


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (attestation(name="other-1.0-py3-none-any.whl"), "is about 'other"),
        (attestation(name="demo_pkg-1.1-py3-none-any.whl"), "is about"),
        (attestation(name="demo_pkg-1.0-py2-none-any.whl"), "is about"),
        (attestation(name="demo_pkg-1.0-1-py3-none-any.whl"), "is about"),
        (attestation(name="demo_pkg-1.0.tar.gz"), "is about"),
        (attestation(name=""), "is about ''"),
        (attestation(sha256="cd" * 32), "another sha256"),
        (attestation(subject=[{"name": NAME, "digest": {"sha512": SHA}}]), "another sha256"),
        (attestation(subject=[]), "0 subjects"),
        (attestation(subject=[{"name": NAME, "digest": {"sha256": SHA}}] * 2), "2 subjects"),
        (attestation(subject=None), "cannot be read"),
        (attestation(_type="https://in-toto.io/Statement/v0.1"), "not an in-toto statement"),
        (attestation(statement=b"{"), "cannot be read"),
        (attestation(statement=b"\xff"), "cannot be read"),
        (attestation(statement=b"[" * 15_000), "cannot be read"),
        (attestation(statement=b"[" * 100_000), "more than 20000 values"),
        ({**attestation(), "envelope": {"statement": "not base64!", "signature": ""}}, "cannot be read"),
        ({**attestation(), "envelope": {"statement": "\u00e4", "signature": ""}}, "cannot be read"),
    ],
)
def test_attestation_of_another_file_is_refused(value: dict[str, Any], why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        document(value)
    assert caught.value.pointer == "attestations"


def test_two_statements_of_one_kind_are_refused() -> None:
    with pytest.raises(Invalid, match="of one kind"):
        document(attestation(), attestation())


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "{}",
        "[1]",
        "[{}]",
        "[",
        "[" * 100_000,
        "\ud800",
        msgspec.json.encode([{**attestation(), "version": 2}]).decode(),
        msgspec.json.encode([{**attestation(), "envelope": {}}]).decode(),
        msgspec.json.encode([{**attestation(), "verification_material": []}]).decode(),
        msgspec.json.encode([attestation(kind=str(n)) for n in range(MOST_ATTESTATIONS + 1)]).decode(),
    ],
)
def test_field_that_is_no_list_of_attestations_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_attestations(text)
    assert caught.value.pointer == "attestations"


def test_empty_field_has_none() -> None:
    assert parse_attestations("") == ()
    assert parse_attestations("[]") == ()


def test_attestations_have_a_budget() -> None:
    text = msgspec.json.encode([attestation()]).decode()
    fitting = text + " " * (ATTESTATIONS_SIZE - len(text))
    assert len(parse_attestations(fitting)) == 1
    with pytest.raises(Invalid, match=f"longer than {ATTESTATIONS_SIZE} characters"):
        parse_attestations(fitting + " ")
    with pytest.raises(Invalid, match=f"attestations has more than {ATTESTATION_VALUES} values"):
        parse_attestations("[" + "[]," * (ATTESTATION_VALUES // 2) + "[]]")
    with pytest.raises(Invalid, match=rf"an attestation of .* has more than {ATTESTATION_VALUES} values"):
        document(attestation(predicate=[[]] * (ATTESTATION_VALUES // 2)))
