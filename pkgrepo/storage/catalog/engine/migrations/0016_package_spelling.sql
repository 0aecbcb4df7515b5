-- What the names of packages have in common that people mistake for each other, in formats with such a rule.
CREATE TABLE package_spelling (
    package_id INTEGER PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    repository_id INTEGER NOT NULL,
    spelling TEXT NOT NULL
);
CREATE INDEX package_spelling_name ON package_spelling (repository_id, spelling);
