"""Where a bucket is, and who uses it."""

from __future__ import annotations

from urllib.parse import urlsplit

from attrs import field, frozen


@frozen
class AccessKey:
    """A static key; without ``secret`` nobody can sign."""

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
