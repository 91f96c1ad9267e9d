-- oldest-program: 0.1.0
--
-- Shares and limits: what a queue and a tenant may use, and the lane that keeps jobs of a saturated concurrency key
-- out of the way of all others.

ALTER TABLE punctual.queues
  ADD COLUMN weight           int NOT NULL DEFAULT 1,
  -- Running jobs of the queue, and of each concurrency key in it; null is no limit.
  ADD COLUMN concurrency      int,
  ADD COLUMN key_concurrency  int NOT NULL DEFAULT 1,
  -- At most `rate_limit` starts in `rate_per` milliseconds on average, `rate_burst` at once; null is no limit.
  ADD COLUMN rate_limit       int,
  ADD COLUMN rate_per         bigint,
  ADD COLUMN rate_burst       int,
  -- The bucket as one moment: when it will be full again. Written with the claims that drew on it.
  ADD COLUMN full_at          bigint NOT NULL DEFAULT 0;

-- A tenant without a row has the defaults.
CREATE TABLE punctual.tenants (
  id          text PRIMARY KEY,
  name        text NOT NULL,
  weight      int NOT NULL DEFAULT 1,
  rate_limit  int,
  rate_per    bigint,
  rate_burst  int,
  full_at     bigint NOT NULL DEFAULT 0,
  created_at  bigint NOT NULL
);

-- Zero without a concurrency key, else a hash of it: jobs of one key wait apart from those of others. The key itself
-- decides what runs, so keys that share a hash share no limit.
ALTER TABLE punctual.jobs ADD COLUMN lane int NOT NULL DEFAULT 0;
ALTER TABLE punctual.later ADD COLUMN lane int NOT NULL DEFAULT 0;
ALTER TABLE punctual.job_history ADD COLUMN lane int NOT NULL DEFAULT 0;
UPDATE punctual.jobs SET lane = 1 + abs(hashtext(concurrency_key)::bigint) % 4095 WHERE concurrency_key IS NOT NULL;
UPDATE punctual.later SET lane = 1 + abs(hashtext(concurrency_key)::bigint) % 4095 WHERE concurrency_key IS NOT NULL;

DROP INDEX punctual.jobs_in_order;
CREATE INDEX jobs_in_order ON punctual.jobs (queue, needs, lane, rank, run_at, id);
