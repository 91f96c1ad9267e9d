-- oldest-program: 0.1.0
--
-- How large a job is to hand over.

-- Kibibytes of payload and target together, rounded down, so that small jobs are all alike. Known before the job is
-- read: what is claimed and handed over at once is bounded by it.
ALTER TABLE punctual.jobs ADD COLUMN size_kib int NOT NULL DEFAULT 0;
ALTER TABLE punctual.later ADD COLUMN size_kib int NOT NULL DEFAULT 0;

-- What is small and not compressed need not be looked at.
UPDATE punctual.jobs SET size_kib = (octet_length(payload::text) + coalesce(octet_length(target::text), 0)) >> 10
WHERE pg_column_size(payload) > 900 OR pg_column_size(target) > 100
  OR pg_column_compression(payload) IS NOT NULL OR pg_column_compression(target) IS NOT NULL;
UPDATE punctual.later SET size_kib = (octet_length(payload::text) + coalesce(octet_length(target::text), 0)) >> 10
WHERE payload IS NOT NULL AND (pg_column_size(payload) > 900 OR pg_column_size(target) > 100
  OR pg_column_compression(payload) IS NOT NULL OR pg_column_compression(target) IS NOT NULL);
