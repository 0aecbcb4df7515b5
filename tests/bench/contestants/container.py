"""Container registries: how each is started, and how its clients authenticate."""

from __future__ import annotations

import json
import shutil
import subprocess
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.bench.clients.load import get
from tests.bench.clients.registry import Pusher, Registry
from tests.bench.packages.images import Image

from .pkgrepo import Pkgrepo
from .server import LOOPBACK, Contestant, Unavailable, built, built_version, variant

TAGGERS = 8
TAGS_AT_ONCE = 50  # of one manifest; each comes back as a header field, and http.client takes a hundred of those


class ImageRegistry(Contestant):
    """A registry of container images."""

    @abstractmethod
    def client(self, image: str) -> Registry:
        """The registry as a client sees it that may pull and push this image; good for some minutes."""

    def push(self, image: Image, *tags: str) -> None:
        """Make an image of small layers available, through a push."""
        pusher = Pusher(self.client(image.name))
        pusher.push_image(image, *tags)
        pusher.close()

    def tag(self, image: Image, tags: Sequence[str]) -> None:
        """Give an image that is there many tags, by eight clients."""
        self._share(image, tags, lambda pusher, tag: pusher.push_manifest(image, tag))

    def _share(self, image: Image, work: Sequence[str], do: Callable[[Pusher, str], None]) -> None:
        def one(number: int) -> None:
            pusher = Pusher(self.client(image.name))
            for each in work[number::TAGGERS]:
                do(pusher, each)
            pusher.close()

        with ThreadPoolExecutor(TAGGERS) as pool:
            list(pool.map(one, range(TAGGERS)))


class PkgrepoImages(Pkgrepo, ImageRegistry):
    """A private repository of images; every request carries a bearer token of the token service."""

    name = "pkgrepo-images"
    repository = "images"

    def prepare(self) -> None:
        self.add_repository(self.repository, "docker", "private", push_rules={"allow_tag_overwrite": True})

    def client(self, image: str) -> Registry:
        return registry_client(self, f"{self.storage}/{self.repository}/{image}")

    def tag(self, image: Image, tags: Sequence[str]) -> None:
        queries = [
            "?" + "&".join(f"tag={tag}" for tag in tags[start : start + TAGS_AT_ONCE])
            for start in range(0, len(tags), TAGS_AT_ONCE)
        ]
        self._share(image, queries, lambda pusher, query: pusher.push_manifest(image, image.digest, query))


class PkgrepoTags(PkgrepoImages):
    """A repository for an image that is given ``tags`` tags."""

    tags = 0


MANY_TAGS, FEW_TAGS = (variant(f"pkgrepo-{tags}-tags", PkgrepoTags, tags=tags).name for tags in (100_000, 1000))


class OpenRegistry(ImageRegistry):
    """A registry without authentication, which is its fastest configuration."""

    def client(self, image: str) -> Registry:
        return Registry(self.base_url, image)


class Distribution(OpenRegistry):
    """CNCF distribution as Debian packages it: files on the disk, descriptors of blobs in memory, no access log."""

    name = "distribution"

    def command(self) -> Sequence[str]:
        program = self._program()
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=True)
        self.version = said.stdout.split()[-1].partition("+")[0].removeprefix("v")
        configuration = self.folder / "config.yml"
        configuration.write_text(
            _DISTRIBUTION.format(driver=self.driver(), host=LOOPBACK, port=self.port, more=self.more())
        )
        return [program, "serve", str(configuration)]

    def driver(self) -> str:
        """The line of its configuration that says where bytes are kept."""
        return f"filesystem: {{rootdirectory: {self.folder}/images}}"

    def more(self) -> str:
        """Further lines of its configuration."""
        return ""

    def _program(self) -> str:
        program = shutil.which("docker-registry")
        if program is None:
            raise Unavailable("docker-registry is not installed")
        return program


class Distribution3(Distribution):
    """The current one, built from its Go module."""

    name = "distribution-3"

    def environment(self) -> Mapping[str, str]:
        return {"OTEL_TRACES_EXPORTER": "none"}

    def _program(self) -> str:
        return built("go", "registry")


class Zot(OpenRegistry):
    """Zot, built from its Go module, without extensions."""

    name = "zot"

    def command(self) -> Sequence[str]:
        program = built("go", "zot")
        self.version = built_version("go", "zot")
        configuration = self.folder / "config.json"
        value = {
            "distSpecVersion": "1.1.1",
            "storage": {"rootDirectory": str(self.folder / "images"), "gc": True},
            "http": {"address": LOOPBACK, "port": str(self.port)},
            "log": {"level": "error"},
        }
        configuration.write_text(json.dumps(value))
        return [program, "serve", str(configuration)]


def registry_client(server: Pkgrepo, name: str) -> Registry:
    """A registry of this checkout, with a token of its token service that allows pulls and pushes of an image."""
    url = f"{server.base_url}/api/auth/token?service=bench&scope=repository:{name}:pull,push"
    token = json.loads(get(url, server.admin).body)["token"]
    return Registry(server.base_url, name, {"Authorization": f"Bearer {token}"})


_DISTRIBUTION = """
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage:
  {driver}
  cache: {{blobdescriptor: inmemory}}
  delete: {{enabled: true}}
http: {{addr: "{host}:{port}"}}
{more}
"""
