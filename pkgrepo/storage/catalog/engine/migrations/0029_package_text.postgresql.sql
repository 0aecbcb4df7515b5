-- The index itself is one of the table, which needs an extension of the server: see postgresql/trigrams.py.
CREATE VIEW package_text AS SELECT id AS rowid, key FROM package;
