"""
Container images and other OCI artifacts: the registry API of the OCI distribution specification, version 1.1.

``routes`` parses paths and authorizes callers; then ``uploads`` receive blobs, ``manifests`` receive and serve
manifests, ``blobs`` and ``lists`` serve the rest, and ``trust`` hides what is not signed.
"""
