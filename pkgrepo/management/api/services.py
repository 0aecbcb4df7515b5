"""What the management API is given to work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import Factory, frozen

from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.auth.login.passwords import Passwords
from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.tokens.bearer import BearerTokens
from pkgrepo.gateway.access import Access
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.interfaces import ICatalog, IFormat
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.publisher import Observer, Publisher
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.repositories.upkeep.gc import GarbageCollector
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.storage.catalog.images.trust import Keys
from pkgrepo.storage.folders import StorageFolders
from pkgrepo.storage.pools import Pools

from .audit_trail import AuditTrail


@frozen
class ManagementSettings:
    """
    What of the configuration the API needs to know.

    With ``open_install`` whoever comes first makes the first admin. An empty ``public_url`` means the address that each
    request came to. Below ``low_water`` free bytes (None: see L{low_water}) of the disk of a storage, or of
    ``database_dir``, the server is degraded.
    """

    version: str
    database_dir: Path
    open_install: bool = False
    public_url: str = ""
    max_upload: int = 10 * 1024**3
    token_max_days: int = 365
    low_water: int | None = None


@frozen
class ManagementServices:
    """
    The collaborators, as the composition root put them together; ``formats`` are by name.

    ``images`` tells which repository the name of an image belongs to. ``image_keys`` are the formats whose packages
    are images, each with a function that tells whose signatures readers of a repository need. ``observer`` is told of
    repositories that came, changed or went.
    """

    catalog: ICatalog
    registry: Registry
    stores: Stores
    folders: StorageFolders
    publisher: Publisher
    observer: Observer
    access: Access
    authenticator: Authenticator
    authorizer: Authorizer
    passwords: Passwords
    bearer: BearerTokens
    formats: Mapping[str, IFormat]
    pools: Pools
    clock: Clock
    collector: GarbageCollector
    jobs: Jobs
    image_keys: Mapping[str, Callable[[Repository], Keys]]
    settings: ManagementSettings
    trail: AuditTrail
    images: ImageAddresses = Factory(lambda self: ImageAddresses(self.registry), takes_self=True)
