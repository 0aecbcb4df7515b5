"""Signatures of webhooks, compared with an example of the Standard Webhooks specification."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.webhooks.signing import check_secret, new_secret, sign

# https://github.com/standard-webhooks/standard-webhooks, the tests of its libraries
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_signature_is_that_of_the_specification() -> None:
    assert sign([SECRET], ID, AT, BODY) == SIGNATURE


def test_each_secret_signs() -> None:
    other = new_secret()
    signatures = sign([SECRET, other], ID, AT, BODY).split(" ")
    assert signatures == [SIGNATURE, sign([other], ID, AT, BODY)]


def test_new_secrets_differ_and_are_valid() -> None:
    first, second = new_secret(), new_secret()
    assert first != second
    assert check_secret(first) == first


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_!!!!", "whsec_YWJj", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_what_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        check_secret(text)
