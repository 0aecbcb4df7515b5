"""
Images of upstream registries, which become images of the repository when they are asked for.

``holders`` decides which members of a virtual repository and which upstreams are asked, and by which name.
``registry_client`` sends requests to one upstream. ``manifests``, ``blobs`` and ``lists`` keep what it answers.
"""
