-- What the stored signatures are: this manifest holds a signature by this key of the content of that digest. It counts
-- while it stands where clients look for it; manifest_trust is derived from it.
CREATE TABLE signature (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    package_id INTEGER NOT NULL,                -- that of the manifest
    subject TEXT NOT NULL,                      -- the digest that is signed; there need not be such a manifest
    key_id TEXT NOT NULL,
    PRIMARY KEY (manifest_id, subject, key_id)
) WITHOUT ROWID;
CREATE INDEX signature_subject ON signature (package_id, subject);
-- All signatures are held against the keys anew, when an image is first looked at.
DELETE FROM manifest_trust;
DELETE FROM image_trust;
