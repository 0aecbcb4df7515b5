"""
Proofs of what bin/release has built: ``bin/release --check OUT [PART]...``; without parts, all of them.

Each part installs an artifact as its page of the documentation says, and uses it. ``debian`` and ``systemd`` need root,
``container`` needs podman, and ``hosting`` helm and skopeo. They take some minutes together; the tests have what is
quick.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests
import yaml

from pkgrepo import __version__
from pkgrepo.packaging.archives import sha256_of
from pkgrepo.packaging.chart import KUBERNETES
from pkgrepo.packaging.tree import HOME, MACHINES, SUITE, Machine
from tests.support.booted_machine import booted, until
from tests.support.client_programs import CLIENTS, client_environment
from tests.support.first_publishes import Publisher
from tests.support.server_process import ROOT, ServerProcess, clean_environment
from tests.support.unit_filters import SETS

PASSWORD = "correct horse battery"
ADMIN = ("admin", PASSWORD)
# Beside the usual way: for places where a container may not raise limits, or have a network of its own.
PODMAN: Sequence[Sequence[str]] = (
    (),
    ("--ulimit=host", "--network=host"),
    ("--runtime=runc", "--ulimit=nofile=20000:20000", "--ulimit=nproc=1000:1000", "--network=host"),
)
# The unpacked image of each machine has less. Parts of libraries for arm64 begin at multiples of 64 KiB.
IMAGE_BYTES = {"amd64": 150_000_000, "arm64": 154_000_000}
IN_CHROOT = "python3,ca-certificates,media-types,systemd-standalone-sysusers,libseccomp2"
IN_MACHINE = "python3,ca-certificates,media-types,systemd,systemd-sysv,dbus"


def run(*command: object, **options: Any) -> str:
    """Run a program, which must succeed. Returns its output."""
    words = [str(each) for each in command]
    ended = subprocess.run(words, check=False, **{"stdout": subprocess.PIPE, "text": True, **options})
    assert ended.returncode == 0, f"{' '.join(words)}: exit status {ended.returncode}\n{ended.stdout}"
    return str(ended.stdout)


def publish(url: str) -> None:
    """Publish a package of each format, and read it."""
    client = Publisher(url, ADMIN)
    for each in client.publish_all():
        client.check(each)


@contextmanager
def serving(command: Sequence[object], folder: Path, **variables: str) -> Iterator[str]:
    """Run a server; the address is yielded when it is ready."""
    folder.mkdir(exist_ok=True)
    environ = clean_environment(PKGREPO_ADMIN_PASSWORD=PASSWORD, **variables)
    server = ServerProcess([str(each) for each in command], environ=environ, folder=folder)
    try:
        server.wait_ready()
        yield server.url
    finally:
        server.stop()
    assert "Traceback" not in server.output, server.output


class Proofs:
    """The parts, by the names of methods. ``work`` is an empty folder."""

    def __init__(self, out: Path, work: Path) -> None:
        base = f"pkgrepo-{__version__}"
        self._out = out
        self._work = work
        self._wheel, self._sdist = out / f"{base}-py3-none-any.whl", out / f"{base}.tar.gz"
        self._images = {each: out / f"{base}-{each.architecture}.oci.tar" for each in MACHINES}
        self._debs = {each: out / f"pkgrepo_{__version__}-1_{each.architecture}.deb" for each in MACHINES}
        self._index = out / f"{base}.oci.tar"
        self._image, self._deb = self._images[MACHINES[0]], self._debs[MACHINES[0]]  # those that run here
        self._chart, self._files = out / f"{base}.tgz", out / f"{base}-files.tar.gz"
        self._statement = json.loads((out / f"{base}.intoto.json").read_text())

    def documents(self) -> None:
        """Digests, bills of materials and provenance name what is there, and the signature is that of the key."""
        import openapi_spec_validator
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator

        run("sha256sum", "--quiet", "--check", "SHA256SUMS", cwd=self._out)
        listed = {line.split()[1] for line in (self._out / "SHA256SUMS").read_text().splitlines()}
        assert {each.name for each in self._out.iterdir()} - listed <= {"SHA256SUMS", "SHA256SUMS.sig"}
        described = [self._wheel, self._sdist, self._index, self._chart, self._files]
        described += [*self._images.values(), *self._debs.values()]
        assert {each.name for each in self._out.glob("*.cdx.json")} == {f"{each.name}.cdx.json" for each in described}
        for bill in self._out.glob("*.cdx.json"):
            assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.read_text()) is None, bill
            digest = json.loads(bill.read_text())["metadata"]["component"]["hashes"][0]["content"]
            assert digest == sha256_of(self._out / bill.name.removesuffix(".cdx.json"))
        for each in self._statement["subject"]:
            assert each["digest"]["sha256"] == sha256_of(self._out / each["name"])
        api = json.loads((self._out / f"pkgrepo-{__version__}.openapi.json").read_text())
        openapi_spec_validator.validate(api)
        assert (api["info"]["version"], len(api["paths"]) > 80) == (__version__, True)
        if key := os.environ.get("PKGREPO_RELEASE_PUBLIC_KEY"):
            options = ("--insecure-ignore-tlog", "--key", key, "--signature", "SHA256SUMS.sig", "SHA256SUMS")
            run(CLIENTS / "cosign" / "bin" / "cosign", "verify-blob", *options, cwd=self._out)

    def python(self) -> None:
        """The metadata is good, the sdist is complete and gives the same wheel, and the wheel serves."""
        run(sys.executable, "-m", "twine", "check", "--strict", self._wheel, self._sdist)
        with tarfile.open(self._sdist) as archive:
            archive.extractall(self._work, filter="data")
        source = self._work / f"pkgrepo-{__version__}"
        tracked = run("git", "ls-files", cwd=ROOT).splitlines()
        assert [each for each in tracked if not (source / each).exists()] == []
        epoch = self._statement["predicate"]["buildDefinition"]["externalParameters"]["SOURCE_DATE_EPOCH"]
        environ = os.environ | {"SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
        again = self._work / "again"
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", again, source, env=environ)
        assert sha256_of(again / self._wheel.name) == sha256_of(self._wheel)
        with zipfile.ZipFile(self._wheel) as wheel:
            assert not [each for each in wheel.namelist() if each.startswith(("tests/", "bin/"))]
        with self._installed() as url:
            publish(url)

    @contextmanager
    def _installed(self) -> Iterator[str]:
        """Install the wheel into a fresh environment, and serve."""
        programs = self._work / "venv" / "bin"
        if not programs.exists():
            run(sys.executable, "-m", "venv", programs.parent)
            wheel = f"{self._wheel}[postgresql,s3]"
            run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        assert f"pkgrepo {__version__} (commit " in run(programs / "pkgrepo", "version")
        folder = Path(tempfile.mkdtemp(dir=self._work))
        listen = "tcp:0:interface=127.0.0.1"
        with serving([programs / "pkgrepo", "serve"], folder, PKGREPO_SERVER__LISTEN=listen) as url:
            yield url

    def machines(self) -> None:
        """Packages and images hold programs for their machine alone, and nothing else differs; the index names both."""
        files: dict[Machine, set[str]] = {}
        for machine in MACHINES:
            assert run("dpkg-deb", "--field", self._debs[machine], "Architecture").strip() == machine.architecture
            unpacked = self._work / f"{machine.architecture}.tar"
            with unpacked.open("wb") as target:
                run("dpkg-deb", "--fsys-tarfile", self._debs[machine], stdout=target)
            with tarfile.open(unpacked) as archive:
                in_package = self._inspect(archive, machine)
            assert len(in_package) > 3000
            blobs, (described,) = self._layout(self._images[machine])
            manifest = json.loads(blobs[described["digest"]])
            assert json.loads(blobs[manifest["config"]["digest"]])["architecture"] == machine.architecture
            in_image, size = set[str](), 0
            for layer in manifest["layers"]:
                plain = gzip.decompress(blobs[layer["digest"]])
                with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
                    in_image |= self._inspect(archive, machine)
                size += len(plain)
            print(f"the image for {machine.architecture} has {size:,} bytes")
            assert size < IMAGE_BYTES[machine.architecture]
            assert {f"{HOME}/bin/python3", "usr/bin/python3.11"} <= in_image
            program = {each for each in in_package if each.startswith(HOME)}
            assert program <= in_image
            files[machine] = {
                each for each in in_image if each.startswith(HOME) and "/psycopg_binary.libs/" not in each
            }
        one, *others = [{each.replace(machine.name, "") for each in found} for machine, found in files.items()]
        assert [other ^ one for other in others] == [set() for _ in others]

        blobs, (described,) = self._layout(self._index)
        raw = run("skopeo", "inspect", "--raw", f"oci-archive:{self._index}")
        index = json.loads(raw)
        assert described["digest"] == f"sha256:{hashlib.sha256(raw.encode()).hexdigest()}"
        assert index["mediaType"] == "application/vnd.oci.image.index.v1+json"
        platforms = [each["platform"] for each in index["manifests"]]
        assert platforms == [{"architecture": each.architecture, "os": "linux"} for each in MACHINES]
        for machine, each in zip(MACHINES, index["manifests"], strict=True):
            own, (alone,) = self._layout(self._images[machine])
            assert (alone["digest"], own.items() <= blobs.items()) == (each["digest"], True)

    def _inspect(self, archive: tarfile.TarFile, machine: Machine) -> set[str]:
        """The names of what is in an archive, in which all programs and libraries must be for the machine."""
        names, programs = set[str](), 0
        for member in archive:
            names.add(member.name.removeprefix("./"))
            file = archive.extractfile(member) if member.isreg() else None
            head = b"" if file is None else file.read(20)
            if head[:4] == b"\x7fELF":
                programs += 1
                assert int.from_bytes(head[18:20], "little") == machine.elf, member.name
        others = [each.name for each in MACHINES if each != machine]
        assert programs > 5
        assert not [each for each in names if any(f"{other}-linux" in each for other in others)]
        return names

    def _layout(self, path: Path) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
        """The blobs of an image layout by their digests, which are right, and the descriptors of its index."""
        with tarfile.open(path) as archive:
            files = {each.name: archive.extractfile(each) for each in archive if each.isreg()}
            content = {name: file.read() for name, file in files.items() if file is not None}
        blobs = {
            f"sha256:{name.rpartition('/')[2]}": data for name, data in content.items() if name.startswith("blobs/")
        }
        assert all(digest == f"sha256:{hashlib.sha256(data).hexdigest()}" for digest, data in blobs.items())
        return blobs, json.loads(content["index.json"])["manifests"]

    def kubernetes(self) -> None:
        """The chart is one for helm, and its manifests fit their schemas."""
        import kubernetes_validate

        run(CLIENTS / "helm" / "bin" / "helm", "lint", "--strict", self._chart)
        for name in ("kubernetes-sqlite.yaml", "kubernetes-postgresql.yaml"):
            documents = [each for each in yaml.safe_load_all((self._out / name).read_text()) if each]
            assert len(documents) >= 5
            for each in documents:
                kubernetes_validate.validate(each, KUBERNETES, strict=True)

    def debian(self) -> None:
        """The package installs in a fresh Debian, starts nothing, and serves under the filters of its unit."""
        root = self._work / "chroot"
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={IN_CHROOT}", SUITE, root)
        shutil.copy(self._deb, root / "tmp")
        inside = ("chroot", root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8")
        run(*inside, "dpkg", "--install", f"/tmp/{self._deb.name}")
        assert f"pkgrepo {__version__} (commit " in run(*inside, "pkgrepo", "version")
        assert run(*inside, "stat", "-c", "%U:%G %a", "/etc/pkgrepo/pkgrepo.toml") == "root:pkgrepo 640\n"
        assert not (root / "var/lib/pkgrepo").exists()
        page = root / "usr/share/man/man1/pkgrepo-repo-create.1.gz"
        assert "pkgrepo repo create" in run("zcat", page)
        self._verify_units(root)
        run(*inside, "install", "-d", "-o", "pkgrepo", "-g", "pkgrepo", "-m", "750", "/var/lib/pkgrepo")
        for each in (
            SETS,
            Path(__file__).parent / "support" / "unit_filters.py",
        ):  # for the child, which confines itself
            place = root / "proof" / each.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(each, place)
        unit = "/usr/lib/systemd/system/pkgrepo.service"
        command = (
            *inside, "PYTHONPATH=/proof", f"PKGREPO_ADMIN_PASSWORD={PASSWORD}",
            "setpriv", "--reuid=pkgrepo", "--regid=pkgrepo", "--clear-groups",
            "/usr/lib/pkgrepo/bin/python3", "-m", "tests.support.unit_filters", unit,
            "/usr/lib/pkgrepo/bin/twistd", "--nodaemon", "--pidfile=", "pkgrepo",
            "--config", "/etc/pkgrepo/pkgrepo.toml", "--workers", "2",
            "--set", "server.listen=tcp:0:interface=127.0.0.1",
        )  # fmt: skip
        with serving(command, self._work / "debian") as url:
            publish(url)
        assert "password" in run(*inside, "pkgrepo", "admin", "reset-password", "admin", "--generate")
        verified = run(*inside, "pkgrepo", "verify")
        assert " 0 missing, 0 damaged" in verified
        run(*inside, "dpkg", "--purge", "pkgrepo")
        assert (root / "var/lib/pkgrepo/pkgrepo.db").exists()
        assert not (root / "usr/lib/pkgrepo").exists()
        assert not (root / "etc/pkgrepo").exists()

    def _verify_units(self, root: Path) -> None:
        """Verify the units of the package, with programs that exist here."""
        folder = self._work / "units"
        folder.mkdir()
        for name in ("pkgrepo.service", "pkgrepo.socket"):
            text = (root / "usr/lib/systemd/system" / name).read_text()
            (folder / name).write_text(text.replace("/usr/lib/pkgrepo/bin/twistd", "/usr/bin/env"))
        names = [folder / "pkgrepo.service", folder / "pkgrepo.socket"]
        run("systemd-analyze", "verify", *names, env=os.environ | {"SYSTEMD_PAGER": ""})
        run("systemd-analyze", "security", "--offline=yes", "--threshold=20", names[0])

    def systemd(self) -> None:
        """The units of the package start under systemd, keep their socket in a restart, and end with the package."""
        root = self._work / "machine"
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={IN_MACHINE}", SUITE, root)
        shutil.copy(self._deb, root / "srv")
        port = free_port()
        for name, lines in {
            "pkgrepo.socket": f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{port}\n",
            "pkgrepo.service": f'[Service]\nEnvironment="PKGREPO_ADMIN_PASSWORD={PASSWORD}"\n',
        }.items():
            place = root / "etc/systemd/system" / f"{name}.d" / "proof.conf"
            place.parent.mkdir(parents=True)
            place.write_text(lines)
        units = ("pkgrepo.socket", "pkgrepo.service")
        with booted(root) as inside:
            main = (*inside, "systemctl", "show", "--property=MainPID", "--value", "pkgrepo.service")
            install = (*inside, "dpkg", "--install", f"/srv/{self._deb.name}")
            run(*install)
            assert run(*main) == "0\n"  # nothing is started
            run(*inside, "systemctl", "enable", "--now", *units)
            client = Publisher(f"http://127.0.0.1:{port}", ADMIN)
            published = [*client.publish_all()]
            for command in ((*inside, "systemctl", "restart", "pkgrepo.service"), install):
                before = run(*main)
                run(*command)
                assert run(*main) not in {before, "0\n"}
                for each in published:
                    client.check(each)
            before = run(*main)
            run(*inside, "systemctl", "kill", "--kill-whom=main", "--signal=KILL", "pkgrepo.service")
            for each in published:  # systemd starts it again, and connections wait at its socket
                client.check(each)
            assert run(*main) not in {before, "0\n"}
            run(*inside, "dpkg", "--purge", "pkgrepo")
            assert run(*inside, "systemctl", "list-units", "--no-legend", "--all", "pkgrepo.*") == ""
            assert (root / "var/lib/pkgrepo/pkgrepo.db").exists()

    def container(self) -> None:
        """The image serves without root, with a file system that is read-only and without capabilities."""
        run("podman", "load", "--quiet", "--input", self._image)
        name = f"localhost/pkgrepo:{__version__}"
        assert (
            int(run("podman", "image", "inspect", "--format", "{{.Size}}", name))
            < IMAGE_BYTES[MACHINES[0].architecture]
        )
        options = self._podman_options(name)
        password = self._work / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        port = free_port()
        settings = (
            "--health-cmd=CMD pkgrepo-health", "--health-interval=disable", "--read-only", "--cap-drop=ALL",
            f"--volume={password}:/run/secrets/admin-password:ro",
            "--env=PKGREPO_ADMIN_PASSWORD_FILE=/run/secrets/admin-password",
            f"--env=PKGREPO_SERVER__LISTEN=tcp:{port}:interface=127.0.0.1",
        )  # fmt: skip
        if "--network=host" not in options:
            settings = (*settings[:-1], f"--publish=127.0.0.1:{port}:8081")
        uid = run("podman", "run", "--detach", *options, *settings, name).strip()
        runtime = [each for each in options if each.startswith("--runtime")]
        try:
            url = f"http://127.0.0.1:{port}"
            until(lambda: is_ready(url), f"{url} does not answer")
            publish(url)
            assert run("podman", *runtime, "exec", uid, "pkgrepo", "health") == "ok\n"
            run("podman", *runtime, "healthcheck", "run", uid)
            assert "pkgrepo" in run("podman", "top", uid, "user")
            process = run("podman", "inspect", "--format", "{{.State.Pid}}", uid).strip()
            status = Path(f"/proc/{process}/status").read_text()
            assert "Uid:\t10001\t10001\t10001\t10001\n" in status
            assert "CapEff:\t0000000000000000\n" in status
            run("podman", "stop", "--time=60", uid)
            lines = run("podman", "logs", uid, stderr=subprocess.STDOUT)
            assert "Server Shut Down" in lines
            assert "Unable to write" not in lines
        finally:
            run("podman", "rm", "--force", "--volumes", uid)

    def _podman_options(self, name: str) -> Sequence[str]:
        """The first options with which a container runs here."""
        for options in PODMAN:
            with suppress(AssertionError):
                run("podman", "run", "--rm", "--read-only", *options, name, "version", stderr=subprocess.DEVNULL)
                return options
        raise AssertionError("podman runs no container here")

    def hosting(self) -> None:
        """A server of this release hosts the release: twine, skopeo and helm put it there, and get it back."""
        with self._installed() as url:
            client = Publisher(url, ADMIN)
            client.create("py", "python")
            client.create("images", "docker")
            environ = client_environment(self._work / "home", TWINE_USERNAME="admin", TWINE_PASSWORD=PASSWORD)
            address = f"{url}/repositories/main/py"
            twine = ("-m", "twine", "upload", "--non-interactive", "--repository-url", f"{address}/legacy/")
            run(sys.executable, *twine, self._wheel, self._sdist, env=environ)
            got = client.ask("GET", f"repositories/main/py/packages/pkgrepo/{__version__}/{self._wheel.name}").content
            assert got == self._wheel.read_bytes()
            host = url.partition("//")[2]
            target = f"docker://{host}/main/images/pkgrepo:{__version__}"
            run("skopeo", "copy", "--quiet", "--dest-tls-verify=false", f"--dest-creds=admin:{PASSWORD}",
                f"oci-archive:{self._image}", target, env=environ)  # fmt: skip
            raw = run("skopeo", "inspect", "--raw", "--tls-verify=false", target, env=environ)
            assert json.loads(raw)["annotations"]["org.opencontainers.image.version"] == __version__
            target = f"docker://{host}/main/images/pkgrepo:all"
            run("skopeo", "copy", "--all", "--quiet", "--dest-tls-verify=false", f"--dest-creds=admin:{PASSWORD}",
                f"oci-archive:{self._index}", target, env=environ)  # fmt: skip
            raw = run("skopeo", "inspect", "--raw", "--tls-verify=false", target, env=environ)
            platforms = [each["platform"]["architecture"] for each in json.loads(raw)["manifests"]]
            assert platforms == [each.architecture for each in MACHINES]
            helm = CLIENTS / "helm" / "bin" / "helm"
            place = f"oci://{host}/main/images/charts"
            run(helm, "registry", "login", host, "--plain-http", "--username=admin", "--password-stdin",
                input=PASSWORD, env=environ)  # fmt: skip
            run(helm, "push", self._chart, place, "--plain-http", env=environ)
            pull = (f"{place}/pkgrepo", "--plain-http", "--version", __version__, "--destination", self._work)
            run(helm, "pull", *pull, env=environ)
            assert (self._work / self._chart.name).read_bytes() == self._chart.read_bytes()


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as line:
        return int(line.getsockname()[1])


def is_ready(url: str) -> bool:
    with suppress(requests.RequestException):  # a machine with much to do answers late
        return requests.get(f"{url}/readyz", timeout=10).ok
    return False


PARTS = ("documents", "python", "machines", "kubernetes", "debian", "systemd", "container", "hosting")


def main(out: str, *parts: str) -> None:
    passed, failed = 0, 0
    for part in parts or PARTS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="pkgrepo-check-") as work:
            os.chmod(work, 0o755)
            try:
                getattr(Proofs(Path(out).absolute(), Path(work)), part)()
                passed += 1
                print(f"{part}: passed in {time.monotonic() - began:.0f} s", flush=True)
            except Exception:  # noqa: BLE001 - the next part is tried whatever this one raised
                failed += 1
                traceback.print_exc()
                print(f"{part}: failed after {time.monotonic() - began:.0f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
