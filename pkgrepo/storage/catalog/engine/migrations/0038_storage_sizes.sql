-- What a storage held when it was last measured on a day, of which there are some a day.
CREATE TABLE storage_size (
    storage_id INTEGER NOT NULL REFERENCES storage (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    blobs INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (storage_id, day)
) WITHOUT ROWID;
