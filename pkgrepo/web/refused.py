"""Which errors of the API a form shows above its fields, instead of an error page."""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import AlreadyExists, AuthenticationFailed, Conflict, Forbidden, Invalid

REFUSED: Final = (AlreadyExists, AuthenticationFailed, Conflict, Forbidden, Invalid)
