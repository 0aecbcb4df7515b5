-- How far each channel follows the wheels of the repository that it belongs to, and those that it cannot convert.
CREATE TABLE followed_wheels (
    repository_id INTEGER PRIMARY KEY REFERENCES repository (id),
    seq INTEGER NOT NULL,                       -- the last event of the other repository that was followed
    converting INTEGER NOT NULL                 -- whether its wheels were converted at that time
);

CREATE TABLE unconverted_wheel (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    path TEXT NOT NULL,                         -- of the wheel, in the other repository
    sha256 TEXT NOT NULL,
    package_key TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (repository_id, path)
) WITHOUT ROWID;
CREATE INDEX unconverted_wheel_of_package ON unconverted_wheel (repository_id, package_key);
