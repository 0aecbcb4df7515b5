"""
Advisories: an export of the OSV database is read record by record, and stored with sort keys of the formats.

``records`` reads one record, ``exports`` all of a folder or zip; ``refresh`` brings the catalog up to date with them.
"""
