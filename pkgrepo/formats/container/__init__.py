"""
Container images and other OCI artifacts: the registry API of the OCI distribution specification, version 1.1.

Read ``paths`` for the addresses, ``routes`` for what answers at them, then ``blobs``, ``uploads`` and ``pushing``.
"""
