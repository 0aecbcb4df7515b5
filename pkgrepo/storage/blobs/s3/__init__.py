"""
Blobs in a bucket of a store that speaks the S3 protocol.

`store` makes an `upload` or opens a copy for `reading`. Both use `bucket`, the operations on objects, which builds and
reads the `documents` of the protocol. Its `requests` are signed by `signing`, sent, and repeated after failures.
"""
