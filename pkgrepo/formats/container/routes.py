"""
The path table of the registry API, at ``/v2/`` for all repositories and at the address of each repository.

Klein has one route for all paths, since names of images have any number of segments; ``paths`` parses them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import evolve
from twisted.web.resource import IResource

from pkgrepo.formats.container.access import Authorization, PingRequests, PushRuleCheck, scope_of
from pkgrepo.formats.container.blobs import BlobRequests
from pkgrepo.formats.container.lists import CatalogRequests, ReferrerRequests, TagListRequests
from pkgrepo.formats.container.manifests.push import ManifestPushRequests
from pkgrepo.formats.container.manifests.requests import ManifestRequests
from pkgrepo.formats.container.proxied.lists import UpstreamImages
from pkgrepo.formats.container.proxied.member_content import MemberContent
from pkgrepo.formats.container.reads import ProxiedReads
from pkgrepo.formats.container.trust.signatures import Keyring
from pkgrepo.formats.container.trust.visibility import Visibility
from pkgrepo.formats.container.uploads import BlobMounts, UploadSessionRequests, UploadStartRequests
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.dispatch import answering, new_app, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository, RepositoryType
from pkgrepo.proxy.virtual import publish_target

from .names import is_image_name, parse_name
from .paths import ImagePath, PathKind, parse_path
from .refusals import ERRORS
from .target import Target

Handler = Callable[[Request, Target, Identity, str], Awaitable[Answer]]

app = new_app()


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
        self._repository = repository
        self._token = token
        self._registry = services.registry
        self._authorization = Authorization(services, addresses, service)
        self._push_rules = PushRuleCheck(self._authorization)
        self._ping = PingRequests(services, self._authorization, ping, repository)
        visibility = Visibility(services, self._authorization, keyring)
        self._catalog = CatalogRequests(services, addresses, self._authorization, visibility, self._ping)
        manifests = ManifestRequests(services, self._authorization, visibility)
        members = MemberContent(services, upstream_images, visibility)
        pushes = ManifestPushRequests(services, visibility, self._push_rules, members)
        blobs = BlobRequests(services, self._authorization)
        tags, referrers = TagListRequests(services, visibility), ReferrerRequests(services, visibility)
        starts = UploadStartRequests(services, BlobMounts(services, addresses, members), self._push_rules)
        sessions = UploadSessionRequests(services, self._push_rules)
        proxied = ProxiedReads(
            services, upstream_images, manifests=manifests, blobs=blobs, tags=tags, referrers=referrers
        )
        # reads of repositories that are not hosted
        self._proxied: dict[PathKind, Handler] = {
            PathKind.MANIFEST: proxied.get_manifest,
            PathKind.BLOB: proxied.get_blob,
            PathKind.TAGS: proxied.get_tags,
            PathKind.REFERRERS: proxied.get_referrers,
        }
        read, write, delete = Action.READ, Action.WRITE, Action.DELETE
        # the methods of each kind of path, each with the permission that it needs
        self._routes: dict[PathKind, dict[str, tuple[Action, Handler]]] = {
            PathKind.MANIFEST: {
                "GET": (read, manifests.get),
                "HEAD": (read, manifests.get),
                "PUT": (write, pushes.put),
                "DELETE": (delete, manifests.delete),
            },
            PathKind.BLOB: {"GET": (read, blobs.get), "HEAD": (read, blobs.get), "DELETE": (delete, blobs.delete)},
            PathKind.UPLOADS: {"POST": (write, starts.post)},
            PathKind.UPLOAD: {
                "GET": (write, sessions.get),
                "PATCH": (write, sessions.patch),
                "PUT": (write, sessions.put),
                "DELETE": (write, sessions.delete),
            },
            PathKind.TAGS: {"GET": (read, tags.get), "HEAD": (read, tags.get)},
            PathKind.REFERRERS: {"GET": (read, referrers.get), "HEAD": (read, referrers.get)},
        }

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/token", branch=True)
    def token(self, request: Request) -> Any:
        """The token service, at the address of older clients."""
        return self._token if self._token is not None else self.answer(request)

    @app.route("/", branch=True)
    @answering(ERRORS)
    async def answer(self, request: Request) -> Answer:
        """The answer to any other request."""
        base = self._base(request)
        rest = request.raw_path[len(base) :]
        if rest in (b"", b"/"):
            return await self._ping.get(request)
        if rest == b"/_catalog" and self._repository is None:
            return await self._catalog.get(request)
        place = parse_path(rest)
        if place is None:
            raise Refusal(404, "there is nothing at this address", "NAME_UNKNOWN")
        parse_name(place.name)
        method = request.method.decode("latin-1")
        methods = self._routes[place.kind]
        if method not in methods:
            allowed = ", ".join(sorted(methods)).encode("ascii")
            sentence = f"this address does not take {method}"
            raise Refusal(405, sentence, "UNSUPPORTED", headers=((b"Allow", allowed),))
        action, handler = methods[method]
        identity, target = await self._authorize(request, place, action, base.decode("ascii"))
        if target.repository.type is not RepositoryType.HOSTED:
            handler = self._proxied[place.kind]
        if (place.kind, method) == (PathKind.BLOB, "HEAD"):
            self._authorization.challenge_containerd(request, target)
        return await handler(request, target, identity, place.rest)

    async def _authorize(
        self, request: Request, place: ImagePath, action: Action, base: str
    ) -> tuple[Identity, Target]:
        own = self._repository
        prefix = "" if own is None else f"{own.path}/"
        scope, source = f"{prefix}{place.name}", ""
        if place.kind is PathKind.UPLOADS and request.parameter(b"mount"):
            mounted = request.parameter(b"from") or ""
            source = f"{prefix}{mounted}" if is_image_name(mounted) else ""
        identity = await self._authorization.authenticate(request, scope_of(scope, action, source))
        if own is None:
            target = await self._authorization.resolve(request, identity, place.name, action, source)
        else:
            target = Target(own, place.name, place.name, base, scope, source=source)
        if action is not Action.READ and target.repository.type is not RepositoryType.HOSTED:
            # Callers who may read it are told why nothing can be pushed to it; a token to delete need not pull.
            owner = await self._authorization.token_owner(identity)
            await self._authorization.require(request, owner, target, Action.READ)
            addressed = target.repository
            published = evolve(target, repository=publish_target(self._registry, addressed), virtual=addressed)
            # tokens are for the name in the request, and permissions are those of the repository behind it
            await self._authorization.require(request, identity, target, action)
            identity, target = owner, published
        await self._authorization.require(request, identity, target, action)
        return identity, target

    def _base(self, request: Request) -> bytes:
        """The part of the path before the names of images."""
        if self._repository is None:
            return b"/v2"
        segments = request.raw_path.split(b"/", 5)
        if len(segments) < 5 or segments[4] != b"v2":
            path = self._repository.path
            raise Refusal(404, f"{path} is a container repository: images are at /v2/{path}/IMAGE", "NAME_UNKNOWN")
        return b"/".join(segments[:5])


refuse_unrouted(app, ERRORS)
