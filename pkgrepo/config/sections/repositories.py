"""What repositories have in common: upstreams, imports, webhooks, advisories, images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from pkgrepo.config.keys import Section
from pkgrepo.config.kinds import Bytes, ExistingFile, Place, Seconds, Target
from pkgrepo.model.structs import meaning

from .texts import MIB, Address


class Proxy(Section, frozen=True):
    """Connections of proxy repositories to their upstreams. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are heeded, too."""

    allow_private: Annotated[
        tuple[Target, ...],
        meaning(
            "upstreams outside of the public internet: hosts (also *.corp.example), addresses, networks; all other "
            "connections to private addresses are refused",
            title="a list of hosts, addresses and networks",
        ),
    ] = ()
    connect_timeout_s: Annotated[
        Seconds, meaning("how long connecting to an upstream may take; a route may have its own", ge=0.1, le=300)
    ] = 10
    idle_timeout_s: Annotated[
        Seconds,
        meaning(
            "how long an upstream may take to answer, and then send nothing; a route may have its own", ge=0.1, le=3600
        ),
    ] = 30
    document_timeout_s: Annotated[
        Seconds, meaning("how long the download of an index document may take in all", ge=0.1, le=3600)
    ] = 120
    max_connections_per_host: Annotated[
        int, meaning("most requests at a time to one upstream host, in each process", ge=1, le=1000)
    ] = 50
    store_delay_s: Annotated[
        Seconds,
        meaning(
            "how long fetched documents and files, which are served already, may wait to be stored together with more",
            ge=0,
            le=60,
        ),
    ] = 2
    facts_ahead: Annotated[
        int,
        meaning(
            "newest versions of a package of which is read what rules ask of files (such as the licence in a wheel), "
            "before its document is answered; other files are read when they are asked for",
            ge=0,
            le=100,
        ),
    ] = 5
    max_document_size: Annotated[
        Bytes, meaning("largest index document of an upstream, unpacked", ge=1024, le=2**40)
    ] = 256 * MIB
    source_archives: Annotated[
        Mapping[str, Address],
        meaning(
            "addresses of archives (tar or zip) of tags, by the host of the source as packages name it, with {owner}, "
            "{repo} and {tag}; for rules with differs: unexplained"
        ),
    ] = field(default_factory=dict)
    ca_file: Annotated[
        ExistingFile | None,
        meaning("certificates of private authorities for upstreams, PEM, beside those of the system"),
    ] = None


class Imports(Section, frozen=True):
    """Imports of packages from elsewhere. For addresses proxy.allow_private and proxy.ca_file apply."""

    folders: Annotated[
        tuple[Path, ...],
        meaning(
            "folders on the machine of the server from which the API lets admins of repositories import",
            title="a list of paths",
        ),
    ] = ()
    keys: Annotated[
        tuple[Path, ...],
        meaning(
            "files with the public keys (PEM) of servers whose air-gap bundles are taken in without a key of their own",
            title="a list of paths",
        ),
    ] = ()


class Webhooks(Section, frozen=True):
    """Requests to the receivers of events. Private authorities are those of proxy.ca_file."""

    allow_private: Annotated[
        tuple[Target, ...],
        meaning(
            "receivers outside of the public internet: hosts (also *.corp.example), addresses, networks; all other "
            "connections to private addresses are refused",
            title="a list of hosts, addresses and networks",
        ),
    ] = ()
    timeout_s: Annotated[Seconds, meaning("how long a receiver may take to answer", ge=0.1, le=60)] = 10


class Advisories(Section, frozen=True):
    """Known vulnerabilities, and known malware, of npm, Python, Maven, Ruby, Rust and Go packages."""

    source: Annotated[
        Place,
        meaning(
            "an export of the OSV database: a folder of JSON files, a zip of them, or the address of such a zip at a "
            "mirror, to which proxy.allow_private and the certificates of proxy.ca_file apply; empty means none"
        ),
    ] = ""
    refresh_s: Annotated[
        Seconds, meaning("how often it is looked whether the export has changed", ge=60, le=30 * 86_400)
    ] = 6 * 3600
    max_age_s: Annotated[
        Seconds,
        meaning(
            "age of an export, by the time of its youngest file or as its server says, from which on nothing found is "
            "not taken for free of vulnerabilities",
            ge=3600,
            le=3650 * 86_400,
        ),
    ] = 7 * 86_400
    block_malware: Annotated[
        bool,
        meaning("whether what a record with an id that begins with MAL- names is refused by all repositories at once"),
    ] = True


class Container(Section, frozen=True):
    """Container images."""

    ping: Annotated[
        Literal["auto", "challenge", "open"],
        meaning("what GET /v2/ answers without credentials: auto asks registry clients for them, but not curl"),
    ] = "auto"
    service: Annotated[
        str,
        meaning(
            "name of this server in challenges",
            pattern=r"[A-Za-z0-9._:-]{1,100}",
            title="1 to 100 letters, digits, dots, dashes or colons",
        ),
    ] = "pkgrepo"
    default_repository: Annotated[
        str,
        meaning(
            "repository, as storage/name, of images whose name begins with no storage and repository; auto: the "
            "container repository that is marked default, else the only one",
            pattern=r"(auto|[^/]+/[^/]+)?",
            title="storage/repository, auto or nothing",
        ),
    ] = "auto"
    trusted_keys: Annotated[
        tuple[Annotated[str, Meta(pattern=r"(?s)\s*-----BEGIN .*", title="a public key in PEM")], ...],
        meaning(
            "keys whose signatures count in repositories that require content trust and list none themselves",
            title="a list of public keys in PEM",
        ),
    ] = ()
