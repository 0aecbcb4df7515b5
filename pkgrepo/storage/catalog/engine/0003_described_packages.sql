-- What packages say of themselves was written with each change until now: events before this are followed.
INSERT INTO setting (key, value) SELECT 'described_events', COALESCE(MAX(seq), 0) || '' FROM event;
