"""A container registry as upstream: manifests, blobs, tags and referrers, with tokens and a quota of pulls."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from tests.support.images import OCI_INDEX, Image, digest_of
from tests.support.upstreams.messages import Answer, Request
from tests.support.upstreams.server import ScriptedUpstream

NAMED = re.compile(r"/v2/(.+)/(?:manifests|blobs|tags|referrers)/[^/]+$")
LIFETIME_S = 300  # seconds for which a token can be used, as it is announced


class ContainerUpstream(ScriptedUpstream):
    """
    A registry of images added with L{push}; C{url} is its address, without C{/v2}.

    Requests need a token for their repository if C{challenge} is "bearer", and C{credentials} (the value of
    Authorization) if it is "basic"; with both, tokens are given for these credentials only. Tokens are at C{/token} of
    this server, or of C{tokens}. Blobs are at C{blobs} by redirects if that is given. C{quota} is how many more
    manifests may be fetched by GET, if not None; HEAD is free. The other servers are started and stopped by the test.
    """

    def __init__(
        self,
        *,
        challenge: str = "",
        credentials: str | None = None,
        quota: int | None = None,
        tokens: ScriptedUpstream | None = None,
        blobs: ScriptedUpstream | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.challenge = challenge
        self.credentials = credentials
        self.quota = quota
        self._tokens = tokens or self
        self._blobs = blobs
        self._manifests: dict[tuple[str, str], Image] = {}
        self._tags: dict[str, list[str]] = {}
        self.valid: dict[str, str] = {}  # scopes of tokens
        self._tokens.dynamic["/token"] = self._give_token

    def push(self, name: str, image: Image, *tags: str, children: tuple[Image, ...] = ()) -> None:
        """Store an image under its digest and these tags; of an index, with its children."""
        for child in children:
            self.push(name, child)
        for blob in image.blobs:
            if self._blobs is None:
                self.serve(self.blob_path(name, digest_of(blob)), _file(blob))
            else:
                self._blobs.serve(f"/{digest_of(blob)}", _file(blob))
                target = f"{self._blobs.url}/{digest_of(blob)}"
                self.serve(self.blob_path(name, digest_of(blob)), Answer(307, fields={"Location": target}))
        self._manifests[name, image.digest] = image
        for tag in tags:
            self._manifests[name, tag] = image
        known = self._tags.setdefault(name, [])
        self._tags[name] = sorted({*known, *tags})

    def manifest_path(self, name: str, reference: str) -> str:
        """The path of a manifest."""
        return f"/v2/{name}/manifests/{reference}"

    def blob_path(self, name: str, digest: str) -> str:
        """The path of a blob."""
        return f"/v2/{name}/blobs/{digest}"

    def answer(self, request: Request) -> Answer:
        """A document of L{serve}, or what the registry has at a path below C{/v2}."""
        if not request.path.startswith("/v2/"):
            return super().answer(request)
        refusal = self._refuse(request)
        if refusal is not None:
            return refusal
        if request.path == "/v2/":
            return _json({})
        name, _, rest = request.path.removeprefix("/v2/").rpartition("/manifests/")
        if name:
            return self._manifest(request, name, rest)
        name, _, rest = request.path.removeprefix("/v2/").rpartition("/referrers/")
        if name:
            return self._referrers(request, name, rest)
        if request.path.endswith("/tags/list"):
            return self._list_tags(request, request.path.removeprefix("/v2/").removesuffix("/tags/list"))
        found = self.documents.get(request.path)
        return found or _error(404, "BLOB_UNKNOWN")

    def _refuse(self, request: Request) -> Answer | None:
        """Return the challenge to a request that lacks what L{challenge} demands."""
        sent = request.fields.get("authorization", "")
        if self.challenge == "bearer":
            named = NAMED.match(request.path)
            scope = f"repository:{named[1]}:pull" if named else ""
            given = self.valid.get(sent.removeprefix("Bearer "))
            if given is not None and scope in ("", given):
                return None
            challenge = f'Bearer realm="{self._tokens.url}/token",service="upstream"'
            challenge += f',scope="{scope}"' if scope else ""
            return _error(401, "UNAUTHORIZED").with_fields(WWW_Authenticate=challenge)
        if self.challenge == "basic" and sent != self.credentials:
            return _error(401, "UNAUTHORIZED").with_fields(WWW_Authenticate='Basic realm="upstream"')
        return None

    def _give_token(self, request: Request) -> Answer:
        if self.credentials is not None and request.fields.get("authorization") != self.credentials:
            return _error(401, "UNAUTHORIZED")
        scope = request.query.get("scope", "")
        token = hashlib.sha256(f"{scope} {len(self.valid)}".encode()).hexdigest()
        self.valid[token] = scope
        return _json({"token": token, "access_token": token, "expires_in": LIFETIME_S})

    def _manifest(self, request: Request, name: str, reference: str) -> Answer:
        image = self._manifests.get((name, reference))
        if image is None:
            return _error(404, "MANIFEST_UNKNOWN")
        fields = {"Content-Type": image.media_type, "Docker-Content-Digest": image.digest, "ETag": f'"{image.digest}"'}
        if self.quota is not None:
            if request.method == "GET" and self.quota == 0:
                return _error(429, "TOOMANYREQUESTS").with_fields(Retry_After="120")
            self.quota -= request.method == "GET"
            fields |= {"RateLimit-Limit": "100;w=21600", "RateLimit-Remaining": f"{self.quota};w=21600"}
        return Answer(body=image.manifest, fields=fields, ranges=False)

    def _referrers(self, request: Request, name: str, digest: str) -> Answer:
        found = []
        for (owner, reference), image in self._manifests.items():
            manifest = json.loads(image.manifest)
            if owner == name and reference == image.digest and manifest.get("subject", {}).get("digest") == digest:
                kind = manifest.get("artifactType", manifest.get("config", {}).get("mediaType"))
                found.append({**image.descriptor, "artifactType": kind})
        wanted = request.query.get("artifactType")
        listed = [each for each in found if wanted in (None, each["artifactType"])]
        index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": listed}
        answer = _json(index).with_fields(Content_Type=OCI_INDEX)
        return answer.with_fields(OCI_Filters_Applied="artifactType") if wanted else answer

    def _list_tags(self, request: Request, name: str) -> Answer:
        if name not in self._tags:
            return _error(404, "NAME_UNKNOWN")
        tags = [tag for tag in self._tags[name] if tag > request.query.get("last", "")]
        count = int(request.query.get("n", len(tags)))
        answer = _json({"name": name, "tags": tags[:count]})
        if count and len(tags) > count:
            link = f'</v2/{name}/tags/list?n={count}&last={tags[count - 1]}>; rel="next"'
            return answer.with_fields(Link=link)
        return answer


def _file(blob: bytes | memoryview) -> Answer:
    fields = {"Content-Type": "application/octet-stream", "ETag": f'"{digest_of(blob)}"'}
    return Answer(body=blob, fields=fields)


def _json(value: object) -> Answer:
    fields = {"Content-Type": "application/json", "Docker-Distribution-API-Version": "registry/2.0"}
    return Answer(body=json.dumps(value).encode(), fields=fields, ranges=False)


def _error(status: int, code: str) -> Answer:
    body = json.dumps({"errors": [{"code": code, "message": "refused by the upstream"}]}).encode()
    return Answer(status, body, {"Content-Type": "application/json"})
