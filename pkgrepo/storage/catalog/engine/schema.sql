-- The schema of a catalog: every table, whole.
--
-- It is written for SQLite, and translated for PostgreSQL (dialect.py). The two sections at the end are for one engine.
--
-- Times (..._at, ..._until) are milliseconds since the epoch, UTC. Sizes are bytes. sha256 columns of type BLOB hold
-- the 32 raw bytes; those of type TEXT, and digests, are hexadecimal. "key" is the normalised spelling of the "name"
-- beside it. uid is the identifier in the API. meta, attrs, data and config are JSON that only the format or the API
-- reads.
--
-- AUTOINCREMENT: an id is never given out again, because events, audit records, download counts and tokens in memory
-- may still refer to the row that had it. The columns of a primary key come first in tables WITHOUT ROWID: PRAGMA
-- integrity_check of SQLite before 3.41, such as Debian 12's, reports missing values otherwise. A column that a
-- migration adds is the last one of its table here, too.

---------------------------------------------------------------------------------------------------------------------
-- The server
---------------------------------------------------------------------------------------------------------------------

-- What all processes share by a name: serials, cursors, secrets; see settings.py.
CREATE TABLE setting (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE storage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,                         -- Local, S3
    settings TEXT NOT NULL DEFAULT '{}',        -- JSON: the folder or bucket, and how it is used
    active INTEGER NOT NULL DEFAULT 1,          -- 0: switched off, as of repositories
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

-- Work that is done once, by some process; see jobs.py.
CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,                          -- two jobs of one kind and key do not run at a time
    state TEXT NOT NULL,                        -- queued, running, done, failed, cancelled
    data TEXT NOT NULL DEFAULT '{}',            -- JSON: what it is to do
    result TEXT NOT NULL DEFAULT '{}',          -- JSON: what it did, or the error
    run_at INTEGER NOT NULL,
    lease_by TEXT,                              -- the process that runs it
    lease_until INTEGER,                        -- unless it renews that; another one takes it over then
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    progress TEXT NOT NULL DEFAULT '[]',        -- JSON: what a running job has done so far
    cancel_at INTEGER                           -- when its cancellation was requested
);
CREATE UNIQUE INDEX job_pending ON job (kind, key) WHERE state IN ('queued', 'running');
CREATE INDEX job_due ON job (state, run_at);

-- Who did what in the API, or was refused.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    request_id TEXT NOT NULL DEFAULT '',
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    token_id INTEGER,
    address TEXT NOT NULL DEFAULT '',
    action TEXT NOT NULL,
    object TEXT NOT NULL DEFAULT '',            -- the path or name of what it was done to
    outcome TEXT NOT NULL,                      -- ok, refused, failed
    detail TEXT NOT NULL DEFAULT '{}'           -- JSON
);
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_object ON audit (object, seq);

---------------------------------------------------------------------------------------------------------------------
-- Repositories
---------------------------------------------------------------------------------------------------------------------

CREATE TABLE repository (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    storage_id INTEGER NOT NULL REFERENCES storage (id),
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    format TEXT NOT NULL,
    type TEXT NOT NULL,                         -- Hosted, Proxy, Virtual
    visibility TEXT NOT NULL,                   -- public, private, hidden
    active INTEGER NOT NULL DEFAULT 1,
    description TEXT NOT NULL DEFAULT '',
    config TEXT NOT NULL,                       -- JSON: type, and the fields that the class of it calls fixed
    settings TEXT NOT NULL DEFAULT '{}',        -- JSON: the others that are set
    serial INTEGER NOT NULL DEFAULT 0,          -- grows with every change of content
    names_serial INTEGER NOT NULL DEFAULT 0,    -- grows when the set of package names changes
    bytes_used INTEGER NOT NULL DEFAULT 0,
    package_count INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,                         -- when it was moved to the bin
    purge INTEGER NOT NULL DEFAULT 0,           -- 1: removed for good; its content need not be kept for a while
    -- A companion repository belongs to another one, which decides who may do what in it, and is removed with it.
    parent_id INTEGER REFERENCES repository (id) ON DELETE SET NULL,
    version_count INTEGER NOT NULL DEFAULT 0,   -- versions and manifests
    stage TEXT                                  -- the uid of the stage that its content belongs to
);
-- The name of a repository in the bin is free.
CREATE UNIQUE INDEX repository_key ON repository (storage_id, key) WHERE deleted_at IS NULL;

-- Releases that wait for an approval, and what became of them; see stages.py.
CREATE TABLE stage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    state TEXT NOT NULL,                        -- open, approved, rejected, expired
    description TEXT NOT NULL DEFAULT '',
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_by TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',            -- why it was rejected
    content TEXT NOT NULL DEFAULT '[]'          -- JSON: what it had at its end
);
CREATE INDEX stage_repository ON stage (repository_id, state, created_at);
CREATE INDEX stage_state ON stage (state, created_at);

-- Limits of what is stored; NULL: no limit.
CREATE TABLE quota (
    kind TEXT NOT NULL,                         -- server, storage, repository, project, user
    subject_id INTEGER NOT NULL,                -- 0: the server
    bytes INTEGER,
    packages INTEGER,
    versions INTEGER,
    file_size INTEGER,
    PRIMARY KEY (kind, subject_id)
) WITHOUT ROWID;

-- Bytes that uploads of all processes have announced and not published yet.
CREATE TABLE quota_reservation (
    uid TEXT NOT NULL,                          -- of one request
    kind TEXT NOT NULL,                         -- of the quota, with its subject
    subject_id INTEGER NOT NULL,
    size INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,                -- unless the process renews it
    PRIMARY KEY (uid, kind, subject_id)
) WITHOUT ROWID;
CREATE INDEX quota_reservation_subject ON quota_reservation (kind, subject_id);
CREATE INDEX quota_reservation_expiry ON quota_reservation (expires_at);

-- What the readable layout has to show beside the events after its cursor: what could not be shown when its event was
-- followed, and, with whole = 1, packages of which every version is to be compared.
CREATE TABLE layout_pending (
    repository_id INTEGER NOT NULL,
    package_key TEXT NOT NULL DEFAULT '',       -- empty: the document of the repository itself
    version_key TEXT NOT NULL DEFAULT '',       -- empty: what is kept of a package beside its versions
    version TEXT NOT NULL DEFAULT '',           -- as it is written, which names its directory
    whole INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',            -- why it could not be shown; empty: it was not tried yet
    PRIMARY KEY (repository_id, package_key, version_key, version)
) WITHOUT ROWID;

---------------------------------------------------------------------------------------------------------------------
-- Packages, versions, files and tags; what is known of them
---------------------------------------------------------------------------------------------------------------------

CREATE TABLE package (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    latest TEXT,                                -- the text of the latest version; NULL: the highest live one
    serial INTEGER NOT NULL DEFAULT 0,          -- that of the repository at the last change
    meta TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Last-Modified, in seconds: a later second for each change, so it may be ahead of the clock for a while.
    modified_s INTEGER NOT NULL DEFAULT 0,
    alone INTEGER NOT NULL DEFAULT 0,           -- 1: the last push named the image without storage and repository
    downloads INTEGER NOT NULL DEFAULT 0,
    -- 1: files are made from those of a package in the parent repository; a search of both shows that package alone.
    derived INTEGER NOT NULL DEFAULT 0,
    UNIQUE (repository_id, key)
);
-- Lists of packages are sorted by the database, a page at a time.
CREATE INDEX package_downloads ON package (repository_id, downloads, key);
CREATE INDEX package_changed ON package (repository_id, updated_at, key);

-- What the names of packages have in common that people mistake for each other, in formats with such a rule.
CREATE TABLE package_spelling (
    package_id INTEGER PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    repository_id INTEGER NOT NULL,
    spelling TEXT NOT NULL
);
CREATE INDEX package_spelling_name ON package_spelling (repository_id, spelling);

-- What a search finds a package by beside its key: the beginning of what its highest version says of itself. Summary and
-- licence are as they are written, and cut, too. Missing rows are made while the server runs.
CREATE TABLE package_about (
    package_id INTEGER PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    text TEXT NOT NULL,
    summary TEXT NOT NULL DEFAULT '',
    license TEXT NOT NULL DEFAULT ''
);

-- What the highest version of a package needs. The spelling is a name in lower case, with one dash for each row of
-- dashes, dots and underscores: names that formats take for the same have the same.
CREATE TABLE dependency (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,                         -- runtime, peer, optional, test, provided
    spelling TEXT NOT NULL,
    wanted TEXT NOT NULL,                       -- the dependency as it is written
    PRIMARY KEY (package_id, name, kind)
) WITHOUT ROWID;
CREATE INDEX dependency_spelling ON dependency (spelling, package_id);

CREATE TABLE version (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    text TEXT NOT NULL,                         -- as the publisher wrote it
    sort BLOB NOT NULL,                         -- orders bytewise as the format orders versions
    state TEXT NOT NULL DEFAULT 'live',         -- live, yanked, deprecated
    reason TEXT NOT NULL DEFAULT '',
    meta TEXT NOT NULL DEFAULT '{}',
    published_at INTEGER NOT NULL,
    publisher_id INTEGER,
    publisher TEXT NOT NULL DEFAULT '',
    UNIQUE (package_id, key)
);
CREATE INDEX version_order ON version (package_id, sort, key);
CREATE INDEX version_published ON version (package_id, published_at, key);
CREATE INDEX version_withdrawn ON version (package_id, state) WHERE state <> 'live';
CREATE INDEX version_publisher ON version (publisher_id) WHERE publisher_id IS NOT NULL;

CREATE TABLE file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    storage_id INTEGER NOT NULL,                -- that of the repository, so that the blob is one look-up away
    path TEXT NOT NULL,                         -- below the address of the repository
    package_id INTEGER REFERENCES package (id) ON DELETE CASCADE,
    version_id INTEGER REFERENCES version (id) ON DELETE CASCADE,
    sha256 BLOB NOT NULL,
    size INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    attrs TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL,
    UNIQUE (repository_id, path)
);
CREATE INDEX file_version ON file (version_id);
CREATE INDEX file_package ON file (package_id);
CREATE INDEX file_blob ON file (sha256);
-- Files that belong to no package, which would otherwise be found among all files of a repository.
CREATE INDEX file_plain ON file (repository_id, path) WHERE package_id IS NULL;

CREATE TABLE tag (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version_id INTEGER REFERENCES version (id) ON DELETE CASCADE,
    digest TEXT,                                -- of the manifest, for tags of images
    served TEXT,                                -- digest that readers get until the other one is trusted
    expires_at INTEGER,                         -- when the tag goes back to that one unless it is
    updated_at INTEGER NOT NULL,
    actor TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (package_id, name)
) WITHOUT ROWID;
CREATE INDEX tag_digest ON tag (package_id, digest);
CREATE INDEX tag_version ON tag (version_id);
CREATE INDEX tag_served ON tag (package_id, served) WHERE served IS NOT NULL;
CREATE INDEX tag_expiry ON tag (expires_at) WHERE expires_at IS NOT NULL;

-- Changes of packages in order; written in the transaction of the change, and never changed.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL,
    package_id INTEGER,
    package_key TEXT NOT NULL DEFAULT '',
    version_key TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,                         -- published, yanked, unyanked, tagged, untagged, deleted, cached...
    data TEXT NOT NULL DEFAULT '{}',
    user_id INTEGER,                            -- who did it; NULL: the server, or nobody who logged in
    actor TEXT NOT NULL DEFAULT '',             -- the name of that user then
    token_id INTEGER,
    at INTEGER NOT NULL
);
CREATE INDEX event_repository ON event (repository_id, seq);
CREATE INDEX event_package ON event (package_id, seq);
-- For a check of all files of a storage, which would otherwise read all events.
CREATE INDEX event_removed ON event (repository_id) WHERE kind = 'repository_removed';

---------------------------------------------------------------------------------------------------------------------
-- Blobs, and what is received but not published
---------------------------------------------------------------------------------------------------------------------

CREATE TABLE blob (
    storage_id INTEGER NOT NULL REFERENCES storage (id),
    sha256 BLOB NOT NULL,
    locator TEXT NOT NULL,                      -- names the bytes in the storage
    size INTEGER NOT NULL,
    digests TEXT NOT NULL DEFAULT '{}',         -- JSON: digests besides sha256, by algorithm
    state TEXT NOT NULL DEFAULT 'live',         -- live, deleting, suspect
    touched_at INTEGER NOT NULL,                -- the last time that a client was told that it need not upload it
    created_at INTEGER NOT NULL,
    verified_at INTEGER,
    PRIMARY KEY (storage_id, sha256)
) WITHOUT ROWID;
CREATE INDEX blob_age ON blob (storage_id, state, touched_at);

CREATE TABLE upload (
    uid TEXT PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    storage_id INTEGER NOT NULL,
    package_key TEXT NOT NULL DEFAULT '',
    user_id INTEGER,
    algorithms TEXT NOT NULL DEFAULT '',        -- digests computed beside sha256, with blanks between
    state BLOB NOT NULL,                        -- the blob store's own, to go on from there
    position INTEGER NOT NULL DEFAULT 0,        -- how many bytes are durable
    lease_by TEXT,                              -- the process that receives bytes for it
    lease_until INTEGER,
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX upload_age ON upload (touched_at);
-- The uploads of one user, whose number is bounded.
CREATE INDEX upload_user ON upload (user_id, touched_at);

-- Files that are received together, and published together or not at all.
CREATE TABLE deployment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    package_key TEXT NOT NULL DEFAULT '',       -- of a session, which gets the files of one package one by one
    name TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,                        -- pending, validating, validated, publishing, published, failed
    automatic INTEGER NOT NULL,                 -- 1: published as soon as it is validated
    user_id INTEGER,
    actor TEXT NOT NULL,
    size INTEGER NOT NULL DEFAULT 0,            -- bytes that it takes or may take
    errors TEXT NOT NULL DEFAULT '{}',          -- JSON: sentences by path; that of the empty path is about all
    meta TEXT NOT NULL DEFAULT '{}',
    lease_until INTEGER,                        -- a process works on it until then
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0         -- times that a process took it over from one that was stopped
);
CREATE INDEX deployment_repository ON deployment (repository_id, package_key);
CREATE INDEX deployment_age ON deployment (touched_at);
CREATE INDEX deployment_lease ON deployment (lease_until) WHERE lease_until IS NOT NULL;

-- The files of deployments that are not published yet.
CREATE TABLE deployment_file (
    deployment_id INTEGER NOT NULL REFERENCES deployment (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    storage_id INTEGER NOT NULL,                -- that of the repository, as for files
    sha256 BLOB NOT NULL,
    attrs TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (deployment_id, path)
) WITHOUT ROWID;
CREATE INDEX deployment_file_blob ON deployment_file (sha256);

-- Checksums that clients sent ahead of their file: the file is checked against them when it arrives.
CREATE TABLE checksum_claim (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    path TEXT NOT NULL,                         -- of the file
    algorithm TEXT NOT NULL,
    digest TEXT NOT NULL,                       -- lower-case hex
    made_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, path, algorithm)
) WITHOUT ROWID;
CREATE INDEX checksum_claim_age ON checksum_claim (made_at);

---------------------------------------------------------------------------------------------------------------------
-- What was removed, and what retention keeps
---------------------------------------------------------------------------------------------------------------------

-- Names of packages that a hosted repository had: virtual repositories around it do not ask upstreams for them.
CREATE TABLE retired_name (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    retired_at INTEGER NOT NULL,                -- when the package was removed
    PRIMARY KEY (repository_id, package_key)
) WITHOUT ROWID;

-- A path that was deleted: only a file with the same content may be published there again.
CREATE TABLE tombstone (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    path TEXT NOT NULL,
    package_key TEXT NOT NULL,                  -- that of its package, which may be gone too
    sha256 BLOB NOT NULL,
    deleted_at INTEGER NOT NULL,
    actor TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (repository_id, path)
) WITHOUT ROWID;
-- For the last deletion of a package with some name. Without the time in it, SQLite did not use it before it had
-- statistics, and read all tombstones of the repository.
CREATE INDEX tombstone_package ON tombstone (repository_id, package_key, deleted_at);

-- What was deleted and can be restored: an entry for each deletion, see trash.py.
CREATE TABLE trash (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    kind TEXT NOT NULL,                         -- version, files, manifest, tag: that of its items
    package_key TEXT NOT NULL,
    package_name TEXT NOT NULL,
    name TEXT NOT NULL,                         -- of its first item
    items INTEGER NOT NULL,                     -- that are left
    size INTEGER NOT NULL,                      -- bytes of these, which repository.bytes_used includes
    whole INTEGER NOT NULL DEFAULT 0,           -- 1: the package was removed with its last version
    reason TEXT NOT NULL DEFAULT '',            -- why, if a rule decided
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    deleted_at INTEGER NOT NULL
);
CREATE INDEX trash_package ON trash (repository_id, package_key);
CREATE INDEX trash_age ON trash (deleted_at, id);

CREATE TABLE trash_item (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    trash_id INTEGER NOT NULL REFERENCES trash (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,                         -- the text of a version, the digest of a manifest, a tag
    size INTEGER NOT NULL,
    digest TEXT,                                -- of the manifest that a tag pointed to
    data TEXT NOT NULL                          -- JSON: what the catalog knew of it
);
CREATE INDEX trash_item_entry ON trash_item (trash_id, id);

-- The blobs that a restore needs.
CREATE TABLE trash_blob (
    trash_id INTEGER NOT NULL REFERENCES trash (id) ON DELETE CASCADE,
    sha256 BLOB NOT NULL,
    PRIMARY KEY (trash_id, sha256)
) WITHOUT ROWID;
CREATE INDEX trash_blob_sha ON trash_blob (sha256);

-- Versions that retention keeps, whatever its rules are; there need not be such a version.
CREATE TABLE pin (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    name TEXT NOT NULL,                         -- the text of a version; of images, a tag or the digest of a manifest
    reason TEXT NOT NULL DEFAULT '',
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    pinned_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, package_key, name)
) WITHOUT ROWID;

---------------------------------------------------------------------------------------------------------------------
-- Images
---------------------------------------------------------------------------------------------------------------------

-- The blobs that an image may serve: a client that knows a digest may not read the blob in any image.
CREATE TABLE package_blob (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    sha256 BLOB NOT NULL,
    sha512 BLOB,                                -- only when a client named the bytes so
    touched_at INTEGER NOT NULL,
    publisher_id INTEGER,                       -- the user who added it to the image
    PRIMARY KEY (package_id, sha256)
) WITHOUT ROWID;
CREATE INDEX package_blob_sha ON package_blob (sha256);
CREATE INDEX package_blob_sha512 ON package_blob (sha512) WHERE sha512 IS NOT NULL;
CREATE INDEX package_blob_publisher ON package_blob (publisher_id) WHERE publisher_id IS NOT NULL;

CREATE TABLE manifest (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    subject TEXT,                               -- the digest of the manifest that this one refers to
    artifact_type TEXT,
    annotations TEXT NOT NULL DEFAULT '{}',
    evidence INTEGER NOT NULL DEFAULT 0,        -- 1: a signature or statement about another manifest, nothing to run
    expires_at INTEGER,                         -- when it is removed unless a trusted signature comes; NULL: it stays
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL DEFAULT 0,
    publisher_id INTEGER,
    route TEXT NOT NULL DEFAULT '',             -- the name of the route that it came from; empty: no upstream had it
    labels TEXT,                                -- JSON: those in its configuration, null if it has none that can be
                                                -- read; NULL: no rule has asked for them yet
    UNIQUE (package_id, digest)
);
CREATE INDEX manifest_subject ON manifest (package_id, subject, digest);
CREATE INDEX manifest_sha ON manifest (sha256);
CREATE INDEX manifest_expiry ON manifest (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX manifest_publisher ON manifest (publisher_id) WHERE publisher_id IS NOT NULL;

CREATE TABLE manifest_ref (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,                         -- config, layer, manifest
    package_id INTEGER NOT NULL,                -- that of the manifest: digests such as that of {} are in every image
    PRIMARY KEY (manifest_id, digest, kind)
) WITHOUT ROWID;
CREATE INDEX manifest_ref_digest ON manifest_ref (package_id, digest);

-- The stored signatures: this manifest holds a signature by this key of the content of that digest. It is valid as long
-- as it is where clients look for it; manifest_trust is derived from it.
CREATE TABLE signature (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,                      -- the digest that is signed; there need not be such a manifest
    key_id TEXT NOT NULL,
    package_id INTEGER NOT NULL,                -- that of the manifest
    PRIMARY KEY (manifest_id, subject, key_id)
) WITHOUT ROWID;
CREATE INDEX signature_subject ON signature (package_id, subject);

-- The keys that have signed a manifest, or an index that it is part of. Kept when a key is no longer trusted: queries
-- name the keys that are trusted.
CREATE TABLE manifest_trust (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    key_id TEXT NOT NULL,                       -- sha256 of the public key, hex
    PRIMARY KEY (manifest_id, key_id)
) WITHOUT ROWID;

-- The set of keys against which all signatures of an image were last checked.
CREATE TABLE image_trust (
    package_id INTEGER PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    key_set TEXT NOT NULL
);

-- What a client was told is there, for a push that it has not completed: garbage collection leaves that alone.
CREATE TABLE push_lease (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,                       -- of a blob, always sha256, or of a manifest
    client TEXT NOT NULL,                       -- the bearer token or connection of one client; '' for any
    made_at INTEGER NOT NULL,
    PRIMARY KEY (package_id, digest, client)
) WITHOUT ROWID;
CREATE INDEX push_lease_age ON push_lease (made_at);

-- When manifests of upstreams were first seen: registries do not say when an image was published.
CREATE TABLE first_sight (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,                  -- of the image, of which nothing else need be kept
    digest TEXT NOT NULL,
    tag TEXT NOT NULL,                          -- that pointed to it; empty: it was requested by its digest
    seen_at INTEGER NOT NULL,                   -- first
    moved_at INTEGER NOT NULL,                  -- when the tag last came to point to it
    PRIMARY KEY (repository_id, package_key, digest, tag)
) WITHOUT ROWID;
CREATE INDEX first_sight_tag ON first_sight (repository_id, package_key, tag, moved_at);

---------------------------------------------------------------------------------------------------------------------
-- Documents of packages and repositories; their fragments are at the end
---------------------------------------------------------------------------------------------------------------------

-- Lists of a repository that clients read in pieces: lines are only appended. A list that is written anew, or loses
-- lines, gets a new epoch and a later began_at.
CREATE TABLE appended_list (
    repository_id INTEGER PRIMARY KEY REFERENCES repository (id),
    epoch INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,                  -- of the next line
    removals INTEGER NOT NULL                   -- lines that say that something is gone
);

CREATE TABLE appended_line (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    seq INTEGER NOT NULL,
    package_key TEXT NOT NULL,
    line BLOB NOT NULL,
    PRIMARY KEY (repository_id, seq)
) WITHOUT ROWID;

-- Documents that newer ones have replaced, for clients that were told their addresses before.
CREATE TABLE superseded_document (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    key TEXT NOT NULL,
    package_key TEXT NOT NULL,
    body BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, key)
);
CREATE INDEX superseded_document_by_expiry ON superseded_document (expires_at);

-- What the upstreams of proxy repositories said about packages: the present response to each question, a row each.
CREATE TABLE upstream_document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    key TEXT NOT NULL,                          -- the question, for example packument/lodash
    package_key TEXT NOT NULL DEFAULT '',
    route TEXT NOT NULL DEFAULT '',             -- the name of the route that had it; empty: no route has it
    url TEXT NOT NULL DEFAULT '',               -- where the response came from, after redirects
    etag TEXT,
    last_modified TEXT,
    source BLOB,                                -- sha256 of the response as it was sent
    storage_id INTEGER,                         -- with sha256: the blob of the normalised response; NULL: meta has all
    sha256 BLOB,
    meta TEXT NOT NULL DEFAULT '{}',
    trace TEXT NOT NULL DEFAULT '[]',           -- JSON: the steps that led to the response
    fetched_at INTEGER NOT NULL,                -- when the content last changed; unique for a key
    checked_at INTEGER NOT NULL,                -- when an upstream last confirmed it
    fresh_until INTEGER NOT NULL,
    UNIQUE (repository_id, key)
);
CREATE INDEX upstream_document_package ON upstream_document (repository_id, package_key);
CREATE INDEX upstream_document_blob ON upstream_document (sha256) WHERE sha256 IS NOT NULL;
CREATE INDEX upstream_document_age ON upstream_document (repository_id, checked_at);

---------------------------------------------------------------------------------------------------------------------
-- What is taken in from elsewhere: imports, replicas, wheels of channels
---------------------------------------------------------------------------------------------------------------------

-- What was taken in from where, so that a run that was interrupted goes on, and another run finds nothing to do.
CREATE TABLE import_source (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,                         -- of the source: python, nexus...
    source TEXT NOT NULL,                       -- an address without credentials, or a folder
    UNIQUE (repository_id, kind, source)
);

-- Packages of a source that were taken in, but for what is left out for good.
CREATE TABLE import_package (
    import_id INTEGER NOT NULL REFERENCES import_source (id) ON DELETE CASCADE,
    name TEXT NOT NULL,                         -- as the source calls it
    fingerprint TEXT NOT NULL,                  -- of what the source said about it
    files INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (import_id, name)
) WITHOUT ROWID;

CREATE TABLE import_left_out (
    import_id INTEGER NOT NULL REFERENCES import_source (id) ON DELETE CASCADE,
    package TEXT NOT NULL,
    item TEXT NOT NULL,                         -- name of a file; empty for the whole package
    reason TEXT NOT NULL,
    PRIMARY KEY (import_id, package, item)
) WITHOUT ROWID;

-- How far proxy repositories have followed the events of the repositories of other servers.
CREATE TABLE replica (
    repository_id INTEGER PRIMARY KEY REFERENCES repository (id) ON DELETE CASCADE,
    source TEXT NOT NULL,                       -- what is followed: address of the server, and repository there
    position TEXT NOT NULL DEFAULT '',          -- the last event there whose effects are noted; empty before the first
    walk TEXT NOT NULL,                         -- of a full comparison: kept, listed; empty when it has ended
    walked TEXT NOT NULL DEFAULT '',            -- how far that has come: a key here, a cursor of a page there
    events_left INTEGER NOT NULL DEFAULT 0,     -- behind the position, when it was asked the last time
    compared_at INTEGER,                        -- when the last full comparison began
    reason TEXT NOT NULL DEFAULT '',            -- why
    checked_at INTEGER,                         -- the last response with events
    current_at INTEGER,                         -- when nothing was left to do the last time
    error TEXT NOT NULL DEFAULT '',
    failing_since INTEGER,
    announced INTEGER NOT NULL DEFAULT 0        -- 1: an event says that it fails
);

-- What remains to be done for them: a version of a package, a tag or manifest of an image, or all of a package.
CREATE TABLE replica_task (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    version TEXT NOT NULL,                      -- empty: documents only; *: all
    serial INTEGER NOT NULL DEFAULT 0,          -- grows when it is to be done anew
    compared INTEGER NOT NULL DEFAULT 0,        -- 1: of a full comparison, which waits for what is of events
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    error TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (repository_id, package_key, version)
) WITHOUT ROWID;
CREATE INDEX replica_task_due ON replica_task (repository_id, compared, due_at);

-- How far each channel follows the wheels of its parent repository.
CREATE TABLE followed_wheels (
    repository_id INTEGER PRIMARY KEY REFERENCES repository (id),
    seq INTEGER NOT NULL,                       -- the last event of the parent that was followed
    converting INTEGER NOT NULL                 -- 1: its wheels were converted at that time
);

-- The wheels that a channel could not convert.
CREATE TABLE unconverted_wheel (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    path TEXT NOT NULL,                         -- of the wheel, in the parent
    sha256 TEXT NOT NULL,
    package_key TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (repository_id, path)
) WITHOUT ROWID;
CREATE INDEX unconverted_wheel_of_package ON unconverted_wheel (repository_id, package_key);

---------------------------------------------------------------------------------------------------------------------
-- Users, groups, permissions and projects
---------------------------------------------------------------------------------------------------------------------

CREATE TABLE account (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    username TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL DEFAULT '',              -- of the person
    email TEXT NOT NULL DEFAULT '',
    password_hash TEXT NOT NULL DEFAULT '',     -- empty: cannot log in with a password
    kind TEXT NOT NULL DEFAULT 'person',        -- person, service
    active INTEGER NOT NULL DEFAULT 1,
    admin INTEGER NOT NULL DEFAULT 0,
    user_manager INTEGER NOT NULL DEFAULT 0,
    system_manager INTEGER NOT NULL DEFAULT 0,
    default_actions TEXT NOT NULL DEFAULT '[]', -- JSON: in repositories without a permission of the user
    generation INTEGER NOT NULL DEFAULT 0,      -- grows when everything issued to the user before must stop working
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_login_at INTEGER,
    owner_kind TEXT,                            -- of a service account: user, group; NULL: it has no owner
    owner_id INTEGER
);
CREATE INDEX account_owner ON account (owner_kind, owner_id) WHERE owner_id IS NOT NULL;

CREATE TABLE user_group (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL
);

CREATE TABLE group_member (
    group_id INTEGER NOT NULL REFERENCES user_group (id) ON DELETE CASCADE,
    user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    PRIMARY KEY (group_id, user_id)
) WITHOUT ROWID;
CREATE INDEX group_member_user ON group_member (user_id);

CREATE TABLE permission (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    subject_kind TEXT NOT NULL,                 -- user, group
    subject_id INTEGER NOT NULL,
    actions TEXT NOT NULL,                      -- JSON; no actions are an explicit refusal
    PRIMARY KEY (repository_id, subject_kind, subject_id)
) WITHOUT ROWID;
CREATE INDEX permission_subject ON permission (subject_kind, subject_id);

-- Grants for all repositories whose names match a pattern now.
CREATE TABLE permission_pattern (
    pattern TEXT NOT NULL,                      -- of storage/name, in lower case
    subject_kind TEXT NOT NULL,                 -- user, group
    subject_id INTEGER NOT NULL,
    actions TEXT NOT NULL,                      -- JSON, as in permission
    PRIMARY KEY (pattern, subject_kind, subject_id)
) WITHOUT ROWID;
CREATE INDEX permission_pattern_subject ON permission_pattern (subject_kind, subject_id);

CREATE TABLE project (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    visibility TEXT NOT NULL DEFAULT 'private',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    publishers TEXT NOT NULL DEFAULT '[]'       -- JSON: pipelines that publish the packages of the project
);

CREATE TABLE project_member (
    project_id INTEGER NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    subject_kind TEXT NOT NULL,                 -- user, group
    subject_id INTEGER NOT NULL,
    role TEXT NOT NULL,                         -- guest, reporter, developer, maintainer, owner
    PRIMARY KEY (project_id, subject_kind, subject_id)
) WITHOUT ROWID;
CREATE INDEX project_member_subject ON project_member (subject_kind, subject_id);

-- Which package names of a repository a project owns.
CREATE TABLE project_binding (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    pattern TEXT NOT NULL,
    project_id INTEGER NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    PRIMARY KEY (repository_id, pattern)
) WITHOUT ROWID;
CREATE INDEX project_binding_project ON project_binding (project_id);

---------------------------------------------------------------------------------------------------------------------
-- How people and programs log in
---------------------------------------------------------------------------------------------------------------------

CREATE TABLE token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    hash BLOB NOT NULL UNIQUE,                  -- sha256 of the whole text
    shown TEXT NOT NULL,                        -- prefix and last characters, to tell tokens apart
    kind TEXT NOT NULL,                         -- personal, service, ci, repository, login
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    scopes TEXT NOT NULL DEFAULT '[]',          -- JSON, as are the next three: what it is limited to
    repositories TEXT NOT NULL DEFAULT '[]',
    packages TEXT NOT NULL DEFAULT '[]',
    cidrs TEXT NOT NULL DEFAULT '[]',
    expires_at INTEGER,
    revoked_at INTEGER,
    created_at INTEGER NOT NULL,
    created_from TEXT NOT NULL DEFAULT '',      -- an IP address
    last_used_at INTEGER,
    last_used_ip TEXT,
    last_used_client TEXT,
    uses INTEGER NOT NULL DEFAULT 0,
    asked TEXT NOT NULL DEFAULT '',             -- JSON: scopes and repositories as requested; '': not made by the API
    pipeline TEXT NOT NULL DEFAULT ''           -- JSON: the pipeline that it was issued to; '': to none
);
CREATE INDEX token_user ON token (user_id);

-- Identity tokens that were exchanged: each is exchanged once. Rows are removed when the token has expired.
CREATE TABLE exchanged_token (
    digest BLOB PRIMARY KEY,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX exchanged_token_expires ON exchanged_token (expires_at);

CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,                  -- sha256 of its secret
    user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    address TEXT NOT NULL DEFAULT '',
    client TEXT NOT NULL DEFAULT '',
    linked_id INTEGER,                          -- of linked_identity, if it was begun at a provider
    sid TEXT NOT NULL DEFAULT '',               -- that of the session there, if the provider tells it
    passkey_id INTEGER                          -- with which it was begun
);
CREATE INDEX session_user ON session (user_id);
CREATE INDEX session_linked ON session (linked_id) WHERE linked_id IS NOT NULL;
CREATE INDEX session_passkey ON session (passkey_id) WHERE passkey_id IS NOT NULL;

-- Passkeys of people (Web Authentication Level 2).
CREATE TABLE passkey (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    credential_id BLOB NOT NULL UNIQUE,
    public_key BLOB NOT NULL,                   -- DER of a SubjectPublicKeyInfo
    sign_count INTEGER NOT NULL,                -- of the authenticator, when it was used last; 0: it does not count
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
);
CREATE INDEX passkey_account ON passkey (account_id);

-- Accounts of people at identity providers.
CREATE TABLE linked_identity (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    given TEXT NOT NULL DEFAULT '{}',           -- JSON: what logins gave the user: groups (ids), admin
    refresh TEXT NOT NULL DEFAULT '',           -- the sealed refresh token; '': there is none
    created_at INTEGER NOT NULL,
    checked_at INTEGER NOT NULL,                -- when the provider said last that it knows the person
    UNIQUE (issuer, subject)
);
CREATE INDEX linked_identity_user ON linked_identity (user_id);
CREATE INDEX linked_identity_checked ON linked_identity (checked_at) WHERE refresh <> '';

CREATE TABLE second_factor (
    account_id INTEGER PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
    secret TEXT NOT NULL,                       -- encrypted: SecretBox
    confirmed_at INTEGER,                       -- NULL: not shown to work yet, and not asked for
    last_step INTEGER NOT NULL DEFAULT 0,       -- RFC 6238 time step of the code that was accepted last
    recovery TEXT NOT NULL DEFAULT '[]'         -- JSON: sha256 of the recovery codes that are left
);

-- Logins that programs have begun and people approve in a browser (RFC 8628).
CREATE TABLE login_request (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    device_hash BLOB NOT NULL UNIQUE,           -- sha256 of the secret that the program keeps
    user_hash BLOB NOT NULL UNIQUE,             -- sha256 of the code that the person types
    name TEXT NOT NULL,                         -- of the token
    scopes TEXT NOT NULL,                       -- JSON: what is asked for, or null
    days INTEGER,                               -- that the token lives; NULL: as long as others
    port INTEGER,                               -- at which the program listens on the person's machine; NULL: at none
    address TEXT NOT NULL,
    client TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',      -- pending, approved, denied
    user_id INTEGER REFERENCES account (id) ON DELETE CASCADE, -- who has approved it
    proof BLOB                                  -- sha256 of the code that the browser takes to the port
);
CREATE INDEX login_request_age ON login_request (expires_at);
CREATE INDEX login_request_user ON login_request (user_id) WHERE user_id IS NOT NULL;

-- Links with which people choose a password once.
CREATE TABLE one_time_link (
    user_id INTEGER PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
    hash BLOB NOT NULL UNIQUE,                  -- sha256 of its secret
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

-- Blocks of logins that were lifted. The counts of failures are in the memory of each server, which forgets them when
-- it finds a row that it has not seen. The newest rows are kept.
CREATE TABLE login_unlock (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,                      -- the key of a user name; may be empty
    address TEXT NOT NULL,                      -- an IP address; may be empty
    created_at INTEGER NOT NULL
);

---------------------------------------------------------------------------------------------------------------------
-- Rules and known vulnerabilities
---------------------------------------------------------------------------------------------------------------------

-- Blocks by rules: what is refused at once, in repositories whose path matches a pattern.
CREATE TABLE policy_block (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository TEXT NOT NULL,                   -- a pattern of storage/name
    package TEXT NOT NULL,                      -- a pattern of names
    versions TEXT NOT NULL,                     -- a range, in the grammar of the formats; empty: all
    digests TEXT NOT NULL DEFAULT '[]',         -- JSON: of files; empty: all
    reason TEXT NOT NULL,
    ends_at INTEGER,
    created_at INTEGER NOT NULL,
    actor TEXT NOT NULL
);

-- Versions that a rule holds in quarantine, and the decisions about them: waiting, approved, denied.
CREATE TABLE quarantined (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    version TEXT NOT NULL,
    rule TEXT NOT NULL,                         -- the name of the rule that holds it
    reason TEXT NOT NULL,
    state TEXT NOT NULL,                        -- waiting, approved, denied
    since INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by TEXT NOT NULL DEFAULT '',
    comment TEXT NOT NULL DEFAULT '',
    UNIQUE (repository_id, package_key, version)
);
CREATE INDEX quarantined_state ON quarantined (state, id);

-- What rules that need more than a name and a version were found to hide, for the lists over all packages. ``versions``
-- is JSON: when each is shown again by itself (ms), or null, by its text. ``stamp`` is that of the rules that decided;
-- those of changed rules count for nothing. A changed row gets a new number.
CREATE TABLE judged (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    stamp TEXT NOT NULL,
    versions TEXT NOT NULL
);
CREATE UNIQUE INDEX judged_package ON judged (repository_id, package_key, stamp);
CREATE INDEX judged_seq ON judged (repository_id, seq);

-- How often a rule of an owner (the path of a repository, or the server) matched what was asked of a repository.
CREATE TABLE rule_count (
    owner TEXT NOT NULL,
    rule TEXT NOT NULL,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (owner, rule, repository_id, day)
);

-- What files of upstreams say of themselves, as far as rules have asked for it.
CREATE TABLE file_fact (
    format TEXT NOT NULL,
    package_key TEXT NOT NULL,
    file TEXT NOT NULL,                         -- a digest, or the repository and the path or version; see the module
    facts TEXT NOT NULL,
    serial INTEGER NOT NULL,                    -- greater with each one that is not what documents say; 0 for others
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (format, package_key, file)
);
CREATE INDEX file_fact_serial ON file_fact (format, serial);
CREATE INDEX file_fact_noted ON file_fact (noted_at);

-- What a record of an advisory database says of one package. It has no link to packages: most are in no repository.
CREATE TABLE advisory (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    record TEXT NOT NULL,                       -- its id, such as GHSA-...
    ecosystem TEXT NOT NULL,                    -- npm, PyPI, Maven, RubyGems
    package_key TEXT NOT NULL,
    shown_as TEXT NOT NULL,                     -- the record that is shown for those that name each other as aliases
    severity INTEGER NOT NULL,                  -- that of this one; see the model
    modified TEXT NOT NULL,                     -- as the record says
    data TEXT NOT NULL,
    UNIQUE (record, ecosystem, package_key)
);
CREATE INDEX advisory_package ON advisory (ecosystem, package_key);

-- The sort keys of affected versions: from low, to high (exclusive).
CREATE TABLE advisory_range (
    advisory_id INTEGER NOT NULL REFERENCES advisory (id) ON DELETE CASCADE,
    low BLOB NOT NULL,
    high BLOB NOT NULL,
    PRIMARY KEY (advisory_id, low)
) WITHOUT ROWID;

---------------------------------------------------------------------------------------------------------------------
-- Webhooks
---------------------------------------------------------------------------------------------------------------------

-- Receivers of events, and what is sent to them. The cursor is the last event of which deliveries were made.
CREATE TABLE webhook (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER REFERENCES repository (id) ON DELETE CASCADE, -- only events of it; of neither: all events
    project_id INTEGER REFERENCES project (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL,                       -- JSON: patterns of types
    format TEXT NOT NULL,                       -- cloudevents, plain
    active INTEGER NOT NULL DEFAULT 1,
    secret TEXT NOT NULL,                       -- encrypted, as is the next one
    old_secret TEXT NOT NULL DEFAULT '',        -- also signs until old_until
    old_until INTEGER,
    cursor INTEGER NOT NULL,
    failing_since INTEGER,                      -- the first failure after the last success
    disabled TEXT NOT NULL DEFAULT '',          -- why the server switched it off
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX webhook_repository ON webhook (repository_id);
CREATE INDEX webhook_project ON webhook (project_id);

CREATE TABLE webhook_delivery (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    webhook_id INTEGER NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
    message TEXT NOT NULL,                      -- the id that receivers see
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    thread TEXT NOT NULL,                       -- those of one are sent in their order
    state TEXT NOT NULL,                        -- pending, delivered, failed
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    attempted_at INTEGER,
    status INTEGER,                             -- of the response to the last attempt, as are the next three
    took_ms INTEGER,
    error TEXT NOT NULL DEFAULT '',
    response TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL
);
CREATE INDEX webhook_delivery_list ON webhook_delivery (webhook_id, id);
CREATE INDEX webhook_delivery_pending ON webhook_delivery (webhook_id, thread, id) WHERE state = 'pending';
CREATE INDEX webhook_delivery_age ON webhook_delivery (created_at) WHERE state <> 'pending';

---------------------------------------------------------------------------------------------------------------------
-- Counts. Days are numbered since the epoch. Day and week -1 have what was downloaded at the sources of imports.
---------------------------------------------------------------------------------------------------------------------

CREATE TABLE download_count (
    kind TEXT NOT NULL,                         -- file, manifest
    item_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    repository_id INTEGER NOT NULL,
    package_id INTEGER,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, item_id, day)
) WITHOUT ROWID;
CREATE INDEX download_count_repository ON download_count (repository_id, day);

-- The sums for each package. download_count has too many rows to add them up for a page: a package of 5,000 versions
-- gets a million of them in a year.
CREATE TABLE package_download (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (package_id, day)
) WITHOUT ROWID;

-- The sums for each repository, and those for each version by weeks, which are numbered since the epoch. What images
-- are pulled by is no version of these.
CREATE TABLE repository_download (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (repository_id, day)
) WITHOUT ROWID;

CREATE TABLE version_download (
    version_id INTEGER NOT NULL REFERENCES version (id) ON DELETE CASCADE,
    week INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (version_id, week)
) WITHOUT ROWID;

-- The download log: which client fetched what, from where, on which day (since the epoch); written in batches. What was
-- fetched, and who fetched it, is named as it was then, because rows that are referred to may be removed.
CREATE TABLE download_item (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,                         -- file, manifest
    item_id INTEGER NOT NULL,
    reference TEXT NOT NULL,                    -- the tag or digest that an image was asked for by; empty for a file
    repository_id INTEGER NOT NULL,
    repository TEXT NOT NULL,                   -- storage/name
    format TEXT NOT NULL,
    package_key TEXT NOT NULL,
    package TEXT NOT NULL,
    version_key TEXT NOT NULL,                  -- the reference of an image
    version TEXT NOT NULL,
    path TEXT NOT NULL,
    sha256 BLOB,
    first_day INTEGER NOT NULL,                 -- the day of the oldest row, or an earlier one
    UNIQUE (item_id, kind, reference)
);
CREATE INDEX download_item_package ON download_item (package_key, version_key);
CREATE INDEX download_item_sha ON download_item (sha256);
CREATE INDEX download_item_day ON download_item (first_day);

CREATE TABLE download_client (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    token_id INTEGER NOT NULL,                  -- 0: there was none, or it was that of a pipeline
    pipeline TEXT NOT NULL,
    username TEXT NOT NULL,
    token TEXT NOT NULL,                        -- its name
    last_day INTEGER NOT NULL,
    UNIQUE (user_id, token_id, pipeline)
);

CREATE TABLE download_log (
    item_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    client_id INTEGER NOT NULL,                 -- 0: anonymous
    address TEXT NOT NULL,                      -- a network; empty if it is not kept
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (item_id, day, client_id, address)
) WITHOUT ROWID;

-- How the caches of proxy repositories were used.
CREATE TABLE cache_count (
    repository_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    hits INTEGER NOT NULL DEFAULT 0,            -- answered with what is kept
    misses INTEGER NOT NULL DEFAULT 0,          -- with what an upstream sent
    confirmed INTEGER NOT NULL DEFAULT 0,       -- with what is kept, after an upstream confirmed it
    stale INTEGER NOT NULL DEFAULT 0,           -- with what is kept, because an upstream failed
    absent INTEGER NOT NULL DEFAULT 0,          -- no upstream has what was asked for
    saved_bytes INTEGER NOT NULL DEFAULT 0,
    fetched_bytes INTEGER NOT NULL DEFAULT 0,
    upstream_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (repository_id, day)
) WITHOUT ROWID;

-- What a storage held when it was last measured on a day, of which there are some a day.
CREATE TABLE storage_size (
    storage_id INTEGER NOT NULL REFERENCES storage (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    blobs INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (storage_id, day)
) WITHOUT ROWID;

-- Only SQLite:
-- The parts a package's documents are spliced from: one per version or file and kind, in the order they appear. It is
-- drawn for each engine, since only SQLite numbers its rows. (As a table WITHOUT ROWID it gives each body of more than
-- 2 KB a page of its own beside those of the tree: npm packages took 10 KB for a version of 4.)
CREATE TABLE fragment (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,                         -- the document that it is a part of, such as packument
    sort BLOB NOT NULL,                         -- with the key: the order in it
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (package_id, kind, sort, key)
);

-- The number of the last row of each package in the table fragment. Those of one package are numbered in a row, so that
-- they lie side by side, however many others were written between them.
CREATE VIEW fragment_place AS
SELECT p.id AS package_id, COALESCE(
    (SELECT MAX(f.rowid) FROM fragment f WHERE f.rowid >= p.id << 32 AND f.rowid < (p.id + 1) << 32), p.id << 32
) AS last FROM package p;

-- The keys and texts of packages by the trigrams in them: a search for a part of a name reads the packages that have
-- it, instead of all. The indexes have no copy of the texts; they take some 20 bytes for a key. Triggers keep them up.
CREATE VIRTUAL TABLE package_text USING fts5 (
    key, content = 'package', content_rowid = 'id', detail = 'none', columnsize = 0, tokenize = 'trigram'
);
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

-- Only PostgreSQL:
-- Rows have no numbers there, and a column without values takes no room.
CREATE TABLE fragment (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    sort BLOB NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    rowid INTEGER,
    PRIMARY KEY (package_id, kind, sort, key)
);

-- Views with the names of the view and the indexes above, for the same queries. The trigram indexes themselves need an
-- extension: see postgresql/schema.py.
CREATE VIEW fragment_place AS SELECT CAST(NULL AS BIGINT) AS package_id, CAST(NULL AS BIGINT) AS last WHERE FALSE;

CREATE VIEW package_text AS SELECT id AS rowid, key FROM package;
CREATE VIEW about_text AS SELECT package_id AS rowid, text FROM package_about;
