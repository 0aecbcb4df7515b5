"""Attestations that are pushed with a gem: they are verified, and of the pipeline that pushes it."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from attrs import evolve

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.provenance import check_pushed
from pkgrepo.model import Pipeline
from tests.support.fulcio import COMMIT
from tests.support.sigstore import ISSUER, FakeSigstore

FAKE = FakeSigstore()
DATA = b"a gem"
DIGEST = sha256(DATA).hexdigest()
CLAIMS = {"iss": ISSUER, "repository": "acme/widget", "repository_id": "1234", "sha": COMMIT}
PIPELINE = Pipeline("release.yml of acme/widget", "forge", "sub", frozenset(), CLAIMS)


@pytest.mark.parametrize("pipeline", [PIPELINE, None], ids=["pipeline", "person"])
def test_an_attestation_of_the_pipeline_that_pushes_is_taken(pipeline: Pipeline | None) -> None:
    check_pushed(FAKE.gem(DATA), DIGEST, FAKE.root, pipeline)


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("repository", "acme/other", "repository"),
        ("repository_id", "5", "repository with the number"),
        ("sha", "0" * 40, "commit"),
        ("iss", "https://other.example", "issuer"),
    ],
)
def test_one_of_another_pipeline_is_refused(name: str, value: str, named: str) -> None:
    other = evolve(PIPELINE, claims={**CLAIMS, name: value})
    with pytest.raises(Invalid, match=f"the attestation is of another pipeline .* its certificate names the {named} "):
        check_pushed(FAKE.gem(DATA), DIGEST, FAKE.root, other)
    check_pushed(FAKE.gem(DATA), DIGEST, FAKE.root, None)


def test_all_attestations_of_a_gem_are_verified() -> None:
    both = json.dumps([FAKE.message_bundle(DATA), FAKE.message_bundle(b"other")]).encode()
    with pytest.raises(Invalid, match="about a file with other bytes"):
        check_pushed(both, DIGEST, FAKE.root, None)
    with pytest.raises(Invalid, match="that is not trusted"):
        check_pushed(FakeSigstore().gem(DATA), DIGEST, FAKE.root, None)
