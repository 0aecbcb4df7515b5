"""OpenLDAP's server with people and groups, for tests."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import define

from tests.support.certificates import write_certificate
from tests.support.client_programs import absent
from tests.support.ports import reserve_port
from tests.support.timeouts import TIMEOUT_S

SLAPD = Path("/usr/sbin/slapd")
BASE = "dc=corp,dc=example"
OWN = f"cn=pkgrepo,{BASE}"
OWN_PASSWORD = "secret of the server"
PASSWORDS = {"ann": "Ann has long words", "bob": "Bo (with*) \\ signs", "zoë": "Zoë née Ünal"}

_CONFIGURATION = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
include /etc/ldap/schema/nis.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
TLSCertificateFile {folder}/server.crt
TLSCertificateKeyFile {folder}/server.key
sizelimit 2000
idletimeout 0
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{own}" read by * none
database mdb
suffix "{base}"
rootdn "cn=root,{base}"
rootpw root
directory {folder}/db
overlay memberof
"""


def _person(name: str, place: str = "people", **more: str) -> str:
    lines = {
        "sn": name,
        "mail": f"{name}@corp.example",
        "userPassword": PASSWORDS.get(name, f"words of {name}"),
        **more,
    }
    attributes = "".join(f"{key}: {value}\n" for key, value in lines.items())
    head = f"dn: uid={name},ou={place},{BASE}\nobjectClass: inetOrgPerson\nuid: {name}\n"
    return f"{head}cn: {name.title()} of Corp\n{attributes}\n"


def _group(name: str, *members: str) -> str:
    lines = "".join(f"member: {each},{BASE}\n" for each in members)
    return f"dn: cn={name},ou=groups,{BASE}\nobjectClass: groupOfNames\ncn: {name}\n{lines}\n"


CONTENT = (
    f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\ndc: corp\no: Corp\n\n"
    + "".join(
        f"dn: ou={each},{BASE}\nobjectClass: organizationalUnit\nou: {each}\n\n"
        for each in ("people", "others", "groups")
    )
    + f"dn: {OWN}\nobjectClass: person\ncn: pkgrepo\nsn: pkgrepo\nuserPassword: {OWN_PASSWORD}\n\n"
    + "".join(map(_person, ("ann", "bob", "cid", "admin", "dora", "eve", "zoë")))
    + _person("twin")
    + _person("twin", "others")
)
GROUPS = (
    _group("crew", "uid=ann,ou=people", "uid=bob,ou=people")
    + _group("chiefs", "uid=bob,ou=people")
    + _group("house", "cn=crew,ou=groups", "cn=town,ou=groups")
    + _group("town", "cn=house,ou=groups")  # in a circle
)


@define
class Slapd:
    """A server at ``url`` and, with TLS, ``tls_url``; ``certificate`` is that of both."""

    folder: Path
    port: int
    tls_port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Without TLS, or with StartTLS."""
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def tls_url(self) -> str:
        """With TLS from the beginning."""
        return f"ldaps://127.0.0.1:{self.tls_port}"

    @property
    def other_url(self) -> str:
        """With TLS at an address that the certificate does not name."""
        return self.tls_url.replace("127.0.0.1", "127.0.0.2")

    @property
    def certificate(self) -> Path:
        """Its own authority, PEM."""
        return self.folder / "server.crt"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        urls = f"{self.url}/ {self.tls_url}/ {self.other_url}/"
        command = [SLAPD, "-d", "0", "-f", self.folder / "slapd.conf", "-h", urls]
        self.process = subprocess.Popen(command, stderr=(self.folder / "log").open("ab"))
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.tls_port), TIMEOUT_S):
                return
            assert self.process.poll() is None, (self.folder / "log").read_text()

    def stop(self) -> None:
        """Stop it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(TIMEOUT_S)
            self.process = None

    def change(self, ldif: str, *options: str) -> None:
        """Change entries (ldapmodify(1)); with the option -a, add them."""
        command = ["ldapmodify", "-x", "-H", self.url, "-D", f"cn=root,{BASE}", "-w", "root", *options]
        subprocess.run(command, input=ldif.encode(), check=True, capture_output=True, timeout=TIMEOUT_S)

    def settings(self, name: str = "corp", **more: str) -> str:
        """The settings of a directory; values in TOML replace these."""
        (self.folder / "password").write_text(f"{OWN_PASSWORD}\n")
        found = {
            "url": f'"{self.tls_url}"',
            "ca_file": f'"{self.certificate}"',
            "bind_dn": f'"{OWN}"',
            "bind_password_file": f'"{self.folder / "password"}"',
            "base_dn": f'"{BASE}"',
            "auto_create": "true",
            "timeout": '"5s"',
            **more,
        }
        return f"[auth.ldap.{name}]\n" + "".join(f"{key} = {value}\n" for key, value in found.items())


@contextmanager
def directory(folder: Path) -> Iterator[Slapd]:
    """A running server; its tests are skipped if it is not installed."""
    if not SLAPD.exists():
        absent("slapd is not installed (bin/test installs it when it runs as root)")
    (folder / "db").mkdir(parents=True)
    write_certificate(folder)
    configuration = _CONFIGURATION.format(folder=folder, base=BASE, own=OWN)
    (folder / "slapd.conf").write_text(configuration)
    port, reserved = reserve_port()
    tls_port, tls_reserved = reserve_port()
    command = [SLAPD, "-T", "add", "-f", folder / "slapd.conf"]
    subprocess.run(command, input=CONTENT.encode(), check=True, capture_output=True, timeout=TIMEOUT_S)
    found = Slapd(folder, port, tls_port)
    try:
        found.start()
        found.change(GROUPS, "-a")  # by the server, whose overlay adds memberOf to people
        yield found
    finally:
        found.stop()
        reserved.close()
        tls_reserved.close()
