-- The quotas of projects are rows like the others, and users may have quotas. For these it is known who published
-- manifests and layers from now on.
INSERT INTO quota (kind, subject_id, bytes) SELECT 'project', id, quota FROM project WHERE quota IS NOT NULL;
ALTER TABLE project DROP COLUMN quota;
ALTER TABLE manifest ADD COLUMN publisher_id INTEGER;
ALTER TABLE package_blob ADD COLUMN publisher_id INTEGER;
CREATE INDEX version_publisher ON version (publisher_id) WHERE publisher_id IS NOT NULL;
CREATE INDEX manifest_publisher ON manifest (publisher_id) WHERE publisher_id IS NOT NULL;
CREATE INDEX package_blob_publisher ON package_blob (publisher_id) WHERE publisher_id IS NOT NULL;
