"""
Objects in a bucket of a store that speaks the S3 protocol.

`places` says where a bucket is. `bucket` has the operations on its objects; it builds and reads the `documents` of the
protocol. Its `requests` are signed by `signing`, sent, and repeated after failures. `parts` sends a large object in
parts.
"""
