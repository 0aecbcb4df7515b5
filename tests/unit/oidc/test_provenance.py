"""Attestations are of the pipeline that publishes, as their certificates say."""

from __future__ import annotations

import pytest
from attrs import evolve

from pkgrepo.errors import Invalid
from pkgrepo.model import Pipeline
from pkgrepo.oidc.provenance import Signed, check_signer, publisher_of
from tests.support.fulcio import COMMIT, extensions_of, sign

ISSUER = "https://forge.example/issuer"
FILE = "acme/widget/.github/workflows/release.yml@refs/tags/v1"
CLAIMS = {
    "iss": ISSUER,
    "repository": "acme/widget",
    "repository_id": "1234",
    "workflow_ref": FILE,
    "sha": COMMIT,
    "environment": "release",
}
PIPELINE = Pipeline("pipeline release.yml of acme/widget (forge)", "forge", "sub", frozenset(), CLAIMS)
LAB = {
    "iss": ISSUER,
    "project_path": "group/sub/demo",
    "project_id": "7",
    "ci_config_ref_uri": "forge.example/group/sub/demo//.gitlab-ci.yml@refs/heads/main",
}
PAYLOAD = b'{"predicateType": "x"}'


def check(pipeline: Pipeline = PIPELINE, **changes: str | None) -> None:
    certificate, signature = sign(PAYLOAD, extensions_of(ISSUER, **changes))
    check_signer(pipeline, Signed(certificate, PAYLOAD, signature), "the bundle", "here")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"_12": None, "_13": None, "_15": None, "_18": None},
        {"_8": None, "_12": None, "_13": None, "_15": None, "_18": None},
        {"_18": f"https://forge.example/{FILE.partition('@')[0]}@refs/heads/main"},
        {"_13": COMMIT.upper()},
        {"_12": f"{ISSUER}/acme/widget"},
    ],
    ids=["new", "middle", "old", "another ref", "case", "forge below a path"],
)
def test_a_certificate_of_the_same_pipeline_is_taken(changes: dict[str, str | None]) -> None:
    check(**changes)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"_8": "https://evil.example"}, "issuer 'https://evil.example'"),
        ({"_8": None, "_1": None}, "issuer ''"),
        ({"_12": "https://forge.example/evil/widget"}, "repository 'https://forge.example/evil/widget'"),
        ({"_12": "https://forge.example/evilacme/widget"}, "evilacme"),
        ({"_12": "https://forge.example/evil/acme/widget"}, "repository 'https://forge.example/evil/acme/widget'"),
        ({"_12": None, "_5": "evil/widget"}, "repository 'evil/widget'"),
        ({"_12": None, "_5": None}, "repository ''"),
        ({"_15": "1235"}, "repository with the number '1235'"),
        ({"_13": "0" * 40}, "commit '0000"),
        ({"_18": "https://forge.example/acme/widget/.github/workflows/evil.yml@refs/tags/v1"}, "pipeline 'https"),
    ],
)
def test_a_certificate_of_another_pipeline_is_refused(changes: dict[str, str | None], named: str) -> None:
    with pytest.raises(Invalid) as caught:
        check(**changes)
    assert f"is of another pipeline than the one that publishes: its certificate names the {named}" in str(
        caught.value
    ) or named in str(caught.value)


def test_pipelines_of_projects() -> None:
    pipeline = evolve(PIPELINE, claims=LAB)
    address = "https://forge.example/group/sub/demo"
    given: dict[str, str | None] = {
        "_12": address,
        "_13": None,
        "_15": "7",
        "_18": f"{address}//.gitlab-ci.yml@refs/heads/main",
    }
    check(pipeline, **given)
    with pytest.raises(Invalid, match="pipeline"):
        check(pipeline, **{**given, "_18": f"{address}//evil.yml@refs/heads/main"})


def test_a_signature_of_another_key_and_what_is_no_certificate_are_refused() -> None:
    certificate, _ = sign(PAYLOAD, extensions_of(ISSUER))
    _, signature = sign(PAYLOAD, extensions_of(ISSUER))
    for signed, why in (
        (Signed(certificate, PAYLOAD, signature), "is not that of its certificate"),
        (Signed(certificate, b"other", signature), "is not that of its certificate"),
        (Signed(certificate[:-9], PAYLOAD, signature), "cannot be read"),
        (Signed(b"", PAYLOAD, signature), "cannot be read"),
        (Signed(b"\x30" * 100_000, PAYLOAD, signature), "cannot be read"),
    ):
        with pytest.raises(Invalid, match=why):
            check_signer(PIPELINE, signed, "the bundle", "here")


def test_the_publisher_of_a_provenance_document() -> None:
    assert publisher_of(PIPELINE) == {
        "kind": "GitHub",
        "repository": "acme/widget",
        "workflow": "release.yml",
        "environment": "release",
        "claims": None,
    }
    assert publisher_of(evolve(PIPELINE, claims=LAB))["workflow"] == ".gitlab-ci.yml"
    assert publisher_of(evolve(PIPELINE, claims={}))["kind"] == "forge"
