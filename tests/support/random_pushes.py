"""Clients that push, delete and pull images at random, and check that acknowledged images stay complete."""

from __future__ import annotations

import http.client
import json
import random
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.support.images import OCI_CONFIG, OCI_IMAGE, OCI_LAYER, Image, describe, digest_of, make_index
from tests.support.timeouts import TIMEOUT_S

IMAGES = ("app", "base", "deep/er")


def make_pool(seed: int, count: int = 60) -> list[bytes]:
    """Layers of 1 to 64 KiB that all clients push repeatedly, so that the same bytes are added and removed."""
    chance = random.Random(seed)
    return [chance.randbytes(chance.randrange(1024, 65536)) for _ in range(count)]


class RandomClient:
    """
    One client. ``promised`` maps image and tag to the acknowledged image that was not deleted since.

    Other clients do not change its tags or push its manifests; they share layers and images.
    """

    def __init__(self, url: str, auth: tuple[str, str], number: int, *, pool: Sequence[bytes], repository: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self._authorization = "Basic " + b64encode(":".join(auth).encode()).decode()
        self._chance = random.Random(number)
        self._number = number
        self._pool = pool
        self._repository = repository
        self.promised: dict[tuple[str, str], tuple[Image, ...]] = {}
        self.counts: Counter[str] = Counter()

    def step(self, _index: int = 0) -> None:
        """Do one random step. :raises AssertionError: an acknowledged image is incomplete"""
        if not self.promised or self._chance.random() < 0.45:
            self.push()
        elif self._chance.random() < 0.75:
            self.delete()
        else:
            self.pull(*self._any())

    def push(self) -> None:
        image = self._chance.choice(IMAGES)
        tag = f"c{self._number}-{self._chance.randrange(2)}"
        parts = [self._make() for _ in range(self._chance.choice((1, 1, 1, 2)))]
        if len(parts) > 1:
            parts.append(make_index(parts))
        for part in parts:
            for blob in part.blobs:
                self._ensure(image, blob)
            reference = tag if part is parts[-1] else part.digest
            status, body = self._ask("PUT", f"{image}/manifests/{reference}", part.manifest, part.media_type)
            assert status == 201, (image, tag, status, body)
        self.promised[image, tag] = tuple(parts)
        self.counts["pushed"] += 1

    def delete(self) -> None:
        """Delete a tag, or a manifest with all its tags."""
        image, tag = self._any()
        whole = self.promised[image, tag][-1]
        if self._chance.random() < 0.5:
            self.promised.pop((image, tag))
            status, _ = self._ask("DELETE", f"{image}/manifests/{tag}")
        else:
            # also forget the images that contain this manifest
            for key in [key for key, parts in self.promised.items() if key[0] == image and whole in parts]:
                self.promised.pop(key)
            status, _ = self._ask("DELETE", f"{image}/manifests/{whole.digest}")
        assert status == 202, (image, tag, status)
        self.counts["deleted"] += 1

    def pull(self, image: str, tag: str) -> None:
        """Check that all acknowledged images are complete."""
        parts = self.promised[image, tag]
        status, body = self._ask("GET", f"{image}/manifests/{tag}")
        assert (status, body) == (200, parts[-1].manifest), (image, tag, status, body[:300])
        for part in parts:
            status, body = self._ask("GET", f"{image}/manifests/{part.digest}")
            assert (status, body) == (200, part.manifest), (image, tag, part.digest, status)
            for blob in part.blobs:
                status, body = self._ask("GET", f"{image}/blobs/{digest_of(blob)}")
                assert (status, body == blob) == (200, True), (image, tag, digest_of(blob), status)
        self.counts["pulled"] += 1

    def close(self) -> None:
        self._connection.close()

    def _any(self) -> tuple[str, str]:
        return self._chance.choice(sorted(self.promised))

    def _make(self) -> Image:
        layers = self._chance.sample(self._pool, self._chance.randrange(1, 4))
        config = json.dumps({"os": "linux", "architecture": "amd64", "client": self._number}).encode()
        value = {
            "schemaVersion": 2,
            "mediaType": OCI_IMAGE,
            "config": describe(config, OCI_CONFIG),
            "layers": [describe(layer, OCI_LAYER) for layer in layers],
        }
        return Image(json.dumps(value).encode(), (config, *layers))

    def _ensure(self, image: str, blob: bytes) -> None:
        digest = digest_of(blob)
        if self._ask("HEAD", f"{image}/blobs/{digest}")[0] == 200:
            self.counts["skipped"] += 1
            return
        source = self._chance.choice(IMAGES)
        query = f"?mount={digest}&from={self._repository}/{source}" if self._chance.random() < 0.5 else ""
        status, location = self._ask("POST", f"{image}/blobs/uploads/{query}")
        if status == 201:
            self.counts["mounted"] += 1
            return
        assert status == 202, status
        path = location.decode()
        glue = "&" if "?" in path else "?"
        status, body = self._raw("PUT", f"{path}{glue}digest={digest}", blob, "application/octet-stream")
        assert status == 201, (status, body)
        self.counts["uploaded"] += 1

    def _ask(self, method: str, path: str, body: bytes = b"", content_type: str = "") -> tuple[int, bytes]:
        return self._raw(method, f"/v2/{self._repository}/{path}", body, content_type)

    def _raw(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        """Return status and body; for POST the location instead of the body."""
        headers: dict[str, Any] = {"Authorization": self._authorization}
        if content_type:
            headers["Content-Type"] = content_type
        self._connection.request(method, path, body if method in {"PUT", "POST"} else None, headers)
        answer = self._connection.getresponse()
        received = answer.read()
        if method == "POST":
            location = answer.getheader("Location") or ""
            return answer.status, location[location.index("/v2") :].encode() if location else received
        return answer.status, received
