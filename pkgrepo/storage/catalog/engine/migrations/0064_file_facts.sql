-- What files of upstreams say of themselves, as far as rules have asked for it.
CREATE TABLE file_fact (
    format TEXT NOT NULL,
    package_key TEXT NOT NULL,
    file TEXT NOT NULL,
    facts TEXT NOT NULL,
    serial INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (format, package_key, file)
);
CREATE INDEX file_fact_serial ON file_fact (format, serial);
CREATE INDEX file_fact_noted ON file_fact (noted_at);
