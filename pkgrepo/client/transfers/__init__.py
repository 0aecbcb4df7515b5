"""
``pkgrepo upload`` and ``pkgrepo download``: files of every format, with their digests verified.

``upload`` sends what each format's own clients send, ``download`` asks what they ask, and ``image_layouts`` reads and
writes images on the disk.
"""
