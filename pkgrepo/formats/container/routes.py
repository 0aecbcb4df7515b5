"""
The path table of the registry API, at ``/v2/`` for all repositories and at the address of each repository.

Klein has one route for all paths, since names of images have any number of segments; ``paths`` parses them. It is not
the site of formats, whose requests are to one known repository: here a token is checked before the name is resolved.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from attrs import evolve
from twisted.web.resource import IResource

from pkgrepo.formats.container.access import Authorization, scope_of
from pkgrepo.formats.container.blobs import get_blob, remove_blob
from pkgrepo.formats.container.lists import get_catalog, get_referrers, get_tags
from pkgrepo.formats.container.manifests.push import push_manifest
from pkgrepo.formats.container.manifests.requests import delete_reference, get_manifest
from pkgrepo.formats.container.proxied.lists import UpstreamImages
from pkgrepo.formats.container.proxied.member_content import MemberContent
from pkgrepo.formats.container.reads import fetch_blob, fetch_manifest, fetch_referrers, fetch_tags
from pkgrepo.formats.container.registry import RegistryContext, get_ping
from pkgrepo.formats.container.trust.signatures import Keyring
from pkgrepo.formats.container.trust.visibility import Visibility
from pkgrepo.formats.container.uploads import append_upload, cancel_upload, finish_upload, get_upload, start_upload
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.dispatch import App, answering, refuse_unrouted
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.model import Action, Identity, Repository, RepositoryType
from pkgrepo.proxy.virtual import publish_target
from pkgrepo.repositories.publish.upload_leases import UploadLeases

from .names import is_image_name, parse_name
from .paths import ImagePath, PathKind, parse_path
from .refusals import ERRORS
from .target import Target

Handler = Callable[[RegistryContext, Request, Target, Identity, str], Awaitable[Response]]

# The methods of each kind of path, each with the permission that it needs.
ROUTES: Final[Mapping[PathKind, Mapping[str, tuple[Action, Handler]]]] = {
    PathKind.MANIFEST: {
        "GET": (Action.READ, get_manifest),
        "HEAD": (Action.READ, get_manifest),
        "PUT": (Action.WRITE, push_manifest),
        "DELETE": (Action.DELETE, delete_reference),
    },
    PathKind.BLOB: {
        "GET": (Action.READ, get_blob),
        "HEAD": (Action.READ, get_blob),
        "DELETE": (Action.DELETE, remove_blob),
    },
    PathKind.UPLOADS: {"POST": (Action.WRITE, start_upload)},
    PathKind.UPLOAD: {
        "GET": (Action.WRITE, get_upload),
        "PATCH": (Action.WRITE, append_upload),
        "PUT": (Action.WRITE, finish_upload),
        "DELETE": (Action.WRITE, cancel_upload),
    },
    PathKind.TAGS: {"GET": (Action.READ, get_tags), "HEAD": (Action.READ, get_tags)},
    PathKind.REFERRERS: {"GET": (Action.READ, get_referrers), "HEAD": (Action.READ, get_referrers)},
}

# Reads of repositories that are not hosted.
FETCHES: Final[Mapping[PathKind, Handler]] = {
    PathKind.MANIFEST: fetch_manifest,
    PathKind.BLOB: fetch_blob,
    PathKind.TAGS: fetch_tags,
    PathKind.REFERRERS: fetch_referrers,
}

app = App()


class RegistrySite:
    """
    The registry API as a Klein application.

    With ``repository`` it serves only that one, at its own address, where names are those of its images. ``ping`` is
    the setting ``container.ping``; ``token`` serves ``/v2/token``.
    """

    app = app

    def __init__(
        self,
        services: Services,
        addresses: ImageAddresses,
        *,
        service: str,
        ping: str,
        keyring: Keyring,
        upstream_images: UpstreamImages,
        repository: Repository | None = None,
        token: IResource | None = None,
    ) -> None:
        self._token = token
        authorization = Authorization(services, addresses, service)
        visibility = Visibility(services, authorization, keyring)
        self.context = RegistryContext(
            services=services,
            addresses=addresses,
            authorization=authorization,
            visibility=visibility,
            images=upstream_images,
            members=MemberContent(services, upstream_images, visibility),
            leases=UploadLeases(services.catalog, services.clock),
            ping=ping,
            repository=repository,
        )

    @app.route("/token", branch=True)
    def token(self, request: Request) -> Any:
        """The token service, at the address of older clients."""
        return self._token if self._token is not None else self.answer(request)

    @app.route("/", branch=True)
    @answering(ERRORS)
    async def answer(self, request: Request) -> Response:
        """The answer to any other request."""
        base = self._base(request)
        rest = request.raw_path[len(base) :]
        if rest in (b"", b"/"):
            return await get_ping(self.context, request)
        if rest == b"/_catalog" and self.context.repository is None:
            return await get_catalog(self.context, request)
        place = parse_path(rest)
        if place is None:
            raise Refusal(404, "there is nothing at this address", "NAME_UNKNOWN")
        parse_name(place.name)
        method = request.method.decode("latin-1")
        methods = ROUTES[place.kind]
        if method not in methods:
            allowed = ", ".join(sorted(methods)).encode("ascii")
            sentence = f"this address does not take {method}"
            raise Refusal(405, sentence, "UNSUPPORTED", headers=((b"Allow", allowed),))
        action, handler = methods[method]
        entry = request.entry
        shown = base.decode("ascii") if entry is None or entry.base is None else f"{entry.base}/v2"
        identity, target = await self._authorize(request, place, action, shown)
        if target.repository.type is not RepositoryType.HOSTED:
            handler = FETCHES[place.kind]
        if (place.kind, method) == (PathKind.BLOB, "HEAD"):
            self.context.authorization.challenge_containerd(request, target)
        return await handler(self.context, request, target, identity, place.rest)

    async def _authorize(
        self, request: Request, place: ImagePath, action: Action, base: str
    ) -> tuple[Identity, Target]:
        own, authorization = self.context.repository, self.context.authorization
        prefix = "" if own is None else f"{own.path}/"
        scope, source = f"{prefix}{place.name}", ""
        if place.kind is PathKind.UPLOADS and request.parameter(b"mount"):
            mounted = request.parameter(b"from") or ""
            source = f"{prefix}{mounted}" if is_image_name(mounted) else ""
        identity = await authorization.authenticate(request, scope_of(scope, action, source))
        if own is None:
            target = await authorization.resolve(request, identity, place.name, action, source)
        else:
            target = Target(own, place.name, place.name, base, scope, source=source)
        if action is not Action.READ and target.repository.type is not RepositoryType.HOSTED:
            # Callers who may read it are told why nothing can be pushed to it; a token to delete need not pull.
            owner = await authorization.token_owner(identity)
            await authorization.require(request, owner, target, Action.READ)
            addressed = target.repository
            published = evolve(
                target, repository=publish_target(self.context.services.registry, addressed), virtual=addressed
            )
            # tokens are for the name in the request, and permissions are those of the repository behind it
            await authorization.require(request, identity, target, action)
            identity, target = owner, published
        return identity, evolve(target, admitted=await authorization.require(request, identity, target, action))

    def _base(self, request: Request) -> bytes:
        """The part of the path before the names of images."""
        own = self.context.repository
        if own is None:
            return b"/v2"
        segments = request.raw_path.split(b"/", 5)
        if len(segments) < 5 or segments[4] != b"v2":
            path = own.path
            raise Refusal(404, f"{path} is a container repository: images are at /v2/{path}/IMAGE", "NAME_UNKNOWN")
        return b"/".join(segments[:5])


refuse_unrouted(app, ERRORS)
