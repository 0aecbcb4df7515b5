"""Blobs of images in chunks, which two clients send at once: offsets grow, and the bytes are those that were sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from attrs import define, field

from tests.lab.faults.clients import Idle
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.images import digest_of

from .task import Task

CHUNK: Final = 40_000  # bytes
CHUNKS: Final = 5
BASE: Final = f"v2/main/{REPOSITORIES['docker']}/chunked"
MOST: Final = 4  # uploads at a time


@define
class Upload:
    """An upload: its address, its bytes, and how many of them were acknowledged."""

    place: str
    data: bytes
    received: int = 0
    sent: int = 0
    done: bool = False
    closing: bool = False


@define
class Uploading(Task):
    """Several threads send the next chunk of the same uploads, of which one is taken each time."""

    name: ClassVar = "chunked uploads"
    steps: ClassVar = {"begin": 2, "send": 8, "look": 4, "end": 2}
    threads: ClassVar = 2

    uploads: list[Upload] = field(factory=list, init=False)
    finished: list[Upload] = field(factory=list, init=False)

    def prepare(self) -> None:
        """The repository is that of the writers."""

    def begin(self) -> None:
        """Begin an upload."""
        if len(self.uploads) >= MOST:
            raise Idle
        data = self.rng.randbytes(CHUNK * CHUNKS)
        place = self.api().ask("POST", f"{BASE}/blobs/uploads/").headers["Location"]
        with self.lock:
            self.uploads.append(Upload(_path(place), data))

    def send(self) -> None:
        """Send the chunk at the offset that is known, which another thread may send at the same time."""
        with self.lock:
            open_ = [each for each in self.uploads if not each.closing and each.received < len(each.data)]
            if not open_:
                raise Idle
            upload = self.rng.choice(open_)
            start = upload.received
            end = start + CHUNK
            upload.sent = max(upload.sent, end)
        headers = {"Content-Range": f"{start}-{end - 1}", "Content-Type": "application/octet-stream"}
        answer = self.api().send("PATCH", upload.place, data=upload.data[start:end], headers=headers)
        with self.lock:
            if upload.closing:
                return
            if answer.status_code == 202:
                assert _offset(answer.headers["Range"]) >= end, f"PATCH {start}-{end - 1}: {answer.headers['Range']}"
                upload.received = max(upload.received, end)
                return
        # 416: another one was first; 409 and 423: it is being written
        assert answer.status_code in (409, 416, 423), f"PATCH chunk: {answer.status_code} {answer.text[:200]}"

    def look(self) -> None:
        """Ask for an offset."""
        with self.lock:
            if not self.uploads:
                raise Idle
            upload = self.rng.choice(self.uploads)
            received = upload.received
        self._look(self.api(), upload, received)

    def end(self) -> None:
        """Close an upload that has all bytes, and read the blob."""
        with self.lock:
            whole = [each for each in self.uploads if each.received == len(each.data) and not each.closing]
            if not whole:
                raise Idle
            upload = whole[0]
            upload.closing = True
        api, digest = self.api(), digest_of(upload.data)
        with self.lab.ledger.step("upload in chunks", digest):
            api.ask("PUT", f"{upload.place}{'&' if '?' in upload.place else '?'}digest={digest}")
        upload.done = True
        with self.lock:
            self.uploads.remove(upload)
            self.finished.append(upload)
        assert api.ask("GET", f"{BASE}/blobs/{digest}").content == upload.data, f"{digest} has other bytes"

    def check(self) -> Iterator[str]:
        api = self.api()
        for each in self.uploads:
            if each.closing:  # it had no answer: the blob is there as a whole, or the upload is
                answer = api.send("GET", f"{BASE}/blobs/{digest_of(each.data)}")
                if answer.status_code == 200 and answer.content != each.data:
                    yield f"the blob of {each.place} has other bytes than those that were sent"
        # What an upload has is not synced before its end: after a fault clients begin anew.
        for each in self.uploads:
            api.send("DELETE", each.place)
        self.uploads.clear()
        for each in self.finished[-20:]:
            answer = api.send("GET", f"{BASE}/blobs/{digest_of(each.data)}")
            if answer.status_code != 200 or answer.content != each.data:
                yield f"blob {digest_of(each.data)} of {each.place} is lost: {answer.status_code}"

    def _look(self, api: Publisher, upload: Upload, received: int) -> None:
        answer = api.send("GET", upload.place)
        with self.lock:
            if upload.closing:
                return
            sent = upload.sent
        assert answer.status_code == 204, f"GET of an upload: {answer.status_code} {answer.text[:200]}"
        offset = _offset(answer.headers["Range"])
        assert received <= offset <= sent, f"the upload has {offset} bytes; {received} acknowledged, {sent} sent"


def _offset(header: str) -> int:
    """The number of bytes by a Range field; 0-0 is what an empty upload has."""
    last = int(header.rpartition("-")[2])
    return last + 1 if last else 0


def _path(place: str) -> str:
    """An address without its host, since the next server has another one."""
    return place if not place.startswith("http") else "/" + place.split("/", 3)[3]
