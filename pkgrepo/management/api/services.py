"""What the management API is given to work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.auth.login.passwords import Passwords
from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.tokens.bearer import BearerTokens
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import IFormat
from pkgrepo.model import Repository
from pkgrepo.repositories.publish.publisher import ChangeListener
from pkgrepo.repositories.stores import Stores
from pkgrepo.repositories.upkeep.gc import GarbageCollector
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.storage.catalog.images.trust import Keys
from pkgrepo.storage.folders import StorageFolders

from .audit_trail import AuditTrail


@frozen(kw_only=True)
class ManagementServices:
    """
    What the management API uses: the mechanisms that it shares with the formats, and its own.

    ``formats`` are by name. ``images`` finds the repository that the name of an image belongs to. ``image_keys`` has
    the formats whose packages are images, each with a function that returns the keys whose signatures readers of a
    repository need. ``on_change`` is called with each repository that was added, changed or removed.

    With ``open_install`` anyone may make the first admin. The server is degraded while the disk of a storage, or of
    ``database_dir``, has fewer than ``low_water`` free bytes (None: see L{low_water}).
    """

    shared: Services
    formats: Mapping[str, IFormat]
    stores: Stores
    folders: StorageFolders
    on_change: ChangeListener
    collector: GarbageCollector
    jobs: Jobs
    authenticator: Authenticator
    authorizer: Authorizer
    passwords: Passwords
    bearer: BearerTokens
    images: ImageAddresses
    image_keys: Mapping[str, Callable[[Repository], Keys]]
    trail: AuditTrail
    database_dir: Path
    open_install: bool
    token_max_days: int
    low_water: int | None
