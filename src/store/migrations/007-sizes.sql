-- oldest-program: 0.1.0
--
-- How large a job is to hand over.

-- Kibibytes of payload and target together, rounded down, so that small jobs are all alike. Known before the job is
-- read: what is claimed and handed over at once is bounded by it. Jobs from before keep zero, because filling it in would
-- rewrite the live tables while everybody waits; for them the stored size counts.
ALTER TABLE punctual.jobs ADD COLUMN size_kib int NOT NULL DEFAULT 0;
ALTER TABLE punctual.later ADD COLUMN size_kib int NOT NULL DEFAULT 0;
