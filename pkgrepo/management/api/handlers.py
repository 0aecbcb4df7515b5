"""The base of the classes whose methods handle routes."""

from __future__ import annotations

from typing import ClassVar

from pkgrepo.interfaces import ICatalog

from .route import Table
from .services import ManagementServices


class Handlers:
    """The routes of one subject: ``table`` lists them, the methods that are marked with it answer them."""

    table: ClassVar[Table]

    def __init__(self, services: ManagementServices) -> None:
        self._services = services
        self._catalog: ICatalog = services.shared.catalog
        self._registry = services.shared.registry
