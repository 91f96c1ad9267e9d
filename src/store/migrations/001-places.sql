-- oldest-program: 0.1.0
--
-- The places of a job, its keys, its claims, and the term that fences every write of a leader.
--
-- Moments are milliseconds since 1970 as bigint: exact in JavaScript, in cursors and in comparisons, where a
-- timestamptz would be rounded on its way through a double.

-- Names become small integers once, so that the rows and the index of the hot table stay narrow.
CREATE TABLE punctual.queues (
  id          int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant      text NOT NULL,
  name        text NOT NULL,
  paused      boolean NOT NULL DEFAULT false,
  created_at  bigint NOT NULL,
  UNIQUE (tenant, name)
);

-- What a worker must have to run a job: jobs with equal needs in one queue share a backlog, so that work
-- which nobody can do never stands in front of work which somebody can. `signature` is the SHA-256 of the rest:
-- labels may be far longer than what fits into an index.
CREATE TABLE punctual.needs (
  id          int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  signature   bytea NOT NULL UNIQUE,
  tenant      text NOT NULL,
  target      text NOT NULL,
  handler     text NOT NULL,
  labels      text NOT NULL
);

-- Live jobs: waiting or running. Small, always in cache. Other nodes insert and read; the leader alone changes.
-- `rank` is 10 - priority, so that one ascending index gives the order in which jobs start.
CREATE TABLE punctual.jobs (
  id               uuid PRIMARY KEY,
  tenant           text NOT NULL,
  queue            int NOT NULL,
  needs            int NOT NULL,
  rank             smallint NOT NULL,
  run_at           bigint NOT NULL,
  attempts         int NOT NULL DEFAULT 0,
  failures         smallint NOT NULL DEFAULT 0,
  losses           smallint NOT NULL DEFAULT 0,
  max_attempts     smallint NOT NULL,
  max_losses       smallint NOT NULL,
  at_most_once     boolean NOT NULL,
  timeout_ms       bigint NOT NULL,
  created_at       bigint NOT NULL,
  start_before     bigint,
  late_by          bigint,
  task             text,
  created_by       text NOT NULL,
  key              text,
  concurrency_key  text,
  target           json,
  backoff          json,
  requires         json,
  payload          json NOT NULL,
  earlier_attempts json[]
) WITH (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0.0,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_insert_threshold = -1,
  autovacuum_analyze_scale_factor = 0.0,
  autovacuum_analyze_threshold = 100000,
  autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX jobs_in_order ON punctual.jobs (queue, needs, rank, run_at, id);
CREATE INDEX jobs_expiring ON punctual.jobs (start_before) WHERE start_before IS NOT NULL;

-- Running is this row, not a column of the job: an insert into a narrow table beats an update of a wide one.
CREATE TABLE punctual.claims (
  job         uuid PRIMARY KEY,
  fence       int NOT NULL,
  worker      uuid NOT NULL,
  epoch       bigint NOT NULL,
  claimed_at  bigint NOT NULL,
  -- When somebody asked for it to be cancelled: a promise that every later leader keeps.
  cancelled_at bigint,
  progress    json
) WITH (
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0.0,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_insert_threshold = -1,
  autovacuum_analyze_scale_factor = 0.0,
  autovacuum_analyze_threshold = 100000,
  autovacuum_vacuum_cost_delay = 0
);

-- Not admitted yet: due far ahead, on hold, or submitted inside a caller's own transaction. The columns are those
-- of punctual.jobs, one by one: Postgres cannot take an object apart that holds \u0000 or half a surrogate pair
-- anywhere, so a row kept as one piece of JSON could never be read again. A submission that the leader has not
-- read yet stands in `submission` as the public API takes it, and most columns are empty.
CREATE TABLE punctual.later (
  id               uuid PRIMARY KEY,
  tenant           text NOT NULL,
  admit_at         bigint NOT NULL,
  held             boolean NOT NULL DEFAULT false,
  submission       json,
  queue            int,
  needs            int,
  rank             smallint,
  run_at           bigint,
  attempts         int NOT NULL DEFAULT 0,
  failures         smallint NOT NULL DEFAULT 0,
  losses           smallint NOT NULL DEFAULT 0,
  max_attempts     smallint,
  max_losses       smallint,
  at_most_once     boolean,
  timeout_ms       bigint,
  created_at       bigint NOT NULL,
  start_before     bigint,
  late_by          bigint,
  task             text,
  created_by       text NOT NULL,
  key              text,
  concurrency_key  text,
  target           json,
  backoff          json,
  requires         json,
  payload          json,
  earlier_attempts json[]
);

CREATE INDEX later_to_admit ON punctual.later (admit_at) WHERE NOT held;
CREATE INDEX later_expiring ON punctual.later (start_before) WHERE start_before IS NOT NULL AND attempts = 0;
CREATE INDEX later_by_tenant ON punctual.later (tenant, id);
-- Not only for what is unread: a small partial index would be walked row by row by whoever asks for unread rows.
CREATE INDEX later_by_key ON punctual.later (tenant, key) WHERE key IS NOT NULL;

-- Ended jobs, by day of finishing. Few indexes on purpose: each costs a part of the throughput.
CREATE TABLE punctual.job_history (
  id               uuid NOT NULL,
  tenant           text NOT NULL,
  queue            int NOT NULL,
  needs            int NOT NULL,
  rank             smallint NOT NULL,
  run_at           bigint NOT NULL,
  attempts         int NOT NULL,
  failures         smallint NOT NULL,
  losses           smallint NOT NULL,
  max_attempts     smallint NOT NULL,
  max_losses       smallint NOT NULL,
  at_most_once     boolean NOT NULL,
  timeout_ms       bigint NOT NULL,
  created_at       bigint NOT NULL,
  start_before     bigint,
  late_by          bigint,
  task             text,
  created_by       text NOT NULL,
  key              text,
  concurrency_key  text,
  target           json,
  backoff          json,
  requires         json,
  payload          json NOT NULL,
  earlier_attempts json[],
  -- the last attempt, and how the job ended
  state            text NOT NULL,
  finished_at      bigint NOT NULL,
  fence            int,
  worker           uuid,
  epoch            bigint,
  claimed_at       bigint,
  started_at       bigint,
  outcome          text,
  result           json,
  error            json,
  progress         json
) PARTITION BY RANGE (finished_at);

CREATE INDEX job_history_by_id ON punctual.job_history (tenant, id);
CREATE INDEX job_history_failed ON punctual.job_history (tenant, id) WHERE state = 'failed';

-- The same submission is the same job. Remembered as long as the job's history.
CREATE TABLE punctual.keys (
  tenant  text NOT NULL,
  key     text NOT NULL,
  job     uuid NOT NULL,
  PRIMARY KEY (tenant, key)
);

CREATE TABLE punctual.job_logs (
  tenant  text NOT NULL,
  job     uuid NOT NULL,
  fence   int NOT NULL,
  seq     bigint GENERATED ALWAYS AS IDENTITY,
  stored_at bigint NOT NULL,
  line    json NOT NULL
) PARTITION BY RANGE (stored_at);

CREATE INDEX job_logs_by_job ON punctual.job_logs (job, seq);

-- One row per shard. The epoch is part of the key, so that FOR KEY SHARE by a write and a change of term
-- exclude each other while a renewal, which touches no key column, waits for neither.
CREATE TABLE punctual.leases (
  shard          int NOT NULL,
  epoch          bigint NOT NULL,
  holder         text NOT NULL,
  holder_url     text NOT NULL,
  session_pid    int,
  session_start  timestamptz,
  expires_at     timestamptz NOT NULL,
  PRIMARY KEY (shard, epoch)
) WITH (fillfactor = 50);

CREATE TABLE punctual.terms (
  shard     int NOT NULL,
  epoch     bigint NOT NULL,
  holder    text NOT NULL,
  reason    text NOT NULL,
  taken_at  bigint NOT NULL,
  PRIMARY KEY (shard, epoch)
);

CREATE TABLE punctual.nodes (
  id          text PRIMARY KEY,
  url         text NOT NULL,
  version     text NOT NULL,
  started_at  bigint NOT NULL,
  last_seen   bigint NOT NULL
);

CREATE TABLE punctual.workers (
  id             uuid PRIMARY KEY,
  tenant         text NOT NULL,
  name           text NOT NULL,
  state          text NOT NULL,
  registration   json NOT NULL,
  registered_at  bigint NOT NULL,
  last_seen      bigint NOT NULL
);

CREATE INDEX workers_by_tenant ON punctual.workers (tenant, id);

-- Count changes, appended in the transaction that they count and folded by the minute.
CREATE TABLE punctual.tallies (
  at                 bigint NOT NULL,
  tenant             text NOT NULL,
  leader_elections   bigint NOT NULL DEFAULT 0,
  jobs_submitted     bigint NOT NULL DEFAULT 0,
  jobs_assigned      bigint NOT NULL DEFAULT 0,
  jobs_completed     bigint NOT NULL DEFAULT 0,
  jobs_failed        bigint NOT NULL DEFAULT 0,
  jobs_cancelled     bigint NOT NULL DEFAULT 0,
  jobs_retried       bigint NOT NULL DEFAULT 0,
  jobs_requeued      bigint NOT NULL DEFAULT 0,
  stale_completions  bigint NOT NULL DEFAULT 0,
  stale_failures     bigint NOT NULL DEFAULT 0,
  lateness           bigint[]
);

CREATE TABLE punctual.tally_minutes (
  minute             bigint NOT NULL,
  tenant             text NOT NULL,
  leader_elections   bigint NOT NULL,
  jobs_submitted     bigint NOT NULL,
  jobs_assigned      bigint NOT NULL,
  jobs_completed     bigint NOT NULL,
  jobs_failed        bigint NOT NULL,
  jobs_cancelled     bigint NOT NULL,
  jobs_retried       bigint NOT NULL,
  jobs_requeued      bigint NOT NULL,
  stale_completions  bigint NOT NULL,
  stale_failures     bigint NOT NULL,
  lateness           bigint[] NOT NULL,
  PRIMARY KEY (minute, tenant)
);

CREATE TABLE punctual.tally_totals (
  tenant             text PRIMARY KEY,
  leader_elections   bigint NOT NULL,
  jobs_submitted     bigint NOT NULL,
  jobs_assigned      bigint NOT NULL,
  jobs_completed     bigint NOT NULL,
  jobs_failed        bigint NOT NULL,
  jobs_cancelled     bigint NOT NULL,
  jobs_retried       bigint NOT NULL,
  jobs_requeued      bigint NOT NULL,
  stale_completions  bigint NOT NULL,
  stale_failures     bigint NOT NULL,
  lateness           bigint[] NOT NULL
);

CREATE TABLE punctual.api_keys (
  id          uuid PRIMARY KEY,
  name        text NOT NULL,
  hash        bytea NOT NULL UNIQUE,
  operator    boolean NOT NULL,
  created_at  bigint NOT NULL
);

-- One row: what all nodes of a cluster share.
CREATE TABLE punctual.cluster (
  one             boolean PRIMARY KEY DEFAULT true CHECK (one),
  paused          boolean NOT NULL DEFAULT false,
  -- Signs attempt tokens and node-to-node calls, and keys the hashes of API keys.
  secret          bytea NOT NULL
);

INSERT INTO punctual.cluster (secret)
SELECT decode(string_agg(replace(gen_random_uuid()::text, '-', ''), ''), 'hex') FROM generate_series(1, 4);

-- Element-wise sum of histograms, so that lateness can be folded like any other count.
CREATE FUNCTION punctual.add_histograms(a bigint[], b bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN a IS NULL THEN b
    WHEN b IS NULL THEN a
    ELSE ARRAY(SELECT coalesce(x, 0) + coalesce(y, 0) FROM unnest(a, b) AS u(x, y))
  END
$$;

CREATE AGGREGATE punctual.sum_histograms(bigint[]) (
  SFUNC = punctual.add_histograms, STYPE = bigint[], COMBINEFUNC = punctual.add_histograms, PARALLEL = SAFE
);

-- A submission as one can look into it. Postgres cannot look into JSON that holds \u0000 or half a surrogate pair,
-- so these become U+FFFD here; what is stored keeps them.
CREATE FUNCTION punctual.readable(submission json) RETURNS json
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT regexp_replace(submission::text, '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\ufffd', 'g')::json
$$;

-- Submission inside the caller's own transaction. It only inserts into `later`, where nobody waits for it: a
-- caller's open transaction can then block nobody. The leader admits the job once it is committed.
CREATE FUNCTION punctual.submit_job(tenant text, submission json) RETURNS uuid
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
  random text := replace(gen_random_uuid()::text, '-', '');
  time text := lpad(to_hex(now_ms), 12, '0');
  job_id uuid := (time || '7' || substr(random, 14, 3) || substr(random, 17))::uuid;
BEGIN
  IF tenant !~ '^[A-Za-z0-9._:-]{1,128}$' THEN
    RAISE EXCEPTION 'punctual: % is not a tenant id', quote_literal(tenant) USING ERRCODE = '22023';
  END IF;
  IF json_typeof(submission) IS DISTINCT FROM 'object' THEN
    RAISE EXCEPTION 'punctual: the submission must be a JSON object' USING ERRCODE = '22023';
  END IF;
  -- One character more than a key may have: what is longer is refused later and must not fit the index less.
  INSERT INTO punctual.later (id, tenant, admit_at, submission, key, created_at, created_by)
  VALUES (job_id, tenant, now_ms, submission, left(punctual.readable(submission) ->> 'key', 513), now_ms,
          'transaction:' || current_user);
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted) VALUES (now_ms, submit_job.tenant, 1);
  RETURN job_id;
END $$;
