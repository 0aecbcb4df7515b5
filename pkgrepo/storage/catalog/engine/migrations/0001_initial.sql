-- Times are milliseconds since the epoch, UTC. Sizes are bytes. sha256 columns hold the 32 raw bytes.
-- AUTOINCREMENT: an id is never given out again, since events, audit lines, download figures and tokens in memory may
-- still tell of what had it. It costs nothing measurable beside the event that each change writes in any case.
-- "key" is the normalised spelling of the "name" beside it. JSON columns hold what only the format or the API reads.

CREATE TABLE setting (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE storage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    settings TEXT NOT NULL DEFAULT '{}',
    active INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE repository (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    storage_id INTEGER NOT NULL REFERENCES storage (id),
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    format TEXT NOT NULL,
    type TEXT NOT NULL,
    visibility TEXT NOT NULL,
    active INTEGER NOT NULL DEFAULT 1,
    description TEXT NOT NULL DEFAULT '',
    config TEXT NOT NULL,
    settings TEXT NOT NULL DEFAULT '{}',
    serial INTEGER NOT NULL DEFAULT 0,          -- grows with every change of content
    names_serial INTEGER NOT NULL DEFAULT 0,    -- grows when the set of package names changes
    bytes_used INTEGER NOT NULL DEFAULT 0,
    package_count INTEGER NOT NULL DEFAULT 0,
    quota INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    purge INTEGER NOT NULL DEFAULT 0            -- removed for good: its content need not be kept for a while
);
-- A repository in the bin lets go of its name.
CREATE UNIQUE INDEX repository_key ON repository (storage_id, key) WHERE deleted_at IS NULL;

CREATE TABLE package (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    latest TEXT,
    serial INTEGER NOT NULL DEFAULT 0,
    meta TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (repository_id, key)
);

CREATE TABLE version (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    text TEXT NOT NULL,
    sort BLOB NOT NULL,                         -- orders bytewise as the format orders versions
    state TEXT NOT NULL DEFAULT 'live',
    reason TEXT NOT NULL DEFAULT '',
    meta TEXT NOT NULL DEFAULT '{}',
    published_at INTEGER NOT NULL,
    publisher_id INTEGER,
    publisher TEXT NOT NULL DEFAULT '',
    UNIQUE (package_id, key)
);
CREATE INDEX version_order ON version (package_id, sort, key);

CREATE TABLE file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    storage_id INTEGER NOT NULL,                -- that of the repository, so that the blob is one look-up away
    path TEXT NOT NULL,
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

-- A path that was deleted: it may come back with the same content only.
CREATE TABLE tombstone (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    path TEXT NOT NULL,
    package_key TEXT NOT NULL,                  -- that of its package, which may be gone too
    sha256 BLOB NOT NULL,
    deleted_at INTEGER NOT NULL,
    actor TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (repository_id, path)
) WITHOUT ROWID;
CREATE INDEX tombstone_package ON tombstone (repository_id, package_key);

CREATE TABLE blob (
    storage_id INTEGER NOT NULL REFERENCES storage (id),
    sha256 BLOB NOT NULL,
    locator TEXT NOT NULL,
    size INTEGER NOT NULL,
    digests TEXT NOT NULL DEFAULT '{}',         -- besides sha256
    state TEXT NOT NULL DEFAULT 'live',         -- live, deleting, suspect
    touched_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    verified_at INTEGER,
    PRIMARY KEY (storage_id, sha256)
) WITHOUT ROWID;
CREATE INDEX blob_age ON blob (storage_id, state, touched_at);

-- References to blobs other than file rows: manifests to layers, sidecars.
CREATE TABLE blob_ref (
    storage_id INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    kind TEXT NOT NULL,
    owner_id INTEGER NOT NULL,
    PRIMARY KEY (storage_id, sha256, kind, owner_id)
) WITHOUT ROWID;
CREATE INDEX blob_ref_owner ON blob_ref (kind, owner_id);

-- What an image may serve: knowing a digest never grants reading it.
CREATE TABLE package_blob (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    sha256 BLOB NOT NULL,
    sha512 BLOB,                                -- only when somebody named the bytes so
    touched_at INTEGER NOT NULL,
    PRIMARY KEY (package_id, sha256)
) WITHOUT ROWID;
CREATE INDEX package_blob_sha ON package_blob (sha256);
CREATE INDEX package_blob_sha512 ON package_blob (sha512) WHERE sha512 IS NOT NULL;

CREATE TABLE manifest (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    subject TEXT,
    artifact_type TEXT,
    annotations TEXT NOT NULL DEFAULT '{}',
    evidence INTEGER NOT NULL DEFAULT 0,        -- 1: a signature or statement about another manifest, nothing to run
    expires_at INTEGER,                         -- when it goes unless a trusted signature comes; NULL: it stays
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL DEFAULT 0,
    UNIQUE (package_id, digest)
);
CREATE INDEX manifest_subject ON manifest (package_id, subject, digest);
CREATE INDEX manifest_sha ON manifest (sha256);
CREATE INDEX manifest_expiry ON manifest (expires_at) WHERE expires_at IS NOT NULL;

-- Which keys have signed a manifest, or an index that it is part of. Kept when a key is no longer trusted: who looks
-- asks for the keys that are trusted then.
CREATE TABLE manifest_trust (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    key_id TEXT NOT NULL,                       -- sha256 of the public key, hex
    PRIMARY KEY (manifest_id, key_id)
) WITHOUT ROWID;

-- The set of keys against which all signatures of an image were last held.
CREATE TABLE image_trust (
    package_id INTEGER PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    key_set TEXT NOT NULL
);

CREATE TABLE manifest_ref (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    package_id INTEGER NOT NULL,                -- that of the manifest: digests such as that of {} are in every image
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,                         -- config, layer, manifest
    PRIMARY KEY (manifest_id, digest, kind)
) WITHOUT ROWID;
CREATE INDEX manifest_ref_digest ON manifest_ref (package_id, digest);

CREATE TABLE tag (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version_id INTEGER REFERENCES version (id) ON DELETE CASCADE,
    digest TEXT,
    served TEXT,                                -- digest that readers get until the other is trusted
    expires_at INTEGER,                         -- when the tag goes back to that unless it is
    updated_at INTEGER NOT NULL,
    actor TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (package_id, name)
) WITHOUT ROWID;
CREATE INDEX tag_digest ON tag (package_id, digest);
CREATE INDEX tag_version ON tag (version_id);
CREATE INDEX tag_served ON tag (package_id, served) WHERE served IS NOT NULL;
CREATE INDEX tag_expiry ON tag (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE upload (
    uid TEXT PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    storage_id INTEGER NOT NULL,
    package_key TEXT NOT NULL DEFAULT '',
    user_id INTEGER,
    algorithms TEXT NOT NULL DEFAULT '',        -- computed beside sha256, with blanks between
    state BLOB NOT NULL,
    position INTEGER NOT NULL DEFAULT 0,
    lease_by TEXT,
    lease_until INTEGER,
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX upload_age ON upload (touched_at);

-- Rendered index documents, with their compressed forms.
CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    content_type TEXT NOT NULL,
    etag TEXT NOT NULL,
    serial INTEGER NOT NULL,
    built_at INTEGER NOT NULL,
    body BLOB NOT NULL,
    gzip BLOB,
    zstd BLOB,
    UNIQUE (repository_id, key, kind)
);

-- The parts a package's documents are spliced from: one per version or file and kind, in the order they appear.
CREATE TABLE fragment (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    sort BLOB NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (package_id, kind, sort, key)
) WITHOUT ROWID;

CREATE TABLE cache_entry (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    route TEXT NOT NULL,
    path TEXT NOT NULL,
    status INTEGER NOT NULL,
    etag TEXT,
    last_modified TEXT,
    meta TEXT NOT NULL DEFAULT '{}',
    file_id INTEGER REFERENCES file (id) ON DELETE SET NULL,
    fetched_at INTEGER NOT NULL,
    fresh_until INTEGER NOT NULL,
    stale_until INTEGER,
    PRIMARY KEY (repository_id, route, path)
) WITHOUT ROWID;
CREATE INDEX cache_entry_age ON cache_entry (fresh_until);
CREATE INDEX cache_entry_file ON cache_entry (file_id);

CREATE TABLE account (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    username TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL DEFAULT '',
    email TEXT NOT NULL DEFAULT '',
    password_hash TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL DEFAULT 'person',
    active INTEGER NOT NULL DEFAULT 1,
    admin INTEGER NOT NULL DEFAULT 0,
    user_manager INTEGER NOT NULL DEFAULT 0,
    system_manager INTEGER NOT NULL DEFAULT 0,
    default_actions TEXT NOT NULL DEFAULT '[]',
    generation INTEGER NOT NULL DEFAULT 0,      -- grows when anything issued before must stop working
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_login_at INTEGER
);

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

-- What a user or group may do in a repository; no actions means an explicit refusal.
CREATE TABLE permission (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    subject_kind TEXT NOT NULL,                 -- user, group
    subject_id INTEGER NOT NULL,
    actions TEXT NOT NULL,
    PRIMARY KEY (repository_id, subject_kind, subject_id)
) WITHOUT ROWID;
CREATE INDEX permission_subject ON permission (subject_kind, subject_id);

CREATE TABLE token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    hash BLOB NOT NULL UNIQUE,                  -- sha256 of the whole text
    shown TEXT NOT NULL,                        -- prefix and last characters, to tell tokens apart
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    scopes TEXT NOT NULL DEFAULT '[]',
    repositories TEXT NOT NULL DEFAULT '[]',
    packages TEXT NOT NULL DEFAULT '[]',
    cidrs TEXT NOT NULL DEFAULT '[]',
    expires_at INTEGER,
    revoked_at INTEGER,
    created_at INTEGER NOT NULL,
    created_from TEXT NOT NULL DEFAULT '',
    last_used_at INTEGER,
    last_used_ip TEXT,
    last_used_client TEXT,
    uses INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX token_user ON token (user_id);

CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    csrf TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    address TEXT NOT NULL DEFAULT '',
    client TEXT NOT NULL DEFAULT ''
);
CREATE INDEX session_user ON session (user_id);

CREATE TABLE project (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    visibility TEXT NOT NULL DEFAULT 'private',
    quota INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
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

-- What happened to packages, in order; written in the transaction of the change itself and never changed.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL,
    package_id INTEGER,
    package_key TEXT NOT NULL DEFAULT '',
    version_key TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,                         -- published, yanked, unyanked, tagged, untagged, deleted, cached...
    data TEXT NOT NULL DEFAULT '{}',
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    token_id INTEGER,
    at INTEGER NOT NULL
);
CREATE INDEX event_repository ON event (repository_id, seq);
CREATE INDEX event_package ON event (package_id, seq);

-- Who fetched what with which token; written in batches.
CREATE TABLE download (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,                         -- file, manifest
    item_id INTEGER NOT NULL,
    repository_id INTEGER NOT NULL,
    package_id INTEGER,
    path TEXT NOT NULL,
    user_id INTEGER,
    token_id INTEGER,
    at INTEGER NOT NULL
);
CREATE INDEX download_token ON download (token_id, seq);

CREATE TABLE download_count (
    kind TEXT NOT NULL,
    item_id INTEGER NOT NULL,
    day INTEGER NOT NULL,                       -- days since the epoch
    repository_id INTEGER NOT NULL,
    package_id INTEGER,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, item_id, day)
) WITHOUT ROWID;
CREATE INDEX download_count_repository ON download_count (repository_id, day);
CREATE INDEX download_count_package ON download_count (package_id, day);

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    request_id TEXT NOT NULL DEFAULT '',
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    token_id INTEGER,
    address TEXT NOT NULL DEFAULT '',
    action TEXT NOT NULL,
    object TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_object ON audit (object, seq);

CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    target TEXT NOT NULL,
    body TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL
);
CREATE INDEX outbox_due ON outbox (next_at);

CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL,                        -- queued, running, done, failed, cancelled
    data TEXT NOT NULL DEFAULT '{}',
    result TEXT NOT NULL DEFAULT '{}',
    run_at INTEGER NOT NULL,
    lease_by TEXT,
    lease_until INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    finished_at INTEGER
);
CREATE UNIQUE INDEX job_pending ON job (kind, key) WHERE state IN ('queued', 'running');
CREATE INDEX job_due ON job (state, run_at);

CREATE TABLE lease (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until INTEGER NOT NULL,
    fence INTEGER NOT NULL
) WITHOUT ROWID;

-- Answers kept for POSTs that carried an Idempotency-Key.
CREATE TABLE idempotency (
    user_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    status INTEGER NOT NULL,
    answer TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;
