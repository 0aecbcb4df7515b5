"""What one process keeps in memory of the documents of all channels."""

from __future__ import annotations

from attrs import Factory, frozen

from pkgrepo.formats.conda.names import SUBDIRS
from pkgrepo.repositories.publish.package_lists import PackageLists

from .channel import PackageRecords, make_source
from .repodata import exports_form, repodata_form

REPODATA = "repodata.json"
RUN_EXPORTS = "run_exports.json"


def _make_lists() -> PackageLists[PackageRecords]:
    forms = {f"{subdir}/{REPODATA}": repodata_form(subdir) for subdir in SUBDIRS}
    forms |= {f"{subdir}/{RUN_EXPORTS}": exports_form(subdir) for subdir in SUBDIRS}
    return PackageLists(make_source(forms))


@frozen(eq=False)
class IndexCaches:
    """The documents of hosted channels."""

    lists: PackageLists[PackageRecords] = Factory(_make_lists)
