"""
The npm format: publish documents, packuments, tarballs, and what clients ask beside them.

Read ``names`` and ``semver`` first, then ``scanner`` and ``envelope`` (how a version arrives), ``tarball`` and
``manifest`` (what becomes of it), and ``packument`` (how it is told).
"""
