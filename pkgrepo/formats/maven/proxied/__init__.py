"""
Artifacts of upstreams.

``questions`` says how upstreams are asked, for metadata and for files. A ``normaliser`` makes of an upstream's metadata
what a hosted artifact has in the catalog, and ``releases`` of a verified file the release by which it is kept.
"""
