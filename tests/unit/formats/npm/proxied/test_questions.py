"""The addresses that upstreams are asked at, and documents that are passed on."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.proxied.normaliser import LARGEST, keep_attestations, keep_keys, kept_text
from pkgrepo.formats.npm.proxied.upstream import attestations_question, keys_question, packument_question
from pkgrepo.proxy.parts.values import Context

ROOT = "https://registry.example/npm"
CONTEXT = Context("x", ROOT)


def test_scope_is_sent_with_an_encoded_slash() -> None:
    assert packument_question("@sc/x").urls(ROOT) == (f"{ROOT}/@sc%2fx",)
    assert packument_question("x").urls(ROOT) == (f"{ROOT}/x",)
    assert attestations_question("@sc/x", "1.0.0+b").urls(ROOT) == (f"{ROOT}/-/npm/v1/attestations/@sc%2fx@1.0.0+b",)
    assert keys_question().urls(ROOT) == (f"{ROOT}/-/npm/v1/keys",)


def test_questions_have_keys_of_their_own() -> None:
    asked = [packument_question("keys"), keys_question(), attestations_question("keys", "1.0.0")]
    assert len({question.key for question in asked}) == 3
    assert [question.package_key for question in asked] == ["keys", "", "keys"]


def test_document_is_kept_as_it_is() -> None:
    source = '{ "keys": [{"é": 1.50}] }'
    assert kept_text(keep_keys(source.encode(), CONTEXT).top) == source


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"[]",
        b"{}",
        b"<html>",
        b'{"a":"\xff","keys":[]}',
        b'{"keys":[],"a":"%b"}' % (b"x" * LARGEST),
        b'{"keys":{}}',
        b'{"keys":[7]}',
    ],
)
def test_document_that_is_no_list_of_keys_is_refused(source: bytes) -> None:
    with pytest.raises(Invalid):
        keep_keys(source, CONTEXT)
    with pytest.raises(Invalid):
        keep_attestations(source, CONTEXT)
