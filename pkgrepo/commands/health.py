"""Ask the server of some settings whether it is ready; what health checks of containers run."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl

import click

from pkgrepo.client.terminal import fail, printable
from pkgrepo.commands.settings import Sources
from pkgrepo.config import Config

TIMEOUT_S = 5.0


@click.command()
@click.pass_obj
def health(sources: Sources) -> None:
    """
    Ask the server that runs with these settings whether it is ready.

    It is asked at the first address of server.listen, without credentials. Exit code 0: it serves; 1: it does not.
    """
    config = sources.read()
    try:
        status, code = ask(config)
    except (OSError, http.client.HTTPException, ValueError) as error:
        fail(f"the server does not answer at {config.server.listen[0]}: {printable(str(error))}", 1)
    click.echo(status)
    if code != 200:
        raise SystemExit(1)


def ask(config: Config) -> tuple[str, int]:
    """
    Return the status in the answer of /readyz, and its code.

    :raises OSError: nothing answers
    :raises ValueError: the first address is not one to connect to, or the answer is not that of this server
    """
    connection = _Connection(config.server.listen[0], tls=config.tls.cert is not None)
    try:
        connection.request("GET", "/readyz", headers={"Host": "localhost"})
        answer = connection.getresponse()
        found = json.loads(answer.read(65_536))
        return str(found["status"]), answer.status
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("the answer is that of another program") from error
    finally:
        connection.close()


class _Connection(http.client.HTTPConnection):
    """A connection to an endpoint of this machine. Certificates are not verified: their name is the public one."""

    def __init__(self, description: str, *, tls: bool) -> None:
        kind, *parts = (re.sub(r"\\(.)", r"\1", each) for each in _split(description))
        if kind not in ("tcp", "tcp6", "unix", "ssl") or not parts:
            raise ValueError("only addresses with tcp:, tcp6:, ssl: and unix: can be asked")
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._kind, self._place = kind, parts[0].partition("=")[2] or parts[0]
        interface = next((each.partition("=")[2] for each in parts if each.startswith("interface=")), "")
        self._interface = interface or ("::1" if kind == "tcp6" else "127.0.0.1")
        self._tls = tls or kind == "ssl"

    def connect(self) -> None:
        """Connect to the socket, and begin TLS."""
        if self._kind == "unix":
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(TIMEOUT_S)
            self.sock.connect(self._place)
        else:
            host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._interface, self._interface)  # noqa: S104 - of the server
            self.sock = socket.create_connection((host, int(self._place)), TIMEOUT_S)
        if self._tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.sock = context.wrap_socket(self.sock)


def _split(description: str) -> list[str]:
    """The parts of an endpoint's description between its colons."""
    return re.findall(r"(?:\\.|[^:\\])+", description)
