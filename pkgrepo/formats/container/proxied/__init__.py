"""
Images of upstream registries, which become images of the repository when they are asked for.

``registry_client`` sends requests to one upstream, with a token if it wants one (``challenges``, ``tokens``).
``places`` decides which upstreams are asked, and by which name. ``manifests``, ``blobs`` and ``lists`` keep what they
answer. ``holders`` decides which members of a virtual repository are asked.
"""
