"""
The administrator's command line.

Commands that touch the catalog open it themselves, whether a server runs on it or not: the catalog is made for
several processes. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not found, 4 refused, 5 conflict.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

import click
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from pkgrepo.auth.login.usernames import check_username
from pkgrepo.commands.progress import make_progress
from pkgrepo.config import Config, ConfigError, explain, read_config, template
from pkgrepo.startup.announcements import sentence_of
from pkgrepo.storage.catalog.people import identity, login_unlocks

from . import __version__
from .errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, PkgrepoError

if TYPE_CHECKING:
    from .core import Core

EXIT_CODES: dict[type[PkgrepoError], int] = {Invalid: 2, NotFound: 3, Forbidden: 4, AlreadyExists: 5, Conflict: 5}
TWISTD = "from twisted.scripts.twistd import run; run()"


class Unsound(PkgrepoError):  # noqa: N818 - named for what was found
    """Some things were found wrong, and have been told."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} problems were found")


class Sources:
    """Where this call's settings come from; they are read when a command first wants them."""

    def __init__(self, file: Path | None, assignments: tuple[str, ...]) -> None:
        self.file = file
        self.assignments = assignments

    def read(self) -> Config:
        """The configuration; ends the program with every problem told when there is one."""
        try:
            overrides = dict(_assignment(each) for each in self.assignments)
            return read_config(self.file, environ=os.environ, overrides=overrides)
        except ConfigError as error:
            for problem in error.problems:
                click.echo(problem, err=True)
            sys.exit(2)


@click.group()
@click.version_option(__version__, prog_name="pkgrepo")
@click.option(
    "--config", "-c", "file", type=click.Path(path_type=Path), envvar="PKGREPO_CONFIG", help="TOML file with settings."
)
@click.option("--set", "-s", "assignments", multiple=True, metavar="KEY=VALUE", help="One setting; may be repeated.")
@click.pass_context
def main(context: click.Context, file: Path | None, assignments: tuple[str, ...]) -> None:
    """Administer a pkgrepo server from its own machine."""
    context.obj = Sources(file, assignments)


@main.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("pkgrepo.toml"))
@click.option("--systemd", is_flag=True, help="Write nothing; print the units for systemd.")
def init(path: Path, *, systemd: bool) -> None:
    """Write a configuration file with every setting, its default and its meaning."""
    if systemd:
        for unit in sorted(files("pkgrepo").joinpath("systemd").iterdir(), key=lambda each: each.name):
            click.echo(f"# /etc/systemd/system/{unit.name}\n{unit.read_text('utf-8')}")
        return
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(template())
    except FileExistsError:
        _end(f"{path} is there already", 5)
    except OSError as error:
        _end(sentence_of(error), 1)
    click.echo(f"wrote {path}")


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def serve(sources: Sources, arguments: tuple[str, ...]) -> None:
    """Serve in the foreground: what twistd --nodaemon pkgrepo does."""
    options = [f"--config={sources.file}"] if sources.file else []
    options += [f"--set={each}" for each in sources.assignments]
    command = [sys.executable, "-c", TWISTD, "--nodaemon", "--pidfile=", "pkgrepo", *options, *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - the very program that runs this


@main.command("check-config")
@click.option("--explain", "explained", is_flag=True, help="Print every setting with its value and origin.")
@click.pass_obj
def check_config(sources: Sources, *, explained: bool) -> None:
    """Check the settings and what a start would find, and tell every problem at once."""
    config = sources.read()
    problems = _start_problems(config)
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        sys.exit(2)
    if not explained:
        click.echo("the configuration is valid")
        return
    for each in explain(config):
        click.echo(f"{each.name} = {each.value}".rstrip() + f"  # {each.origin}")


@main.command()
@click.pass_obj
def migrate(sources: Sources) -> None:
    """Bring the catalog to this version's schema; a start does the same."""
    config = sources.read()
    check_catalog(config)

    async def nothing_more(_core: Core) -> None:
        click.echo("the catalog is up to date")

    run_offline(config, nothing_more)


@main.group()
def admin() -> None:
    """Administrators."""


@admin.command("create")
@click.argument("username")
@click.option("--password-file", type=click.File(), help="Read the password from a file (- is standard input).")
@click.option("--generate", is_flag=True, help="Make a password and print it.")
@click.pass_obj
def create_admin(sources: Sources, username: str, password_file: IO[str] | None, *, generate: bool) -> None:
    """Add an administrator."""
    config = sources.read()
    try:
        check_username(username)
    except Invalid as error:
        _end(str(error), EXIT_CODES[Invalid])
    password = _password(password_file, generate=generate)

    async def create(core: Core) -> None:
        core.passwords.check(password, username=username)
        hashed = await core.passwords.hash(password)
        await core.catalog.write(
            identity.add_user, username=username, password_hash=hashed, admin=True, now_ms=core.clock.now_ms()
        )
        click.echo(f"administrator {username} was added" + _shown(password, generate=generate))

    run_offline(config, create)


@admin.command("reset-password")
@click.argument("username")
@click.option("--password-file", type=click.File(), help="Read the password from a file (- is standard input).")
@click.option("--generate", is_flag=True, help="Make a password and print it.")
@click.pass_obj
def reset_password(sources: Sources, username: str, password_file: IO[str] | None, *, generate: bool) -> None:
    """Give a user a new password; what was issued with the old one ends, access tokens live on."""
    config = sources.read()
    check_catalog(config)
    password = _password(password_file, generate=generate)

    async def reset(core: Core) -> None:
        core.passwords.check(password, username=username)
        user = core.catalog.look(identity.find_user_by_name, username)
        if user is None:
            raise NotFound("user", username)
        hashed = await core.passwords.hash(password)
        await core.catalog.write(identity.set_password, user.id, hashed, now_ms=core.clock.now_ms())
        click.echo(f"{username} has a new password" + _shown(password, generate=generate))

    run_offline(config, reset)


@admin.command("unlock")
@click.argument("username", required=False, default="")
@click.option("--address", default="", help="Also, or only, lift what blocks an IP address and its network.")
@click.pass_obj
def unlock(sources: Sources, username: str, address: str) -> None:
    """Lift what blocks logins after too many wrong passwords; a server that runs heeds it at the next login."""
    config = sources.read()
    check_catalog(config)
    if not username and not address:
        raise click.UsageError("name a user, or an address with --address")
    if address:
        try:
            address = str(ip_address(address))
        except ValueError as error:
            _end(str(error), 2)

    async def lift(core: Core) -> None:
        if username and core.catalog.look(identity.find_user_by_name, username) is None:
            raise NotFound("user", username)
        await core.catalog.write(
            login_unlocks.add_unlock, username=username, address=address, now_ms=core.clock.now_ms()
        )
        click.echo(f"logins of {' and '.join(filter(None, (username, address)))} are not blocked any more")

    run_offline(config, lift)


@main.group()
def storage() -> None:
    """Storages whose folder is elsewhere now, or was another catalog's; for while no server works in them."""


@storage.command("adopt")
@click.argument("name")
@click.pass_obj
def adopt_storage(sources: Sources, name: str) -> None:
    """Take a storage over from the catalog that it belongs to."""
    config = sources.read()
    check_catalog(config)

    async def take(core: Core) -> None:
        from pkgrepo.repositories.upkeep import adopt  # noqa: PLC0415 - see run_offline
        from pkgrepo.startup import provisioning as first_start  # noqa: PLC0415 - see run_offline

        declared = first_start.declared_storages(config).get(name)
        folder = await core.catalog.write(adopt.adopt_storage, core.folders, name, declared)
        click.echo(f"storage {name} at {folder} belongs to this catalog")

    run_offline(config, take)


@storage.command("move")
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--empty", is_flag=True, help="Begin an empty storage there: all that it held is lost.")
@click.pass_obj
def move_storage(sources: Sources, name: str, path: Path, *, empty: bool) -> None:
    """Tell where a storage is now; its folder is moved or copied before."""
    config = sources.read()
    check_catalog(config)

    async def move(core: Core) -> None:
        from pkgrepo.repositories.upkeep import adopt  # noqa: PLC0415 - see run_offline

        await core.catalog.write(
            adopt.move_storage, core.folders, name, path.absolute(), empty=empty, now_ms=core.clock.now_ms()
        )
        click.echo(f"storage {name} is at {path}")

    run_offline(config, move)


@main.command()
@click.option("--repair", is_flag=True, help="Mend the readable layout and remove forgotten copies.")
@click.pass_obj
def verify(sources: Sources, *, repair: bool) -> None:
    """Read every stored byte again, and hold the readable layout against the catalog."""
    config = sources.read()
    check_catalog(config)

    async def work(core: Core) -> None:
        from pkgrepo.repositories.upkeep.verify import Verifier  # noqa: PLC0415 - see run_offline

        await core.open_storages()
        report = await Verifier(
            catalog=core.catalog,
            registry=core.registry,
            stores=core.stores,
            pools=core.pools,
            follower=core.follower,
            clock=core.clock,
            progress=make_progress(),
            repair=repair,
        ).run()
        for problem in (*report.notes, *report.problems):
            click.echo(problem, err=True)
        click.echo(
            f"{report.blobs} blobs of {report.size} bytes: {report.missing} missing, {report.damaged} damaged; "
            f"{report.unnamed} forgotten copies, {report.layout_changes} differences in the readable layout, "
            f"{report.mended} mended"
        )
        if report.problems:
            raise Unsound(len(report.problems))

    run_offline(config, work)


@main.command()
@click.option(
    "--storage",
    "named",
    multiple=True,
    metavar="NAME=PATH",
    help="A storage that is elsewhere than it was, or that storages.json in the data folder does not name.",
)
@click.pass_obj
def reindex(sources: Sources, named: tuple[str, ...]) -> None:
    """Build the catalog again from the readable layout, when the database is gone."""
    folders = {name: Path(path).absolute() for name, path in (_assignment(each, "--storage") for each in named)}
    config = sources.read()
    _say_where(config, folders)

    async def work(core: Core) -> None:
        from pkgrepo.repositories.upkeep import adopt  # noqa: PLC0415 - see run_offline
        from pkgrepo.repositories.upkeep.reindex import Reindexer  # noqa: PLC0415 - see run_offline
        from pkgrepo.startup import provisioning as first_start  # noqa: PLC0415 - see run_offline

        now_ms = core.clock.now_ms()
        await core.catalog.write(adopt.adopt_named, core.folders, folders, now_ms)
        problems = await core.catalog.write(adopt.adopt_known, core.folders, now_ms)
        await first_start.ensure_storages(core, config, take_over=True)
        restored = await Reindexer(
            catalog=core.catalog,
            registry=core.registry,
            stores=core.stores,
            pools=core.pools,
            follower=core.follower,
            formats=core.formats,
            clock=core.clock,
            progress=make_progress(),
        ).run()
        problems += restored.problems
        for sentence in (*restored.notes, *problems):
            click.echo(sentence, err=True)
        click.echo(
            f"took in {restored.repositories} repositories, {restored.versions} versions, {restored.files} files, "
            f"{restored.manifests} images and {restored.tags} tags of images"
        )
        if problems:
            raise Unsound(len(problems))

    run_offline(config, work)


@main.command("gc")
@click.option("--dry-run", is_flag=True, help="Remove nothing, and tell what would go.")
@click.option(
    "--grace",
    "grace_s",
    type=click.IntRange(min=0),
    default=900,
    show_default=True,
    metavar="SECONDS",
    help="Keep what somebody used so recently; what pushes under way need stays in any case.",
)
@click.option("--delete-untagged", is_flag=True, help="Also remove images that no tag stands for.")
@click.pass_obj
def collect_garbage(sources: Sources, *, dry_run: bool, grace_s: int, delete_untagged: bool) -> None:
    """Remove stored bytes that nothing needs any more, whether a server runs or not."""
    config = sources.read()
    check_catalog(config)

    async def work(core: Core) -> None:
        from pkgrepo.repositories.upkeep.gc import KIND, Wishes  # noqa: PLC0415 - see run_offline

        await core.open_storages()
        wishes = Wishes(grace_s=grace_s, untagged=delete_untagged, dry_run=dry_run)
        problems: list[str] = []
        for storage in core.registry.storages():
            repositories = [each for each in core.registry.all() if each.storage_id == storage.id]
            data = {**wishes.to_json(), "on": f"storage {storage.name!r}"}
            uid = await core.jobs.begin(
                KIND, storage.uid, data, partial(core.collector.collect, storage, repositories, wishes)
            )
            job = await core.jobs.wait(uid)
            problems += job.result["errors"]
            if job.state == "done":
                found, verb = job.result, "would remove" if dry_run else "removed"
                click.echo(
                    f"{storage.name}: {verb} {found['blobs']} of {found['blobs_seen']} blobs ({found['freed']} bytes), "
                    f"{found['manifests']} of {found['manifests_seen']} manifests and {found['uploads']} unfinished "
                    f"uploads; kept {found['young']} for --grace, {found['promised']} for pushes under way and "
                    f"{found['untagged']} manifests without a tag for want of --delete-untagged"
                )
        if not dry_run:
            await core.follower.catch_up()  # or a reindex would bring back what went
        for problem in problems:
            click.echo(problem, err=True)
        if problems:
            raise Unsound(len(problems))

    run_offline(config, work)


def _say_where(config: Config, named: dict[str, Path]) -> None:
    """Tell which folders a reindex looks in; it ends here when there is no storage in any and no catalog either."""
    from pkgrepo.startup import provisioning as first_start  # noqa: PLC0415 - see run_offline
    from pkgrepo.storage.blobs.paths import find_storage_id  # noqa: PLC0415 - see run_offline
    from pkgrepo.storage.known_storages import KnownStorages  # noqa: PLC0415 - see run_offline

    check_owner(config.data.dir)
    try:
        known = {each.name: config.data.dir / each.path for each in KnownStorages(config.data.dir).list()}
        places = {**first_start.declared_storages(config), **known, **named}
        for name, path in sorted(places.items()):
            click.echo(f"looking for storage {name} at {path}", err=True)
        nothing = not any(find_storage_id(path) for path in places.values())
    except OSError as error:
        _end(sentence_of(error), 1)
    if nothing and not config.database_path.exists():
        _end("there is no storage and no catalog; --storage NAME=PATH tells where a storage is", 3)


def run_offline(config: Config, work: Callable[[Core], Awaitable[None]]) -> NoReturn:
    """Do some work on the catalog and the blobs, without serving; ends the program with the code that tells how."""
    from .core import Core  # noqa: PLC0415 - takes most of a second, which other commands need not wait for

    check_owner(config.data.dir)

    async def run(reactor: object) -> None:
        core = Core(config, reactor)
        try:
            await core.start()
            try:
                await work(core)
            finally:
                await core.stop()
        except PkgrepoError as error:
            _end(str(error), next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
        except OSError as error:
            _end(sentence_of(error), 1)

    react(lambda reactor: Deferred.fromCoroutine(run(reactor)))
    raise AssertionError("react ends the program")


def check_owner(folder: Path) -> None:
    """Refuse to work in another user's folder: files made here would lock the server out of its own data."""
    try:
        found = folder.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        _end(sentence_of(error), 1)
    if not stat.S_ISDIR(found.st_mode):
        _end(f"{folder} (data.dir) is no folder", 2)
    if found.st_uid != os.geteuid():
        _end(f"{folder} belongs to the user with id {found.st_uid}; run this as that user", 4)


def check_catalog(config: Config) -> None:
    """Refuse to make a catalog by a command for one that is there: the folder is most likely a wrong one."""
    check_owner(config.data.dir)
    if not config.database_path.exists():
        _end(f"there is no catalog at {config.database_path}; data.dir is {config.data.dir}", 3)


def _start_problems(config: Config) -> list[str]:
    from twisted.internet import reactor  # noqa: PLC0415 - see run_offline

    from pkgrepo.startup.checks import start_problems  # noqa: PLC0415 - see run_offline

    from .core import Core  # noqa: PLC0415 - see run_offline

    try:
        return list(start_problems(Core(config, reactor), config))
    except OSError as error:
        return [sentence_of(error)]


def _password(file: IO[str] | None, *, generate: bool) -> str:
    if generate:
        return secrets.token_urlsafe(18)
    if file is not None:
        try:
            return str(file.read()).rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            _end(f"{file.name} holds no password: {error}", 2)
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))


def _shown(password: str, *, generate: bool) -> str:
    return f": {password}" if generate else ""


def _assignment(text: str, option: str = "--set") -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{option} takes {'NAME=PATH' if option == '--storage' else 'KEY=VALUE'}, not {text!r}")
    return name.strip(), value


def _end(sentence: str, code: int) -> NoReturn:
    click.echo(f"pkgrepo: {sentence}", err=True)
    sys.exit(code)
