"""Where a bucket is, and how people name a folder or a bucket."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from attrs import field, frozen

from pkgrepo.errors import Invalid

S3: Final = "s3://"


@frozen
class AccessKey:
    """A static key; without ``secret`` no request can be signed."""

    id: str
    secret: str = field(repr=False)


@frozen
class BucketPlace:
    """
    A bucket of the server at ``endpoint`` (http or https), and the ``prefix`` of all keys, empty or ending with "/".

    With ``path_style`` the bucket is the first segment of the path, else the first label of the host name. Without a
    ``key`` the credentials are found like those of other programs: in the environment, in files, or of the instance.
    Clients are redirected to the bucket for copies of at least ``redirect_from`` bytes; 0 for never. ``ca_file`` is the
    path of a file (PEM) with certificates that are trusted beside the system's, or empty.
    """

    endpoint: str
    bucket: str
    region: str
    prefix: str = ""
    path_style: bool = True
    key: AccessKey | None = None
    redirect_from: int = 0
    ca_file: str = ""

    @property
    def base_url(self) -> str:
        """The URL of the bucket, without a slash at its end."""
        if self.path_style:
            return f"{self.endpoint}/{self.bucket}"
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{self.bucket}.{parts.netloc}{parts.path}"


@frozen(kw_only=True)
class Destination:
    """
    What names a place: ``address`` is the path of a folder, or ``s3://bucket/prefix``; the rest is about buckets.

    Credentials for a bucket are found in the environment, in files or of the instance.
    """

    address: str
    endpoint: str = ""
    region: str = "us-east-1"
    path_style: bool = True
    ca_file: str = ""

    @property
    def bucket(self) -> BucketPlace | None:
        """The bucket, or None for a folder. :raises Invalid: the address or the endpoint is missing or malformed"""
        if not self.address.startswith(S3):
            return None
        parts = urlsplit(self.address)
        if not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
            raise Invalid(f"{self.address!r} is no address such as s3://bucket/prefix")
        if not self.endpoint:
            raise Invalid("a bucket needs the address of its server (--endpoint, or backup.endpoint)")
        prefix = parts.path.strip("/")
        return BucketPlace(
            endpoint=self.endpoint,
            bucket=parts.netloc,
            region=self.region,
            prefix=f"{prefix}/" if prefix else "",
            path_style=self.path_style,
            ca_file=self.ca_file,
        )
