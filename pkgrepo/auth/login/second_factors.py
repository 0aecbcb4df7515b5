"""
The second factor of local accounts: one-time codes of an app (TOTP, RFC 6238), and recovery codes.

A code is accepted once, and none before it afterwards. Codes of the step before and after count, too, since clocks
differ. Wrong codes are failures of the account and the address like wrong passwords, so that they are guessed no
faster. A code is only looked at once the password is right.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
import time
from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import quote

from attrs import frozen

from pkgrepo.auth.login.throttle import Throttle
from pkgrepo.errors import Conflict, SecondFactorMissing, SecondFactorRequired, SecretUnreadable
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import User, UserKind
from pkgrepo.storage.catalog.people.second_factors import (
    SecondFactor,
    begin_second_factor,
    find_second_factor,
    use_code,
    use_recovery_code,
)
from pkgrepo.storage.catalog.people.users import name_key
from pkgrepo.storage.secret_box import SecretBox

STEP_S: Final = 30  # RFC 6238 section 5.2
DIGITS: Final = 6  # what every app shows
STEPS: Final = (0, -1, 1)  # that count, from the present one
SECRET_BYTES: Final = 20  # RFC 4226 section 4: 160 bits
RECOVERY_CODES: Final = 10
RECOVERY_BYTES: Final = 15  # 120 random bits need no salt and no slow hash (NIST SP 800-63B section 3.1.2.2: 112)
ISSUER: Final = "pkgrepo"
TICKET: Final = "ticket of a second factor"
TICKET_S: Final = 900

Required = Literal["optional", "admins", "everyone"]


@frozen
class Enrolment:
    """A new secret for an app, as people type it, the address that its QR code holds, and a ticket to confirm it."""

    secret: str
    uri: str
    ticket: str


class SecondFactors:
    """
    Checks codes, and sets up factors. ``clock`` returns seconds since the epoch.

    ``required`` says which accounts of people cannot log in with the password alone: none, those with the flag of an
    admin, user manager or system manager, or all.
    """

    def __init__(
        self,
        catalog: ICatalog,
        box: SecretBox,
        throttle: Throttle,
        *,
        required: Required = "optional",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._catalog = catalog
        self._box = box
        self._throttle = throttle
        self.required = required
        self._clock = clock

    def lacks(self, user: User) -> bool:
        """Whether a user must have a second factor, and has none."""
        if user.mfa or self.required == "optional" or user.kind is not UserKind.PERSON:
            return False
        return self.required == "everyone" or user.admin or user.user_manager or user.system_manager

    async def check(self, user: User, code: str, address: str, *, enrolling: bool = False) -> bool:
        """
        Check the code of a user whose password is right, and spend it. False if it is wrong, or was spent before.

        :raises SecondFactorRequired: it is missing; :raises SecondFactorMissing: the user has no factor, and must
        :raises TooManyAttempts: too many logins failed
        """
        if not user.mfa:
            if self.lacks(user) and not enrolling:
                raise SecondFactorMissing
            return True
        if not code:
            raise SecondFactorRequired
        attempt = self._throttle.begin(name_key(user.username), address)
        right = False
        try:
            factor = await self._catalog.look(find_second_factor, user.id)
            right = factor is not None and await self._spend(user, factor, "".join(code.split()))
        finally:
            attempt.end(failed=not right)
        return right

    async def begin(self, user: User) -> Enrolment:
        """Note a new secret, which counts once its first code is confirmed. :raises Conflict: there is a factor"""
        secret = base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")
        await self._catalog.write(begin_second_factor, user.id, self._box.seal(secret, _context(user)))
        label = quote(f"{ISSUER}:{user.username}")
        ticket = self._box.seal(f"{int(self._clock()) + TICKET_S} {user.uid}", TICKET)
        return Enrolment(secret, f"otpauth://totp/{label}?secret={secret}&issuer={ISSUER}", ticket)

    def open_ticket(self, ticket: str) -> str | None:
        """The public id of the user to whom a ticket was given; None if it was not, or has expired."""
        try:
            until, _, uid = self._box.open(ticket, TICKET).partition(" ")
        except SecretUnreadable:
            return None
        return uid if self._clock() < int(until) else None

    async def find_unconfirmed(self, user: User, code: str, address: str) -> tuple[str, int] | None:
        """
        The sealed secret that was noted, and the step of a right code for it; None if the code is wrong.

        :raises Conflict: none was noted, or it is confirmed; :raises TooManyAttempts: too many logins failed
        """
        factor = await self._catalog.look(find_second_factor, user.id)
        if factor is None or factor.confirmed_at is not None:
            raise Conflict("there is no second factor to confirm")
        attempt = self._throttle.begin(name_key(user.username), address)
        step = None
        try:
            step = find_step(self._box.open(factor.secret, _context(user)), "".join(code.split()), self._clock())
        finally:
            attempt.end(failed=step is None)
        return None if step is None else (factor.secret, step)

    async def _spend(self, user: User, factor: SecondFactor, code: str) -> bool:
        if len(code) != DIGITS:
            hashed = hash_recovery_code(code)
            return hashed in factor.recovery and await self._catalog.write(use_recovery_code, user.id, hashed)
        step = find_step(self._box.open(factor.secret, _context(user)), code, self._clock())
        if step is None or step <= factor.last_step:
            return False
        return await self._catalog.write(use_code, user.id, factor.secret, step)


def make_code(secret: str, step: int) -> str:
    """The code of a secret in base32 for a time step (RFC 4226 section 5.3, RFC 6238 section 4.2)."""
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", step), "sha1")
    offset = digest[-1] & 15
    number = int.from_bytes(digest[offset : offset + 4]) & 0x7FFFFFFF
    return str(number % 10**DIGITS).zfill(DIGITS)


def find_step(secret: str, code: str, now_s: float) -> int | None:
    """The time step, near this time, that a code is of; None if it is of none."""
    given = code.encode("utf-8", "replace")
    steps = [int(now_s) // STEP_S + each for each in STEPS]
    right = [step for step in steps if hmac.compare_digest(make_code(secret, step).encode("ascii"), given)]
    return right[0] if right else None


def make_recovery_codes() -> list[str]:
    """New recovery codes, in groups that people can type."""
    made = [secrets.token_bytes(RECOVERY_BYTES) for _ in range(RECOVERY_CODES)]
    texts = [base64.b32encode(each).decode("ascii").lower() for each in made]
    return ["-".join(text[at : at + 4] for at in range(0, len(text), 4)) for text in texts]


def hash_recovery_code(code: str) -> str:
    """The hash under which a recovery code is stored; case and dashes do not matter."""
    return hashlib.sha256(code.replace("-", "").lower().encode("utf-8", "replace")).hexdigest()


def _context(user: User) -> str:
    return f"second factor of {user.uid}"
