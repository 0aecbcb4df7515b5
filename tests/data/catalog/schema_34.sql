-- The schema of version 34.
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
    serial INTEGER NOT NULL DEFAULT 0,
    names_serial INTEGER NOT NULL DEFAULT 0,
    bytes_used INTEGER NOT NULL DEFAULT 0,
    package_count INTEGER NOT NULL DEFAULT 0,
    quota INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    purge INTEGER NOT NULL DEFAULT 0
, parent_id INTEGER REFERENCES repository (id) ON DELETE SET NULL);
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
    updated_at INTEGER NOT NULL, modified_s INTEGER NOT NULL DEFAULT 0, alone INTEGER NOT NULL DEFAULT 0, downloads INTEGER NOT NULL DEFAULT 0, derived INTEGER NOT NULL DEFAULT 0,
    UNIQUE (repository_id, key)
);
CREATE TABLE version (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    text TEXT NOT NULL,
    sort BLOB NOT NULL,
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
    storage_id INTEGER NOT NULL,
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
CREATE TABLE tombstone (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    path TEXT NOT NULL,
    package_key TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    deleted_at INTEGER NOT NULL,
    actor TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (repository_id, path)
) WITHOUT ROWID;
CREATE TABLE blob (
    storage_id INTEGER NOT NULL REFERENCES storage (id),
    sha256 BLOB NOT NULL,
    locator TEXT NOT NULL,
    size INTEGER NOT NULL,
    digests TEXT NOT NULL DEFAULT '{}',
    state TEXT NOT NULL DEFAULT 'live',
    touched_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    verified_at INTEGER,
    PRIMARY KEY (storage_id, sha256)
) WITHOUT ROWID;
CREATE INDEX blob_age ON blob (storage_id, state, touched_at);
CREATE TABLE blob_ref (
    storage_id INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    kind TEXT NOT NULL,
    owner_id INTEGER NOT NULL,
    PRIMARY KEY (storage_id, sha256, kind, owner_id)
) WITHOUT ROWID;
CREATE INDEX blob_ref_owner ON blob_ref (kind, owner_id);
CREATE TABLE package_blob (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    sha256 BLOB NOT NULL,
    sha512 BLOB,
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
    evidence INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL DEFAULT 0,
    UNIQUE (package_id, digest)
);
CREATE INDEX manifest_subject ON manifest (package_id, subject, digest);
CREATE INDEX manifest_sha ON manifest (sha256);
CREATE INDEX manifest_expiry ON manifest (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE manifest_trust (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    key_id TEXT NOT NULL,
    PRIMARY KEY (manifest_id, key_id)
) WITHOUT ROWID;
CREATE TABLE image_trust (
    package_id INTEGER PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    key_set TEXT NOT NULL
);
CREATE TABLE tag (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version_id INTEGER REFERENCES version (id) ON DELETE CASCADE,
    digest TEXT,
    served TEXT,
    expires_at INTEGER,
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
    algorithms TEXT NOT NULL DEFAULT '',
    state BLOB NOT NULL,
    position INTEGER NOT NULL DEFAULT 0,
    lease_by TEXT,
    lease_until INTEGER,
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX upload_age ON upload (touched_at);
CREATE TABLE fragment (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    sort BLOB NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (package_id, kind, sort, key)
) WITHOUT ROWID;
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
    generation INTEGER NOT NULL DEFAULT 0,
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
CREATE TABLE permission (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    subject_kind TEXT NOT NULL,
    subject_id INTEGER NOT NULL,
    actions TEXT NOT NULL,
    PRIMARY KEY (repository_id, subject_kind, subject_id)
) WITHOUT ROWID;
CREATE INDEX permission_subject ON permission (subject_kind, subject_id);
CREATE TABLE token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    hash BLOB NOT NULL UNIQUE,
    shown TEXT NOT NULL,
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
, asked TEXT NOT NULL DEFAULT '');
CREATE INDEX token_user ON token (user_id);
CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
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
    subject_kind TEXT NOT NULL,
    subject_id INTEGER NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (project_id, subject_kind, subject_id)
) WITHOUT ROWID;
CREATE INDEX project_member_subject ON project_member (subject_kind, subject_id);
CREATE TABLE project_binding (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    pattern TEXT NOT NULL,
    project_id INTEGER NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    PRIMARY KEY (repository_id, pattern)
) WITHOUT ROWID;
CREATE INDEX project_binding_project ON project_binding (project_id);
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL,
    package_id INTEGER,
    package_key TEXT NOT NULL DEFAULT '',
    version_key TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,
    data TEXT NOT NULL DEFAULT '{}',
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    token_id INTEGER,
    at INTEGER NOT NULL
);
CREATE INDEX event_repository ON event (repository_id, seq);
CREATE INDEX event_package ON event (package_id, seq);
CREATE TABLE download (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
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
    day INTEGER NOT NULL,
    repository_id INTEGER NOT NULL,
    package_id INTEGER,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, item_id, day)
) WITHOUT ROWID;
CREATE INDEX download_count_repository ON download_count (repository_id, day);
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
    state TEXT NOT NULL,
    data TEXT NOT NULL DEFAULT '{}',
    result TEXT NOT NULL DEFAULT '{}',
    run_at INTEGER NOT NULL,
    lease_by TEXT,
    lease_until INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    finished_at INTEGER
, progress TEXT NOT NULL DEFAULT '[]', cancel_at INTEGER);
CREATE UNIQUE INDEX job_pending ON job (kind, key) WHERE state IN ('queued', 'running');
CREATE INDEX job_due ON job (state, run_at);
CREATE TABLE lease (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until INTEGER NOT NULL,
    fence INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE idempotency (
    user_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    status INTEGER NOT NULL,
    answer TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;
CREATE TABLE layout_pending (
    repository_id INTEGER NOT NULL,
    package_key TEXT NOT NULL DEFAULT '',
    version_key TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL DEFAULT '',
    whole INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (repository_id, package_key, version_key, version)
) WITHOUT ROWID;
CREATE TABLE promise (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    client TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    PRIMARY KEY (package_id, digest, client)
) WITHOUT ROWID;
CREATE INDEX promise_age ON promise (made_at);
CREATE TABLE login_unlock (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE TABLE upstream_document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    key TEXT NOT NULL,
    package_key TEXT NOT NULL DEFAULT '',
    route TEXT NOT NULL DEFAULT '',
    url TEXT NOT NULL DEFAULT '',
    etag TEXT,
    last_modified TEXT,
    source BLOB,
    storage_id INTEGER,
    sha256 BLOB,
    meta TEXT NOT NULL DEFAULT '{}',
    trace TEXT NOT NULL DEFAULT '[]',
    fetched_at INTEGER NOT NULL,
    checked_at INTEGER NOT NULL,
    fresh_until INTEGER NOT NULL,
    UNIQUE (repository_id, key)
);
CREATE INDEX upstream_document_package ON upstream_document (repository_id, package_key);
CREATE INDEX upstream_document_blob ON upstream_document (sha256) WHERE sha256 IS NOT NULL;
CREATE INDEX upstream_document_age ON upstream_document (repository_id, checked_at);
CREATE TABLE cache_count (
    repository_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    hits INTEGER NOT NULL DEFAULT 0,
    misses INTEGER NOT NULL DEFAULT 0,
    confirmed INTEGER NOT NULL DEFAULT 0,
    stale INTEGER NOT NULL DEFAULT 0,
    absent INTEGER NOT NULL DEFAULT 0,
    saved_bytes INTEGER NOT NULL DEFAULT 0,
    fetched_bytes INTEGER NOT NULL DEFAULT 0,
    upstream_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (repository_id, day)
) WITHOUT ROWID;
CREATE TABLE deployment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    package_key TEXT NOT NULL DEFAULT '',
    name TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    automatic INTEGER NOT NULL,
    user_id INTEGER,
    actor TEXT NOT NULL,
    size INTEGER NOT NULL DEFAULT 0,
    errors TEXT NOT NULL DEFAULT '{}',
    meta TEXT NOT NULL DEFAULT '{}',
    lease_until INTEGER,
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL
, attempts INTEGER NOT NULL DEFAULT 0);
CREATE INDEX deployment_repository ON deployment (repository_id, package_key);
CREATE INDEX deployment_age ON deployment (touched_at);
CREATE TABLE deployment_file (
    deployment_id INTEGER NOT NULL REFERENCES deployment (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    storage_id INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    attrs TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (deployment_id, path)
) WITHOUT ROWID;
CREATE INDEX deployment_file_blob ON deployment_file (sha256);
CREATE INDEX file_plain ON file (repository_id, path) WHERE package_id IS NULL;
CREATE TABLE checksum_claim (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    digest TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, path, algorithm)
) WITHOUT ROWID;
CREATE INDEX checksum_claim_age ON checksum_claim (made_at);
CREATE TABLE package_spelling (
    package_id INTEGER PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    repository_id INTEGER NOT NULL,
    spelling TEXT NOT NULL
);
CREATE INDEX package_spelling_name ON package_spelling (repository_id, spelling);
CREATE TABLE appended_list (
    repository_id INTEGER PRIMARY KEY REFERENCES repository (id),
    epoch INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    removals INTEGER NOT NULL
);
CREATE TABLE appended_line (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    seq INTEGER NOT NULL,
    package_key TEXT NOT NULL,
    line BLOB NOT NULL,
    PRIMARY KEY (repository_id, seq)
) WITHOUT ROWID;
CREATE TABLE superseded_document (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    key TEXT NOT NULL,
    package_key TEXT NOT NULL,
    body BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, key)
);
CREATE INDEX superseded_document_by_expiry ON superseded_document (expires_at);
CREATE TABLE retired_name (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    retired_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, package_key)
) WITHOUT ROWID;
CREATE TABLE followed_wheels (
    repository_id INTEGER PRIMARY KEY REFERENCES repository (id),
    seq INTEGER NOT NULL,
    converting INTEGER NOT NULL
);
CREATE TABLE unconverted_wheel (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    package_key TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (repository_id, path)
) WITHOUT ROWID;
CREATE INDEX unconverted_wheel_of_package ON unconverted_wheel (repository_id, package_key);
CREATE TABLE package_download (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (package_id, day)
) WITHOUT ROWID;
CREATE INDEX package_downloads ON package (repository_id, downloads, key);
CREATE INDEX package_changed ON package (repository_id, updated_at, key);
CREATE INDEX version_withdrawn ON version (package_id, state) WHERE state <> 'live';
CREATE INDEX deployment_lease ON deployment (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX version_published ON version (package_id, published_at, key);
CREATE INDEX tombstone_package ON tombstone (repository_id, package_key, deleted_at);
CREATE INDEX event_removed ON event (repository_id) WHERE kind = 'repository_removed';
CREATE TABLE "manifest_ref" (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    package_id INTEGER NOT NULL,
    PRIMARY KEY (manifest_id, digest, kind)
) WITHOUT ROWID;
CREATE INDEX manifest_ref_digest ON manifest_ref (package_id, digest);
CREATE TABLE "signature" (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,
    key_id TEXT NOT NULL,
    package_id INTEGER NOT NULL,
    PRIMARY KEY (manifest_id, subject, key_id)
) WITHOUT ROWID;
CREATE INDEX signature_subject ON signature (package_id, subject);
CREATE TABLE "first_sight" (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    digest TEXT NOT NULL,
    tag TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    moved_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, package_key, digest, tag)
) WITHOUT ROWID;
CREATE INDEX first_sight_tag ON first_sight (repository_id, package_key, tag, moved_at);
CREATE INDEX upload_user ON upload (user_id, touched_at);
CREATE TABLE package_about (
    package_id INTEGER PRIMARY KEY REFERENCES package (id) ON DELETE CASCADE,
    text TEXT NOT NULL
);

-- Only SQLite:
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
CREATE VIEW package_text AS SELECT id AS rowid, key FROM package;
CREATE VIEW about_text AS SELECT package_id AS rowid, text FROM package_about;
