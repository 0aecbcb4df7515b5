"""
What a start says to the person at the console: where the server answers, and the first admin's password, once.

It goes to the console itself rather than into the log, so that no log ever holds a password.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.error import CannotListenError
from twisted.python.failure import Failure

from pkgrepo.errors import PkgrepoError
from pkgrepo.storage.private_files import ensure_private


def find_console() -> IO[str] | None:
    """Standard output as the process got it; None when nobody could ever read it (closed, or the null device)."""
    stream = sys.__stdout__
    try:
        if stream is None or os.fstat(stream.fileno()).st_rdev == os.stat(os.devnull).st_rdev:
            return None
    except (OSError, ValueError):
        return None
    return stream


def describe_address(address: object, *, tls: bool = False) -> str:
    """The address of a listening port as one would type it; a wildcard is shown as this machine's own name for it."""
    if isinstance(address, UNIXAddress):
        return f"unix:{os.fsdecode(address.name or b'')}"
    if not isinstance(address, IPv4Address | IPv6Address):
        return str(address)
    host = ipaddress.ip_address(address.host.partition("%")[0])
    if host.is_unspecified:
        host = ipaddress.ip_address("127.0.0.1" if host.version == 4 else "::1")
    text = f"[{host}]" if host.version == 6 else str(host)
    return f"{'https' if tls else 'http'}://{text}:{address.port}/"


def announce_addresses(addresses: Sequence[str], *, admin: str, console: IO[str] | None) -> None:
    """Say where the server answers and who administers it."""
    if console is not None:
        print(f"pkgrepo answers at {' and '.join(addresses)} (admin: {admin})", file=console, flush=True)


def announce_password(user: str, password: str, *, console: IO[str] | None, folder: Path) -> None:
    """
    Hand over a password that was just made, once.

    Without a console it is left in the file ``initial-admin-password`` in ``folder``, readable by its owner only.
    """
    if console is None:
        kept = folder / "initial-admin-password"
        ensure_private(kept)
        with kept.open("w", encoding="utf-8") as file:
            file.write(f"{user} {password}\n")
        return
    print(f"admin user {user!r} was made with the password\n\n    {password}\n", file=console)
    print("which is shown this once; `pkgrepo admin reset-password` makes another.", file=console, flush=True)


def announce_failure(failure: Failure) -> None:
    """Say on standard error why there is no server."""
    sys.stderr.write(f"pkgrepo could not start: {reason_of(failure)}\n")


def is_expected(failure: Failure) -> bool:
    """Whether a start failed for a reason that its sentence tells, so that nobody needs to see the program's lines."""
    return failure.check(PkgrepoError, OSError, CannotListenError) is not None


def reason_of(failure: Failure) -> str:
    """What prevented a start, as a sentence."""
    error = failure.value
    return sentence_of(error) if isinstance(error, OSError) else failure.getErrorMessage()


def sentence_of(error: OSError) -> str:
    """What went wrong with which file, without the number."""
    if error.filename is None:
        return str(error.strerror or error)
    return f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}"
