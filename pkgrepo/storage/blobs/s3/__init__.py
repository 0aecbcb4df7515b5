"""
Blobs in a bucket, by L{pkgrepo.s3}.

`store` makes an `upload`, whose bytes pass through the temporary files of `spool`, or opens a copy for `reading`.
"""
