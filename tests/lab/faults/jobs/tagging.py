"""Tags that several clients move and read at once: dist-tags of npm, and tags of images."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import ClassVar, Final

from attrs import define, field

from tests.lab.faults.checkers.histories import History, disorder, stale_reads
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.images import digest_of, make_image
from tests.support.npm_packages import make_publish

from .task import Task

PACKAGE: Final = "tagged"
NODE: Final = f"repositories/main/{REPOSITORIES['npm']}"
IMAGES: Final = "moving"  # a repository of images whose tags may move
POOL: Final = [f"0.0.{number}" for number in range(4)]  # versions among which a tag is moved
ONCE: Final = ("npm:once", "image")  # registers in which each value is written once
JSON: Final = {"Content-Type": "application/json"}


@define
class Tagging(Task):
    """Each read of a tag returns what it was at some moment of the read."""

    name: ClassVar = "tags"
    steps: ClassVar = {"publish": 2, "move": 3, "push": 2, "read": 10}
    threads: ClassVar = 3

    history: History = field(factory=History, init=False)

    def prepare(self) -> None:
        api = self.api()
        config = {"type": "Hosted", "push_rules": {"allow_tag_overwrite": True}}
        value = {"name": IMAGES, "storage": "main", "format": "docker", "visibility": "public", "config": config}
        api.ask("POST", "api/repository", json=value)
        for version in POOL:
            self._publish(api, version, "latest")
        for key in ("npm:once", "npm:moved", "image"):
            self.history.first(key, "")

    def publish(self) -> None:
        """Publish a version with the tag, which no other version has had."""
        version = f"1.0.{self.next()}"
        with self.lab.ledger.step("tag", "npm:once"), self.history.writing("npm:once", version):
            self._publish(self.api(), version, "once")

    def move(self) -> None:
        """Set a tag to one of few versions."""
        version = self.rng.choice(POOL)
        with self.lab.ledger.step("tag", "npm:moved"), self.history.writing("npm:moved", version):
            path = f"{NODE}/-/package/{PACKAGE}/dist-tags/moved"
            self.api().ask("PUT", path, data=f'"{version}"', headers=JSON)

    def push(self) -> None:
        """Push an image under the tag."""
        api, image = self.api(), make_image(f"tagged {self.next()}")
        base = f"v2/main/{IMAGES}/app"
        for blob in image.blobs:
            place = api.ask("POST", f"{base}/blobs/uploads/").headers["Location"]
            api.ask("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest_of(blob)}", data=bytes(blob))
        with self.lab.ledger.step("tag", "image"), self.history.writing("image", image.digest):
            headers = {"Content-Type": image.media_type}
            api.ask("PUT", f"{base}/manifests/v1", data=image.manifest, headers=headers)

    def read(self) -> None:
        """Read a tag."""
        key = self.rng.choice(["npm:once", "npm:moved", "image"])
        begun = time.monotonic()
        self.history.read(key, self._value(self.api(), key), begun)

    def check(self) -> Iterator[str]:
        self.history.settle()
        for _ in range(2):  # what was open at the fault stays what it is
            for key in self.history.keys():  # noqa: SIM118 - no mapping
                begun = time.monotonic()
                self.history.read(key, self._value(self.api(), key), begun)
        yield from wrong(self.history, self.lab.lag_s)
        self.history.forget(self.lab.lag_s)

    def _value(self, api: Publisher, key: str) -> str:
        """What a tag stands for; empty if there is none."""
        if key == "image":
            answer = api.send("GET", f"v2/main/{IMAGES}/app/manifests/v1")
            assert answer.status_code in (200, 404), f"GET {key}: {answer.status_code} {answer.text[:200]}"
            return answer.headers["Docker-Content-Digest"] if answer.ok else ""
        tags = api.ask("GET", f"{NODE}/{PACKAGE}").json()["dist-tags"]
        return str(tags.get(key.removeprefix("npm:"), ""))

    def _publish(self, api: Publisher, version: str, tag: str) -> None:
        api.ask("PUT", f"{NODE}/{PACKAGE}", data=make_publish(PACKAGE, version, tag=tag), headers=JSON)


def wrong(history: History, lag_s: float) -> Iterator[str]:
    """What no order of the operations explains."""
    for key in history.keys():  # noqa: SIM118 - no mapping
        operations = history.of(key)
        for read in stale_reads(operations, lag_s):
            near = [str(each) for each in operations if each.write and each.ended > read.begun - 2]
            yield f"tag {key}: {read}, which was not the value then; writes: {'; '.join(near[:8])}"
        if key in ONCE and not lag_s:
            yield from (f"tag {key}: {each}" for each in disorder(operations))
