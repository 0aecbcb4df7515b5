-- What a search finds a package by beside its key: the beginning of what its highest version says of itself. It is
-- indexed by trigrams like the keys, see package_text. The rows of packages from before are made while the server runs.
CREATE TABLE package_about (
    package_id INTEGER PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    text TEXT NOT NULL
);
CREATE VIRTUAL TABLE about_text USING fts5 (
    text, content = 'package_about', content_rowid = 'package_id', detail = 'none', columnsize = 0, tokenize = 'trigram'
);
CREATE TRIGGER about_text_added AFTER INSERT ON package_about BEGIN
    INSERT INTO about_text (rowid, text) VALUES (new.package_id, new.text);
END;
CREATE TRIGGER about_text_removed AFTER DELETE ON package_about BEGIN
    INSERT INTO about_text (about_text, rowid, text) VALUES ('delete', old.package_id, old.text);
END;
CREATE TRIGGER about_text_changed AFTER UPDATE ON package_about BEGIN
    INSERT INTO about_text (about_text, rowid, text) VALUES ('delete', old.package_id, old.text);
    INSERT INTO about_text (rowid, text) VALUES (new.package_id, new.text);
END;
