-- Tables and a column that nothing was written to.
DROP TABLE blob_ref;
DROP TABLE outbox;
DROP TABLE lease;
DROP TABLE idempotency;
ALTER TABLE repository DROP COLUMN quota;
