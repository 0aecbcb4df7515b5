-- The keys of packages by the trigrams in them: a search for a part of a name reads the packages that have it, instead
-- of all. It has no copy of the keys, and takes some 20 bytes for a package. Only new names change it.
CREATE VIRTUAL TABLE package_text USING fts5 (
    key, content = 'package', content_rowid = 'id', detail = 'none', columnsize = 0, tokenize = 'trigram'
);
INSERT INTO package_text (package_text) VALUES ('rebuild');
CREATE TRIGGER package_text_added AFTER INSERT ON package BEGIN
    INSERT INTO package_text (rowid, key) VALUES (new.id, new.key);
END;
CREATE TRIGGER package_text_removed AFTER DELETE ON package BEGIN
    INSERT INTO package_text (package_text, rowid, key) VALUES ('delete', old.id, old.key);
END;
CREATE TRIGGER package_text_renamed AFTER UPDATE OF id, key ON package BEGIN
    INSERT INTO package_text (package_text, rowid, key) VALUES ('delete', old.id, old.key);
    INSERT INTO package_text (rowid, key) VALUES (new.id, new.key);
END;
