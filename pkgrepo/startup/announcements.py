"""
Messages of a start on the console: the addresses of the server, and once the first admin's password.

They are written to the console and not to the log, so that no log holds a password.
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
from pkgrepo.sentences import sentence_of
from pkgrepo.small_files import ensure_private


def find_console() -> IO[str] | None:
    """The standard output of the process; None if it is closed or the null device."""
    stream = sys.__stdout__
    try:
        if stream is None or os.fstat(stream.fileno()).st_rdev == os.stat(os.devnull).st_rdev:
            return None
    except (OSError, ValueError):
        return None
    return stream


def describe_address(address: object, *, tls: bool = False) -> str:
    """The URL of a listening port; a wildcard address is shown as loopback address."""
    if isinstance(address, UNIXAddress):
        return f"unix:{os.fsdecode(address.name or b'')}"
    if not isinstance(address, IPv4Address | IPv6Address):
        return str(address)
    host = ipaddress.ip_address(address.host.partition("%")[0])
    if host.is_unspecified:
        host = ipaddress.ip_address("127.0.0.1" if host.version == 4 else "::1")
    text = f"[{host}]" if host.version == 6 else str(host)
    return f"{'https' if tls else 'http'}://{text}:{address.port}/"


def announce_start(addresses: Sequence[str], admin: str, password: str | None, *, folder: Path) -> None:
    """Tell the console the addresses, and the first admin's password if it was generated just now."""
    console = find_console()
    if password is not None:
        announce_password(admin, password, console=console, folder=folder)
    announce_addresses(addresses, admin=admin, console=console)


def announce_addresses(addresses: Sequence[str], *, admin: str, console: IO[str] | None) -> None:
    """Print the addresses of the server and the name of the admin."""
    if console is not None:
        print(f"pkgrepo answers at {' and '.join(addresses)} (log in as {admin})", file=console, flush=True)


def announce_password(user: str, password: str, *, console: IO[str] | None, folder: Path) -> None:
    """
    Print a generated password, once.

    Without a console it is written to ``initial-admin-password`` in ``folder``, readable by the owner only.
    """
    if console is None:
        kept = folder / "initial-admin-password"
        ensure_private(kept)
        with kept.open("w", encoding="utf-8") as file:
            file.write(f"{user} {password}\n")
        return
    print(f"the administrator {user!r} was created, with the password\n\n    {password}\n", file=console)
    print("which is shown this once; `pkgrepo admin reset-password` makes another.", file=console, flush=True)


def announce_failure(failure: Failure) -> None:
    """Print on standard error why the start failed."""
    sys.stderr.write(f"pkgrepo could not start: {reason_of(failure)}\n")


def is_expected(failure: Failure) -> bool:
    """Whether the message of a failed start is enough, without a traceback."""
    return failure.check(PkgrepoError, OSError, CannotListenError) is not None


def reason_of(failure: Failure) -> str:
    """The reason of a failed start, as a sentence."""
    error = failure.value
    return sentence_of(error) if isinstance(error, OSError) else failure.getErrorMessage()
