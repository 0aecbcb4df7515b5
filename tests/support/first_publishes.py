"""
A package of each format, published and read again over HTTP, in any server that has a storage "main".

    python -m tests.support.first_publishes URL USER PASSWORD-FILE

publishes all of them, and ends with an error if one cannot be read back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import requests
from attrs import frozen

from tests.support.charts import make_chart
from tests.support.conda_packages import make_conda
from tests.support.crates import make_crate
from tests.support.crates import make_publish as make_crate_publish
from tests.support.gems import make_gem
from tests.support.go_modules import make_module
from tests.support.images import digest_of, make_image
from tests.support.maven_files import directory, make_pom
from tests.support.npm_packages import make_manifest, make_publish, make_tarball
from tests.support.python_packages import make_wheel
from tests.support.timeouts import TIMEOUT_S

NAME = "first"  # of every package
MODULE = f"example.com/{NAME}"
FIRST = {"python": "1.0", "maven": "1.0", "conda": "1.0", "docker": "v1"}  # versions; of the others 1.0.0
REPOSITORIES = {
    "python": "py",
    "npm": "node",
    "maven": "java",
    "ruby": "gems",
    "conda": "channel",
    "cargo": "crates",
    "go": "modules",
    "helm": "charts",
    "raw": "files",
    "docker": "images",
}


@frozen
class Published:
    """
    What a package is read by: the path of its file, that of an index in which ``listed`` stands, and the bytes of the
    file.
    """

    format: str
    file: str
    index: str
    data: bytes
    listed: str


class Publisher:
    """The admin of a server."""

    def __init__(self, url: str, auth: tuple[str, str]) -> None:
        self._url = url.rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.auth = auth

    def send(self, method: str, path: str, **options: object) -> requests.Response:
        """The response, whatever it is."""
        address = path if path.startswith("http") else f"{self._url}/{path.lstrip('/')}"
        return self._session.request(method, address, timeout=TIMEOUT_S, **options)  # type: ignore[arg-type]

    def ask(self, method: str, path: str, **options: object) -> requests.Response:
        """The response. :raises AssertionError: it is not a success"""
        answer = self.send(method, path, **options)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    def create(self, name: str, format_: str) -> None:
        value = {"name": name, "storage": "main", "format": format_, "visibility": "public"}
        self.ask("POST", "api/repository", json={**value, "config": {"type": "Hosted"}})

    def publish_all(self) -> Iterator[Published]:
        """Make a repository of each format, and publish into it."""
        for format_, repository in REPOSITORIES.items():
            self.create(repository, format_)
            yield self.publish(format_, NAME, FIRST.get(format_, "1.0.0"))

    def publish(self, format_: str, name: str, version: str, repository: str = "") -> Published:
        """Publish a version of a package into a repository of a format; of an image the version is its tag."""
        return PUBLISH[format_](self, f"repositories/main/{repository or REPOSITORIES[format_]}", name, version)

    def check(self, each: Published) -> None:
        """Read a package as it was published."""
        assert self.ask("GET", each.file).content == each.data, each.format
        assert each.listed in self.ask("GET", each.index).text, each.format


def _python(to: Publisher, base: str, name: str, version: str) -> Published:
    filename, data = make_wheel(name, version)
    to.ask("PUT", path := f"{base}/{name}/{version}/{filename}", data=data)
    return Published("python", path, f"{base}/simple/{name}/", data, filename)


def _npm(to: Publisher, base: str, name: str, version: str) -> Published:
    data = make_tarball(name, version, manifest=make_manifest(name, version))
    body = make_publish(name, version, tarball=data)
    to.ask("PUT", f"{base}/{name}", data=body, headers={"Content-Type": "application/json"})
    return Published("npm", f"{base}/{name}/-/{name}-{version}.tgz", f"{base}/{name}", data, f"{name}-{version}.tgz")


def _maven(to: Publisher, base: str, name: str, version: str) -> Published:
    data = make_pom("com.example", name, version)
    to.ask("PUT", path := f"{base}{directory('com.example', name, version)}/{name}-{version}.pom", data=data)
    index = f"{base}/com/example/{name}/maven-metadata.xml"
    return Published("maven", path, index, data, f"<version>{version}</version>")


def _gem(to: Publisher, base: str, name: str, version: str) -> Published:
    to.ask("POST", f"{base}/api/v1/gems", data=(data := make_gem(name, version)))
    return Published("ruby", f"{base}/gems/{name}-{version}.gem", f"{base}/info/{name}", data, f"\n{version} ")


def _conda(to: Publisher, base: str, name: str, version: str) -> Published:
    file, data = f"{name}-{version}-py_0.conda", make_conda(name, version)
    to.ask("PUT", path := f"{base}/noarch/{file}", data=data)
    return Published("conda", path, f"{base}/noarch/repodata.json", data, file)


def _crate(to: Publisher, base: str, name: str, version: str) -> Published:
    to.ask("PUT", f"{base}/api/v1/crates/new", data=make_crate_publish(name, version))
    file, data = f"{base}/{name}/{version}/{name}-{version}.crate", make_crate(name, version)
    return Published("cargo", file, f"{base}/{name[:2]}/{name[2:4]}/{name}", data, f'"vers":"{version}"')


def _module(to: Publisher, base: str, name: str, version: str) -> Published:
    module, version = f"example.com/{name}", f"v{version}"
    to.ask("PUT", path := f"{base}/{module}/@v/{version}.zip", data=(data := make_module(module, version)))
    return Published("go", path, f"{base}/{module}/@v/list", data, f"{version}\n")


def _chart(to: Publisher, base: str, name: str, version: str) -> Published:
    file, data = f"{name}-{version}.tgz", make_chart(name, version)
    to.ask("PUT", path := f"{base}/charts/{file}", data=data)
    return Published("helm", path, f"{base}/index.yaml", data, file)


def _file(to: Publisher, base: str, name: str, version: str) -> Published:
    file, data = f"{name}-{version}.bin", f"{name} {version} of a test".encode()
    to.ask("PUT", path := f"{base}/{name}/{version}/{file}", data=data)
    return Published("raw", path, f"{base}/{name}/{version}/", data, file)


def _image(to: Publisher, base: str, name: str, version: str) -> Published:
    image, base = make_image(f"{name} {version}"), f"v2/{base.removeprefix('repositories/')}/{name}"
    for blob in image.blobs:
        place = to.ask("POST", f"{base}/blobs/uploads/").headers["Location"]
        to.ask("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest_of(blob)}", data=bytes(blob))
    headers = {"Content-Type": image.media_type}
    to.ask("PUT", f"{base}/manifests/{version}", data=image.manifest, headers=headers)
    return Published("docker", f"{base}/manifests/{image.digest}", f"{base}/tags/list", image.manifest, f'"{version}"')


PUBLISH: Final[Mapping[str, Callable[[Publisher, str, str, str], Published]]] = {
    "python": _python,
    "npm": _npm,
    "maven": _maven,
    "ruby": _gem,
    "conda": _conda,
    "cargo": _crate,
    "go": _module,
    "helm": _chart,
    "raw": _file,
    "docker": _image,
}


def main(url: str, user: str, password_file: str) -> None:
    publisher = Publisher(url, (user, Path(password_file).read_text().strip()))
    for each in publisher.publish_all():
        publisher.check(each)
        print(f"{each.format}: {each.file} was published and read")


if __name__ == "__main__":
    main(*sys.argv[1:])
