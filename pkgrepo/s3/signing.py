"""
Signatures of requests to a bucket (AWS Signature Version 4) by botocore.

botocore also finds credentials, and renews those that expire.

botocore is an optional dependency and takes a second to import: its parts are imported when a store is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pkgrepo.errors import Conflict
from pkgrepo.s3.places import AccessKey


class Signer(Protocol):
    """Signs the requests of one store."""

    def sign(self, method: str, url: str, headers: Mapping[str, str], payload_sha256: str) -> dict[str, str]:
        """Return the headers with those of the signature. ``payload_sha256`` is in hex."""

    def sign_url(self, url: str, life_s: int) -> str:
        """Return the URL with a signature for GET in its query, which is valid for ``life_s`` seconds."""

    @property
    def is_stale(self) -> bool:
        """Whether the credentials expire soon, so that ``renew`` must be called."""

    def renew(self) -> None:
        """Get new credentials. Blocks. :raises CredentialsMissing: there are none"""


class CredentialsMissing(Exception):  # noqa: N818 - named for what is wrong
    """There are no credentials, or they cannot be renewed; the text says why."""


def make_signer(region: str, key: AccessKey | None) -> Signer:
    """
    Return a signer; ``key`` is None to find credentials elsewhere. Blocks.

    :raises Conflict: botocore is not installed; :raises CredentialsMissing: no credentials were found
    """
    try:
        from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth  # noqa: PLC0415 - optional
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415
        from botocore.credentials import Credentials  # noqa: PLC0415
        from botocore.session import Session  # noqa: PLC0415
    except ImportError:
        raise Conflict('a storage is in a bucket, and botocore is not installed: pip install "WHEEL[s3]"') from None

    class Auth(S3SigV4Auth):  # type: ignore[misc]
        """Takes the digest of the body from the caller, which has computed it on a thread."""

        def payload(self, request: Any) -> str:
            return str(request.context["payload_sha256"])

    class BotocoreSigner:
        def __init__(self) -> None:
            self._source: Any = Credentials(key.id, key.secret) if key else Session().get_credentials()
            if self._source is None:
                raise CredentialsMissing("no credentials were found in the environment, in files or of the instance")
            self._frozen: Any = None
            self.renew()

        @property
        def is_stale(self) -> bool:
            check = getattr(self._source, "refresh_needed", None)
            return check is not None and bool(check())

        def renew(self) -> None:
            try:
                self._frozen = self._source.get_frozen_credentials()
            except Exception as error:
                raise CredentialsMissing(f"the credentials cannot be renewed: {type(error).__name__}") from error

        def sign(self, method: str, url: str, headers: Mapping[str, str], payload_sha256: str) -> dict[str, str]:
            request = AWSRequest(method=method, url=url, headers=dict(headers))
            request.context["payload_sha256"] = payload_sha256
            Auth(self._frozen, "s3", region).add_auth(request)
            return dict(request.headers.items())

        def sign_url(self, url: str, life_s: int) -> str:
            request = AWSRequest(method="GET", url=url)
            S3SigV4QueryAuth(self._frozen, "s3", region, expires=life_s).add_auth(request)
            return str(request.url)

    return BotocoreSigner()
