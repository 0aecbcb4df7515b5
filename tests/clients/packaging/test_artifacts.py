"""Parts of a release, as the programs read them that they are for."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

from pkgrepo import __version__
from pkgrepo.packaging import debian, image
from pkgrepo.packaging.archives import Entry
from pkgrepo.packaging.manuals import make_manuals
from pkgrepo.packaging.sources import Sources
from pkgrepo.packaging.tree import MACHINES
from tests.support.client_programs import program

ROOT = Path(__file__).parents[3]


def test_the_unit_of_the_package_is_valid(tmp_path: Path) -> None:
    program("systemd-analyze")
    text = debian.unit((ROOT / "pkgrepo" / "systemd" / "pkgrepo.service").read_text())
    text = text.replace("/usr/lib/pkgrepo/bin/twistd", str(shutil.which("env"))).replace("User=pkgrepo", "User=root")
    (tmp_path / "pkgrepo.service").write_text(text.replace("Group=pkgrepo", "Group=root"))
    shutil.copy(ROOT / "pkgrepo" / "systemd" / "pkgrepo.socket", tmp_path)
    command = ["systemd-analyze", "verify", tmp_path / "pkgrepo.service", tmp_path / "pkgrepo.socket"]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_manual_pages_are_formatted_without_a_warning() -> None:
    groff = program("groff")
    for name, data in make_manuals(__version__).items():
        if name.endswith(("pkgrepo.1.gz", "repo-create.1.gz", "completion.1.gz")):
            ended = subprocess.run(
                [groff, "-man", "-Tutf8", "-ww", "-z"], input=gzip.decompress(data), capture_output=True, check=True
            )
            assert ended.stderr == b"", name


def test_skopeo_reads_the_layout_of_the_image(tmp_path: Path) -> None:
    sources = Sources(tmp_path, "1.2.3", "c" * 40, 1_700_000_000)
    layers = [([Entry("etc"), Entry("etc/x", 0o644, b"x")], "base"), ([Entry("var", owner=image.USER)], "program")]
    described, blobs = image._describe(sources, layers, tmp_path, MACHINES[0])
    image._write_layout(sources, described, blobs, tmp_path / "image.tar")
    command = [program("skopeo"), "inspect", "--config", f"oci-archive:{tmp_path / 'image.tar'}"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert found["config"]["User"] == f"{image.USER}:{image.USER}"
    assert found["config"]["Entrypoint"] == ["/usr/bin/pkgrepo"]
    assert found["config"]["Labels"]["org.opencontainers.image.revision"] == "c" * 40
    assert found["config"]["Volumes"] == {f"/{image.DATA}": {}}
