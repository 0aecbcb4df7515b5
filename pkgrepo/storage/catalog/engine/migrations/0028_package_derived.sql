-- Whether files of a package are made from those of one in the repository that this one belongs to: a search that looks
-- at both repositories shows that one alone.
ALTER TABLE package ADD COLUMN derived INTEGER NOT NULL DEFAULT 0;
UPDATE package SET derived = 1
WHERE repository_id IN (SELECT id FROM repository WHERE parent_id IS NOT NULL)
    AND EXISTS (SELECT 1 FROM file f WHERE f.package_id = package.id AND f.attrs LIKE '%"derived_from"%');
