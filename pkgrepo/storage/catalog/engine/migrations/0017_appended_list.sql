-- Lists of a repository that clients read in pieces: lines are only appended. A list that is written anew, or loses lines,
-- gets a new epoch, and began_at is later then.
CREATE TABLE appended_list (
    repository_id INTEGER PRIMARY KEY REFERENCES repository (id),
    epoch INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    removals INTEGER NOT NULL                   -- lines that say that something is gone
);

CREATE TABLE appended_line (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    seq INTEGER NOT NULL,
    package_key TEXT NOT NULL,
    line BLOB NOT NULL,
    PRIMARY KEY (repository_id, seq)
) WITHOUT ROWID;
