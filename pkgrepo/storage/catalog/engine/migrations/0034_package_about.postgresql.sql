-- The index is one of the table, which needs an extension of the server: see postgresql/trigrams.py.
CREATE TABLE package_about (
    package_id BIGINT PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    text TEXT COLLATE "C" NOT NULL
);
CREATE VIEW about_text AS SELECT package_id AS rowid, text FROM package_about;
