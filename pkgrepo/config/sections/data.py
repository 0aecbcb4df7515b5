"""Where data are, how long they stay, and their copies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import force_setattr

from pkgrepo.config.keys import AUTO, Section
from pkgrepo.config.kinds import BackupPlace, BaseUrl, Bytes, ExistingFile, Schedule, Seconds, Secret
from pkgrepo.model.structs import meaning

from .texts import POSTGRESQL, SQLITE


class Data(Section, frozen=True):
    """The data folder and how safely it is written."""

    dir: Annotated[Path, meaning("folder of the database and of the storages")] = Path("data")
    storages: Annotated[
        Path | None,
        meaning("folder of storages without a path of their own, which several nodes share; unset means below dir"),
    ] = None
    fsync: Annotated[
        Literal["always", "never"], meaning("never: acknowledged uploads may be lost when the machine loses power")
    ] = "always"
    scrub_days: Annotated[
        int,
        meaning(
            "in so many days all that is stored in folders is read once, and compared with its digests; 0: never",
            ge=0,
            le=3650,
        ),
    ] = 30
    low_water: Annotated[
        Annotated[Bytes, Meta(ge=0)] | None,
        AUTO,
        meaning("uploads are refused when the disk has less room; auto is 1 GiB or 2 % of the disk, whichever is less"),
    ] = None

    def __post_init__(self) -> None:
        force_setattr(self, "dir", Path.cwd() / self.dir)


class Database(Section, frozen=True):
    """The catalog."""

    url: Annotated[
        str,
        meaning(
            "the database: the embedded one in a file, or PostgreSQL for several nodes",
            pattern=rf"{SQLITE}.+|{POSTGRESQL}",
            title='"sqlite:///" with a path, in which {dir} is the value of data.dir, or a "postgresql://" address '
            "without password, which is database.password",
        ),
    ] = f"{SQLITE}{{dir}}/pkgrepo.db"
    password: Annotated[Secret | None, meaning("the password for PostgreSQL")] = None
    replica_url: Annotated[
        Annotated[
            str,
            Meta(pattern=POSTGRESQL, title='a "postgresql://" address without password, which is database.password'),
        ]
        | None,
        meaning("a streaming replica of the PostgreSQL database, which answers queries while it has the newest commit"),
    ] = None


class Gc(Section, frozen=True):
    """Garbage collection: removes stored bytes that no package needs any more."""

    daily: Annotated[bool, meaning("collect once a day on each storage what was not used for 24 hours")] = True


class Backup(Section, frozen=True):
    """
    Backups of the catalog and of all stored bytes, by night.

    Credentials for a bucket are found in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in files or of the
    instance.
    """

    destination: Annotated[
        BackupPlace,
        meaning("a folder, or a bucket as s3://bucket/prefix; empty means that the server makes no backups"),
    ] = ""
    endpoint: Annotated[BaseUrl, meaning("address of the server of the bucket")] = ""
    region: Annotated[str, meaning("region of the bucket, as signatures name it")] = "us-east-1"
    path_style: Annotated[bool, meaning("false: the bucket is a part of the host name")] = True
    ca_file: Annotated[ExistingFile | None, meaning("certificates of private authorities for the bucket, PEM")] = None
    schedule: Annotated[
        Schedule, meaning("when, in UTC: minute, hour, day of the month, month, day of the week, as in crontab")
    ] = "30 2 * * *"
    keep: Annotated[int, meaning("how many backups are kept", ge=1, le=10_000)] = 14
    key: Annotated[
        bool,
        meaning(
            "whether a backup has the key that decrypts stored credentials (credentials.key); without it, keep a copy "
            "of that file in another place"
        ),
    ] = False
    check: Annotated[
        bool,
        meaning(
            "whether each backup is read and compared afterwards, and some packages are fetched from a server that is "
            "started with it"
        ),
    ] = True


class Retention(Section, frozen=True):
    """How long what was deleted can be restored, and what is staged waits."""

    trash_days: Annotated[
        int,
        meaning(
            "days for which deleted versions, packages, tags and repositories stay in the trash; 0: there is no trash",
            ge=0,
            le=3650,
        ),
    ] = 14
    stage_days: Annotated[
        int, meaning("days after which a stage expires that nobody approved or rejected", ge=1, le=3650)
    ] = 30


class Twin(Section, frozen=True):
    """
    A static twin of a repository that the server keeps up to date: see pkgrepo export.

    Credentials for a bucket are found in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in files or of the
    instance.
    """

    repository: Annotated[
        str,
        meaning("the repository, as storage/name", pattern=r"[^/\s]+/[^/\s]+", title='a repository such as "main/npm"'),
    ]
    target: Annotated[BackupPlace, meaning("a new folder, or an empty place in a bucket as s3://bucket/prefix")]
    token_file: Annotated[
        ExistingFile | None,
        meaning(
            "file with an access token: the twin has what it may read, and the list of files is signed if it has the "
            "action admin in the repository; without one it has what anonymous readers get"
        ),
    ] = None
    base_url: Annotated[BaseUrl, meaning("the address at which the twin is served; npm needs it")] = ""
    every_s: Annotated[
        Seconds, meaning("the least time between two runs, while the repository changes", ge=1, le=86_400)
    ] = 10.0
    endpoint: Annotated[BaseUrl, meaning("address of the server of the bucket")] = ""
    region: Annotated[str, meaning("region of the bucket, as signatures name it")] = "us-east-1"
    path_style: Annotated[bool, meaning("false: the bucket is a part of the host name")] = True
    ca_file: Annotated[ExistingFile | None, meaning("certificates of private authorities for the bucket, PEM")] = None
    addresses: Annotated[
        bool, meaning("whether indexes are also objects at the addresses of their folders, as the bucket serves them")
    ] = True
