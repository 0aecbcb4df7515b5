"""
A package of each format, published and read again over HTTP, in any server that has a storage "main".

    python -m tests.support.first_publishes URL USER PASSWORD-FILE

publishes all of them, and ends with an error if one cannot be read back.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import requests
from attrs import frozen

from tests.support.charts import make_chart
from tests.support.conda_packages import make_conda
from tests.support.crates import make_crate
from tests.support.crates import make_publish as make_crate_publish
from tests.support.gems import make_gem
from tests.support.go_modules import make_module
from tests.support.images import Image, digest_of, make_image
from tests.support.maven_files import directory, make_pom
from tests.support.npm_packages import make_manifest, make_publish, make_tarball
from tests.support.python_packages import make_wheel
from tests.support.timeouts import TIMEOUT_S

NAME = "first"  # of every package
MODULE = f"example.com/{NAME}"


@frozen
class Published:
    """What a package is read by: the path of its file, that of an index that lists it, and the bytes of the file."""

    format: str
    file: str
    index: str
    data: bytes


class Publisher:
    """The admin of a server."""

    def __init__(self, url: str, auth: tuple[str, str]) -> None:
        self._url = url.rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.auth = auth

    def ask(self, method: str, path: str, **options: object) -> requests.Response:
        address = path if path.startswith("http") else f"{self._url}/{path.lstrip('/')}"
        answer = self._session.request(method, address, timeout=TIMEOUT_S, **options)  # type: ignore[arg-type]
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    def create(self, name: str, format_: str) -> None:
        value = {"name": name, "storage": "main", "format": format_, "visibility": "public"}
        self.ask("POST", "api/repository", json={**value, "config": {"type": "Hosted"}})

    def publish_all(self) -> Iterator[Published]:
        """Make a repository of each format, and publish into it."""
        yield self._python()
        yield self._npm()
        yield self._maven()
        yield self._gem()
        yield self._conda()
        yield self._crate()
        yield self._module()
        yield self._chart()
        yield self._file()
        yield self._image(make_image(NAME))

    def check(self, each: Published) -> None:
        """Read a package as it was published."""
        assert self.ask("GET", each.file).content == each.data, each.format
        assert NAME in self.ask("GET", each.index).text, each.format

    def _python(self) -> Published:
        self.create("py", "python")
        filename, data = make_wheel(NAME, "1.0")
        self.ask("PUT", path := f"repositories/main/py/{NAME}/1.0/{filename}", data=data)
        return Published("python", path, f"repositories/main/py/simple/{NAME}/", data)

    def _npm(self) -> Published:
        self.create("node", "npm")
        data = make_tarball(NAME, "1.0.0", manifest=make_manifest(NAME, "1.0.0"))
        body = make_publish(NAME, "1.0.0", tarball=data)
        self.ask("PUT", f"repositories/main/node/{NAME}", data=body, headers={"Content-Type": "application/json"})
        return Published(
            "npm", f"repositories/main/node/{NAME}/-/{NAME}-1.0.0.tgz", f"repositories/main/node/{NAME}", data
        )

    def _maven(self) -> Published:
        self.create("java", "maven")
        data, base = make_pom("com.example", NAME, "1.0"), "repositories/main/java/"
        path = f"{base}{directory('com.example', NAME, '1.0').lstrip('/')}/{NAME}-1.0.pom"
        self.ask("PUT", path, data=data)
        return Published("maven", path, f"{base}com/example/{NAME}/maven-metadata.xml", data)

    def _gem(self) -> Published:
        self.create("gems", "ruby")
        data = make_gem(NAME, "1.0.0")
        self.ask("POST", "repositories/main/gems/api/v1/gems", data=data)
        return Published(
            "ruby", f"repositories/main/gems/gems/{NAME}-1.0.0.gem", "repositories/main/gems/versions", data
        )

    def _conda(self) -> Published:
        self.create("channel", "conda")
        data = make_conda(NAME)
        self.ask("PUT", path := f"repositories/main/channel/noarch/{NAME}-1.0-py_0.conda", data=data)
        return Published("conda", path, "repositories/main/channel/noarch/repodata.json", data)

    def _crate(self) -> Published:
        self.create("crates", "cargo")
        self.ask("PUT", "repositories/main/crates/api/v1/crates/new", data=make_crate_publish(NAME, "1.0.0"))
        file = f"repositories/main/crates/{NAME}/1.0.0/{NAME}-1.0.0.crate"
        return Published("cargo", file, f"repositories/main/crates/fi/rs/{NAME}", make_crate(NAME, "1.0.0"))

    def _module(self) -> Published:
        self.create("modules", "go")
        data, place = make_module(MODULE, "v1.0.0"), f"repositories/main/modules/{MODULE}/@v/v1.0.0"
        self.ask("PUT", f"{place}.zip", data=data)
        return Published("go", f"{place}.zip", f"{place}.mod", data)

    def _chart(self) -> Published:
        self.create("charts", "helm")
        data = make_chart(NAME, "1.0.0")
        self.ask("PUT", path := f"repositories/main/charts/charts/{NAME}-1.0.0.tgz", data=data)
        return Published("helm", path, "repositories/main/charts/index.yaml", data)

    def _file(self) -> Published:
        self.create("files", "raw")
        data = b"\x7fELF of a test"
        self.ask("PUT", path := f"repositories/main/files/{NAME}/1.0.0/{NAME}-1.0.0.bin", data=data)
        return Published("raw", path, "repositories/main/files/", data)

    def _image(self, image: Image) -> Published:
        self.create("images", "docker")
        base = f"v2/main/images/{NAME}"
        for blob in image.blobs:
            place = self.ask("POST", f"{base}/blobs/uploads/").headers["Location"]
            self.ask("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest_of(blob)}", data=bytes(blob))
        headers = {"Content-Type": image.media_type}
        self.ask("PUT", f"{base}/manifests/v1", data=image.manifest, headers=headers)
        return Published("docker", f"{base}/manifests/{image.digest}", f"{base}/tags/list", image.manifest)


def main(url: str, user: str, password_file: str) -> None:
    publisher = Publisher(url, (user, Path(password_file).read_text().strip()))
    for each in publisher.publish_all():
        publisher.check(each)
        print(f"{each.format}: {each.file} was published and read")


if __name__ == "__main__":
    main(*sys.argv[1:])
