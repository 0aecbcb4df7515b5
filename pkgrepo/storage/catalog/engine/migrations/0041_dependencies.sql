-- What packages need. It is written together with the texts about packages, which are written anew, with authors,
-- summaries and licences, while the server runs: until then fewer descriptions are found.
CREATE TABLE dependency (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    spelling TEXT NOT NULL,
    wanted TEXT NOT NULL,
    PRIMARY KEY (package_id, name, kind)
) WITHOUT ROWID;
CREATE INDEX dependency_spelling ON dependency (spelling, package_id);
DELETE FROM package_about;
ALTER TABLE package_about ADD COLUMN summary TEXT NOT NULL DEFAULT '';
ALTER TABLE package_about ADD COLUMN license TEXT NOT NULL DEFAULT '';
