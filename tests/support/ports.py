"""
Ports of 127.0.0.1 that are bound later, or again, and that no other process gets meanwhile.

They are below those that the kernel gives to connections and to servers without a wish. Tests in other processes do not
get them either: each has an abstract socket of its name.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

_GIVEN_BY_THE_KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
_forever: list[socket.socket] = []


def reserve_port() -> tuple[int, socket.socket]:
    """Return a free port, and what reserves it until it is closed."""
    least = int(_GIVEN_BY_THE_KERNEL.read_text().split()[0])
    while True:
        port = random.randrange(_LOWEST, least if least > 2 * _LOWEST else 65_536)
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0pkgrepo-test-port-{port}")
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            name.close()
        else:
            return port, name


def closed_port() -> int:
    """Return a port on which nothing listens, for the rest of the tests of this process."""
    port, name = reserve_port()
    _forever.append(name)
    return port
