"""The signature of a request."""

from pkgrepo.s3.places import AccessKey
from pkgrepo.s3.requests import EMPTY
from pkgrepo.s3.signing import make_signer


def test_a_request_is_signed_with_the_digest_of_its_body():
    signer = make_signer("us-east-1", AccessKey("id", "secret"))
    headers = signer.sign("GET", "https://s3.example.com/b/k?x=%20y", {"Range": "bytes=0-1"}, EMPTY)
    assert headers["X-Amz-Content-SHA256"] == EMPTY
    assert headers["Range"] == "bytes=0-1"
    scheme, _, rest = headers["Authorization"].partition(" ")
    assert scheme == "AWS4-HMAC-SHA256"
    assert "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date" in rest
    assert "secret" not in str(headers)
    assert not signer.is_stale
