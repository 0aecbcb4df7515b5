"""
Builds a release into a folder: bin/release OUT. Twice gives the same bytes, but for signatures.

=====================================  ======================================================================
pkgrepo-V-py3-none-any.whl, V.tar.gz   wheel and sdist
pkgrepo_V-1_amd64.deb, arm64           package for Debian 12
pkgrepo-V-amd64.oci.tar, arm64         container image, as an archive with an OCI layout
pkgrepo-V.oci.tar                      both images with an index, for registries
pkgrepo-V.tgz                          Helm chart; kubernetes-*.yaml are rendered from it
pkgrepo-V-files.tar.gz                 units, compose.yaml, dashboard, alert rules, manual pages, completions
pkgrepo-V.openapi.json                 description of the management API
*.cdx.json, pkgrepo-V.intoto.json      bills of materials, provenance
SHA256SUMS, *.sig                      digests of all of these, and the signature of the digests
=====================================  ======================================================================

What a missing program prevents is skipped with a message; ``--all`` makes that an error.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import click

from pkgrepo.packaging import chart
from pkgrepo.packaging.archives import Entry, sha256_of, write_tar_gz
from pkgrepo.packaging.debian import make_deb
from pkgrepo.packaging.documents import (
    debian_components,
    file_components,
    image_component,
    python_components,
    write_bom,
    write_openapi,
    write_provenance,
)
from pkgrepo.packaging.image import Image, make_image, write_index
from pkgrepo.packaging.manuals import make_manuals
from pkgrepo.packaging.sources import ReleaseFailed, Sources, build_wheel, run, stage, write_sdist
from pkgrepo.packaging.tree import MACHINES, REQUIREMENTS, lock, locked, make_tree

ROOT = Path(__file__).parents[2]
_FILES = {  # in the archive of files: where they are in the sources
    "systemd/pkgrepo.service": "pkgrepo/systemd/pkgrepo.service",
    "systemd/pkgrepo.socket": "pkgrepo/systemd/pkgrepo.socket",
    "compose.yaml": "pkgrepo/packaging/compose.yaml",
    "monitoring/dashboard.json": "pkgrepo/management/metrics/dashboard.json",
    "monitoring/alerts.yaml": "pkgrepo/management/metrics/alerts.yaml",
}


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.option(
    "--files-url", metavar="URL", envvar="PKGREPO_RELEASE_FILES", help="Where the files of the tag are shown."
)
@click.option(
    "--key",
    envvar="PKGREPO_RELEASE_KEY",
    help="Sign with this private key, a file or any other that cosign takes; its password is COSIGN_PASSWORD.",
)
@click.option("--all", "everything", is_flag=True, help="Fail if a program is missing, instead of skipping its part.")
@click.option("--lock", "only_lock", is_flag=True, help="Only write the file of pinned dependencies anew.")
def main(out: Path | None, files_url: str | None, key: str | None, *, everything: bool, only_lock: bool) -> None:
    """Build everything of the commit that is checked out into the folder OUT, which is empty or made."""
    if only_lock:
        lock(ROOT)
        return
    if out is None:
        raise click.UsageError("OUT is missing")
    if out.exists() and any(out.iterdir()):
        raise click.UsageError(f"{out} is not empty")
    os.umask(0o022)  # a wheel has the modes of its files
    out.mkdir(parents=True, exist_ok=True)
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        with tempfile.TemporaryDirectory(prefix="pkgrepo-release-") as work:
            sources = stage(ROOT, Path(work), files_url=files_url, epoch=int(epoch) if epoch else None)
            Release(sources, out.absolute(), Path(work), everything=everything).build(key)
    except ReleaseFailed as error:
        sys.exit(f"release: {error}")


class Release:
    """The steps of one release."""

    def __init__(self, sources: Sources, out: Path, work: Path, *, everything: bool) -> None:
        self._sources = sources
        self._out = out
        self._work = work
        self._everything = everything

    def build(self, key: str | None) -> None:
        """Build everything. :raises ReleaseFailed: a step fails"""
        sources, out, work = self._sources, self._out, self._work
        _say(f"pkgrepo {sources.version} of commit {sources.commit}")
        wheel = build_wheel(sources, out, work)
        sdist = write_sdist(sources, wheel, out)
        found = [*locked(REQUIREMENTS.read_text("ascii"))]
        libraries = python_components(found)
        write_bom(sources, wheel, "application", libraries)
        write_bom(sources, sdist, "application", libraries)
        manuals = make_manuals(sources.version)
        files = {name: (sources.folder / place).read_bytes() for name, place in _FILES.items()} | manuals
        files["compose.yaml"] = files["compose.yaml"].replace(b":0.0.0}", f":{sources.version}}}".encode())
        base = f"pkgrepo-{sources.version}-files"
        entries = [Entry(f"{base}/{name}", 0o644, data) for name, data in files.items()]
        write_tar_gz(out / f"{base}.tar.gz", entries, sources.epoch)
        write_bom(sources, out / f"{base}.tar.gz", "application", file_components(files))
        write_openapi(sources, out)
        images: list[Image] = []
        for machine in MACHINES:
            tree = make_tree(sources, wheel, work, machine) if self._has(machine.strip) else None
            if tree and self._has("dpkg-deb"):
                write_bom(sources, make_deb(sources, tree, manuals, out, work, machine), "application", libraries)
            if tree and len(images) == MACHINES.index(machine) and self._has("mmdebstrap"):
                made = make_image(sources, tree, out, work, machine, images[0] if images else None)
                write_bom(sources, made.archive, "container", [*libraries, *debian_components(made.packages)])
                images.append(made)
        debian = [*dict.fromkeys(package for each in images for package in each.packages)]
        image = write_index(sources, images, out) if images else None
        if image:
            write_bom(sources, image, "container", [*libraries, *debian_components(debian)])
        packed = chart.pack(sources, out)
        write_bom(sources, packed, "application", [image_component(sources, image)])
        if helm := self._has("helm"):
            chart.render(helm, packed, out)
        subjects = [each for each in out.iterdir() if not each.name.endswith(".cdx.json")]
        write_provenance(sources, subjects, found, debian, out)
        sums = out / "SHA256SUMS"
        names = sorted(each.name for each in out.iterdir())
        sums.write_text("".join(f"{sha256_of(out / name)}  {name}\n" for name in names))
        self._sign(sums, key)
        for each in sorted(out.iterdir()):
            _say(f"{each.stat().st_size:>12,}  {each.name}")

    def _sign(self, sums: Path, key: str | None) -> None:
        """Sign the digests, which are those of everything else."""
        if key is None:
            _say("skipping: signatures, for which --key or PKGREPO_RELEASE_KEY names a private key")
        elif cosign := self._has("cosign"):
            options = ["--yes", "--tlog-upload=false", "--key", key, "--output-signature", f"{sums}.sig"]
            run([cosign, "sign-blob", *options, sums])

    def _has(self, program: str) -> str | None:
        """The path of a program; :raises ReleaseFailed: it is missing, and everything is wanted"""
        found = shutil.which(program) or shutil.which(ROOT / ".cache" / "clients" / program / "bin" / program)
        if found is None and self._everything:
            raise ReleaseFailed(f"{program} is not installed")
        if found is None:
            _say(f"skipping: what needs {program}, which is not installed")
        return found


def _say(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
