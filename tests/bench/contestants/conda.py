"""Conda channels: their addresses, and who may upload."""

from __future__ import annotations

from tests.bench.clients.load import Post, Target, post_all
from tests.support.conda_packages import make_conda

from .server import Filled, PkgrepoHosting


def package_post(name: str, version: str = "1.0") -> Post:
    """The upload of a small package, as rattler-build sends it to a prefix server."""
    data = make_conda(name, version)
    fields = f'form-data; name="file"\r\nX-File-Name: {name}-{version}-py_0.conda'
    parts = [f"--b\r\nContent-Disposition: {fields}\r\n\r\n".encode(), data, b"\r\n--b--\r\n"]
    return Post({"Content-Type": "multipart/form-data; boundary=b"}, parts, sum(map(len, parts)))


class PkgrepoChannel(PkgrepoHosting):
    """A public channel, empty when it starts."""

    name = "pkgrepo-conda"
    repository = "channel"
    format = "conda"

    @property
    def folder_url(self) -> str:
        """The address of the folder with all packages."""
        return f"{self.repository_url}/noarch"

    @property
    def target(self) -> Target:
        """Where packages are uploaded."""
        return Target(f"{self.repository_url}/api/v1/upload/any", {"Authorization": f"Bearer {self.token}"})

    def upload(self, post: Post) -> float:
        """Upload a package; the milliseconds that it took."""
        return post_all(self.target, [post], 1)[0]


class PkgrepoConda(Filled, PkgrepoChannel):
    """A public channel with 30,000 records, of 3,000 packages, in one folder."""

    name = "pkgrepo-conda-30000"
    releases = 30_000
