-- What the readable layout has to show beside what the events after its cursor name: what could not be shown when its
-- event was followed, and, with whole = 1, packages of which every version is to be compared. An empty package_key is
-- the document of the repository itself; an empty version_key what is kept of a package beside its versions.
CREATE TABLE layout_pending (
    repository_id INTEGER NOT NULL,
    package_key TEXT NOT NULL DEFAULT '',
    version_key TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL DEFAULT '',           -- as it is written, which names its directory
    whole INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',            -- why it could not be shown; empty: it was not tried yet
    PRIMARY KEY (repository_id, package_key, version_key, version)
) WITHOUT ROWID;
-- Earlier releases wrote images in another form, and forgot what they could not show.
INSERT INTO layout_pending (repository_id, package_key, whole)
SELECT p.repository_id, p.key, 1 FROM package p JOIN repository r ON r.id = p.repository_id WHERE r.deleted_at IS NULL;
