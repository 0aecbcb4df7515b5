"""What the pages of the book suppose beside the server: an issuer of a forge, a bucket, other package managers."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.support.imports import stub
from tests.support.issuer import listening
from tests.support.maven_files import make_pom
from tests.support.s3_servers import BUCKET, KEY, REGION, s3_server

AUDIENCE: Final = "the-book"
WHEN: Final = "2019-03-04T05:06:07.000+00:00"
PATH: Final = "com/example/app/1.0/app-1.0.pom"
POM: Final = make_pom("com.example", "app", "1.0")
Variables = Mapping[str, str]


@contextmanager
def _issuer() -> Iterator[Variables]:
    with listening() as issuer:
        tokens = [issuer.token(audience=AUDIENCE, repository="acme/tool") for _ in range(4)]  # each is taken once
        yield {"ISSUER": issuer.url, "AUDIENCE": AUDIENCE} | {f"ID_TOKEN{at}": each for at, each in enumerate(tokens)}


@contextmanager
def _bucket() -> Iterator[Variables]:
    with s3_server() as server:
        yield {
            "ENDPOINT": server.endpoint,
            "BUCKET": BUCKET,
            "AWS_ACCESS_KEY_ID": KEY.id,
            "AWS_SECRET_ACCESS_KEY": KEY.secret,
            "AWS_REGION": REGION,
        }


@contextmanager
def _nexus() -> Iterator[Variables]:
    """As its API answers, with one repository of one file; see the tests of imports."""
    storage = {"blobStoreName": "default", "strictContentTypeValidation": True, "writePolicy": "ALLOW_ONCE"}
    asset = {"path": PATH, "checksum": _sums("sha1", "sha256"), "uploader": "ann", "lastModified": WHEN}
    component = {"group": "com.example", "name": "app", "version": "1.0", "assets": [asset]}
    answers: dict[str, Any] = {
        "/service/rest/v1/repositorySettings": [
            {"name": "maven-releases", "format": "maven2", "type": "hosted", "online": True, "storage": storage}
        ],
        "/service/rest/v1/security/roles": [],
        "/service/rest/v1/security/users?source=default": [],
        "/service/rest/v1/components?repository=maven-releases": {"items": [component], "continuationToken": None},
        f"/repository/maven-releases/{PATH}": POM,
    }
    with stub(answers) as url:
        yield {"NEXUS": url}


@contextmanager
def _artifactory() -> Iterator[Variables]:
    """As its API answers, with one repository of one file; see the tests of imports."""
    name = "libs-release-local"
    listed = {
        "uri": f"/{PATH}",
        "size": len(POM),
        "lastModified": WHEN,
        "folder": False,
        "sha2": _sums("sha256")["sha256"],
    }
    answers: dict[str, Any] = {
        "/artifactory/api/repositories": [{"key": name, "type": "LOCAL"}],
        f"/artifactory/api/repositories/{name}": {"key": name, "rclass": "local", "packageType": "maven"},
        "/artifactory/api/v2/security/permissions": [],
        f"/artifactory/api/storage/{name}?list&deep=1&listFolders=0&mdTimestamps=1": {"files": [listed]},
        f"/artifactory/{name}/{PATH}": POM,
    }
    with stub(answers) as url:
        yield {"ARTIFACTORY": url}


@contextmanager
def _receiver() -> Iterator[Variables]:
    """A receiver of webhooks, which takes all."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {"RECEIVER": f"http://127.0.0.1:{server.server_port}/hooks/pkgrepo"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _sums(*algorithms: str) -> dict[str, str]:
    return {each: hashlib.new(each, POM).hexdigest() for each in algorithms}


SERVICES: Final[Mapping[str, Callable[[], AbstractContextManager[Variables]]]] = {
    "issuer": _issuer,
    "bucket": _bucket,
    "nexus": _nexus,
    "artifactory": _artifactory,
    "receiver": _receiver,
}
