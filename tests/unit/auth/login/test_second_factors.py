"""One-time codes and recovery codes."""

from __future__ import annotations

import base64

import pytest

from pkgrepo.auth.login.second_factors import (
    RECOVERY_CODES,
    find_step,
    hash_recovery_code,
    make_code,
    make_recovery_codes,
)

SECRET = base64.b32encode(b"12345678901234567890").decode()  # of RFC 6238, appendix B


@pytest.mark.parametrize(
    ("at_s", "code"),
    [
        (59, "287082"),
        (1111111109, "081804"),
        (1111111111, "050471"),
        (1234567890, "005924"),
        (2000000000, "279037"),
        (20000000000, "353130"),
    ],
)
def test_codes_are_those_of_the_rfc(at_s: int, code: str) -> None:
    assert make_code(SECRET, at_s // 30) == code
    for now_s in (max(at_s - 30, 30), at_s, at_s + 30):
        assert find_step(SECRET, code, now_s) == at_s // 30
    for now_s in (max(at_s - 60, 120), at_s + 60):
        assert find_step(SECRET, code, now_s) is None


@pytest.mark.parametrize("code", ["", "28708", "2870820", "287082 ", "\u0662\u0668\u0667\u0660\u0668\u0662", "\ud800"])
def test_what_is_no_code_is_wrong(code: str) -> None:
    assert find_step(SECRET, code, 59) is None


def test_recovery_codes_are_long_different_and_found_in_any_spelling() -> None:
    codes = make_recovery_codes()
    assert len({hash_recovery_code(each) for each in codes}) == RECOVERY_CODES
    for each in codes:
        assert len(each) == 29  # 120 bits
        assert hash_recovery_code(each.upper().replace("-", "")) == hash_recovery_code(each)
