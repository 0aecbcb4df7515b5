-- The readable layout remembers retired names, so that they survive a lost catalog: those from before are shown, too.
INSERT INTO layout_pending (repository_id, package_key)
SELECT repository_id, package_key FROM retired_name WHERE repository_id > 0
ON CONFLICT DO NOTHING;
