"""The registry's signatures and its public key."""

import base64

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

pytestmark = pytest.mark.server


def test_signatures_verify_with_the_published_key(npm, publish):
    publish("@signed/x", "1.0.0")
    (key,) = npm.get("/-/npm/v1/keys").json["keys"]
    assert (key["keytype"], key["scheme"], key["expires"]) == ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256", None)
    public = serialization.load_der_public_key(base64.b64decode(key["key"]))
    for form in ("application/vnd.npm.install-v1+json", "application/json"):
        dist = npm.get("/@signed%2fx", Accept=form).json["versions"]["1.0.0"]["dist"]
        (signature,) = dist["signatures"]
        assert signature["keyid"] == key["keyid"]
        message = f"@signed/x@1.0.0:{dist['integrity']}".encode()
        public.verify(base64.b64decode(signature["sig"]), message, ec.ECDSA(hashes.SHA256()))
