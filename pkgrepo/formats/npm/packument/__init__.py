"""Packuments out: fragments of versions in the catalog are spliced into a full or an abbreviated document."""
