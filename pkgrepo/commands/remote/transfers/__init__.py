"""
``pkgrepo upload`` and ``pkgrepo download``: files of every format, with their digests verified.

``upload`` and ``download`` are the commands; ``publishing`` has what each format's clients send, and ``image_layouts``
reads and writes images on the disk.
"""
