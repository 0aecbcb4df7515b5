import re

import pytest

from pkgrepo.auth.tokens.text import hash_token, make_token, shown_part, token_kind
from pkgrepo.model import TokenKind


@pytest.mark.parametrize("kind", TokenKind)
def test_a_new_token_has_the_documented_form_and_names_its_kind(kind):
    text = make_token(kind)
    assert re.fullmatch(r"pkgr_[pscrl]_[0-9A-Za-z]{46}", text)
    assert text[5] == kind.value[0]
    assert token_kind(text) is kind


def test_the_form_is_the_one_that_scanners_were_told():
    assert token_kind("pkgr_p_" + "0" * 40 + "08aiRx") is TokenKind.PERSONAL


def test_every_changed_character_is_noticed_offline():
    text = make_token(TokenKind.CI)
    for place in range(7, len(text)):
        other = "a" if text[place] != "a" else "b"
        assert token_kind(text[:place] + other + text[place + 1 :]) is None


@pytest.mark.parametrize("spoil", [lambda t: t + "x", lambda t: t[:-1], lambda t: t + "\n", str.upper, lambda t: ""])
def test_look_alikes_are_not_tokens(spoil):
    assert token_kind(spoil(make_token(TokenKind.PERSONAL))) is None


def test_an_unknown_kind_letter_is_not_a_token():
    assert token_kind("pkgr_z_" + make_token(TokenKind.PERSONAL)[7:]) is None


def test_tokens_differ_and_so_do_their_hashes():
    texts = {make_token(TokenKind.SERVICE) for _ in range(100)}
    assert len(texts) == 100
    assert len({hash_token(text) for text in texts}) == 100
    assert all(len(hash_token(text)) == 32 for text in texts)


def test_the_shown_part_holds_no_more_than_four_secret_characters():
    text = make_token(TokenKind.PERSONAL)
    assert shown_part(text) == f"pkgr_p_...{text[-4:]}"
