"""Downloads of files and of their checksums."""
