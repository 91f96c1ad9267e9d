-- add-api-key
WITH forgotten AS (
  DELETE FROM punctual.api_keys WHERE id = ANY (ARRAY(
    SELECT id FROM punctual.api_keys
    WHERE coalesce(tenant, '') = coalesce($5::text, '') AND expires_at < $12::bigint LIMIT 100))
)
INSERT INTO punctual.api_keys
  (id, name, hash, operator, tenant, scopes, queues, tasks, expires_at, created_at, created_by)
SELECT $1::uuid, $2::text, $3::bytea, $4::boolean, $5::text, $6::text[], $7::text[], $8::text[], $9::bigint,
  $10::bigint, $11::text
WHERE (SELECT count(*) FROM (
  SELECT 1 FROM punctual.api_keys WHERE coalesce(tenant, '') = coalesce($5::text, '') LIMIT 10000) k) < 10000
RETURNING id, name, operator, tenant, scopes, queues, tasks, expires_at AS "expiresAt", created_at AS "createdAt",
  created_by AS "createdBy", last_used_at AS "lastUsedAt";

-- add-artifact
INSERT INTO punctual.artifacts AS a (id, tenant, name, version, sha256, size, runnable, created_at, created_by,
  expires_at,
  used_at)
VALUES ($1::uuid, $2, $3, $4, $5, $6::bigint, $7::boolean, $8::bigint, $9, $10::bigint, $8::bigint)
RETURNING a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
  a.created_by, a.ready_at, a.expires_at, a.job, a.output;

-- add-audit-entry
INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind, subject,
  before, after, outcome)
SELECT $1::bigint, $2::uuid, $3::bigint, $4::text, $5::uuid, $6::text, $7::text, $8::text, $9::text, $10::text,
  $11::text, $12::json, $13::json, $14::text;

-- add-job-output
INSERT INTO punctual.artifacts (id, tenant, sha256, size, runnable, kind, machine, state, created_at, created_by,
  ready_at,
  expires_at, used_at, job, fence, output)
VALUES ($1::uuid, $2, $3, $4::bigint, false, $5, $6, 'ready', $7::bigint, $8, $7::bigint, $7::bigint, $7::bigint,
  $9::uuid,
  $10::int, $11);

-- add-log-lines
WITH claim AS (
  SELECT 1 FROM punctual.claims c JOIN punctual.jobs j ON j.id = c.job
  WHERE c.job = $2::uuid AND c.fence = $3::int AND j.tenant = $1
), kept AS MATERIALIZED (
  SELECT punctual.lock_log($2::uuid, $4::bigint) AS bytes FROM claim
), sized AS (
  SELECT line, n, kept.bytes + sum(octet_length(line::text)) OVER (ORDER BY n) AS bytes_after
  FROM kept CROSS JOIN unnest($7::json[]) WITH ORDINALITY u(line, n)
), added AS (
  INSERT INTO punctual.job_logs (tenant, job, fence, stored_at, line)
  SELECT $1, $2::uuid, $3::int, $6::bigint, line FROM sized WHERE bytes_after <= $5::int ORDER BY n
)
SELECT EXISTS (SELECT 1 FROM claim) AS running;

-- add-needs
INSERT INTO punctual.needs (signature, tenant, target, handler, labels, used_at)
SELECT u.signature, u.tenant, u.target, u.handler, u.labels, $6::bigint
FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[]) u(signature, tenant, target, handler,
  labels)
WHERE NOT EXISTS (SELECT 1 FROM punctual.needs n WHERE n.signature = u.signature)
ORDER BY 1
ON CONFLICT (signature) DO NOTHING;

-- add-queue-minute
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), forgotten AS (
  DELETE FROM punctual.queue_minutes m WHERE m.ctid = ANY (ARRAY(
    SELECT o.ctid FROM punctual.queue_minutes o WHERE o.minute < $5::bigint AND EXISTS (SELECT 1 FROM term)
    LIMIT 5000))
), answer AS (
  INSERT INTO punctual.queue_minutes AS m (queue, minute, ended, ready, oldest_ready_ms)
  SELECT u.queue, $4::bigint, u.ended, u.ready, u.oldest
  FROM unnest($6::int[], $7::bigint[], $8::bigint[], $9::bigint[]) u(queue, ended, ready, oldest)
  WHERE EXISTS (SELECT 1 FROM term)
  ON CONFLICT (queue, minute) DO UPDATE SET ended = m.ended + excluded.ended, ready = excluded.ready,
    oldest_ready_ms = excluded.oldest_ready_ms
  RETURNING m.queue
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- add-queues
SELECT tenant, name, quota FROM punctual.add_queues($1::text[], $2::text[], $3::bigint, $4::bigint);

-- add-sign-in-code
WITH old AS (
  DELETE FROM punctual.sign_in_codes c WHERE c.hash = ANY (ARRAY(
    SELECT o.hash FROM punctual.sign_in_codes o WHERE o.key_id = $2::uuid
    ORDER BY o.created_at DESC OFFSET 19))
), expired AS (
  DELETE FROM punctual.sign_in_codes c WHERE c.key_id = $2::uuid AND c.expires_at <= $3::bigint
)
INSERT INTO punctual.sign_in_codes (hash, key_id, created_at, expires_at)
SELECT $1::bytea, k.id, $3::bigint, $4::bigint FROM punctual.api_keys k WHERE k.id = $2::uuid
RETURNING expires_at;

-- add-signing-secret
INSERT INTO punctual.signing_secrets AS s (tenant, id, key_id, sealed, created_at) VALUES ($1, $2::uuid, $3, $4, $5)
RETURNING s.tenant, s.id, s.created_at, s.expires_at, s.key_id AS "keyId", s.sealed;

-- add-stale
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.tallies (at, tenant, stale_completions, stale_failures)
  SELECT $7::bigint, u.tenant, u.completions, u.failures
  FROM unnest($4::text[], $5::bigint[], $6::bigint[]) u(tenant, completions, failures)
  WHERE EXISTS (SELECT 1 FROM term)
  RETURNING at
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- add-steps
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), valid AS MATERIALIZED (SELECT (SELECT count(*)
    FROM unnest($15::int[], $16::text[], $17::text[]) n(id, tenant, name)
      JOIN punctual.queues q ON q.id BETWEEN n.id AND n.id AND q.tenant = n.tenant AND q.name = n.name) =
        cardinality($15::int[])
    AND (SELECT count(*) FROM unnest($18::int[], $19::bytea[]) n(id, signature)
      JOIN punctual.needs w ON w.id BETWEEN n.id AND n.id AND w.signature = n.signature) = cardinality($18::int[])
        AS named),
mine AS MATERIALIZED (
  SELECT c.job FROM punctual.claims c WHERE c.job = $4::uuid AND c.fence = $5::int AND EXISTS (SELECT 1 FROM term)
  FOR KEY SHARE
), own AS MATERIALIZED (
  SELECT 1 AS yes WHERE EXISTS (SELECT 1 FROM mine) AND (SELECT named FROM valid) AND EXISTS (SELECT 1 FROM term)
), grown AS (
  UPDATE punctual.workflows w SET steps = w.steps + $8::int, steps_left = w.steps_left + $8::int, queues =
    $9::text[],
    tasks = $10::text[], edges = $20::int, last_place = $21::int,
    -- Those that could run at once are parked like the others.
    swept = w.swept AND NOT w.held
  WHERE w.id = $6::uuid AND EXISTS (SELECT 1 FROM own)
), live AS (
  INSERT INTO punctual.jobs (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent, workflow, schedule, occurrence)
  SELECT u.id, coalesce(u.payload, $45::json), coalesce(u.size_kib, $46::int), coalesce(u.tenant, $47::text),
    coalesce(u.queue, $48::int), coalesce(u.needs, $49::int), coalesce(u.lane, $50::int), coalesce(u.rank,
    $51::smallint), coalesce(u.run_at, $52::bigint), coalesce(u.max_attempts, $53::smallint), coalesce(u.max_losses,
    $54::smallint), coalesce(u.at_most_once, $55::boolean), coalesce(u.timeout_ms, $56::bigint),
    coalesce(u.created_at, $57::bigint), coalesce(u.start_before, $58::bigint), coalesce(u.task, $59::text),
    coalesce(u.created_by, $60::text), coalesce(u.key, $61::text), coalesce(u.concurrency_key, $62::text),
    coalesce(u.target, $63::json), coalesce(u.backoff, $64::json), coalesce(u.requires, $65::json),
    coalesce(u.traceparent, $66::text), $6::uuid, (SELECT w.schedule FROM punctual.workflows w WHERE w.id =
    $6::uuid),
    (SELECT w.occurrence FROM punctual.workflows w WHERE w.id = $6::uuid) FROM unnest($22::uuid[], $23::json[],
      $24::int[], $25::text[], $26::int[], $27::int[], $28::int[], $29::smallint[], $30::bigint[], $31::smallint[],
      $32::smallint[], $33::boolean[], $34::bigint[], $35::bigint[], $36::bigint[], $37::text[], $38::text[],
      $39::text[], $40::text[], $41::json[], $42::json[], $43::json[], $44::text[]) u(id, payload, size_kib, tenant,
      queue, needs, lane, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms, created_at,
      start_before, task, created_by, key, concurrency_key, target, backoff, requires, traceparent) WHERE EXISTS
      (SELECT 1 FROM own)
), later AS (
  INSERT INTO punctual.later (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent, artifact, artifact_by, admit_at, held, blocked, workflow, schedule, occurrence)
  SELECT u.id, coalesce(u.payload, $95::json), coalesce(u.size_kib, $96::int), coalesce(u.tenant, $97::text),
    coalesce(u.queue, $98::int), coalesce(u.needs, $99::int), coalesce(u.lane, $100::int), coalesce(u.rank,
    $101::smallint), coalesce(u.run_at, $102::bigint), coalesce(u.max_attempts, $103::smallint),
    coalesce(u.max_losses, $104::smallint), coalesce(u.at_most_once, $105::boolean), coalesce(u.timeout_ms,
    $106::bigint), coalesce(u.created_at, $107::bigint), coalesce(u.start_before, $108::bigint), coalesce(u.task,
    $109::text), coalesce(u.created_by, $110::text), coalesce(u.key, $111::text), coalesce(u.concurrency_key,
    $112::text), coalesce(u.target, $113::json), coalesce(u.backoff, $114::json), coalesce(u.requires, $115::json),
    coalesce(u.traceparent, $116::text), coalesce(u.artifact, $117::uuid), coalesce(u.artifact_by, $118::bigint),
    coalesce(u.admit_at, $119::bigint), coalesce(u.held, $120::boolean), coalesce(u.blocked, $121::boolean),
    $6::uuid, (SELECT w.schedule FROM punctual.workflows w WHERE w.id = $6::uuid),
    (SELECT w.occurrence FROM punctual.workflows w WHERE w.id = $6::uuid) FROM unnest($67::uuid[], $68::json[],
      $69::int[], $70::text[], $71::int[], $72::int[], $73::int[], $74::smallint[], $75::bigint[], $76::smallint[],
      $77::smallint[], $78::boolean[], $79::bigint[], $80::bigint[], $81::bigint[], $82::text[], $83::text[],
      $84::text[], $85::text[], $86::json[], $87::json[], $88::json[], $89::text[], $90::uuid[], $91::bigint[],
      $92::bigint[], $93::boolean[], $94::boolean[]) u(id, payload, size_kib, tenant, queue, needs, lane, rank,
      run_at, max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key,
      concurrency_key, target, backoff, requires, traceparent, artifact, artifact_by, admit_at, held, blocked) WHERE
      EXISTS (SELECT 1 FROM own)
), steps AS (
  INSERT INTO punctual.steps (id, name, place, parents, run_if, delay_ms, wait, inner_graph, inner_steps, wake_at,
    refers, hold, template, parents_left, released, ok, bad, workflow, tenant, added_by)
  SELECT u.id, coalesce(u.name, $139::text), coalesce(u.place, $140::int), coalesce(u.parents, $141::int),
    coalesce(u.run_if, $142::text), coalesce(u.delay_ms, $143::bigint), coalesce(u.wait, $144::json),
    coalesce(u.inner_graph, $145::json), coalesce(u.inner_steps, $146::int), coalesce(u.wake_at, $147::bigint),
    coalesce(u.refers, $148::boolean), coalesce(u.hold, $149::boolean), coalesce(u.template, $150::json),
    coalesce(u.parents_left, $151::int), coalesce(u.released, $152::boolean), coalesce(u.ok, $153::int),
    coalesce(u.bad, $154::int), $6::uuid, $7::text, $4::uuid FROM unnest($122::uuid[], $123::text[], $124::int[],
    $125::int[], $126::text[], $127::bigint[], $128::json[], $129::json[], $130::int[], $131::bigint[],
    $132::boolean[], $133::boolean[], $134::json[], $135::int[], $136::boolean[], $137::int[], $138::int[]) u(id,
    name, place, parents, run_if, delay_ms, wait, inner_graph, inner_steps, wake_at, refers, hold, template,
    parents_left, released, ok, bad) WHERE EXISTS (SELECT 1 FROM own)
), edges AS (
  INSERT INTO punctual.edges (parent, child)
  SELECT e.parent, e.child FROM unnest($11::uuid[], $12::uuid[]) e(parent, child) WHERE EXISTS (SELECT 1 FROM own)
), joined AS (
  UPDATE punctual.steps s SET parents = s.parents + $8::int, parents_left = s.parents_left + $8::int
  WHERE s.id = ANY($13::uuid[]) AND EXISTS (SELECT 1 FROM own)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
  SELECT $14::bigint, $7::text, $8::int WHERE EXISTS (SELECT 1 FROM own)
), answer AS (SELECT named, EXISTS (SELECT 1 FROM mine) AS own FROM valid) SELECT answer.* FROM term LEFT JOIN
  answer ON true;

-- add-tenant
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.tenants (id, name, created_at, weight, rate_limit, rate_per, rate_burst, quota_live_jobs,
    quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
    quota_artifact_bytes)
  SELECT $4::text, $5::text, $6::bigint, $7::int, $8::int, $9::bigint, $10::int, $11::int, $12::int, $13::int,
    $14::int, $15::int, $16::int, $17::bigint
  WHERE EXISTS (SELECT 1 FROM term)
  ON CONFLICT (id) DO NOTHING
  RETURNING id, name, weight, rate_limit, rate_per, rate_burst, full_at, debt, created_at, quota_live_jobs,
    quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
    quota_artifact_bytes
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- add-tenant-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.tenants (id, name, created_at, weight, rate_limit, rate_per, rate_burst, quota_live_jobs,
    quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
    quota_artifact_bytes)
  SELECT $4::text, $5::text, $6::bigint, $7::int, $8::int, $9::bigint, $10::int, $11::int, $12::int, $13::int,
    $14::int, $15::int, $16::int, $17::bigint
  WHERE EXISTS (SELECT 1 FROM term)
  ON CONFLICT (id) DO NOTHING
  RETURNING id, name, weight, rate_limit, rate_per, rate_burst, full_at, debt, created_at, quota_live_jobs,
    quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
    quota_artifact_bytes
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $18::uuid, $19::bigint, $20::text, $21::uuid, $22::text, $23::text, $24::text, $25::text,
    $26::text, $27::text, $28::json, $29::json, $30::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- add-usage
WITH free AS MATERIALIZED (
  SELECT u.tenant FROM unnest($1::text[]) a(tenant)
  JOIN punctual.tenant_usage u ON u.tenant BETWEEN a.tenant AND a.tenant FOR UPDATE OF u SKIP LOCKED
), added AS (
  UPDATE punctual.tenant_usage u SET live = u.live + a.live, later = u.later + a.later
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) a(tenant, live, later)
  WHERE u.tenant BETWEEN a.tenant AND a.tenant AND a.tenant = ANY (ARRAY(SELECT f.tenant FROM free f))
) SELECT a.tenant FROM unnest($1::text[]) a(tenant)
WHERE NOT (a.tenant = ANY (ARRAY(SELECT f.tenant FROM free f)))
  AND (SELECT true FROM punctual.tenant_usage u WHERE u.tenant = a.tenant);

-- add-usage-of-one
WITH free AS MATERIALIZED (
  SELECT u.tenant FROM unnest($1::text[]) a(tenant)
  JOIN punctual.tenant_usage u ON u.tenant BETWEEN a.tenant AND a.tenant FOR UPDATE OF u
), added AS (
  UPDATE punctual.tenant_usage u SET live = u.live + a.live, later = u.later + a.later
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) a(tenant, live, later)
  WHERE u.tenant BETWEEN a.tenant AND a.tenant AND a.tenant = ANY (ARRAY(SELECT f.tenant FROM free f))
) SELECT a.tenant FROM unnest($1::text[]) a(tenant)
WHERE NOT (a.tenant = ANY (ARRAY(SELECT f.tenant FROM free f)))
  AND (SELECT true FROM punctual.tenant_usage u WHERE u.tenant = a.tenant);

-- add-worker
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.workers (id, tenant, name, state, registration, registered_at, last_seen, operator)
  SELECT $4::uuid, $5::text, $6::text, 'alive', $7::json, $8::bigint, $8::bigint, $9::boolean WHERE EXISTS (SELECT 1
    FROM term)
  RETURNING id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- add-workflow-definition
INSERT INTO punctual.workflow_definitions AS d (tenant, name, version, jobs, on_failure, running, digest, bytes,
  steps,
  queues, tasks, created_at, created_by)
VALUES ($1, $2, $3, $4::json, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING d.tenant, d.name, d.version,
  d.on_failure, d.running, d.bytes, d.steps,
  encode(d.digest, 'hex') AS digest, d.queues, d.tasks, d.created_at,
  d.created_by, d.replaced_at;

-- add-workflow-event
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), added AS (
  INSERT INTO punctual.workflow_events (workflow, name, payload, created_at)
  SELECT $4::uuid, $5::text, $6::json, $7::bigint WHERE EXISTS (SELECT 1 FROM term)
  ON CONFLICT (workflow, name) DO NOTHING
  RETURNING workflow
), answer AS (SELECT EXISTS (SELECT 1 FROM added) AS first) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- admit-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), taken AS (
  DELETE FROM punctual.later l
  USING unnest($4::uuid[], $5::bigint[], $6::smallint[], $7::json[]) u(id, run_at, rank, payload)
  WHERE l.id BETWEEN u.id AND u.id AND l.submission IS NULL AND NOT l.blocked AND EXISTS (SELECT 1 FROM term)
  RETURNING l.*, u.run_at AS new_run_at, u.rank AS new_rank, u.payload AS new_payload
), answer AS (
  INSERT INTO punctual.jobs (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
    target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence, workflow, batch,
    size_kib, edited)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, coalesce(m.new_rank, m.rank) AS rank, coalesce(m.new_run_at,
    m.run_at) AS run_at, m.attempts, m.failures, m.losses, m.max_attempts, m.max_losses, m.at_most_once,
    m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task, m.created_by, m.key, m.concurrency_key, m.target,
    m.backoff, m.requires, m.traceparent, coalesce(m.new_payload, m.payload) AS payload, m.earlier_attempts,
    m.schedule, m.occurrence, m.workflow, m.batch, coalesce((octet_length((m.new_payload)::text) +
    coalesce(octet_length(m.target::text), 0)) >> 10, m.size_kib) AS size_kib, true AS edited
  FROM taken m
  RETURNING jobs.id, jobs.tenant, jobs.queue, jobs.needs, jobs.lane, jobs.rank, jobs.run_at AS "runAt",
    jobs.start_before AS "startBefore", jobs.concurrency_key AS "key",
    jobs.attempts + 1 AS fence, jobs.size_kib AS "sizeKib"
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- admit-jobs-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), taken AS (
  DELETE FROM punctual.later l
  USING unnest($4::uuid[], $5::bigint[], $6::smallint[], $7::json[]) u(id, run_at, rank, payload)
  WHERE l.id BETWEEN u.id AND u.id AND l.submission IS NULL AND NOT l.blocked AND EXISTS (SELECT 1 FROM term)
  RETURNING l.*, u.run_at AS new_run_at, u.rank AS new_rank, u.payload AS new_payload
), answer AS (
  INSERT INTO punctual.jobs (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
    target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence, workflow, batch,
    size_kib, edited)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, coalesce(m.new_rank, m.rank) AS rank, coalesce(m.new_run_at,
    m.run_at) AS run_at, m.attempts, m.failures, m.losses, m.max_attempts, m.max_losses, m.at_most_once,
    m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task, m.created_by, m.key, m.concurrency_key, m.target,
    m.backoff, m.requires, m.traceparent, coalesce(m.new_payload, m.payload) AS payload, m.earlier_attempts,
    m.schedule, m.occurrence, m.workflow, m.batch, coalesce((octet_length((m.new_payload)::text) +
    coalesce(octet_length(m.target::text), 0)) >> 10, m.size_kib) AS size_kib, true AS edited
  FROM taken m
  RETURNING jobs.id, jobs.tenant, jobs.queue, jobs.needs, jobs.lane, jobs.rank, jobs.run_at AS "runAt",
    jobs.start_before AS "startBefore", jobs.concurrency_key AS "key",
    jobs.attempts + 1 AS fence, jobs.size_kib AS "sizeKib"
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $8::uuid, $9::bigint, $10::text, $11::uuid, $12::text, $13::text, $14::text, $15::text,
    $16::text, $17::text, $18::json, $19::json, $20::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- announce-artifact-again
UPDATE punctual.artifacts a SET sha256 = $2, size = $3::bigint, runnable = $4::boolean,
  expires_at = greatest(a.expires_at, $5::bigint), used_at = $6::bigint, created_by = $7
WHERE a.id = $1::uuid AND a.state = 'pending'
RETURNING a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
  a.created_by, a.ready_at, a.expires_at, a.job, a.output;

-- apply-portion
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), counted_out AS (
  DELETE FROM punctual.outbox o WHERE o.job = ANY($4::uuid[]) AND EXISTS (SELECT 1 FROM term) RETURNING 1
), passed_on AS (
  UPDATE punctual.outbox o SET place = $6::uuid WHERE o.job = ANY($5::uuid[]) AND EXISTS (SELECT 1 FROM term)
    RETURNING 1
), own AS MATERIALIZED (
  -- Divides by zero unless all of them were there.
  SELECT 1 / (
    (SELECT count(*) FROM counted_out) + (SELECT count(*) FROM passed_on) = cardinality($4::uuid[] || $5::uuid[])
  )::int AS yes
  WHERE EXISTS (SELECT 1 FROM term)
), changed_alike AS (
  UPDATE punctual.steps s SET
    parents_left = coalesce($28::int, s.parents_left), ok = coalesce($29::int, s.ok), bad = coalesce($30::int,
      s.bad), released = coalesce($31::boolean, s.released), outcome = coalesce($32::text, s.outcome), finished_at =
      coalesce($33::bigint, s.finished_at), parked = coalesce($35::boolean, s.parked),
    wake_at = CASE WHEN $32::text IS NOT NULL THEN NULL WHEN $31::boolean THEN $34::bigint ELSE s.wake_at END
  WHERE s.id = ANY($27::uuid[]) AND EXISTS (SELECT 1 FROM own)
), changed AS (
  UPDATE punctual.steps s SET
    parents_left = coalesce(coalesce(u.parents_left, $45::int), s.parents_left), ok = coalesce(coalesce(u.ok,
      $46::int), s.ok), bad = coalesce(coalesce(u.bad, $47::int), s.bad), released = coalesce(coalesce(u.released,
      $48::boolean), s.released), outcome = coalesce(coalesce(u.outcome, $49::text), s.outcome), finished_at =
      coalesce(coalesce(u.finished_at, $50::bigint), s.finished_at), parked = coalesce(coalesce(u.parked,
      $52::boolean), s.parked),
    wake_at = CASE WHEN coalesce(u.outcome, $49::text) IS NOT NULL THEN NULL WHEN coalesce(u.released, $48::boolean)
      THEN coalesce(u.wake_at, $51::bigint) ELSE s.wake_at END
  FROM unnest($36::uuid[], $37::int[], $38::int[], $39::int[], $40::boolean[], $41::text[], $42::bigint[],
    $43::bigint[], $44::boolean[]) u(id, parents_left, ok, bad, released, outcome, finished_at, wake_at, parked)
  WHERE s.id BETWEEN u.id AND u.id AND EXISTS (SELECT 1 FROM own)
), advanced AS (
  UPDATE punctual.workflows w SET
    steps_left = w.steps_left - u.ended, failed = w.failed + u.failed,
    stopping = coalesce(w.stopping, u.stopping), swept = w.swept AND u.stopping IS NULL,
    state = CASE WHEN w.steps_left > u.ended THEN w.state WHEN w.stopping = 'cancel' THEN 'cancelled'
      WHEN w.failed + u.failed > 0 THEN 'failed' ELSE 'succeeded' END,
    held = w.held AND w.steps_left > u.ended,
    ended_at = CASE WHEN w.steps_left > u.ended THEN w.ended_at ELSE $7::bigint END
  FROM unnest($10::uuid[], $11::int[], $12::int[], $13::text[]) u(id, ended, failed, stopping)
  WHERE w.id BETWEEN u.id AND u.id AND EXISTS (SELECT 1 FROM own)
  RETURNING w.id, w.tenant, w.name, w.state, w.created_at, w.failed, w.ended_at IS NOT NULL AS is_over
), freed AS (
  DELETE FROM punctual.later l
  WHERE l.id = ANY($18::uuid[]) AND l.blocked AND NOT (l.held OR (CASE WHEN ($26::boolean[]) IS NULL THEN
    $25::boolean ELSE ($26::boolean[])[width_bucket(l.id, $18::uuid[])] END OR l.artifact IS NOT NULL) OR
    greatest(l.run_at, CASE WHEN ($20::bigint[]) IS NULL THEN $19::bigint ELSE
    nullif(($20::bigint[])[width_bucket(l.id, $18::uuid[])], -1) END) > $9::bigint) AND EXISTS (SELECT 1 FROM own)
  RETURNING l.*, greatest(l.run_at, CASE WHEN ($20::bigint[]) IS NULL THEN $19::bigint ELSE
    nullif(($20::bigint[])[width_bucket(l.id, $18::uuid[])], -1) END) AS new_run_at, CASE WHEN $22::bytea IS NULL
    THEN $21::json ELSE convert_from(substring($22::bytea FROM ($23::int[])[width_bucket(l.id, $18::uuid[])] FOR
    nullif(($24::int[])[width_bucket(l.id, $18::uuid[])], 0)), 'UTF8')::json END AS new_payload
), postponed AS (
  UPDATE punctual.later l SET
    blocked = (CASE WHEN ($26::boolean[]) IS NULL THEN $25::boolean ELSE ($26::boolean[])[width_bucket(l.id,
      $18::uuid[])] END OR l.artifact IS NOT NULL), run_at = greatest(l.run_at, CASE WHEN ($20::bigint[]) IS NULL
      THEN $19::bigint ELSE nullif(($20::bigint[])[width_bucket(l.id, $18::uuid[])], -1) END),
    admit_at = CASE WHEN (CASE WHEN ($26::boolean[]) IS NULL THEN $25::boolean ELSE
      ($26::boolean[])[width_bucket(l.id, $18::uuid[])] END OR l.artifact IS NOT NULL) THEN l.admit_at ELSE
      greatest(greatest(l.run_at, CASE WHEN ($20::bigint[]) IS NULL THEN $19::bigint ELSE
      nullif(($20::bigint[])[width_bucket(l.id, $18::uuid[])], -1) END) - $8::bigint, $7::bigint) END,
    payload = coalesce(CASE WHEN $22::bytea IS NULL THEN $21::json ELSE convert_from(substring($22::bytea FROM
      ($23::int[])[width_bucket(l.id, $18::uuid[])] FOR nullif(($24::int[])[width_bucket(l.id, $18::uuid[])], 0)),
      'UTF8')::json END, l.payload),
    size_kib = coalesce((octet_length((CASE WHEN $22::bytea IS NULL THEN $21::json ELSE
      convert_from(substring($22::bytea FROM ($23::int[])[width_bucket(l.id, $18::uuid[])] FOR
      nullif(($24::int[])[width_bucket(l.id, $18::uuid[])], 0)), 'UTF8')::json END)::text) +
      coalesce(octet_length(l.target::text), 0)) >> 10, l.size_kib)
  WHERE l.id = ANY($18::uuid[]) AND l.blocked AND (l.held OR (CASE WHEN ($26::boolean[]) IS NULL THEN $25::boolean
    ELSE ($26::boolean[])[width_bucket(l.id, $18::uuid[])] END OR l.artifact IS NOT NULL) OR greatest(l.run_at, CASE
    WHEN ($20::bigint[]) IS NULL THEN $19::bigint ELSE nullif(($20::bigint[])[width_bucket(l.id, $18::uuid[])], -1)
    END) > $9::bigint) AND EXISTS (SELECT 1 FROM own)
    AND (SELECT count(*) FROM freed) < cardinality($18::uuid[])
  RETURNING l.id
), live AS (
  INSERT INTO punctual.jobs (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
    target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence, workflow, batch,
    size_kib)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.new_run_at AS run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, coalesce(m.new_payload,
    m.payload) AS payload, m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch,
    coalesce((octet_length((m.new_payload)::text) + coalesce(octet_length(m.target::text), 0)) >> 10, m.size_kib) AS
    size_kib
  FROM freed m
  RETURNING jobs.id, jobs.payload, jobs.tenant, jobs.queue, jobs.needs, jobs.lane, jobs.rank, jobs.run_at,
    jobs.max_attempts, jobs.max_losses, jobs.at_most_once, jobs.timeout_ms, jobs.created_at, jobs.start_before,
    jobs.task, jobs.created_by, jobs.key, jobs.concurrency_key, jobs.target, jobs.backoff, jobs.requires,
    jobs.traceparent, jobs.attempts, jobs.size_kib, jobs.schedule, jobs.workflow
), gone AS (
  DELETE FROM punctual.later l
  USING unnest($14::uuid[], $15::text[], $16::json[], $17::json[]) u(id, ended_as, ended_why, ended_with)
  WHERE l.id BETWEEN u.id AND u.id AND l.blocked AND EXISTS (SELECT 1 FROM own)
  RETURNING l.*, u.ended_as, u.ended_why, u.ended_with
), ended AS (
  INSERT INTO punctual.job_history (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, finished_at, state, result, error)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, $7::bigint AS finished_at, m.ended_as AS
    state, m.ended_with AS result, m.ended_why AS error
  FROM gone m
  RETURNING id, tenant, state, schedule, workflow
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled, steps_skipped)
  SELECT $7::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'),
    count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled'), nullif(count(*) FILTER
      (WHERE state = 'skipped' AND workflow IS NOT NULL), 0)
  FROM ended GROUP BY tenant
), left_over AS (
  INSERT INTO punctual.outbox (job, workflow, state, finished_at)
  SELECT id, workflow, state, $7::bigint FROM ended WHERE workflow IS NOT NULL
  RETURNING job, workflow, state
), ended_workflows AS (
  INSERT INTO punctual.tallies (at, tenant, workflows_succeeded, workflows_failed, workflows_cancelled)
  SELECT $7::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'), count(*) FILTER (WHERE state = 'failed'),
    count(*) FILTER (WHERE state = 'cancelled')
  FROM advanced WHERE is_over GROUP BY tenant
), answer AS (
  SELECT EXISTS (SELECT 1 FROM own) AS own,
    (SELECT json_agg(g) FROM (
      SELECT string_agg(l.id::text, ' ') AS ids,
        CASE WHEN l.attempts = 0 AND l.size_kib = 0 THEN json_agg(l.payload::text) END AS payloads,
        l.tenant AS tenant, l.queue AS queue, l.needs AS needs, l.lane AS lane, l.rank AS rank, l.run_at AS run_at,
          l.max_attempts AS max_attempts, l.max_losses AS max_losses, l.at_most_once AS at_most_once, l.timeout_ms
          AS timeout_ms, l.created_at AS created_at, l.start_before AS start_before, l.task AS task, l.created_by AS
          created_by, l.key AS key, l.concurrency_key AS concurrency_key, l.target::text AS target, l.backoff::text
          AS backoff, l.requires::text AS requires, l.traceparent AS traceparent, l.attempts AS attempts, l.size_kib
          AS size_kib, l.schedule AS schedule, l.workflow AS workflow
      FROM live l GROUP BY l.tenant, l.queue, l.needs, l.lane, l.rank, l.run_at, l.max_attempts, l.max_losses,
        l.at_most_once, l.timeout_ms, l.created_at, l.start_before, l.task, l.created_by, l.key, l.concurrency_key,
        l.target::text, l.backoff::text, l.requires::text, l.traceparent, l.attempts, l.size_kib, l.schedule,
        l.workflow) g) AS live,
    (SELECT count(*) FROM postponed) AS postponed,
    (SELECT json_agg(json_build_array(job, workflow, state)) FROM left_over) AS steps,
    (SELECT json_agg(json_build_object('id', a.id, 'tenant', a.tenant, 'name', a.name, 'state', a.state,
      'createdAt', a.created_at, 'failed', a.failed)) FROM advanced a WHERE a.is_over) AS over
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- are-bytes-needed
SELECT 1 AS needed FROM punctual.artifacts a WHERE a.sha256 = $1 AND a.state = 'ready' LIMIT 1;

-- await-usage
SELECT u.tenant FROM punctual.tenant_usage u WHERE u.tenant = $1::text FOR UPDATE;

-- begin-audit-entry
WITH term AS (SELECT 1 AS held FROM punctual.leases
WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (INSERT INTO punctual.audit (epoch, id,
  at, tenant, key_id, key_name, address, request_id, action, kind, subject, before, after, outcome)
SELECT $2::bigint, $4::uuid, $5::bigint, $6::text, $7::uuid, $8::text, $9::text, $10::text, $11::text, $12::text,
  $13::text, $14::json, $15::json, $16::text WHERE EXISTS (SELECT 1 FROM term) RETURNING id) SELECT answer.* FROM
  term LEFT JOIN answer ON true;

-- cancel-batch
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.batches b SET cancelled_at = coalesce(b.cancelled_at, $5::bigint)
  WHERE b.id = $4::uuid AND b.ended_at IS NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING b.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- cancel-claims
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.claims c SET cancelled_at = coalesce(c.cancelled_at, $6::bigint)
  FROM unnest($4::uuid[], $5::int[]) u(job, fence)
  WHERE c.job BETWEEN u.job AND u.job AND c.fence = u.fence AND EXISTS (SELECT 1 FROM term)
  RETURNING c.job
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- cancel-claims-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.claims c SET cancelled_at = coalesce(c.cancelled_at, $6::bigint)
  FROM unnest($4::uuid[], $5::int[]) u(job, fence)
  WHERE c.job BETWEEN u.job AND u.job AND c.fence = u.fence AND EXISTS (SELECT 1 FROM term)
  RETURNING c.job
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $7::uuid, $8::bigint, $9::text, $10::uuid, $11::text, $12::text, $13::text, $14::text,
    $15::text, $16::text, $17::json, $18::json, $19::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- cancel-workflow
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.workflows w SET stopping = 'cancel', swept = false
  WHERE w.id = $5::uuid AND w.tenant = $4::text AND w.state = 'running' AND EXISTS (SELECT 1 FROM term)
  RETURNING w.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- cancel-workflow-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.workflows w SET stopping = 'cancel', swept = false
  WHERE w.id = $5::uuid AND w.tenant = $4::text AND w.state = 'running' AND EXISTS (SELECT 1 FROM term)
  RETURNING w.id
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $6::uuid, $7::bigint, $8::text, $9::uuid, $10::text, $11::text, $12::text, $13::text,
    $14::text, $15::text, $16::json, $17::json, $18::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- chain-audit-entries
UPDATE punctual.audit a SET
  sequence = u.sequence, previous = decode(u.previous, 'hex'), hash = decode(u.hash, 'hex')
FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[]) u(id, outcome, sequence, previous, hash)
WHERE a.id BETWEEN u.id AND u.id AND a.sequence IS NULL AND a.outcome = u.outcome
RETURNING a.id;

-- change-later
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.later l SET
    run_at = coalesce(u.run_at, l.run_at),
    -- A job waits for its artifact as long after it is due as before.
    artifact_by = l.artifact_by + coalesce(u.run_at - l.run_at, 0),
    rank = coalesce(u.rank, l.rank),
    payload = coalesce(u.payload, l.payload),
    size_kib = coalesce((octet_length((u.payload)::text) + coalesce(octet_length(l.target::text), 0)) >> 10,
      l.size_kib),
    admit_at = CASE WHEN l.blocked THEN l.admit_at ELSE coalesce(u.admit_at, u.run_at, l.run_at) END,
    held = u.held
  FROM unnest($4::uuid[], $5::bigint[], $6::smallint[], $7::json[], $8::bigint[], $9::boolean[])
    u(id, run_at, rank, payload, admit_at, held)
  WHERE l.id BETWEEN u.id AND u.id AND l.submission IS NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING l.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- change-later-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.later l SET
    run_at = coalesce(u.run_at, l.run_at),
    -- A job waits for its artifact as long after it is due as before.
    artifact_by = l.artifact_by + coalesce(u.run_at - l.run_at, 0),
    rank = coalesce(u.rank, l.rank),
    payload = coalesce(u.payload, l.payload),
    size_kib = coalesce((octet_length((u.payload)::text) + coalesce(octet_length(l.target::text), 0)) >> 10,
      l.size_kib),
    admit_at = CASE WHEN l.blocked THEN l.admit_at ELSE coalesce(u.admit_at, u.run_at, l.run_at) END,
    held = u.held
  FROM unnest($4::uuid[], $5::bigint[], $6::smallint[], $7::json[], $8::bigint[], $9::boolean[])
    u(id, run_at, rank, payload, admit_at, held)
  WHERE l.id BETWEEN u.id AND u.id AND l.submission IS NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING l.id
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $10::uuid, $11::bigint, $12::text, $13::uuid, $14::text, $15::text, $16::text, $17::text,
    $18::text, $19::text, $20::json, $21::json, $22::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- change-live
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.jobs j SET
    run_at = coalesce($5::bigint, j.run_at),
    rank = coalesce($6::smallint, j.rank),
    payload = coalesce($7::json, j.payload),
    size_kib = coalesce((octet_length(($7::json)::text) + coalesce(octet_length(j.target::text), 0)) >> 10,
      j.size_kib),
    edited = true
  WHERE j.id = $4::uuid AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL AND EXISTS (SELECT 1
    FROM term)
  RETURNING j.id, j.tenant, j.queue, j.needs, j.lane, j.rank, j.run_at AS "runAt", j.start_before AS "startBefore",
    j.concurrency_key AS "key",
    j.attempts + 1 AS fence, j.size_kib AS "sizeKib"
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- change-live-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.jobs j SET
    run_at = coalesce($5::bigint, j.run_at),
    rank = coalesce($6::smallint, j.rank),
    payload = coalesce($7::json, j.payload),
    size_kib = coalesce((octet_length(($7::json)::text) + coalesce(octet_length(j.target::text), 0)) >> 10,
      j.size_kib),
    edited = true
  WHERE j.id = $4::uuid AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL AND EXISTS (SELECT 1
    FROM term)
  RETURNING j.id, j.tenant, j.queue, j.needs, j.lane, j.rank, j.run_at AS "runAt", j.start_before AS "startBefore",
    j.concurrency_key AS "key",
    j.attempts + 1 AS fence, j.size_kib AS "sizeKib"
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $8::uuid, $9::bigint, $10::text, $11::uuid, $12::text, $13::text, $14::text, $15::text,
    $16::text, $17::text, $18::json, $19::json, $20::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- change-tenant
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.tenants SET name = $5::text, weight = $6::int, rate_limit = $7::int, rate_per = $8::bigint,
    rate_burst = $9::int,
    (quota_live_jobs, quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second,
      quota_payload_bytes, quota_artifact_bytes) = ROW($10::int, $11::int, $12::int, $13::int, $14::int, $15::int,
      $16::bigint)
  WHERE id = $4::text AND EXISTS (SELECT 1 FROM term)
  RETURNING id, name, weight, rate_limit, rate_per, rate_burst, full_at, debt, created_at, quota_live_jobs,
    quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
    quota_artifact_bytes
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- change-tenant-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.tenants SET name = $5::text, weight = $6::int, rate_limit = $7::int, rate_per = $8::bigint,
    rate_burst = $9::int,
    (quota_live_jobs, quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second,
      quota_payload_bytes, quota_artifact_bytes) = ROW($10::int, $11::int, $12::int, $13::int, $14::int, $15::int,
      $16::bigint)
  WHERE id = $4::text AND EXISTS (SELECT 1 FROM term)
  RETURNING id, name, weight, rate_limit, rate_per, rate_burst, full_at, debt, created_at, quota_live_jobs,
    quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
    quota_artifact_bytes
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $17::uuid, $18::bigint, $19::text, $20::uuid, $21::text, $22::text, $23::text, $24::text,
    $25::text, $26::text, $27::json, $28::json, $29::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- claim-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), chosen AS (
    SELECT j.id, CASE WHEN ($11::int[]) IS NULL THEN $10::int ELSE nullif(($11::int[])[width_bucket(j.id,
      $9::uuid[])], -1) END AS fence, CASE WHEN ($13::uuid[]) IS NULL THEN $12::uuid ELSE
      ($13::uuid[])[width_bucket(j.id, $9::uuid[])] END AS worker, j.tenant, j.task, j.timeout_ms, j.failures,
      j.losses, j.max_attempts, j.max_losses, j.at_most_once, j.backoff, j.run_at, j.late_by, j.schedule,
      j.workflow, j.batch, j.payload, j.target, j.traceparent
    FROM punctual.jobs j
    WHERE j.id = ANY($9::uuid[]) AND j.attempts + 1 = CASE WHEN ($11::int[]) IS NULL THEN $10::int ELSE
      nullif(($11::int[])[width_bucket(j.id, $9::uuid[])], -1) END AND j.run_at + 0 <= $4 AND EXISTS (SELECT 1 FROM
      term) AND (j.workflow IS NULL OR (SELECT w.held FROM punctual.workflows w WHERE w.id = j.workflow) IS NOT
      TRUE)
  ), claimed AS (
    INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
    SELECT id, fence, worker, $2, $4 FROM chosen
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_assigned, lateness, lateness_ms) 
SELECT $4, c.tenant, c.jobs,
  CASE WHEN c.jobs = l.jobs THEN l.lateness::bigint[] ELSE ARRAY(
    SELECT count(f.id) FROM generate_series(0, 25) b LEFT JOIN chosen f
      ON f.tenant = c.tenant AND f.fence = 1 AND width_bucket(greatest(0, $4 - f.run_at),
        '{1,2,3,5,7,10,15,20,30,50,75,100,150,200,300,500,750,1000,2000,5000,10000,30000,60000,300000,3600000}'::bigint[])
        = b
    GROUP BY b ORDER BY b) END,
  CASE WHEN c.jobs = l.jobs THEN l.lateness_ms ELSE (
    SELECT coalesce(sum(greatest(0, $4 - f.run_at)), 0) FROM chosen f WHERE f.tenant = c.tenant AND f.fence = 1) END
FROM (SELECT tenant, count(*) AS jobs FROM chosen GROUP BY tenant) c
LEFT JOIN unnest($5::text[], $6::text[], $7::bigint[], $8::bigint[]) l(tenant, lateness, jobs, lateness_ms)
  ON l.tenant = c.tenant
  ), answer AS (SELECT c.id, c.task, c.timeout_ms AS "timeoutMs", c.failures, c.losses, c.max_attempts AS
    "maxAttempts", c.max_losses AS "maxLosses", c.at_most_once AS "atMostOnce", c.backoff, c.run_at AS "runAt",
    c.late_by AS "lateBy", c.schedule, c.workflow, c.batch, c.payload, c.target, c.traceparent FROM chosen c) SELECT
    answer.* FROM term LEFT JOIN answer ON true;

-- claim-known-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), going AS MATERIALIZED (
    SELECT ARRAY(
      SELECT u.id FROM unnest($14::uuid[]) u(id)
      WHERE (SELECT w.held FROM punctual.workflows w WHERE w.id = u.id) IS NOT TRUE ORDER BY u.id) AS ids
  ), chosen AS (
    SELECT j.id, CASE WHEN ($11::int[]) IS NULL THEN $10::int ELSE nullif(($11::int[])[width_bucket(j.id,
      $9::uuid[])], -1) END AS fence, CASE WHEN ($13::uuid[]) IS NULL THEN $12::uuid ELSE
      ($13::uuid[])[width_bucket(j.id, $9::uuid[])] END AS worker, j.tenant, j.run_at
    FROM punctual.jobs j
    WHERE j.id = ANY($9::uuid[]) AND j.attempts + 1 = CASE WHEN ($11::int[]) IS NULL THEN $10::int ELSE
      nullif(($11::int[])[width_bucket(j.id, $9::uuid[])], -1) END AND j.run_at + 0 <= $4 AND EXISTS (SELECT 1 FROM
      term) AND NOT j.edited AND (j.workflow IS NULL OR (SELECT ids FROM going)[width_bucket(j.workflow, (SELECT ids
      FROM going))] = j.workflow)
  ), claimed AS (
    INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
    SELECT id, fence, worker, $2, $4 FROM chosen
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_assigned, lateness, lateness_ms) 
SELECT $4, c.tenant, c.jobs,
  CASE WHEN c.jobs = l.jobs THEN l.lateness::bigint[] ELSE ARRAY(
    SELECT count(f.id) FROM generate_series(0, 25) b LEFT JOIN chosen f
      ON f.tenant = c.tenant AND f.fence = 1 AND width_bucket(greatest(0, $4 - f.run_at),
        '{1,2,3,5,7,10,15,20,30,50,75,100,150,200,300,500,750,1000,2000,5000,10000,30000,60000,300000,3600000}'::bigint[])
        = b
    GROUP BY b ORDER BY b) END,
  CASE WHEN c.jobs = l.jobs THEN l.lateness_ms ELSE (
    SELECT coalesce(sum(greatest(0, $4 - f.run_at)), 0) FROM chosen f WHERE f.tenant = c.tenant AND f.fence = 1) END
FROM (SELECT tenant, count(*) AS jobs FROM chosen GROUP BY tenant) c
LEFT JOIN unnest($5::text[], $6::text[], $7::bigint[], $8::bigint[]) l(tenant, lateness, jobs, lateness_ms)
  ON l.tenant = c.tenant
  ), answer AS (SELECT count(*) AS changed, CASE WHEN count(*) < cardinality($9::uuid[]) THEN ARRAY(SELECT id FROM
    chosen) END AS ids FROM chosen) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- count-all-later
SELECT count(*) AS jobs, count(*) FILTER (WHERE l.blocked) AS blocked, count(*) FILTER (WHERE l.held AND NOT
  l.blocked) AS held
FROM (SELECT l.held, l.blocked FROM punctual.later l  ORDER BY l.id DESC LIMIT 10000 + 1) l;

-- count-figures-beside
SELECT coalesce(sum(s.parents), 0) AS edges, coalesce(max(s.place), 0) AS "lastPlace"
FROM punctual.steps s WHERE s.workflow = $1::uuid;

-- count-label-sets
SELECT u.tenant, (
  SELECT count(*) FROM (
    SELECT 1 FROM punctual.needs n WHERE n.tenant = u.tenant AND n.labels <> '' LIMIT $2) sets) AS sets
FROM unnest($1::text[]) u(tenant);

-- count-later-by-minute
WITH examined AS MATERIALIZED (
  SELECT l.admit_at, coalesce(l.run_at, l.admit_at) AS run_at, l.tenant FROM punctual.later l
  WHERE NOT l.held AND NOT l.blocked AND l.admit_at >= $2::bigint AND l.admit_at < $3::bigint
  ORDER BY l.admit_at OFFSET $4::int LIMIT 10000
), reached AS (
  SELECT count(*) AS examined, max(admit_at) AS last FROM examined
)
SELECT r.examined, r.last, (SELECT count(*) FROM examined e WHERE e.admit_at = r.last) AS ties, c.minute, c.count
FROM reached r LEFT JOIN (
  SELECT e.run_at / 60000 AS minute, count(*) AS count FROM examined e
  WHERE $1::text IS NULL OR e.tenant = $1 GROUP BY 1) c ON true;

-- count-later-of-tenant
SELECT count(*) AS jobs, count(*) FILTER (WHERE l.blocked) AS blocked, count(*) FILTER (WHERE l.held AND NOT
  l.blocked) AS held
FROM (SELECT l.held, l.blocked FROM punctual.later l WHERE l.tenant = $1 ORDER BY l.id DESC LIMIT 10000 + 1) l;

-- count-origins
SELECT u.tenant, (
  SELECT count(*) FROM (
    SELECT 1 FROM punctual.needs n
    WHERE n.tenant = u.tenant AND n.target = 'http' AND n.handler NOT LIKE 'bucket:%' LIMIT $2) own) AS origins
FROM unnest($1::text[]) u(tenant);

-- count-schedules
SELECT count(*) AS schedules FROM (
SELECT 1 FROM punctual.schedules s WHERE s.tenant = $1::text AND s.deleted_at IS NULL LIMIT $2::bigint) counted;

-- count-secrets-by-key
WITH RECURSIVE ids AS (
  (SELECT s.key_id FROM punctual.secrets s ORDER BY s.key_id LIMIT 1)
  UNION ALL
  SELECT (SELECT s.key_id FROM punctual.secrets s WHERE s.key_id > i.key_id ORDER BY s.key_id LIMIT 1)
  FROM ids i WHERE i.key_id IS NOT NULL
)
SELECT i.key_id AS "keyId", (
    SELECT count(*) FROM (SELECT FROM punctual.secrets s WHERE s.key_id = i.key_id LIMIT 10000) c) AS values
FROM ids i WHERE i.key_id IS NOT NULL LIMIT 100;

-- count-signing-secrets-by-key
WITH RECURSIVE ids AS (
  (SELECT s.key_id FROM punctual.signing_secrets s ORDER BY s.key_id LIMIT 1)
  UNION ALL
  SELECT (SELECT s.key_id FROM punctual.signing_secrets s WHERE s.key_id > i.key_id ORDER BY s.key_id LIMIT 1)
  FROM ids i WHERE i.key_id IS NOT NULL
)
SELECT i.key_id AS "keyId", (
    SELECT count(*) FROM (SELECT FROM punctual.signing_secrets s WHERE s.key_id = i.key_id LIMIT 10000) c) AS values
FROM ids i WHERE i.key_id IS NOT NULL LIMIT 100;

-- count-task-change
UPDATE punctual.task_changes SET version = version + 1 WHERE id = 1 RETURNING version;

-- count-terms
SELECT count(*)::int AS terms FROM punctual.terms WHERE shard = $1;

-- count-usage
UPDATE punctual.tenant_usage u SET
  live = (SELECT count(*) FROM (
    SELECT 1 FROM punctual.queues q JOIN punctual.jobs j ON j.queue = q.id
    WHERE q.tenant = $1::text LIMIT $2::bigint + 1) l),
  later = (SELECT count(*) FROM (
    SELECT 1 FROM punctual.later l WHERE l.tenant = $1::text LIMIT $3::bigint + 1) l),
  counted_at = $4::bigint,
  count_ms = floor(extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)
WHERE u.tenant = $1::text
RETURNING u.live, u.later;

-- count-workflow-definitions
SELECT count(*) AS versions, coalesce(sum(d.bytes), 0)::bigint AS bytes,
  bool_or(d.name = $2 AND d.replaced_at IS NULL AND d.digest = $3::bytea) AS same,
  (SELECT count(*) FROM punctual.definition_numbers n WHERE n.tenant = $1) AS names
FROM punctual.workflow_definitions d WHERE d.tenant = $1;

-- counted-tenants
SELECT tenant FROM punctual.tenant_usage;

-- create-schedule
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.schedules (id, tenant, name, definition, paused, watermark, fire_at, created_at, created_by,
    changed_at, changed_by, managed_by)
  SELECT $4::uuid, $5::text, $6::text, $7::json, $8::boolean, $9::bigint, $10::bigint, $9, $11::text, $9, $11,
    $12::text
  WHERE EXISTS (SELECT 1 FROM term)
  ON CONFLICT (tenant, name) WHERE deleted_at IS NULL DO NOTHING
  RETURNING id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- create-schedule-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.schedules (id, tenant, name, definition, paused, watermark, fire_at, created_at, created_by,
    changed_at, changed_by, managed_by)
  SELECT $4::uuid, $5::text, $6::text, $7::json, $8::boolean, $9::bigint, $10::bigint, $9, $11::text, $9, $11,
    $12::text
  WHERE EXISTS (SELECT 1 FROM term)
  ON CONFLICT (tenant, name) WHERE deleted_at IS NULL DO NOTHING
  RETURNING id
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $13::uuid, $14::bigint, $15::text, $16::uuid, $17::text, $18::text, $19::text, $20::text,
    $21::text, $22::text, $23::json, $24::json, $25::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- database-time
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now;

-- definitions-with-artifacts
SELECT * FROM (
  (SELECT 'task' AS kind, t.name, t.definition::text AS text FROM punctual.tasks t
   WHERE t.tenant = $1 AND strpos(t.definition::text, '"artifact"') > 0 AND (strpos(t.definition::text, $5) > 0 OR
     strpos(t.definition::text, $6) > 0) AND ('task' > $2 OR ('task' = $2 AND t.name > $3)) ORDER BY t.name LIMIT
     $4)
  UNION ALL
  (SELECT 'schedule', s.name, s.definition::text FROM punctual.schedules s
   WHERE s.tenant = $1 AND s.deleted_at IS NULL AND strpos(s.definition::text, '"artifact"') > 0 AND
     (strpos(s.definition::text, $5) > 0 OR strpos(s.definition::text, $6) > 0)
     AND ('schedule' > $2 OR ('schedule' = $2 AND s.name > $3)) ORDER BY s.name LIMIT $4)
  UNION ALL
  (SELECT 'definition', d.name, d.jobs::text FROM punctual.workflow_definitions d
   WHERE d.tenant = $1 AND d.replaced_at IS NULL AND strpos(d.jobs::text, '"artifact"') > 0 AND
     (strpos(d.jobs::text, $5) > 0 OR strpos(d.jobs::text, $6) > 0)
     AND ('definition' > $2 OR ('definition' = $2 AND d.name > $3)) ORDER BY d.name LIMIT $4)
  UNION ALL
  (SELECT 'job', p.id::text, p.inner_graph::text FROM punctual.steps p
   WHERE p.tenant = $1 AND p.inner_graph IS NOT NULL AND p.outcome IS NULL AND strpos(p.inner_graph::text,
     '"artifact"') > 0 AND (strpos(p.inner_graph::text, $5) > 0 OR strpos(p.inner_graph::text, $6) > 0)
     AND ('job' > $2 OR ('job' = $2 AND p.id::text > $3)) ORDER BY p.id::text LIMIT $4)) n
ORDER BY n.kind, n.name LIMIT $4;

-- delete-api-key
DELETE FROM punctual.api_keys WHERE id = $1::uuid AND ($2::text IS NULL OR tenant = $2) RETURNING id;

-- delete-ended-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone_from_job_history AS (
  DELETE FROM punctual.job_history h USING unnest($5::uuid[]) u(id)
  WHERE h.tenant = $4::text AND h.id = u.id AND h.finished_at >= $6::bigint AND EXISTS (SELECT 1 FROM term)
  RETURNING h.id, h.key
), gone_from_job_history_kept AS (
  DELETE FROM punctual.job_history_kept h USING unnest($5::uuid[]) u(id)
  WHERE h.tenant = $4::text AND h.id = u.id AND h.finished_at >= $6::bigint AND EXISTS (SELECT 1 FROM term)
  RETURNING h.id, h.key
), gone AS (SELECT * FROM gone_from_job_history UNION ALL SELECT * FROM gone_from_job_history_kept), theirs AS
  MATERIALIZED (
  SELECT k.tenant, k.key FROM gone g JOIN punctual.keys k ON k.tenant = $4 AND k.key = g.key AND k.job = g.id
  ORDER BY k.tenant, k.key FOR UPDATE OF k
), freed AS (
  DELETE FROM punctual.keys k USING theirs t WHERE k.tenant = t.tenant AND k.key = t.key
), forgotten AS (
  DELETE FROM punctual.job_logs l USING gone g
  WHERE l.job BETWEEN g.id AND g.id AND l.tenant = $4 AND l.stored_at >= $6
), answer AS (SELECT id FROM gone) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- delete-gone-artifacts
DELETE FROM punctual.artifacts a WHERE a.sha256 = $1 AND a.state = 'gone';

-- delete-schedule
UPDATE punctual.schedules s SET fire_at = NULL, changed_at = $3::bigint, changed_by = $4, deleted_at = $3::bigint,
  version = s.version + 1
WHERE s.id = $1::uuid AND s.version = $2 AND s.deleted_at IS NULL
RETURNING s.id;

-- delete-secret
DELETE FROM punctual.secrets s WHERE s.tenant = $1 AND s.name = $2 RETURNING s.tenant, s.name, s.version, s.origins,
  s.created_at, s.created_by, s.changed_at, s.changed_by;

-- delete-signing-secret
DELETE FROM punctual.signing_secrets s WHERE s.tenant = $1 AND s.id = $2::uuid AND
(s.expires_at IS NULL OR s.expires_at > $3::bigint) RETURNING s.tenant, s.id, s.created_at, s.expires_at;

-- delete-task
DELETE FROM punctual.tasks WHERE tenant = $1 AND name = $2;

-- end-audit-entry
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.audit a SET outcome = $5::text, after = $6::json
  WHERE a.id = $4::uuid AND a.sequence IS NULL AND a.outcome = 'unknown' AND EXISTS (SELECT 1 FROM term)
  RETURNING a.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- end-batch
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), ended AS (
  UPDATE punctual.batches b SET state = $5::text, ended_at = $6::bigint, error = $7::json
  WHERE b.id = $4::uuid AND b.ended_at IS NULL AND EXISTS (SELECT 1 FROM term)
    AND NOT EXISTS (SELECT 1 FROM punctual.jobs j WHERE j.id = ANY(b.members))
    AND NOT EXISTS (SELECT 1 FROM punctual.later l WHERE l.id = ANY(b.members))
  RETURNING b.id, b.tenant
), counted AS (
  INSERT INTO punctual.tallies
    (at, tenant, batches_succeeded, batches_failed, batches_cancelled, batches_timed_out)
  SELECT $6::bigint, e.tenant, ($5::text = 'succeeded')::int, ($5::text = 'failed')::int,
    ($5::text = 'cancelled')::int, ($5::text = 'failed' AND $7::json IS NOT NULL)::int
  FROM ended e
), answer AS (SELECT id FROM ended) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- end-lease-blockers
SELECT pg_terminate_backend(l.pid) FROM pg_locks l
JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
WHERE l.pid = ANY ((SELECT pg_blocking_pids($1))::int[]) AND l.relation = 'punctual.leases'::regclass AND l.granted
GROUP BY l.pid
HAVING bool_or(l.mode IN ('RowShareLock', 'RowExclusiveLock')) AND NOT bool_or(l.mode = 'ExclusiveLock');

-- end-waiting-later
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.later l USING unnest($4::uuid[], $5::text[], $6::json[]) u(id, ended_as, ended_why)
  WHERE l.id BETWEEN u.id AND u.id AND l.submission IS NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING l.*, u.ended_as, u.ended_why
), 
ended AS (
  INSERT INTO punctual.job_history (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, finished_at, state, error)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, $7::bigint AS finished_at, m.ended_as AS
    state, m.ended_why AS error
  FROM gone m
  RETURNING id, tenant, state, schedule, workflow
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled, steps_skipped)
  SELECT $7::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'),
    count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled'), nullif(count(*) FILTER
      (WHERE state = 'skipped' AND workflow IS NOT NULL), 0)
  FROM ended GROUP BY tenant
), left_over AS (
  INSERT INTO punctual.outbox (job, workflow, state, finished_at)
  SELECT id, workflow, state, $7::bigint FROM ended WHERE workflow IS NOT NULL
  RETURNING job, workflow, state
),
answer AS (
  SELECT g.id, g.tenant, g.ended_as AS state, g.task, g.schedule, g.workflow, g.batch,
    (SELECT q.name FROM punctual.queues q WHERE q.id = g.queue) AS "queueName"
  FROM gone g
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- end-waiting-later-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.later l USING unnest($4::uuid[], $5::text[], $6::json[]) u(id, ended_as, ended_why)
  WHERE l.id BETWEEN u.id AND u.id AND l.submission IS NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING l.*, u.ended_as, u.ended_why
), 
ended AS (
  INSERT INTO punctual.job_history (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, finished_at, state, error)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, $7::bigint AS finished_at, m.ended_as AS
    state, m.ended_why AS error
  FROM gone m
  RETURNING id, tenant, state, schedule, workflow
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled, steps_skipped)
  SELECT $7::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'),
    count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled'), nullif(count(*) FILTER
      (WHERE state = 'skipped' AND workflow IS NOT NULL), 0)
  FROM ended GROUP BY tenant
), left_over AS (
  INSERT INTO punctual.outbox (job, workflow, state, finished_at)
  SELECT id, workflow, state, $7::bigint FROM ended WHERE workflow IS NOT NULL
  RETURNING job, workflow, state
),
answer AS (
  SELECT g.id, g.tenant, g.ended_as AS state, g.task, g.schedule, g.workflow, g.batch,
    (SELECT q.name FROM punctual.queues q WHERE q.id = g.queue) AS "queueName"
  FROM gone g
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $8::uuid, $9::bigint, $10::text, $11::uuid, $12::text, $13::text, $14::text, $15::text,
    $16::text, $17::text, $18::json, $19::json, $20::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- end-waiting-live
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.jobs j USING unnest($4::uuid[], $5::text[], $6::json[]) u(id, ended_as, ended_why)
  WHERE j.id BETWEEN u.id AND u.id AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL AND EXISTS
    (SELECT 1 FROM term)
  RETURNING j.*, u.ended_as, u.ended_why
), 
ended AS (
  INSERT INTO punctual.job_history (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, finished_at, state, error)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, $7::bigint AS finished_at, m.ended_as AS
    state, m.ended_why AS error
  FROM gone m
  RETURNING id, tenant, state, schedule, workflow
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled, steps_skipped)
  SELECT $7::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'),
    count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled'), nullif(count(*) FILTER
      (WHERE state = 'skipped' AND workflow IS NOT NULL), 0)
  FROM ended GROUP BY tenant
), left_over AS (
  INSERT INTO punctual.outbox (job, workflow, state, finished_at)
  SELECT id, workflow, state, $7::bigint FROM ended WHERE workflow IS NOT NULL
  RETURNING job, workflow, state
),
answer AS (
  SELECT g.id, g.tenant, g.ended_as AS state, g.task, g.schedule, g.workflow, g.batch,
    (SELECT q.name FROM punctual.queues q WHERE q.id = g.queue) AS "queueName"
  FROM gone g
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- end-waiting-live-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.jobs j USING unnest($4::uuid[], $5::text[], $6::json[]) u(id, ended_as, ended_why)
  WHERE j.id BETWEEN u.id AND u.id AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL AND EXISTS
    (SELECT 1 FROM term)
  RETURNING j.*, u.ended_as, u.ended_why
), 
ended AS (
  INSERT INTO punctual.job_history (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, finished_at, state, error)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, $7::bigint AS finished_at, m.ended_as AS
    state, m.ended_why AS error
  FROM gone m
  RETURNING id, tenant, state, schedule, workflow
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled, steps_skipped)
  SELECT $7::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'),
    count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled'), nullif(count(*) FILTER
      (WHERE state = 'skipped' AND workflow IS NOT NULL), 0)
  FROM ended GROUP BY tenant
), left_over AS (
  INSERT INTO punctual.outbox (job, workflow, state, finished_at)
  SELECT id, workflow, state, $7::bigint FROM ended WHERE workflow IS NOT NULL
  RETURNING job, workflow, state
),
answer AS (
  SELECT g.id, g.tenant, g.ended_as AS state, g.task, g.schedule, g.workflow, g.batch,
    (SELECT q.name FROM punctual.queues q WHERE q.id = g.queue) AS "queueName"
  FROM gone g
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $8::uuid, $9::bigint, $10::text, $11::uuid, $12::text, $13::text, $14::text, $15::text,
    $16::text, $17::text, $18::json, $19::json, $20::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- ensure-lease
INSERT INTO punctual.leases (shard, epoch, holder, holder_url, expires_at)
SELECT $1, coalesce((SELECT max(epoch) FROM punctual.terms WHERE shard = $1), 0), '', '', 'epoch'
WHERE NOT EXISTS (SELECT 1 FROM punctual.leases WHERE shard = $1)
ON CONFLICT DO NOTHING;

-- expire-signing-secrets
UPDATE punctual.signing_secrets s SET expires_at = least(s.expires_at, $2::bigint) WHERE s.tenant = $1;

-- find-answer
SELECT i.request, i.status, i.location, i.answer, i.ids FROM punctual.idempotency i
WHERE i.tenant = $1 AND i.key = $2 AND i.created_at >= $3::bigint;

-- find-api-keys
SELECT v.version, k.* FROM punctual.keys_version v LEFT JOIN (
SELECT hash, id, name, operator, tenant, scopes, queues, tasks, expires_at AS "expiresAt", created_at AS
  "createdAt",
created_by AS "createdBy", last_used_at AS "lastUsedAt" FROM punctual.api_keys) k ON k.hash = ANY ($1::bytea[])
  WHERE v.one;

-- find-arrived-artifacts
SELECT l.id, l.batch, a.state IS NOT DISTINCT FROM 'ready' AS "isReady", (256 + coalesce(pg_column_size(l.target),
  0) + coalesce(pg_column_size(l.requires), 0) + coalesce(pg_column_size(l.payload), 0) +
  coalesce(pg_column_size(l.earlier_attempts), 0)) AS bytes
FROM unnest($3::uuid[]) u(id)
LEFT JOIN LATERAL (SELECT a.state FROM punctual.artifacts a WHERE a.id = u.id LIMIT 1) a ON true
CROSS JOIN LATERAL (
  SELECT l.* FROM punctual.later l WHERE l.artifact = u.id AND l.id <> ALL ($2::uuid[]) ORDER BY l.id LIMIT $1) l
WHERE a.state IS DISTINCT FROM 'pending'
LIMIT $1;

-- find-artifact
SELECT a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
a.created_by, a.ready_at, a.expires_at, a.job, a.output FROM punctual.artifacts a WHERE a.id = $2::uuid AND a.tenant
  = $1 AND a.state <> 'gone';

-- find-artifact-version
SELECT a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
a.created_by, a.ready_at, a.expires_at, a.job, a.output FROM punctual.artifacts a WHERE a.tenant = $1 AND a.name =
  $2 AND a.version = $3;

-- find-cancelled
SELECT u.job FROM unnest($1::text[], $2::uuid[]) u(tenant, job)
WHERE coalesce(
  (SELECT true FROM punctual.cancel_requests c WHERE c.job = u.job AND c.tenant = u.tenant LIMIT 1), false);

-- find-claims
SELECT job AS id, fence FROM punctual.claims;

-- find-ended
SELECT h.id FROM unnest($1::text[], $2::uuid[]) AS asked(tenant, id)
JOIN (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses,
  e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task,
  e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload,
  e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at,
  e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts,
  e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before,
  e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent,
  e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch,
  e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history_kept e) h ON h.tenant = asked.tenant AND h.id = asked.id AND h.finished_at >= $3
UNION ALL
SELECT asked.id FROM unnest($1::text[], $2::uuid[]) AS asked(tenant, id)
WHERE (SELECT w.tenant = asked.tenant AND w.ended_at IS NOT NULL FROM punctual.workflows w WHERE w.id = asked.id)
  OR (SELECT b.tenant = asked.tenant AND b.ended_at IS NOT NULL FROM punctual.batches b WHERE b.id = asked.id);

-- find-expired
(SELECT j.id, false AS later, (256 + coalesce(pg_column_size(j.target), 0) + coalesce(pg_column_size(j.requires), 0)
  + coalesce(pg_column_size(j.payload), 0) + coalesce(pg_column_size(j.earlier_attempts), 0)) AS bytes FROM
  punctual.jobs j
 WHERE j.start_before <= $1 AND j.attempts = 0 AND j.id <> ALL ($3::uuid[])
   AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL
 ORDER BY j.start_before LIMIT $2)
UNION ALL
(SELECT l.id, true, (256 + coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
  coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)) FROM punctual.later l
 WHERE l.start_before <= $1 AND l.attempts = 0 AND l.id <> ALL ($3::uuid[]) ORDER BY l.start_before LIMIT $2);

-- find-failed-jobs
WITH live AS MATERIALIZED (
  SELECT j.id, j.bytes, j.tenant = $1 AS own, j.tenant = $1
    AND ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR NOT $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR true)
    AND ($15::text IS NULL OR j.task = $15::text)
    AND ($16::text IS NULL OR j.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR j.schedule = $17::text)
    AND ($18::uuid IS NULL OR c.worker = $18::uuid)
    AND ($19::int IS NULL OR j.attempts + (c.job IS NOT NULL)::int BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(j.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = j.key AND k.job = j.id))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(j.payload::text, '\u') = 0 OR j.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN j.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(j.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT j.*, (256 + coalesce(pg_column_size(j.target), 0) + coalesce(pg_column_size(j.requires), 0) +
      coalesce(pg_column_size(j.payload), 0) + coalesce(pg_column_size(j.earlier_attempts), 0)) AS bytes FROM
      punctual.jobs j
    WHERE j.id < $2::uuid AND j.id >= $3::uuid AND $6::boolean
    ORDER BY j.id DESC LIMIT $4::int) j
  LEFT JOIN punctual.claims c ON c.job BETWEEN j.id AND j.id
), not_admitted AS MATERIALIZED (
  SELECT l.id, l.bytes, l.created_at, l.created_by, l.submission IS NOT NULL AS raw,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR l.held = $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR (l.workflow IS NULL OR l.task IS NOT NULL OR l.target IS NOT NULL))
    AND ($15::text IS NULL OR coalesce(l.task, punctual.readable(l.submission) ->> 'task') = $15::text)
    AND ($16::text IS NULL OR CASE WHEN l.submission IS NULL THEN l.queue = (SELECT q.id FROM punctual.queues q
      WHERE q.tenant = $1 AND q.name = $16::text)
      ELSE coalesce(punctual.readable(l.submission) ->> 'queue', 'default') = $16::text END)
    AND ($17::text IS NULL OR l.schedule = $17::text)
    AND ($18::uuid IS NULL OR false)
    AND ($19::int IS NULL OR l.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(l.key, $21::text) AND (l.submission IS NOT NULL OR EXISTS (SELECT 1 FROM
      punctual.keys k
      WHERE k.tenant = $1 AND k.key = l.key AND k.job = l.id)))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT coalesce(CASE WHEN strpos(l.payload::text, '\u') = 0 OR l.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN l.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END, CASE WHEN strpos(l.submission::text, '\u') = 0 OR l.submission::text ~
            '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
            THEN l.submission ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.submission::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END -> 'payload') AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT l.*, (256 + coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
      coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)) AS bytes FROM
      punctual.later l
    WHERE l.tenant = $1 AND l.id < $2::uuid AND l.id >= $3::uuid AND $7::boolean
    ORDER BY l.id DESC LIMIT $4::int) l
), ended AS MATERIALIZED (
  SELECT h.id, h.bytes,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR h.state = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR false)
    AND ($13::boolean IS NULL OR NOT h.at_most_once)
    AND ($14::boolean IS NULL OR (h.workflow IS NULL OR h.task IS NOT NULL OR h.target IS NOT NULL))
    AND ($15::text IS NULL OR h.task = $15::text)
    AND ($16::text IS NULL OR h.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR h.schedule = $17::text)
    AND ($18::uuid IS NULL OR h.worker = $18::uuid)
    AND ($19::int IS NULL OR h.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(h.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = h.key AND k.job = h.id))
    AND ($22::text IS NULL OR CASE WHEN strpos(h.error::text, to_json($22::text)::text) > 0
      THEN punctual.readable(h.error) ->> 'code' = $22::text END)
    AND ($23::text IS NULL OR h.state = 'failed' AND punctual.error_fingerprint(h.task, h.error) = $23::text)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(h.payload::text, '\u') = 0 OR h.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN h.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(h.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT h.*, (256 + coalesce(pg_column_size(h.target), 0) + coalesce(pg_column_size(h.requires), 0) +
      coalesce(pg_column_size(h.payload), 0) + coalesce(pg_column_size(h.earlier_attempts), 0) +
      coalesce(pg_column_size(h.result), 0) + coalesce(pg_column_size(h.error), 0) +
      coalesce(pg_column_size(h.execution), 0)) AS bytes FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane,
      e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once,
      e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key,
      e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence,
      e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at,
      e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history e UNION ALL SELECT e.id,
      e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts,
      e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by,
      e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts,
      e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress,
      e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history_kept
      e) h
    WHERE h.tenant = $1 AND h.id < $2::uuid AND h.id >= $3::uuid AND $8::boolean
      AND h.finished_at >= $9::bigint AND h.state = 'failed'
    ORDER BY h.id DESC LIMIT $4::int) h
), position AS MATERIALIZED (
  SELECT greatest((SELECT id FROM live ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM not_admitted
    ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM ended ORDER BY id DESC OFFSET $4::int - 1 LIMIT
    1)) AS reach,
    (SELECT count(*) FROM live) AS live, (SELECT count(*) FROM live WHERE NOT own) AS others,
    NULL::boolean AS few, (SELECT count(*) FROM live WHERE own)
      + (SELECT count(*) FROM not_admitted) + (SELECT count(*) FROM ended) AS own
), found AS MATERIALIZED (
  SELECT f.* FROM position p CROSS JOIN LATERAL (
    SELECT 'live' AS place, id, bytes, false AS raw, NULL::bigint AS created_at, NULL AS created_by FROM live
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'later', id, bytes, raw, created_at, created_by FROM not_admitted
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'history', id, bytes, false, NULL, NULL FROM ended
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    ORDER BY id DESC LIMIT $5::int) f
)
SELECT f.id, f.place, f.bytes, f.raw, f.created_at AS "createdAt", f.created_by AS "createdBy", p.reach, p.own,
  p.live,
  p.others, p.few
FROM position p LEFT JOIN found f ON true ORDER BY f.id DESC;

-- find-forgettable-artifacts
SELECT a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
  a.created_by, a.ready_at, a.expires_at, a.job, a.output, a.used_at
FROM punctual.artifacts a
WHERE (a.name IS NULL OR a.state <> 'ready') AND (a.state, a.used_at, a.id) > ($1::text, $2::bigint, $3::uuid)
  AND (a.state = 'gone' OR (a.state = 'pending' AND a.expires_at < $4::bigint) OR (a.state = 'ready' AND a.used_at <
    $5::bigint))
ORDER BY a.state, a.used_at, a.id LIMIT $6::int;

-- find-holders
SELECT u.id, p.* FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::json[], $6::json[], $7::json[])
  u(id, holder, tenant, since, payload, target, requires) CROSS JOIN LATERAL (
SELECT false AS ended, j.attempts > 0 OR (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NOT NULL AS
  started, false AS held, j.queue::int, j.task::text, j.rank::smallint, j.run_at::bigint, j.created_at::bigint,
  j.start_before::bigint, j.max_attempts::smallint, j.max_losses::smallint, j.at_most_once::boolean,
  j.timeout_ms::bigint, j.concurrency_key::text, j.backoff::json,
  j.payload::text IS NOT DISTINCT FROM (coalesce(u.payload, $11::json))::text AS same_payload, j.target::text IS NOT
    DISTINCT FROM (coalesce(u.target, $12::json))::text AS same_target, j.requires::text IS NOT DISTINCT FROM
    (coalesce(u.requires, $13::json))::text AS same_requires
FROM punctual.jobs j
WHERE j.id BETWEEN coalesce(u.holder, $8::uuid) AND coalesce(u.holder, $8::uuid)
UNION ALL
SELECT false AS ended, l.attempts > 0 AS started, l.held AS held, l.queue::int, l.task::text, l.rank::smallint,
  l.run_at::bigint, l.created_at::bigint, l.start_before::bigint, l.max_attempts::smallint, l.max_losses::smallint,
  l.at_most_once::boolean, l.timeout_ms::bigint, l.concurrency_key::text, l.backoff::json,
  l.payload::text IS NOT DISTINCT FROM (coalesce(u.payload, $11::json))::text AS same_payload, l.target::text IS NOT
    DISTINCT FROM (coalesce(u.target, $12::json))::text AS same_target, l.requires::text IS NOT DISTINCT FROM
    (coalesce(u.requires, $13::json))::text AS same_requires
FROM punctual.later l
WHERE l.id BETWEEN coalesce(u.holder, $8::uuid) AND coalesce(u.holder, $8::uuid)
UNION ALL
SELECT true AS ended, true AS started, false AS held, h.queue::int, h.task::text, h.rank::smallint,
  h.run_at::bigint, h.created_at::bigint, h.start_before::bigint, h.max_attempts::smallint, h.max_losses::smallint,
  h.at_most_once::boolean, h.timeout_ms::bigint, h.concurrency_key::text, h.backoff::json,
  h.payload::text IS NOT DISTINCT FROM (coalesce(u.payload, $11::json))::text AS same_payload, h.target::text IS NOT
    DISTINCT FROM (coalesce(u.target, $12::json))::text AS same_target, h.requires::text IS NOT DISTINCT FROM
    (coalesce(u.requires, $13::json))::text AS same_requires
FROM punctual.job_history h
WHERE h.tenant = coalesce(u.tenant, $9::text) AND h.id = coalesce(u.holder, $8::uuid)
  AND h.finished_at >= coalesce(u.since, $10::bigint)) p;

-- find-job-ids
WITH near AS MATERIALIZED (
  SELECT id, tenant FROM punctual.jobs WHERE id >= $2::uuid AND id <= $3::uuid ORDER BY id LIMIT $6::int)
SELECT found.id, looked.cut FROM (SELECT count(*) >= $6::int AS cut FROM near) looked LEFT JOIN (
  (SELECT id FROM near WHERE tenant = $1 ORDER BY id LIMIT $4::int)
  UNION ALL
  (SELECT id FROM punctual.later WHERE tenant = $1 AND id >= $2::uuid AND id <= $3::uuid
   ORDER BY id LIMIT $4::int)
  UNION ALL
  (SELECT id FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures,
    e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by,
    e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload,
    e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at,
    e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
    punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts,
    e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before,
    e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent,
    e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch,
    e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
    punctual.job_history_kept e) h
   WHERE tenant = $1 AND id >= $2::uuid AND id <= $3::uuid AND finished_at >= $5::bigint
   ORDER BY id LIMIT $4::int)) found ON true
ORDER BY found.id LIMIT $4::int;

-- find-job-of-output
SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM punctual.jobs j WHERE j.id = $2::uuid)
OR EXISTS (SELECT 1 FROM punctual.later l WHERE l.id = $2::uuid)
OR EXISTS (SELECT 1 FROM punctual.job_history h WHERE h.tenant = $1 AND h.id = $2::uuid)
OR EXISTS (SELECT 1 FROM punctual.job_history_kept k WHERE k.tenant = $1 AND k.id = $2::uuid);

-- find-jobs
WITH live AS MATERIALIZED (
  SELECT j.id, j.bytes, j.tenant = $1 AS own, j.tenant = $1
    AND ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR NOT $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR true)
    AND ($15::text IS NULL OR j.task = $15::text)
    AND ($16::text IS NULL OR j.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR j.schedule = $17::text)
    AND ($18::uuid IS NULL OR c.worker = $18::uuid)
    AND ($19::int IS NULL OR j.attempts + (c.job IS NOT NULL)::int BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(j.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = j.key AND k.job = j.id))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(j.payload::text, '\u') = 0 OR j.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN j.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(j.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT j.*, (256 + coalesce(pg_column_size(j.target), 0) + coalesce(pg_column_size(j.requires), 0) +
      coalesce(pg_column_size(j.payload), 0) + coalesce(pg_column_size(j.earlier_attempts), 0)) AS bytes FROM
      punctual.jobs j
    WHERE j.id < $2::uuid AND j.id >= $3::uuid AND $6::boolean
    ORDER BY j.id DESC LIMIT $4::int) j
  LEFT JOIN punctual.claims c ON c.job BETWEEN j.id AND j.id
), not_admitted AS MATERIALIZED (
  SELECT l.id, l.bytes, l.created_at, l.created_by, l.submission IS NOT NULL AS raw,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR l.held = $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR (l.workflow IS NULL OR l.task IS NOT NULL OR l.target IS NOT NULL))
    AND ($15::text IS NULL OR coalesce(l.task, punctual.readable(l.submission) ->> 'task') = $15::text)
    AND ($16::text IS NULL OR CASE WHEN l.submission IS NULL THEN l.queue = (SELECT q.id FROM punctual.queues q
      WHERE q.tenant = $1 AND q.name = $16::text)
      ELSE coalesce(punctual.readable(l.submission) ->> 'queue', 'default') = $16::text END)
    AND ($17::text IS NULL OR l.schedule = $17::text)
    AND ($18::uuid IS NULL OR false)
    AND ($19::int IS NULL OR l.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(l.key, $21::text) AND (l.submission IS NOT NULL OR EXISTS (SELECT 1 FROM
      punctual.keys k
      WHERE k.tenant = $1 AND k.key = l.key AND k.job = l.id)))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT coalesce(CASE WHEN strpos(l.payload::text, '\u') = 0 OR l.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN l.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END, CASE WHEN strpos(l.submission::text, '\u') = 0 OR l.submission::text ~
            '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
            THEN l.submission ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.submission::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END -> 'payload') AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT l.*, (256 + coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
      coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)) AS bytes FROM
      punctual.later l
    WHERE l.tenant = $1 AND l.id < $2::uuid AND l.id >= $3::uuid AND $7::boolean
    ORDER BY l.id DESC LIMIT $4::int) l
), ended AS MATERIALIZED (
  SELECT h.id, h.bytes,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR h.state = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR false)
    AND ($13::boolean IS NULL OR NOT h.at_most_once)
    AND ($14::boolean IS NULL OR (h.workflow IS NULL OR h.task IS NOT NULL OR h.target IS NOT NULL))
    AND ($15::text IS NULL OR h.task = $15::text)
    AND ($16::text IS NULL OR h.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR h.schedule = $17::text)
    AND ($18::uuid IS NULL OR h.worker = $18::uuid)
    AND ($19::int IS NULL OR h.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(h.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = h.key AND k.job = h.id))
    AND ($22::text IS NULL OR CASE WHEN strpos(h.error::text, to_json($22::text)::text) > 0
      THEN punctual.readable(h.error) ->> 'code' = $22::text END)
    AND ($23::text IS NULL OR h.state = 'failed' AND punctual.error_fingerprint(h.task, h.error) = $23::text)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(h.payload::text, '\u') = 0 OR h.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN h.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(h.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT h.*, (256 + coalesce(pg_column_size(h.target), 0) + coalesce(pg_column_size(h.requires), 0) +
      coalesce(pg_column_size(h.payload), 0) + coalesce(pg_column_size(h.earlier_attempts), 0) +
      coalesce(pg_column_size(h.result), 0) + coalesce(pg_column_size(h.error), 0) +
      coalesce(pg_column_size(h.execution), 0)) AS bytes FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane,
      e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once,
      e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key,
      e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence,
      e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at,
      e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history e UNION ALL SELECT e.id,
      e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts,
      e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by,
      e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts,
      e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress,
      e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history_kept
      e) h
    WHERE h.tenant = $1 AND h.id < $2::uuid AND h.id >= $3::uuid AND $8::boolean
      AND h.finished_at >= $9::bigint
    ORDER BY h.id DESC LIMIT $4::int) h
), position AS MATERIALIZED (
  SELECT greatest((SELECT id FROM live ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM not_admitted
    ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM ended ORDER BY id DESC OFFSET $4::int - 1 LIMIT
    1)) AS reach,
    (SELECT count(*) FROM live) AS live, (SELECT count(*) FROM live WHERE NOT own) AS others,
    NULL::boolean AS few, (SELECT count(*) FROM live WHERE own)
      + (SELECT count(*) FROM not_admitted) + (SELECT count(*) FROM ended) AS own
), found AS MATERIALIZED (
  SELECT f.* FROM position p CROSS JOIN LATERAL (
    SELECT 'live' AS place, id, bytes, false AS raw, NULL::bigint AS created_at, NULL AS created_by FROM live
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'later', id, bytes, raw, created_at, created_by FROM not_admitted
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'history', id, bytes, false, NULL, NULL FROM ended
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    ORDER BY id DESC LIMIT $5::int) f
)
SELECT f.id, f.place, f.bytes, f.raw, f.created_at AS "createdAt", f.created_by AS "createdBy", p.reach, p.own,
  p.live,
  p.others, p.few
FROM position p LEFT JOIN found f ON true ORDER BY f.id DESC;

-- find-jobs-by-queue
WITH own_queues AS MATERIALIZED (
  SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND $6::boolean LIMIT 1001
), in_queues AS MATERIALIZED (
  SELECT j.id FROM own_queues q CROSS JOIN LATERAL (
    SELECT j.id FROM punctual.jobs j WHERE j.queue BETWEEN q.id AND q.id OFFSET 0) j
  WHERE (SELECT count(*) FROM own_queues) <= 1000 LIMIT 5001
), few AS MATERIALIZED (
  SELECT (SELECT count(*) FROM own_queues) <= 1000
    AND (SELECT count(*) FROM in_queues) <= 5000 AS holds
), live AS MATERIALIZED (
  SELECT j.id, j.bytes, j.tenant = $1 AS own, j.tenant = $1
    AND ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR NOT $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR true)
    AND ($15::text IS NULL OR j.task = $15::text)
    AND ($16::text IS NULL OR j.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR j.schedule = $17::text)
    AND ($18::uuid IS NULL OR c.worker = $18::uuid)
    AND ($19::int IS NULL OR j.attempts + (c.job IS NOT NULL)::int BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(j.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = j.key AND k.job = j.id))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(j.payload::text, '\u') = 0 OR j.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN j.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(j.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT j.*, (256 + coalesce(pg_column_size(j.target), 0) + coalesce(pg_column_size(j.requires), 0) +
      coalesce(pg_column_size(j.payload), 0) + coalesce(pg_column_size(j.earlier_attempts), 0)) AS bytes FROM (
      SELECT i.id FROM in_queues i
      WHERE (SELECT holds FROM few) AND i.id < $2::uuid AND i.id >= $3::uuid ORDER BY i.id DESC LIMIT $4::int) i
    JOIN punctual.jobs j ON j.id BETWEEN i.id AND i.id
    UNION ALL (
    SELECT j.*, (256 + coalesce(pg_column_size(j.target), 0) + coalesce(pg_column_size(j.requires), 0) +
      coalesce(pg_column_size(j.payload), 0) + coalesce(pg_column_size(j.earlier_attempts), 0)) AS bytes FROM
      punctual.jobs j
    WHERE NOT (SELECT holds FROM few) AND j.id < $2::uuid AND j.id >= $3::uuid AND $6::boolean
    ORDER BY j.id DESC LIMIT $4::int)) j
  LEFT JOIN punctual.claims c ON c.job BETWEEN j.id AND j.id
), not_admitted AS MATERIALIZED (
  SELECT l.id, l.bytes, l.created_at, l.created_by, l.submission IS NOT NULL AS raw,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR l.held = $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR (l.workflow IS NULL OR l.task IS NOT NULL OR l.target IS NOT NULL))
    AND ($15::text IS NULL OR coalesce(l.task, punctual.readable(l.submission) ->> 'task') = $15::text)
    AND ($16::text IS NULL OR CASE WHEN l.submission IS NULL THEN l.queue = (SELECT q.id FROM punctual.queues q
      WHERE q.tenant = $1 AND q.name = $16::text)
      ELSE coalesce(punctual.readable(l.submission) ->> 'queue', 'default') = $16::text END)
    AND ($17::text IS NULL OR l.schedule = $17::text)
    AND ($18::uuid IS NULL OR false)
    AND ($19::int IS NULL OR l.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(l.key, $21::text) AND (l.submission IS NOT NULL OR EXISTS (SELECT 1 FROM
      punctual.keys k
      WHERE k.tenant = $1 AND k.key = l.key AND k.job = l.id)))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT coalesce(CASE WHEN strpos(l.payload::text, '\u') = 0 OR l.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN l.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END, CASE WHEN strpos(l.submission::text, '\u') = 0 OR l.submission::text ~
            '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
            THEN l.submission ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.submission::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END -> 'payload') AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT l.*, (256 + coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
      coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)) AS bytes FROM
      punctual.later l
    WHERE l.tenant = $1 AND l.id < $2::uuid AND l.id >= $3::uuid AND $7::boolean
    ORDER BY l.id DESC LIMIT $4::int) l
), ended AS MATERIALIZED (
  SELECT h.id, h.bytes,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR h.state = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR false)
    AND ($13::boolean IS NULL OR NOT h.at_most_once)
    AND ($14::boolean IS NULL OR (h.workflow IS NULL OR h.task IS NOT NULL OR h.target IS NOT NULL))
    AND ($15::text IS NULL OR h.task = $15::text)
    AND ($16::text IS NULL OR h.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR h.schedule = $17::text)
    AND ($18::uuid IS NULL OR h.worker = $18::uuid)
    AND ($19::int IS NULL OR h.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(h.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = h.key AND k.job = h.id))
    AND ($22::text IS NULL OR CASE WHEN strpos(h.error::text, to_json($22::text)::text) > 0
      THEN punctual.readable(h.error) ->> 'code' = $22::text END)
    AND ($23::text IS NULL OR h.state = 'failed' AND punctual.error_fingerprint(h.task, h.error) = $23::text)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(h.payload::text, '\u') = 0 OR h.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN h.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(h.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT h.*, (256 + coalesce(pg_column_size(h.target), 0) + coalesce(pg_column_size(h.requires), 0) +
      coalesce(pg_column_size(h.payload), 0) + coalesce(pg_column_size(h.earlier_attempts), 0) +
      coalesce(pg_column_size(h.result), 0) + coalesce(pg_column_size(h.error), 0) +
      coalesce(pg_column_size(h.execution), 0)) AS bytes FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane,
      e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once,
      e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key,
      e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence,
      e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at,
      e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history e UNION ALL SELECT e.id,
      e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts,
      e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by,
      e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts,
      e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress,
      e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history_kept
      e) h
    WHERE h.tenant = $1 AND h.id < $2::uuid AND h.id >= $3::uuid AND $8::boolean
      AND h.finished_at >= $9::bigint
    ORDER BY h.id DESC LIMIT $4::int) h
), position AS MATERIALIZED (
  SELECT greatest((SELECT id FROM live ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM not_admitted
    ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM ended ORDER BY id DESC OFFSET $4::int - 1 LIMIT
    1)) AS reach,
    (SELECT count(*) FROM live) AS live, (SELECT count(*) FROM live WHERE NOT own) AS others,
    (SELECT holds FROM few) AS few, (SELECT count(*) FROM live WHERE own)
      + (SELECT count(*) FROM not_admitted) + (SELECT count(*) FROM ended) AS own
), found AS MATERIALIZED (
  SELECT f.* FROM position p CROSS JOIN LATERAL (
    SELECT 'live' AS place, id, bytes, false AS raw, NULL::bigint AS created_at, NULL AS created_by FROM live
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'later', id, bytes, raw, created_at, created_by FROM not_admitted
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'history', id, bytes, false, NULL, NULL FROM ended
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    ORDER BY id DESC LIMIT $5::int) f
)
SELECT f.id, f.place, f.bytes, f.raw, f.created_at AS "createdAt", f.created_by AS "createdBy", p.reach, p.own,
  p.live,
  p.others, p.few
FROM position p LEFT JOIN found f ON true ORDER BY f.id DESC;

-- find-jobs-of-schedule
WITH live AS MATERIALIZED (
  SELECT j.id, j.bytes, j.tenant = $1 AS own, j.tenant = $1
    AND ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR NOT $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR true)
    AND ($15::text IS NULL OR j.task = $15::text)
    AND ($16::text IS NULL OR j.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR j.schedule = $17::text)
    AND ($18::uuid IS NULL OR c.worker = $18::uuid)
    AND ($19::int IS NULL OR j.attempts + (c.job IS NOT NULL)::int BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(j.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = j.key AND k.job = j.id))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(j.payload::text, '\u') = 0 OR j.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN j.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(j.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT j.*, (256 + coalesce(pg_column_size(j.target), 0) + coalesce(pg_column_size(j.requires), 0) +
      coalesce(pg_column_size(j.payload), 0) + coalesce(pg_column_size(j.earlier_attempts), 0)) AS bytes FROM
      punctual.jobs j
    WHERE j.id < $2::uuid AND j.id >= $3::uuid AND $6::boolean AND j.tenant = $1 AND j.schedule = $17::text
    ORDER BY j.id DESC LIMIT $4::int) j
  LEFT JOIN punctual.claims c ON c.job BETWEEN j.id AND j.id
), not_admitted AS MATERIALIZED (
  SELECT l.id, l.bytes, l.created_at, l.created_by, l.submission IS NOT NULL AS raw,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR l.held = $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR (l.workflow IS NULL OR l.task IS NOT NULL OR l.target IS NOT NULL))
    AND ($15::text IS NULL OR coalesce(l.task, punctual.readable(l.submission) ->> 'task') = $15::text)
    AND ($16::text IS NULL OR CASE WHEN l.submission IS NULL THEN l.queue = (SELECT q.id FROM punctual.queues q
      WHERE q.tenant = $1 AND q.name = $16::text)
      ELSE coalesce(punctual.readable(l.submission) ->> 'queue', 'default') = $16::text END)
    AND ($17::text IS NULL OR l.schedule = $17::text)
    AND ($18::uuid IS NULL OR false)
    AND ($19::int IS NULL OR l.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(l.key, $21::text) AND (l.submission IS NOT NULL OR EXISTS (SELECT 1 FROM
      punctual.keys k
      WHERE k.tenant = $1 AND k.key = l.key AND k.job = l.id)))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT coalesce(CASE WHEN strpos(l.payload::text, '\u') = 0 OR l.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN l.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END, CASE WHEN strpos(l.submission::text, '\u') = 0 OR l.submission::text ~
            '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
            THEN l.submission ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.submission::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END -> 'payload') AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT l.*, (256 + coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
      coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)) AS bytes FROM
      punctual.later l
    WHERE l.tenant = $1 AND l.id < $2::uuid AND l.id >= $3::uuid AND $7::boolean AND l.schedule = $17::text
    ORDER BY l.id DESC LIMIT $4::int) l
), ended AS MATERIALIZED (
  SELECT h.id, h.bytes,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR h.state = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR false)
    AND ($13::boolean IS NULL OR NOT h.at_most_once)
    AND ($14::boolean IS NULL OR (h.workflow IS NULL OR h.task IS NOT NULL OR h.target IS NOT NULL))
    AND ($15::text IS NULL OR h.task = $15::text)
    AND ($16::text IS NULL OR h.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR h.schedule = $17::text)
    AND ($18::uuid IS NULL OR h.worker = $18::uuid)
    AND ($19::int IS NULL OR h.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(h.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = h.key AND k.job = h.id))
    AND ($22::text IS NULL OR CASE WHEN strpos(h.error::text, to_json($22::text)::text) > 0
      THEN punctual.readable(h.error) ->> 'code' = $22::text END)
    AND ($23::text IS NULL OR h.state = 'failed' AND punctual.error_fingerprint(h.task, h.error) = $23::text)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(h.payload::text, '\u') = 0 OR h.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN h.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(h.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT h.*, (256 + coalesce(pg_column_size(h.target), 0) + coalesce(pg_column_size(h.requires), 0) +
      coalesce(pg_column_size(h.payload), 0) + coalesce(pg_column_size(h.earlier_attempts), 0) +
      coalesce(pg_column_size(h.result), 0) + coalesce(pg_column_size(h.error), 0) +
      coalesce(pg_column_size(h.execution), 0)) AS bytes FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane,
      e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once,
      e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key,
      e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence,
      e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at,
      e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history e UNION ALL SELECT e.id,
      e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts,
      e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by,
      e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts,
      e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress,
      e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history_kept
      e) h
    WHERE h.tenant = $1 AND h.id < $2::uuid AND h.id >= $3::uuid AND $8::boolean
      AND h.finished_at >= $9::bigint AND h.schedule = $17::text
    ORDER BY h.id DESC LIMIT $4::int) h
), position AS MATERIALIZED (
  SELECT greatest((SELECT id FROM live ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM not_admitted
    ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM ended ORDER BY id DESC OFFSET $4::int - 1 LIMIT
    1)) AS reach,
    (SELECT count(*) FROM live) AS live, (SELECT count(*) FROM live WHERE NOT own) AS others,
    NULL::boolean AS few, (SELECT count(*) FROM live WHERE own)
      + (SELECT count(*) FROM not_admitted) + (SELECT count(*) FROM ended) AS own
), found AS MATERIALIZED (
  SELECT f.* FROM position p CROSS JOIN LATERAL (
    SELECT 'live' AS place, id, bytes, false AS raw, NULL::bigint AS created_at, NULL AS created_by FROM live
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'later', id, bytes, raw, created_at, created_by FROM not_admitted
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'history', id, bytes, false, NULL, NULL FROM ended
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    ORDER BY id DESC LIMIT $5::int) f
)
SELECT f.id, f.place, f.bytes, f.raw, f.created_at AS "createdAt", f.created_by AS "createdBy", p.reach, p.own,
  p.live,
  p.others, p.few
FROM position p LEFT JOIN found f ON true ORDER BY f.id DESC;

-- find-kept-names
WITH page AS (
  SELECT tenant, id, queue, needs FROM punctual.job_history_kept
  WHERE (tenant, id) > ($3::text, $1::uuid) ORDER BY tenant, id LIMIT $2::int
), last AS (
  SELECT tenant, id FROM page ORDER BY tenant DESC, id DESC LIMIT 1
)
SELECT DISTINCT p.queue, p.needs, (SELECT count(*) FROM page) AS read, l.tenant, l.id AS last FROM page p, last l;

-- find-key
SELECT job AS id FROM punctual.keys WHERE tenant = $1 AND key = $2
UNION ALL
(SELECT id FROM punctual.later WHERE tenant = $1 AND key = $2 AND submission IS NOT NULL LIMIT 1);

-- find-keys
SELECT u.place, k.job, k.said_at AS "saidAt"
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(tenant, key, place)
JOIN punctual.keys k ON k.tenant = u.tenant AND k.key = u.key;

-- find-keys-by-prefix
SELECT b.by_bytes AS "byBytes", f.place, f.id, f.counts FROM (SELECT (
SELECT CASE coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') WHEN 'b' THEN true
  WHEN 'c' THEN d.datcollate IN ('C', 'POSIX') ELSE false END
FROM pg_database d WHERE d.datname = current_database()) AS by_bytes) b LEFT JOIN LATERAL (
(SELECT 'keys' AS place, k.job AS id, true AS counts FROM punctual.keys k
 WHERE b.by_bytes AND k.tenant = $1 AND k.key >= $2 AND ($3::text IS NULL OR k.key < $3)
 ORDER BY k.tenant, k.key LIMIT $4::int)
UNION ALL
(SELECT 'later', l.id, l.submission IS NOT NULL FROM punctual.later l
 WHERE b.by_bytes AND l.tenant = $1 AND l.key >= $2 AND ($3 IS NULL OR l.key < $3)
 ORDER BY l.tenant, l.key LIMIT $4::int)) f ON true;

-- find-later-names
WITH page AS (
  SELECT id, queue, needs FROM punctual.later WHERE id > $1::uuid ORDER BY id LIMIT $2::int
)
SELECT DISTINCT queue, needs, (SELECT count(*) FROM page) AS read, '' AS tenant,
  (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS last
FROM page;

-- find-live-names
WITH RECURSIVE pair AS (
  SELECT $1::int AS queue, $2::int AS needs
  UNION ALL
  SELECT n.queue, n.needs FROM pair p CROSS JOIN LATERAL (
    SELECT j.queue, j.needs FROM punctual.jobs j
    WHERE (j.queue, j.needs) > (p.queue, p.needs) ORDER BY j.queue, j.needs LIMIT 1) n
)
SELECT queue, needs FROM pair OFFSET 1 LIMIT $3;

-- find-named-jobs
WITH live AS MATERIALIZED (
  SELECT j.id, j.bytes, j.tenant = $1 AS own, j.tenant = $1
    AND ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR NOT $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR true)
    AND ($15::text IS NULL OR j.task = $15::text)
    AND ($16::text IS NULL OR j.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR j.schedule = $17::text)
    AND ($18::uuid IS NULL OR c.worker = $18::uuid)
    AND ($19::int IS NULL OR j.attempts + (c.job IS NOT NULL)::int BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(j.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = j.key AND k.job = j.id))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(j.payload::text, '\u') = 0 OR j.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN j.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(j.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT j.*, (256 + coalesce(pg_column_size(j.target), 0) + coalesce(pg_column_size(j.requires), 0) +
      coalesce(pg_column_size(j.payload), 0) + coalesce(pg_column_size(j.earlier_attempts), 0)) AS bytes FROM
      punctual.jobs j
    WHERE j.id < $2::uuid AND j.id >= $3::uuid AND $6::boolean AND j.id = ANY ($10::uuid[])
    ORDER BY j.id DESC LIMIT $4::int) j
  LEFT JOIN punctual.claims c ON c.job BETWEEN j.id AND j.id
), not_admitted AS MATERIALIZED (
  SELECT l.id, l.bytes, l.created_at, l.created_by, l.submission IS NOT NULL AS raw,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR l.held = $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR (l.workflow IS NULL OR l.task IS NOT NULL OR l.target IS NOT NULL))
    AND ($15::text IS NULL OR coalesce(l.task, punctual.readable(l.submission) ->> 'task') = $15::text)
    AND ($16::text IS NULL OR CASE WHEN l.submission IS NULL THEN l.queue = (SELECT q.id FROM punctual.queues q
      WHERE q.tenant = $1 AND q.name = $16::text)
      ELSE coalesce(punctual.readable(l.submission) ->> 'queue', 'default') = $16::text END)
    AND ($17::text IS NULL OR l.schedule = $17::text)
    AND ($18::uuid IS NULL OR false)
    AND ($19::int IS NULL OR l.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(l.key, $21::text) AND (l.submission IS NOT NULL OR EXISTS (SELECT 1 FROM
      punctual.keys k
      WHERE k.tenant = $1 AND k.key = l.key AND k.job = l.id)))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT coalesce(CASE WHEN strpos(l.payload::text, '\u') = 0 OR l.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN l.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END, CASE WHEN strpos(l.submission::text, '\u') = 0 OR l.submission::text ~
            '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
            THEN l.submission ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.submission::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END -> 'payload') AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT l.*, (256 + coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
      coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)) AS bytes FROM
      punctual.later l
    WHERE l.tenant = $1 AND l.id < $2::uuid AND l.id >= $3::uuid AND $7::boolean AND l.id = ANY ($10::uuid[])
    ORDER BY l.id DESC LIMIT $4::int) l
), ended AS MATERIALIZED (
  SELECT h.id, h.bytes,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR h.state = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR false)
    AND ($13::boolean IS NULL OR NOT h.at_most_once)
    AND ($14::boolean IS NULL OR (h.workflow IS NULL OR h.task IS NOT NULL OR h.target IS NOT NULL))
    AND ($15::text IS NULL OR h.task = $15::text)
    AND ($16::text IS NULL OR h.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR h.schedule = $17::text)
    AND ($18::uuid IS NULL OR h.worker = $18::uuid)
    AND ($19::int IS NULL OR h.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(h.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = h.key AND k.job = h.id))
    AND ($22::text IS NULL OR CASE WHEN strpos(h.error::text, to_json($22::text)::text) > 0
      THEN punctual.readable(h.error) ->> 'code' = $22::text END)
    AND ($23::text IS NULL OR h.state = 'failed' AND punctual.error_fingerprint(h.task, h.error) = $23::text)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(h.payload::text, '\u') = 0 OR h.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN h.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(h.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT h.*, (256 + coalesce(pg_column_size(h.target), 0) + coalesce(pg_column_size(h.requires), 0) +
      coalesce(pg_column_size(h.payload), 0) + coalesce(pg_column_size(h.earlier_attempts), 0) +
      coalesce(pg_column_size(h.result), 0) + coalesce(pg_column_size(h.error), 0) +
      coalesce(pg_column_size(h.execution), 0)) AS bytes FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane,
      e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once,
      e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key,
      e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence,
      e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at,
      e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history e UNION ALL SELECT e.id,
      e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts,
      e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by,
      e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts,
      e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress,
      e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history_kept
      e) h
    WHERE h.tenant = $1 AND h.id < $2::uuid AND h.id >= $3::uuid AND $8::boolean
      AND h.finished_at >= $9::bigint AND h.id = ANY ($10::uuid[])
    ORDER BY h.id DESC LIMIT $4::int) h
), position AS MATERIALIZED (
  SELECT greatest((SELECT id FROM live ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM not_admitted
    ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM ended ORDER BY id DESC OFFSET $4::int - 1 LIMIT
    1)) AS reach,
    (SELECT count(*) FROM live) AS live, (SELECT count(*) FROM live WHERE NOT own) AS others,
    NULL::boolean AS few, (SELECT count(*) FROM live WHERE own)
      + (SELECT count(*) FROM not_admitted) + (SELECT count(*) FROM ended) AS own
), found AS MATERIALIZED (
  SELECT f.* FROM position p CROSS JOIN LATERAL (
    SELECT 'live' AS place, id, bytes, false AS raw, NULL::bigint AS created_at, NULL AS created_by FROM live
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'later', id, bytes, raw, created_at, created_by FROM not_admitted
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'history', id, bytes, false, NULL, NULL FROM ended
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    ORDER BY id DESC LIMIT $5::int) f
)
SELECT f.id, f.place, f.bytes, f.raw, f.created_at AS "createdAt", f.created_by AS "createdBy", p.reach, p.own,
  p.live,
  p.others, p.few
FROM position p LEFT JOIN found f ON true ORDER BY f.id DESC;

-- find-needs
SELECT u.place, n.id, n.used_at AS "usedAt" FROM unnest($1::bytea[]) WITH ORDINALITY u(signature, place)
JOIN punctual.needs n ON n.signature = u.signature;

-- find-newest-artifact
SELECT a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
  a.created_by, a.ready_at, a.expires_at, a.job, a.output FROM punctual.artifacts a WHERE a.tenant = $1 AND a.name =
    $2 AND a.state = 'ready'
ORDER BY a.ready_at DESC, a.id DESC LIMIT 1;

-- find-origin-limits
SELECT tenant, origin, concurrency, rate_limit, rate_per, rate_burst FROM punctual.origin_limits WHERE tenant = $1
  AND origin = $2;

-- find-outbox
SELECT o.job FROM punctual.outbox o WHERE o.job = ANY($1::uuid[]);

-- find-overdue-artifacts
SELECT l.id, l.batch, false AS "isReady", (256 + coalesce(pg_column_size(l.target), 0) +
  coalesce(pg_column_size(l.requires), 0) + coalesce(pg_column_size(l.payload), 0) +
  coalesce(pg_column_size(l.earlier_attempts), 0)) AS bytes FROM punctual.later l
WHERE l.artifact IS NOT NULL AND l.artifact_by <= $3::bigint AND l.id <> ALL ($2::uuid[])
ORDER BY l.artifact_by LIMIT $1;

-- find-pending-uploads
SELECT a.id FROM punctual.artifacts a WHERE a.id = ANY ($1::uuid[]) AND a.state = 'pending';

-- find-queue
SELECT id, tenant, name, paused, created_at, weight, concurrency, key_concurrency, rate_limit, rate_per,
rate_burst, full_at, debt FROM punctual.queues WHERE tenant = $1 AND name = $2;

-- find-queues
SELECT u.place, q.id, q.used_at AS "usedAt"
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(tenant, name, place)
JOIN punctual.queues q ON q.tenant = u.tenant AND q.name = u.name;

-- find-quotas
SELECT v.version, t.* FROM punctual.quotas_version v LEFT JOIN (
SELECT id, name, weight, rate_limit, rate_per, rate_burst, full_at, debt, created_at, quota_live_jobs,
  quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
  quota_artifact_bytes FROM punctual.tenants WHERE id = ANY($1::text[])) t ON true;

-- find-running-jobs
WITH live AS MATERIALIZED (
  SELECT j.id, j.bytes, j.tenant = $1 AS own, j.tenant = $1
    AND ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR NOT $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR true)
    AND ($15::text IS NULL OR j.task = $15::text)
    AND ($16::text IS NULL OR j.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR j.schedule = $17::text)
    AND ($18::uuid IS NULL OR c.worker = $18::uuid)
    AND ($19::int IS NULL OR j.attempts + (c.job IS NOT NULL)::int BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(j.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = j.key AND k.job = j.id))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(j.payload::text, '\u') = 0 OR j.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN j.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(j.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT j.*, (256 + coalesce(pg_column_size(j.target), 0) + coalesce(pg_column_size(j.requires), 0) +
      coalesce(pg_column_size(j.payload), 0) + coalesce(pg_column_size(j.earlier_attempts), 0)) AS bytes FROM (
      SELECT c.job FROM punctual.claims c WHERE c.job < $2::uuid AND c.job >= $3::uuid AND $6::boolean
      ORDER BY c.job DESC LIMIT $4::int) c
    JOIN punctual.jobs j ON j.id BETWEEN c.job AND c.job) j
  LEFT JOIN punctual.claims c ON c.job BETWEEN j.id AND j.id
), not_admitted AS MATERIALIZED (
  SELECT l.id, l.bytes, l.created_at, l.created_by, l.submission IS NOT NULL AS raw,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR l.held = $12::boolean)
    AND ($13::boolean IS NULL OR true)
    AND ($14::boolean IS NULL OR (l.workflow IS NULL OR l.task IS NOT NULL OR l.target IS NOT NULL))
    AND ($15::text IS NULL OR coalesce(l.task, punctual.readable(l.submission) ->> 'task') = $15::text)
    AND ($16::text IS NULL OR CASE WHEN l.submission IS NULL THEN l.queue = (SELECT q.id FROM punctual.queues q
      WHERE q.tenant = $1 AND q.name = $16::text)
      ELSE coalesce(punctual.readable(l.submission) ->> 'queue', 'default') = $16::text END)
    AND ($17::text IS NULL OR l.schedule = $17::text)
    AND ($18::uuid IS NULL OR false)
    AND ($19::int IS NULL OR l.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(l.key, $21::text) AND (l.submission IS NOT NULL OR EXISTS (SELECT 1 FROM
      punctual.keys k
      WHERE k.tenant = $1 AND k.key = l.key AND k.job = l.id)))
    AND ($22::text IS NULL OR false)
    AND ($23::text IS NULL OR false)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT coalesce(CASE WHEN strpos(l.payload::text, '\u') = 0 OR l.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN l.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END, CASE WHEN strpos(l.submission::text, '\u') = 0 OR l.submission::text ~
            '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
            THEN l.submission ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(l.submission::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END -> 'payload') AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT l.*, (256 + coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
      coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)) AS bytes FROM
      punctual.later l
    WHERE l.tenant = $1 AND l.id < $2::uuid AND l.id >= $3::uuid AND $7::boolean
    ORDER BY l.id DESC LIMIT $4::int) l
), ended AS MATERIALIZED (
  SELECT h.id, h.bytes,
    ($10::uuid[] IS NULL OR true)
    AND ($11::text[] IS NULL OR h.state = ANY ($11::text[]))
    AND ($12::boolean IS NULL OR false)
    AND ($13::boolean IS NULL OR NOT h.at_most_once)
    AND ($14::boolean IS NULL OR (h.workflow IS NULL OR h.task IS NOT NULL OR h.target IS NOT NULL))
    AND ($15::text IS NULL OR h.task = $15::text)
    AND ($16::text IS NULL OR h.queue = (SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name =
      $16::text))
    AND ($17::text IS NULL OR h.schedule = $17::text)
    AND ($18::uuid IS NULL OR h.worker = $18::uuid)
    AND ($19::int IS NULL OR h.attempts BETWEEN $19::int AND $20::int)
    AND ($21::text IS NULL OR starts_with(h.key, $21::text) AND EXISTS (SELECT 1 FROM punctual.keys k
      WHERE k.tenant = $1 AND k.key = h.key AND k.job = h.id))
    AND ($22::text IS NULL OR CASE WHEN strpos(h.error::text, to_json($22::text)::text) > 0
      THEN punctual.readable(h.error) ->> 'code' = $22::text END)
    AND ($23::text IS NULL OR h.state = 'failed' AND punctual.error_fingerprint(h.task, h.error) = $23::text)
    AND ($24::text[] IS NULL OR NOT EXISTS (
      SELECT 1 FROM (
        SELECT CASE WHEN strpos(h.payload::text, '\u') = 0 OR h.payload::text ~
          '^(?:[^\\]|\\[^u]|\\u(?:[1-9a-cA-CeEfF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*$'
          THEN h.payload ELSE
        replace(replace(regexp_replace(regexp_replace(
          replace(h.payload::text, '\\', chr(1)),
          '\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', chr(2) || '\1' || chr(2) || '\2', 'g'),
          '\\u(0000|[dD][89abAB][0-9a-fA-F]{2}|[dD][c-fC-F][0-9a-fA-F]{2})', '\\ufffd', 'g'), chr(2), '\u'), chr(1),
            '\\')::json END AS value OFFSET 0) p,
        unnest($24::text[], $25::text[], $26::text[]) w(path, kind, value),
        LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
      WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
        WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
        WHEN f.field::text = w.value THEN true
        WHEN w.kind = 'number' AND f.field::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$' AND
          w.value ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'
          THEN f.field::text::numeric = w.value::numeric
        ELSE false END) IS NOT TRUE)) AS fits
  FROM (
    SELECT h.*, (256 + coalesce(pg_column_size(h.target), 0) + coalesce(pg_column_size(h.requires), 0) +
      coalesce(pg_column_size(h.payload), 0) + coalesce(pg_column_size(h.earlier_attempts), 0) +
      coalesce(pg_column_size(h.result), 0) + coalesce(pg_column_size(h.error), 0) +
      coalesce(pg_column_size(h.execution), 0)) AS bytes FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane,
      e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once,
      e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key,
      e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence,
      e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at,
      e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history e UNION ALL SELECT e.id,
      e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts,
      e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by,
      e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts,
      e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress,
      e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history_kept
      e) h
    WHERE h.tenant = $1 AND h.id < $2::uuid AND h.id >= $3::uuid AND $8::boolean
      AND h.finished_at >= $9::bigint
    ORDER BY h.id DESC LIMIT $4::int) h
), position AS MATERIALIZED (
  SELECT greatest((SELECT id FROM live ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM not_admitted
    ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1), (SELECT id FROM ended ORDER BY id DESC OFFSET $4::int - 1 LIMIT
    1)) AS reach,
    (SELECT count(*) FROM live) AS live, (SELECT count(*) FROM live WHERE NOT own) AS others,
    NULL::boolean AS few, (SELECT count(*) FROM live WHERE own)
      + (SELECT count(*) FROM not_admitted) + (SELECT count(*) FROM ended) AS own
), found AS MATERIALIZED (
  SELECT f.* FROM position p CROSS JOIN LATERAL (
    SELECT 'live' AS place, id, bytes, false AS raw, NULL::bigint AS created_at, NULL AS created_by FROM live
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'later', id, bytes, raw, created_at, created_by FROM not_admitted
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    UNION ALL
    SELECT 'history', id, bytes, false, NULL, NULL FROM ended
    WHERE fits AND (p.reach IS NULL OR id >= p.reach)
    ORDER BY id DESC LIMIT $5::int) f
)
SELECT f.id, f.place, f.bytes, f.raw, f.created_at AS "createdAt", f.created_by AS "createdBy", p.reach, p.own,
  p.live,
  p.others, p.few
FROM position p LEFT JOIN found f ON true ORDER BY f.id DESC;

-- find-schedule
SELECT s.id, s.tenant, s.name, s.paused, s.watermark, s.fire_at, s.last_job, s.last_workflow,
s.last_batch, s.created_at,
s.created_by, s.changed_at, s.changed_by, s.version, s.deleted_at, s.managed_by, s.definition FROM
  punctual.schedules s WHERE s.tenant = $1 AND s.name = $2 AND s.deleted_at IS NULL;

-- find-schedule-with-ledger
  (SELECT s.id, s.tenant, s.name, s.paused, s.watermark, s.fire_at, s.last_job, s.last_workflow,
s.last_batch, s.created_at,
s.created_by, s.changed_at, s.changed_by, s.version, s.deleted_at, s.managed_by, s.definition FROM
  punctual.schedules s WHERE s.tenant = $1 AND s.name = $2 AND s.deleted_at IS NULL)
  UNION ALL
  (SELECT s.id, s.tenant, s.name, s.paused, s.watermark, s.fire_at, s.last_job, s.last_workflow,
s.last_batch, s.created_at,
s.created_by, s.changed_at, s.changed_by, s.version, s.deleted_at, s.managed_by, s.definition FROM
  punctual.schedules s WHERE s.tenant = $1 AND s.name = $2 AND s.deleted_at IS NOT NULL
   ORDER BY s.deleted_at DESC LIMIT 1)
  LIMIT 1;

-- find-secret
SELECT s.tenant, s.name, s.version, s.origins, s.created_at, s.created_by, s.changed_at, s.changed_by, (SELECT
  count(*) FROM punctual.secrets a WHERE a.tenant = $1) AS stock
FROM (SELECT 1) one LEFT JOIN punctual.secrets s ON s.tenant = $1 AND s.name = $2;

-- find-segments
WITH RECURSIVE segment AS (
  SELECT $1::int AS queue, $2::int AS needs, $3::int AS lane, $4::smallint AS rank,
    -1::bigint AS "runAt", NULL::uuid AS id
  UNION ALL
  SELECT n.* FROM segment s CROSS JOIN LATERAL (
    SELECT j.queue, j.needs, j.lane, j.rank, j.run_at, j.id FROM punctual.jobs j
    WHERE (j.queue, j.needs, j.lane, j.rank) > (s.queue, s.needs, s.lane, s.rank) AND (SELECT true FROM
      punctual.claims c WHERE c.job = j.id) IS NULL
    ORDER BY j.queue, j.needs, j.lane, j.rank, j.run_at, j.id LIMIT 1) n
)
SELECT queue, needs, lane, rank, "runAt", id FROM segment OFFSET 1 LIMIT $5;

-- find-steps
SELECT s.id, s.name, coalesce(s.outcome, o.state) AS outcome, coalesce(s.finished_at, o.finished_at) AS "finishedAt"
FROM punctual.steps s
LEFT JOIN LATERAL (SELECT o.state, o.finished_at FROM punctual.outbox o WHERE o.job = s.id LIMIT 1) o ON true
WHERE s.workflow = $1::uuid AND s.name = ANY($2::text[]);

-- find-steps-below
WITH RECURSIVE down AS (
  SELECT u.id FROM unnest($1::uuid[]) u(id)
  UNION
  SELECT c.id FROM down d CROSS JOIN LATERAL (SELECT unnest(g.child_ids) AS id FROM punctual.steps g WHERE g.id
    BETWEEN d.id AND d.id
  UNION ALL SELECT e.child FROM punctual.edges e WHERE e.parent BETWEEN d.id AND d.id) c
)
SELECT d.id FROM down d WHERE d.id = ANY($2::uuid[]) LIMIT 1;

-- find-task
SELECT tenant, name, definition, published_by, created_at, created_by, changed_at, changed_by, version FROM
  punctual.tasks WHERE tenant = $1 AND name = $2;

-- find-tenant
SELECT id, name, weight, rate_limit, rate_per, rate_burst, full_at, debt, created_at, quota_live_jobs,
  quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
  quota_artifact_bytes FROM punctual.tenants WHERE id = $1;

-- find-unnamed-artifact
SELECT a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
  a.created_by, a.ready_at, a.expires_at, a.job, a.output FROM punctual.artifacts a
WHERE a.sha256 = $2 AND a.tenant = $1 AND a.name IS NULL AND a.job IS NULL AND a.state <> 'gone' AND a.size =
  $3::bigint
  AND a.runnable = $4::boolean
ORDER BY a.id LIMIT 1;

-- find-used-names
SELECT n.tenant, q.name AS queue, n.target, n.handler
FROM (SELECT id, tenant, target, handler, labels FROM punctual.needs ORDER BY id DESC LIMIT 100) n
CROSS JOIN LATERAL (SELECT name FROM punctual.queues WHERE tenant = n.tenant ORDER BY name LIMIT 1) q
WHERE n.labels = '' AND n.handler NOT LIKE 'bucket:%'
ORDER BY n.id DESC LIMIT 1;

-- find-worker
SELECT id, tenant, name, state, registration, registered_at AS "registeredAt", last_seen AS "lastSeen", operator
  FROM punctual.workers WHERE ($1::text IS NULL OR tenant = $1) AND NOT ($3::boolean AND operator) AND id = $2::uuid;

-- find-worker-ids
SELECT id, false AS cut FROM punctual.workers
WHERE ($1::text IS NULL OR tenant = $1) AND id >= $2::uuid AND id <= $3::uuid AND ($5::boolean OR NOT operator)
ORDER BY id LIMIT $4::int;

-- find-workflow-definition
SELECT d.tenant, d.name, d.version, d.on_failure, d.running, d.bytes, d.steps,
encode(d.digest, 'hex') AS digest, d.queues, d.tasks, d.created_at,
d.created_by, d.replaced_at FROM punctual.workflow_definitions d WHERE d.tenant = $1 AND d.name = $2
AND CASE WHEN $3::int IS NULL THEN d.replaced_at IS NULL ELSE d.version = $3::int END;

-- find-workflow-events
SELECT e.workflow, e.name, e.payload FROM unnest($1::uuid[], $2::text[]) u(workflow, name)
JOIN punctual.workflow_events e ON e.workflow BETWEEN u.workflow AND u.workflow AND e.name = u.name;

-- find-workflow-key
SELECT id FROM punctual.workflows WHERE tenant = $1 AND key = $2;

-- finish-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), freed AS (
  DELETE FROM punctual.claims c
  WHERE c.job = ANY($5::uuid[]) AND c.fence = CASE WHEN ($7::int[]) IS NULL THEN $6::int ELSE
    nullif(($7::int[])[width_bucket(c.job, $5::uuid[])], -1) END AND EXISTS (SELECT 1 FROM term)
  RETURNING c.job
), moved AS (
  DELETE FROM punctual.jobs j WHERE j.id = ANY(ARRAY(SELECT job FROM freed))
  RETURNING j.*, width_bucket(j.id, $5::uuid[]) AS place
), ended AS (
  INSERT INTO punctual.job_history (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, fence, worker, epoch, claimed_at, progress, started_at, finished_at, state, outcome, result,
    error, execution)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, CASE WHEN ($7::int[]) IS NULL THEN $6::int ELSE
    nullif(($7::int[])[m.place], -1) END AS attempts, m.failures +
    (('{succeeded,failed,timed-out,lost,cancelled}'::text[])[CASE WHEN ($19::smallint[]) IS NULL THEN $18::smallint
    ELSE nullif(($19::smallint[])[m.place], -1) END] IN ('failed', 'timed-out'))::int AS failures, m.losses +
    (('{succeeded,failed,timed-out,lost,cancelled}'::text[])[CASE WHEN ($19::smallint[]) IS NULL THEN $18::smallint
    ELSE nullif(($19::smallint[])[m.place], -1) END] = 'lost')::int AS losses, m.max_attempts, m.max_losses,
    m.at_most_once, m.timeout_ms, m.created_at, m.start_before, coalesce(m.late_by, greatest(0, coalesce(CASE WHEN
    ($15::bigint[]) IS NULL THEN $14::bigint ELSE nullif(($15::bigint[])[m.place], -1) END, CASE WHEN
    ($13::bigint[]) IS NULL THEN $12::bigint ELSE nullif(($13::bigint[])[m.place], -1) END) - m.run_at)) AS late_by,
    m.task, m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, CASE WHEN ($7::int[]) IS NULL THEN $6::int
    ELSE nullif(($7::int[])[m.place], -1) END AS fence, CASE WHEN ($9::uuid[]) IS NULL THEN $8::uuid ELSE
    ($9::uuid[])[m.place] END AS worker, CASE WHEN ($11::bigint[]) IS NULL THEN $10::bigint ELSE
    nullif(($11::bigint[])[m.place], -1) END AS epoch, CASE WHEN ($13::bigint[]) IS NULL THEN $12::bigint ELSE
    nullif(($13::bigint[])[m.place], -1) END AS claimed_at, CASE WHEN $29::bytea IS NULL THEN $28::json ELSE
    convert_from(substring($29::bytea FROM ($30::int[])[m.place] FOR nullif(($31::int[])[m.place], 0)),
    'UTF8')::json END AS progress, CASE WHEN ($15::bigint[]) IS NULL THEN $14::bigint ELSE
    nullif(($15::bigint[])[m.place], -1) END AS started_at, $4::bigint AS finished_at,
    ('{succeeded,failed,cancelled,skipped}'::text[])[CASE WHEN ($17::smallint[]) IS NULL THEN $16::smallint ELSE
    nullif(($17::smallint[])[m.place], -1) END] AS state,
    ('{succeeded,failed,timed-out,lost,cancelled}'::text[])[CASE WHEN ($19::smallint[]) IS NULL THEN $18::smallint
    ELSE nullif(($19::smallint[])[m.place], -1) END] AS outcome, CASE WHEN $21::bytea IS NULL THEN $20::json ELSE
    convert_from(substring($21::bytea FROM ($22::int[])[m.place] FOR nullif(($23::int[])[m.place], 0)),
    'UTF8')::json END AS result, CASE WHEN $25::bytea IS NULL THEN $24::json ELSE convert_from(substring($25::bytea
    FROM ($26::int[])[m.place] FOR nullif(($27::int[])[m.place], 0)), 'UTF8')::json END AS error, CASE WHEN
    $33::bytea IS NULL THEN $32::json ELSE convert_from(substring($33::bytea FROM ($34::int[])[m.place] FOR
    nullif(($35::int[])[m.place], 0)), 'UTF8')::json END AS execution
  FROM moved m
  RETURNING id, tenant, state, schedule, workflow
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled)
  SELECT $4::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'),
    count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled')
  FROM ended GROUP BY tenant
), left_over AS (
  INSERT INTO punctual.outbox (job, workflow, state, finished_at)
  SELECT id, workflow, state, $4::bigint FROM ended WHERE workflow IS NOT NULL
  RETURNING job, workflow, state
), answer AS (SELECT count(*) AS changed, CASE WHEN count(*) < cardinality($5::uuid[]) THEN ARRAY(SELECT id FROM
  ended) END AS ids FROM ended) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- fold-tallies
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), folded AS (
  DELETE FROM punctual.tallies t WHERE t.ctid = ANY (ARRAY(
    SELECT s.ctid FROM punctual.tallies s WHERE s.at < $4::bigint AND EXISTS (SELECT 1 FROM term) LIMIT $5::int))
  RETURNING t.*
), minutes AS (
  INSERT INTO punctual.tally_minutes AS m (minute, tenant, leader_elections, jobs_submitted, jobs_assigned,
    jobs_completed, jobs_failed, jobs_cancelled, jobs_retried, jobs_requeued, stale_completions, stale_failures,
    occurrences_late, occurrences_missed, workflows_submitted, workflows_retried, workflows_succeeded,
    workflows_failed, workflows_cancelled, steps_skipped, batches_submitted, batches_started, batches_succeeded,
    batches_failed, batches_cancelled, batches_timed_out, lateness_ms, lateness)
  SELECT (at / 60000) * 60000, tenant, coalesce(sum(leader_elections), 0)::bigint AS leader_elections,
    coalesce(sum(jobs_submitted), 0)::bigint AS jobs_submitted, coalesce(sum(jobs_assigned), 0)::bigint AS
    jobs_assigned, coalesce(sum(jobs_completed), 0)::bigint AS jobs_completed, coalesce(sum(jobs_failed), 0)::bigint
    AS jobs_failed, coalesce(sum(jobs_cancelled), 0)::bigint AS jobs_cancelled, coalesce(sum(jobs_retried),
    0)::bigint AS jobs_retried, coalesce(sum(jobs_requeued), 0)::bigint AS jobs_requeued,
    coalesce(sum(stale_completions), 0)::bigint AS stale_completions, coalesce(sum(stale_failures), 0)::bigint AS
    stale_failures, coalesce(sum(occurrences_late), 0)::bigint AS occurrences_late,
    coalesce(sum(occurrences_missed), 0)::bigint AS occurrences_missed, coalesce(sum(workflows_submitted),
    0)::bigint AS workflows_submitted, coalesce(sum(workflows_retried), 0)::bigint AS workflows_retried,
    coalesce(sum(workflows_succeeded), 0)::bigint AS workflows_succeeded, coalesce(sum(workflows_failed), 0)::bigint
    AS workflows_failed, coalesce(sum(workflows_cancelled), 0)::bigint AS workflows_cancelled,
    coalesce(sum(steps_skipped), 0)::bigint AS steps_skipped, coalesce(sum(batches_submitted), 0)::bigint AS
    batches_submitted, coalesce(sum(batches_started), 0)::bigint AS batches_started,
    coalesce(sum(batches_succeeded), 0)::bigint AS batches_succeeded, coalesce(sum(batches_failed), 0)::bigint AS
    batches_failed, coalesce(sum(batches_cancelled), 0)::bigint AS batches_cancelled,
    coalesce(sum(batches_timed_out), 0)::bigint AS batches_timed_out, coalesce(sum(lateness_ms), 0)::bigint AS
    lateness_ms, coalesce(punctual.sum_histograms(lateness), '{}'::bigint[])
  FROM folded GROUP BY 1, 2
  ON CONFLICT (minute, tenant) DO UPDATE SET leader_elections = m.leader_elections + excluded.leader_elections,
    jobs_submitted = m.jobs_submitted + excluded.jobs_submitted, jobs_assigned = m.jobs_assigned +
    excluded.jobs_assigned, jobs_completed = m.jobs_completed + excluded.jobs_completed, jobs_failed = m.jobs_failed
    + excluded.jobs_failed, jobs_cancelled = m.jobs_cancelled + excluded.jobs_cancelled, jobs_retried =
    m.jobs_retried + excluded.jobs_retried, jobs_requeued = m.jobs_requeued + excluded.jobs_requeued,
    stale_completions = m.stale_completions + excluded.stale_completions, stale_failures = m.stale_failures +
    excluded.stale_failures, occurrences_late = m.occurrences_late + excluded.occurrences_late, occurrences_missed =
    m.occurrences_missed + excluded.occurrences_missed, workflows_submitted = m.workflows_submitted +
    excluded.workflows_submitted, workflows_retried = m.workflows_retried + excluded.workflows_retried,
    workflows_succeeded = m.workflows_succeeded + excluded.workflows_succeeded, workflows_failed =
    m.workflows_failed + excluded.workflows_failed, workflows_cancelled = m.workflows_cancelled +
    excluded.workflows_cancelled, steps_skipped = m.steps_skipped + excluded.steps_skipped, batches_submitted =
    m.batches_submitted + excluded.batches_submitted, batches_started = m.batches_started +
    excluded.batches_started, batches_succeeded = m.batches_succeeded + excluded.batches_succeeded, batches_failed =
    m.batches_failed + excluded.batches_failed, batches_cancelled = m.batches_cancelled +
    excluded.batches_cancelled, batches_timed_out = m.batches_timed_out + excluded.batches_timed_out, lateness_ms =
    m.lateness_ms + excluded.lateness_ms, lateness = punctual.add_histograms(m.lateness, excluded.lateness)
), totals AS (
  INSERT INTO punctual.tally_totals AS m (tenant, leader_elections, jobs_submitted, jobs_assigned, jobs_completed,
    jobs_failed, jobs_cancelled, jobs_retried, jobs_requeued, stale_completions, stale_failures, occurrences_late,
    occurrences_missed, workflows_submitted, workflows_retried, workflows_succeeded, workflows_failed,
    workflows_cancelled, steps_skipped, batches_submitted, batches_started, batches_succeeded, batches_failed,
    batches_cancelled, batches_timed_out, lateness_ms, lateness)
  SELECT tenant, coalesce(sum(leader_elections), 0)::bigint AS leader_elections, coalesce(sum(jobs_submitted),
    0)::bigint AS jobs_submitted, coalesce(sum(jobs_assigned), 0)::bigint AS jobs_assigned,
    coalesce(sum(jobs_completed), 0)::bigint AS jobs_completed, coalesce(sum(jobs_failed), 0)::bigint AS
    jobs_failed, coalesce(sum(jobs_cancelled), 0)::bigint AS jobs_cancelled, coalesce(sum(jobs_retried), 0)::bigint
    AS jobs_retried, coalesce(sum(jobs_requeued), 0)::bigint AS jobs_requeued, coalesce(sum(stale_completions),
    0)::bigint AS stale_completions, coalesce(sum(stale_failures), 0)::bigint AS stale_failures,
    coalesce(sum(occurrences_late), 0)::bigint AS occurrences_late, coalesce(sum(occurrences_missed), 0)::bigint AS
    occurrences_missed, coalesce(sum(workflows_submitted), 0)::bigint AS workflows_submitted,
    coalesce(sum(workflows_retried), 0)::bigint AS workflows_retried, coalesce(sum(workflows_succeeded), 0)::bigint
    AS workflows_succeeded, coalesce(sum(workflows_failed), 0)::bigint AS workflows_failed,
    coalesce(sum(workflows_cancelled), 0)::bigint AS workflows_cancelled, coalesce(sum(steps_skipped), 0)::bigint AS
    steps_skipped, coalesce(sum(batches_submitted), 0)::bigint AS batches_submitted, coalesce(sum(batches_started),
    0)::bigint AS batches_started, coalesce(sum(batches_succeeded), 0)::bigint AS batches_succeeded,
    coalesce(sum(batches_failed), 0)::bigint AS batches_failed, coalesce(sum(batches_cancelled), 0)::bigint AS
    batches_cancelled, coalesce(sum(batches_timed_out), 0)::bigint AS batches_timed_out, coalesce(sum(lateness_ms),
    0)::bigint AS lateness_ms, coalesce(punctual.sum_histograms(lateness), '{}'::bigint[])
  FROM folded GROUP BY 1
  ON CONFLICT (tenant) DO UPDATE SET leader_elections = m.leader_elections + excluded.leader_elections,
    jobs_submitted = m.jobs_submitted + excluded.jobs_submitted, jobs_assigned = m.jobs_assigned +
    excluded.jobs_assigned, jobs_completed = m.jobs_completed + excluded.jobs_completed, jobs_failed = m.jobs_failed
    + excluded.jobs_failed, jobs_cancelled = m.jobs_cancelled + excluded.jobs_cancelled, jobs_retried =
    m.jobs_retried + excluded.jobs_retried, jobs_requeued = m.jobs_requeued + excluded.jobs_requeued,
    stale_completions = m.stale_completions + excluded.stale_completions, stale_failures = m.stale_failures +
    excluded.stale_failures, occurrences_late = m.occurrences_late + excluded.occurrences_late, occurrences_missed =
    m.occurrences_missed + excluded.occurrences_missed, workflows_submitted = m.workflows_submitted +
    excluded.workflows_submitted, workflows_retried = m.workflows_retried + excluded.workflows_retried,
    workflows_succeeded = m.workflows_succeeded + excluded.workflows_succeeded, workflows_failed =
    m.workflows_failed + excluded.workflows_failed, workflows_cancelled = m.workflows_cancelled +
    excluded.workflows_cancelled, steps_skipped = m.steps_skipped + excluded.steps_skipped, batches_submitted =
    m.batches_submitted + excluded.batches_submitted, batches_started = m.batches_started +
    excluded.batches_started, batches_succeeded = m.batches_succeeded + excluded.batches_succeeded, batches_failed =
    m.batches_failed + excluded.batches_failed, batches_cancelled = m.batches_cancelled +
    excluded.batches_cancelled, batches_timed_out = m.batches_timed_out + excluded.batches_timed_out, lateness_ms =
    m.lateness_ms + excluded.lateness_ms, lateness = punctual.add_histograms(m.lateness, excluded.lateness)
), answer AS (SELECT count(*) AS folded FROM folded) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- forget-ahead
DELETE FROM punctual.occurrences o USING unnest($2::bigint[]) u(at)
WHERE o.schedule = $1::uuid AND o.at = u.at AND NOT o.by_hand;

-- forget-artifact
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.artifacts a SET state = 'gone', name = NULL, version = NULL, job = NULL
  WHERE a.id = $4::uuid AND a.state = $5::text AND a.used_at = $6::bigint AND a.expires_at = $7::bigint
    AND (SELECT true FROM punctual.later l WHERE l.artifact = a.id LIMIT 1) IS NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING a.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- forget-cancel-requests
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  DELETE FROM punctual.cancel_requests c USING unnest($4::bigint[]) u(id)
  WHERE c.id BETWEEN u.id AND u.id AND EXISTS (SELECT 1 FROM term)
  RETURNING c.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- forget-dead-workers
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), forgotten AS (
  DELETE FROM punctual.workers w WHERE w.id = ANY (ARRAY(
    SELECT d.id FROM (
      SELECT id, last_seen, row_number() OVER (PARTITION BY tenant ORDER BY id DESC) AS place
      FROM punctual.workers WHERE state = 'dead') d
    WHERE (d.last_seen < $4::bigint OR d.place > $5::int) AND EXISTS (SELECT 1 FROM term) LIMIT $6::int))
  RETURNING 1
), answer AS (SELECT count(*) AS forgotten FROM forgotten) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- forget-definition-numbers
WITH gone AS (
  DELETE FROM punctual.definition_numbers n WHERE n.tenant = $1 AND n.name <> '' AND NOT EXISTS (
    SELECT FROM punctual.workflow_definitions d WHERE d.tenant = n.tenant AND d.name = n.name)
  RETURNING n.version
)
INSERT INTO punctual.definition_numbers AS n (tenant, name, version)
SELECT $1, '', max(g.version) FROM gone g HAVING max(g.version) IS NOT NULL
ON CONFLICT (tenant, name) DO UPDATE SET version = greatest(n.version, excluded.version);

-- forget-definition-versions
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), page AS MATERIALIZED (
  SELECT d.tenant, d.name, d.version, d.ctid AS place FROM punctual.workflow_definitions d
  WHERE d.replaced_at < $7::bigint AND (d.tenant, d.name, d.version) > ($4::text, $5::text, $6::int) AND EXISTS
    (SELECT 1 FROM term)
  ORDER BY d.tenant, d.name, d.version LIMIT 500
), gone AS (
  DELETE FROM punctual.workflow_definitions d WHERE d.ctid = ANY (ARRAY(
    SELECT p.place FROM page p WHERE (
      SELECT true FROM punctual.workflows w
      WHERE w.tenant = p.tenant AND w.definition = p.name AND w.definition_version = p.version LIMIT 1) IS NULL))
  RETURNING 1
), answer AS (
  SELECT p.tenant, p.name, p.version, (SELECT count(*) FROM page) AS seen, (SELECT count(*) FROM gone) AS gone
  FROM page p ORDER BY p.tenant DESC, p.name DESC, p.version DESC LIMIT 1
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- forget-node
DELETE FROM punctual.nodes WHERE id = $1 AND url = $2;

-- forget-occurrences
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), forgotten AS (
  DELETE FROM punctual.occurrences o WHERE o.ctid = ANY (ARRAY(
    SELECT f.ctid FROM punctual.occurrences f
    WHERE f.recorded_at < $4::bigint AND f.state <> 'waiting' AND EXISTS (SELECT 1 FROM term)
    ORDER BY f.recorded_at LIMIT $5::int))
  RETURNING 1
), answer AS (SELECT count(*) AS forgotten FROM forgotten),
marked AS (
  UPDATE punctual.cluster SET ledger_known_since = $4::bigint
  WHERE ledger_known_since < $4::bigint AND EXISTS (SELECT 1 FROM forgotten)
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- forget-old
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), minutes AS (
  DELETE FROM punctual.tally_minutes t WHERE t.ctid = ANY (ARRAY(
    SELECT s.ctid FROM punctual.tally_minutes s WHERE s.minute < $4::bigint AND EXISTS (SELECT 1 FROM term) LIMIT
      $6::int))
  RETURNING 1
), answers AS (
  DELETE FROM punctual.idempotency i WHERE i.created_at < $5::bigint AND i.ctid = ANY (ARRAY(
    SELECT s.ctid FROM punctual.idempotency s WHERE s.created_at < $5::bigint AND EXISTS (SELECT 1 FROM term) LIMIT
      $7::int))
  RETURNING 1
), old_batches AS MATERIALIZED (
  SELECT b.id FROM punctual.batches b WHERE b.ended_at < $8::bigint AND EXISTS (SELECT 1 FROM term) LIMIT $7::int
), jobs AS MATERIALIZED (
  SELECT k.tenant, k.id FROM punctual.job_history_kept k
  WHERE k.batch = ANY (ARRAY(SELECT id FROM old_batches)) LIMIT $9::int
), jobs_gone AS (
  DELETE FROM punctual.job_history_kept k USING jobs j WHERE k.tenant = j.tenant AND k.id = j.id
), batches AS (
  DELETE FROM punctual.batches b
  WHERE b.id = ANY (ARRAY(SELECT id FROM old_batches)) AND (SELECT count(*) FROM jobs) < $9::int
), answer AS (SELECT (SELECT count(*) FROM minutes) = $6::int OR (SELECT count(*) FROM answers) = $7::int
  OR (SELECT count(*) FROM old_batches) = $7::int OR (SELECT count(*) FROM jobs) = $9::int AS more) SELECT answer.*
    FROM term LEFT JOIN answer ON true;

-- forget-schedules
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), forgotten AS (
  DELETE FROM punctual.schedules s WHERE s.ctid = ANY (ARRAY(
    SELECT f.ctid FROM punctual.schedules f WHERE f.deleted_at < $4::bigint AND EXISTS (SELECT 1 FROM term) LIMIT
      $5::int))
  RETURNING 1
), answer AS (SELECT count(*) AS forgotten FROM forgotten) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- forget-signing-secrets
DELETE FROM punctual.signing_secrets s WHERE s.tenant = $1 AND s.expires_at <= $2::bigint;

-- forget-silent-nodes
DELETE FROM punctual.nodes WHERE last_seen < $1;

-- forget-usage
WITH free AS MATERIALIZED (
  SELECT u.tenant FROM unnest($1::text[]) a(tenant)
  JOIN punctual.tenant_usage u ON u.tenant BETWEEN a.tenant AND a.tenant FOR UPDATE OF u SKIP LOCKED
), forgotten AS (
  UPDATE punctual.tenant_usage u SET live = NULL, later = NULL, counted_at = 0
  FROM free f WHERE u.tenant BETWEEN f.tenant AND f.tenant
) SELECT a.tenant FROM unnest($1::text[]) a(tenant)
WHERE NOT (a.tenant = ANY (ARRAY(SELECT f.tenant FROM free f)))
  AND (SELECT true FROM punctual.tenant_usage u WHERE u.tenant = a.tenant);

-- forget-usage-of-one
WITH free AS MATERIALIZED (
  SELECT u.tenant FROM unnest($1::text[]) a(tenant)
  JOIN punctual.tenant_usage u ON u.tenant BETWEEN a.tenant AND a.tenant FOR UPDATE OF u
), forgotten AS (
  UPDATE punctual.tenant_usage u SET live = NULL, later = NULL, counted_at = 0
  FROM free f WHERE u.tenant BETWEEN f.tenant AND f.tenant
) SELECT a.tenant FROM unnest($1::text[]) a(tenant)
WHERE NOT (a.tenant = ANY (ARRAY(SELECT f.tenant FROM free f)))
  AND (SELECT true FROM punctual.tenant_usage u WHERE u.tenant = a.tenant);

-- forget-workers
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  DELETE FROM punctual.workers w WHERE w.id = ANY ($4::uuid[]) AND EXISTS (SELECT 1 FROM term) RETURNING w.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- forget-workflows
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), old AS MATERIALIZED (
  SELECT w.id FROM punctual.workflows w WHERE w.ended_at < $4::bigint AND EXISTS (SELECT 1 FROM term)
  ORDER BY w.ended_at LIMIT $5::int
), jobs AS MATERIALIZED (
  SELECT k.tenant, k.id FROM punctual.job_history_kept k
  WHERE k.workflow = ANY (ARRAY(SELECT id FROM old)) LIMIT $6::int
), jobs_gone AS (
  DELETE FROM punctual.job_history_kept k USING jobs j WHERE k.tenant = j.tenant AND k.id = j.id
), last AS MATERIALIZED (
  SELECT id FROM old WHERE (SELECT count(*) FROM jobs) < $6::int
), gone AS (
  DELETE FROM punctual.workflows w WHERE w.id = ANY (ARRAY(SELECT id FROM last)) RETURNING w.id
), steps AS (
  DELETE FROM punctual.steps s WHERE s.workflow = ANY (ARRAY(SELECT id FROM last)) RETURNING s.id
), edges AS (
  DELETE FROM punctual.edges e WHERE e.parent = ANY (ARRAY(SELECT id FROM steps))
), events AS (
  DELETE FROM punctual.workflow_events e WHERE e.workflow = ANY (ARRAY(SELECT id FROM last))
), answer AS (
  SELECT (SELECT count(*) FROM old) = $5::int OR (SELECT count(*) FROM jobs) = $6::int AS more
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- free-artifact-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), chosen AS MATERIALIZED (
  SELECT l.id,
    l.batch IS NULL AND (s.id IS NULL OR (s.released AND NOT s.parked AND NOT coalesce(w.held, false))) AS goes,
    coalesce(s.released AND w.held, false) AS parks
  FROM unnest($4::uuid[]) u(id) JOIN punctual.later l ON l.id BETWEEN u.id AND u.id
  LEFT JOIN LATERAL (
    SELECT s.id, s.released, s.parked FROM punctual.steps s WHERE s.id = l.id AND l.workflow IS NOT NULL LIMIT 1) s
      ON true
  LEFT JOIN LATERAL (
    SELECT w.held FROM punctual.workflows w WHERE w.id = l.workflow AND s.id IS NOT NULL LIMIT 1) w ON true
  WHERE (SELECT a.state FROM punctual.artifacts a WHERE a.id = l.artifact LIMIT 1) = 'ready' AND EXISTS (SELECT 1
    FROM term)
), parked AS (
  UPDATE punctual.steps s SET parked = true WHERE s.id = ANY (ARRAY(SELECT c.id FROM chosen c WHERE c.parks))
), answer AS (
  UPDATE punctual.later l SET artifact = NULL, artifact_by = NULL, blocked = NOT c.goes,
    run_at = CASE WHEN c.goes THEN greatest(l.run_at, $5::bigint) ELSE l.run_at END,
    admit_at = CASE WHEN c.goes THEN greatest(l.run_at - $6::bigint, $5::bigint) ELSE l.admit_at END
  FROM chosen c WHERE l.id BETWEEN c.id AND c.id
  RETURNING l.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- get-api-key
SELECT id, name, operator, tenant, scopes, queues, tasks, expires_at AS "expiresAt", created_at AS "createdAt",
created_by AS "createdBy", last_used_at AS "lastUsedAt" FROM punctual.api_keys WHERE id = $1::uuid AND ($2::text IS
  NULL OR tenant = $2);

-- hand-on-claims
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), handed AS (
  UPDATE punctual.claims c SET
    handed_on_at = coalesce(c.handed_on_at, $4::bigint), started_at = coalesce(c.started_at, u.started_at)
  FROM unnest($5::uuid[], $6::int[], $7::bigint[]) u(job, fence, started_at)
  WHERE c.job BETWEEN u.job AND u.job AND c.fence = u.fence AND EXISTS (SELECT 1 FROM term)
  RETURNING c.job
), answer AS (SELECT count(*) AS changed, CASE WHEN count(*) < cardinality($5::uuid[]) THEN ARRAY(SELECT job FROM
  handed) END AS ids FROM handed) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- hold-workflow
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.workflows w SET held = $6::boolean, held_with_outer = $6::boolean AND $7::boolean, swept = false
  WHERE w.id = $5::uuid AND w.tenant = $4::text AND w.state = 'running' AND EXISTS (SELECT 1 FROM term)
    AND CASE
      WHEN w.held <> $6::boolean THEN $6::boolean OR NOT $7::boolean OR w.held_with_outer
      -- Who holds it by itself wants it to stay so when the one around it is released.
      ELSE $6::boolean AND w.held_with_outer AND NOT $7::boolean END
  RETURNING w.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- hold-workflow-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.workflows w SET held = $6::boolean, held_with_outer = $6::boolean AND $7::boolean, swept = false
  WHERE w.id = $5::uuid AND w.tenant = $4::text AND w.state = 'running' AND EXISTS (SELECT 1 FROM term)
    AND CASE
      WHEN w.held <> $6::boolean THEN $6::boolean OR NOT $7::boolean OR w.held_with_outer
      -- Who holds it by itself wants it to stay so when the one around it is released.
      ELSE $6::boolean AND w.held_with_outer AND NOT $7::boolean END
  RETURNING w.id
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $8::uuid, $9::bigint, $10::text, $11::uuid, $12::text, $13::text, $14::text, $15::text,
    $16::text, $17::text, $18::json, $19::json, $20::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- insert-jobs
WITH valid AS MATERIALIZED (
  SELECT (SELECT count(*) FROM unnest($4::int[], $5::text[], $6::text[]) n(id, tenant, name)
    JOIN punctual.queues q ON q.id BETWEEN n.id AND n.id AND q.tenant = n.tenant AND q.name = n.name) =
      cardinality($4::int[])
  AND (SELECT count(*) FROM unnest($7::int[], $8::bytea[]) n(id, signature)
    JOIN punctual.needs w ON w.id BETWEEN n.id AND n.id AND w.signature = n.signature) = cardinality($7::int[]) AS
      named,
    floor(extract(epoch FROM clock_timestamp()) * 1000) <= $9::bigint + 5000 AS young
), stored AS (
  INSERT INTO punctual.jobs (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent)
  SELECT u.id, coalesce(u.payload, $13::json), coalesce(u.size_kib, $14::int), $15::text, $16::int, $17::int,
    $18::int, $19::smallint, $20::bigint, $21::smallint, $22::smallint, $23::boolean, $24::bigint, $25::bigint,
    $26::bigint, $27::text, $28::text, $29::text, $30::text, $31::json, $32::json, $33::json, $34::text FROM
    unnest($10::uuid[], $11::json[], $12::int[]) u(id, payload, size_kib) WHERE (SELECT named AND young FROM valid)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
  SELECT $1::bigint, c.tenant, c.jobs FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs)
  WHERE (SELECT named AND young FROM valid)
)
SELECT named, young FROM valid;

-- insert-keys
INSERT INTO punctual.keys (tenant, key, job, said_at)
SELECT u.tenant, u.key, u.job, coalesce(u.said_at, floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) WITH ORDINALITY u(tenant, key, job, said_at, place)
ORDER BY u.tenant, u.key, u.place
ON CONFLICT (tenant, key) DO NOTHING;

-- insert-later
WITH valid AS MATERIALIZED (
  SELECT (SELECT count(*) FROM unnest($4::int[], $5::text[], $6::text[]) n(id, tenant, name)
    JOIN punctual.queues q ON q.id BETWEEN n.id AND n.id AND q.tenant = n.tenant AND q.name = n.name) =
      cardinality($4::int[])
  AND (SELECT count(*) FROM unnest($7::int[], $8::bytea[]) n(id, signature)
    JOIN punctual.needs w ON w.id BETWEEN n.id AND n.id AND w.signature = n.signature) = cardinality($7::int[]) AS
      named,
    floor(extract(epoch FROM clock_timestamp()) * 1000) <= $9::bigint + 5000 AS young
), stored AS (
  INSERT INTO punctual.later (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent, artifact, artifact_by, admit_at, held, blocked)
  SELECT u.id, coalesce(u.payload, $38::json), coalesce(u.size_kib, $39::int), coalesce(u.tenant, $40::text),
    coalesce(u.queue, $41::int), coalesce(u.needs, $42::int), coalesce(u.lane, $43::int), coalesce(u.rank,
    $44::smallint), coalesce(u.run_at, $45::bigint), coalesce(u.max_attempts, $46::smallint), coalesce(u.max_losses,
    $47::smallint), coalesce(u.at_most_once, $48::boolean), coalesce(u.timeout_ms, $49::bigint),
    coalesce(u.created_at, $50::bigint), coalesce(u.start_before, $51::bigint), coalesce(u.task, $52::text),
    coalesce(u.created_by, $53::text), coalesce(u.key, $54::text), coalesce(u.concurrency_key, $55::text),
    coalesce(u.target, $56::json), coalesce(u.backoff, $57::json), coalesce(u.requires, $58::json),
    coalesce(u.traceparent, $59::text), coalesce(u.artifact, $60::uuid), coalesce(u.artifact_by, $61::bigint),
    coalesce(u.admit_at, $62::bigint), coalesce(u.held, $63::boolean), coalesce(u.blocked, $64::boolean) FROM
    unnest($10::uuid[], $11::json[], $12::int[], $13::text[], $14::int[], $15::int[], $16::int[], $17::smallint[],
    $18::bigint[], $19::smallint[], $20::smallint[], $21::boolean[], $22::bigint[], $23::bigint[], $24::bigint[],
    $25::text[], $26::text[], $27::text[], $28::text[], $29::json[], $30::json[], $31::json[], $32::text[],
    $33::uuid[], $34::bigint[], $35::bigint[], $36::boolean[], $37::boolean[]) u(id, payload, size_kib, tenant,
    queue, needs, lane, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before,
    task, created_by, key, concurrency_key, target, backoff, requires, traceparent, artifact, artifact_by, admit_at,
    held, blocked) WHERE (SELECT named AND young FROM valid)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
  SELECT $1::bigint, c.tenant, c.jobs FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs)
  WHERE (SELECT named AND young FROM valid)
)
SELECT named, young FROM valid;

-- insert-scheduled-jobs
WITH counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
  SELECT $1::bigint, c.tenant, c.jobs FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs)
)
INSERT INTO punctual.jobs (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
  max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
  backoff, requires, traceparent, schedule, occurrence) SELECT u.id, coalesce(u.payload, $29::json),
  coalesce(u.size_kib, $30::int), coalesce(u.tenant, $31::text), coalesce(u.queue, $32::int), coalesce(u.needs,
  $33::int), coalesce(u.lane, $34::int), coalesce(u.rank, $35::smallint), coalesce(u.run_at, $36::bigint),
  coalesce(u.max_attempts, $37::smallint), coalesce(u.max_losses, $38::smallint), coalesce(u.at_most_once,
  $39::boolean), coalesce(u.timeout_ms, $40::bigint), coalesce(u.created_at, $41::bigint), coalesce(u.start_before,
  $42::bigint), coalesce(u.task, $43::text), coalesce(u.created_by, $44::text), coalesce(u.key, $45::text),
  coalesce(u.concurrency_key, $46::text), coalesce(u.target, $47::json), coalesce(u.backoff, $48::json),
  coalesce(u.requires, $49::json), coalesce(u.traceparent, $50::text), coalesce(u.schedule, $51::text),
  coalesce(u.occurrence, $52::bigint) FROM unnest($4::uuid[], $5::json[], $6::int[], $7::text[], $8::int[],
  $9::int[], $10::int[], $11::smallint[], $12::bigint[], $13::smallint[], $14::smallint[], $15::boolean[],
  $16::bigint[], $17::bigint[], $18::bigint[], $19::text[], $20::text[], $21::text[], $22::text[], $23::json[],
  $24::json[], $25::json[], $26::text[], $27::text[], $28::bigint[]) u(id, payload, size_kib, tenant, queue, needs,
  lane, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, task,
  created_by, key, concurrency_key, target, backoff, requires, traceparent, schedule, occurrence);

-- insert-varied-jobs
WITH valid AS MATERIALIZED (
  SELECT (SELECT count(*) FROM unnest($4::int[], $5::text[], $6::text[]) n(id, tenant, name)
    JOIN punctual.queues q ON q.id BETWEEN n.id AND n.id AND q.tenant = n.tenant AND q.name = n.name) =
      cardinality($4::int[])
  AND (SELECT count(*) FROM unnest($7::int[], $8::bytea[]) n(id, signature)
    JOIN punctual.needs w ON w.id BETWEEN n.id AND n.id AND w.signature = n.signature) = cardinality($7::int[]) AS
      named,
    floor(extract(epoch FROM clock_timestamp()) * 1000) <= $9::bigint + 5000 AS young
), stored AS (
  INSERT INTO punctual.jobs (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent)
  SELECT u.id, coalesce(u.payload, $33::json), coalesce(u.size_kib, $34::int), coalesce(u.tenant, $35::text),
    coalesce(u.queue, $36::int), coalesce(u.needs, $37::int), coalesce(u.lane, $38::int), coalesce(u.rank,
    $39::smallint), coalesce(u.run_at, $40::bigint), coalesce(u.max_attempts, $41::smallint), coalesce(u.max_losses,
    $42::smallint), coalesce(u.at_most_once, $43::boolean), coalesce(u.timeout_ms, $44::bigint),
    coalesce(u.created_at, $45::bigint), coalesce(u.start_before, $46::bigint), coalesce(u.task, $47::text),
    coalesce(u.created_by, $48::text), coalesce(u.key, $49::text), coalesce(u.concurrency_key, $50::text),
    coalesce(u.target, $51::json), coalesce(u.backoff, $52::json), coalesce(u.requires, $53::json),
    coalesce(u.traceparent, $54::text) FROM unnest($10::uuid[], $11::json[], $12::int[], $13::text[], $14::int[],
    $15::int[], $16::int[], $17::smallint[], $18::bigint[], $19::smallint[], $20::smallint[], $21::boolean[],
    $22::bigint[], $23::bigint[], $24::bigint[], $25::text[], $26::text[], $27::text[], $28::text[], $29::json[],
    $30::json[], $31::json[], $32::text[]) u(id, payload, size_kib, tenant, queue, needs, lane, rank, run_at,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent) WHERE (SELECT named AND young FROM valid)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
  SELECT $1::bigint, c.tenant, c.jobs FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs)
  WHERE (SELECT named AND young FROM valid)
)
SELECT named, young FROM valid;

-- insert-varied-workflow
WITH valid AS MATERIALIZED (
  SELECT (SELECT count(*) FROM unnest($4::int[], $5::text[], $6::text[]) n(id, tenant, name)
    JOIN punctual.queues q ON q.id BETWEEN n.id AND n.id AND q.tenant = n.tenant AND q.name = n.name) =
      cardinality($4::int[])
  AND (SELECT count(*) FROM unnest($7::int[], $8::bytea[]) n(id, signature)
    JOIN punctual.needs w ON w.id BETWEEN n.id AND n.id AND w.signature = n.signature) = cardinality($7::int[]) AS
      named,
    floor(extract(epoch FROM clock_timestamp()) * 1000) <= $9::bigint + 5000 AS young
), made AS (
  INSERT INTO punctual.workflows
    (id, tenant, name, key, on_failure, running, created_at, created_by, steps, steps_left, queues, tasks,
    definition, definition_version, schedule, occurrence, rerun_of, edges, last_place)
  SELECT $10::uuid, $11::text, $12::text, $13::text, $14::text, $15::text, $16::bigint, $17::text, $18::int,
    $18::int,
    $19::text[], $20::text[], $21::text, $22::int, $23::text, $24::bigint, $25::uuid, $153::int,
    $18::int - 1
  WHERE (SELECT named AND young FROM valid)
  ON CONFLICT (tenant, key) WHERE key IS NOT NULL DO NOTHING
  RETURNING id
), live AS (
  INSERT INTO punctual.jobs (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent, workflow, schedule, occurrence)
  SELECT u.id, coalesce(u.payload, $49::json), coalesce(u.size_kib, $50::int), coalesce(u.tenant, $51::text),
    coalesce(u.queue, $52::int), coalesce(u.needs, $53::int), coalesce(u.lane, $54::int), coalesce(u.rank,
    $55::smallint), coalesce(u.run_at, $56::bigint), coalesce(u.max_attempts, $57::smallint), coalesce(u.max_losses,
    $58::smallint), coalesce(u.at_most_once, $59::boolean), coalesce(u.timeout_ms, $60::bigint),
    coalesce(u.created_at, $61::bigint), coalesce(u.start_before, $62::bigint), coalesce(u.task, $63::text),
    coalesce(u.created_by, $64::text), coalesce(u.key, $65::text), coalesce(u.concurrency_key, $66::text),
    coalesce(u.target, $67::json), coalesce(u.backoff, $68::json), coalesce(u.requires, $69::json),
    coalesce(u.traceparent, $70::text), $10::uuid, $23::text, $24::bigint FROM unnest($26::uuid[], $27::json[],
    $28::int[], $29::text[], $30::int[], $31::int[], $32::int[], $33::smallint[], $34::bigint[], $35::smallint[],
    $36::smallint[], $37::boolean[], $38::bigint[], $39::bigint[], $40::bigint[], $41::text[], $42::text[],
    $43::text[], $44::text[], $45::json[], $46::json[], $47::json[], $48::text[]) u(id, payload, size_kib, tenant,
    queue, needs, lane, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before,
    task, created_by, key, concurrency_key, target, backoff, requires, traceparent) WHERE EXISTS (SELECT 1 FROM
    made)
), later AS (
  INSERT INTO punctual.later (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent, artifact, artifact_by, admit_at, held, blocked, workflow, schedule, occurrence)
  SELECT u.id, coalesce(u.payload, $99::json), coalesce(u.size_kib, $100::int), coalesce(u.tenant, $101::text),
    coalesce(u.queue, $102::int), coalesce(u.needs, $103::int), coalesce(u.lane, $104::int), coalesce(u.rank,
    $105::smallint), coalesce(u.run_at, $106::bigint), coalesce(u.max_attempts, $107::smallint),
    coalesce(u.max_losses, $108::smallint), coalesce(u.at_most_once, $109::boolean), coalesce(u.timeout_ms,
    $110::bigint), coalesce(u.created_at, $111::bigint), coalesce(u.start_before, $112::bigint), coalesce(u.task,
    $113::text), coalesce(u.created_by, $114::text), coalesce(u.key, $115::text), coalesce(u.concurrency_key,
    $116::text), coalesce(u.target, $117::json), coalesce(u.backoff, $118::json), coalesce(u.requires, $119::json),
    coalesce(u.traceparent, $120::text), coalesce(u.artifact, $121::uuid), coalesce(u.artifact_by, $122::bigint),
    coalesce(u.admit_at, $123::bigint), coalesce(u.held, $124::boolean), coalesce(u.blocked, $125::boolean),
    $10::uuid, $23::text, $24::bigint FROM unnest($71::uuid[], $72::json[], $73::int[], $74::text[], $75::int[],
    $76::int[], $77::int[], $78::smallint[], $79::bigint[], $80::smallint[], $81::smallint[], $82::boolean[],
    $83::bigint[], $84::bigint[], $85::bigint[], $86::text[], $87::text[], $88::text[], $89::text[], $90::json[],
    $91::json[], $92::json[], $93::text[], $94::uuid[], $95::bigint[], $96::bigint[], $97::boolean[],
    $98::boolean[]) u(id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts, max_losses,
    at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target, backoff,
    requires, traceparent, artifact, artifact_by, admit_at, held, blocked) WHERE EXISTS (SELECT 1 FROM made)
), steps AS (
  INSERT INTO punctual.steps
    (id, name, place, parents, run_if, delay_ms, wait, inner_graph, inner_steps, wake_at, refers, hold, template,
      parents_left, released, workflow, tenant, parent_ids, child_ids)
  SELECT u.id, coalesce(u.name, $139::text), coalesce(u.place, $140::int), coalesce(u.parents, $141::int),
    coalesce(u.run_if, $142::text), coalesce(u.delay_ms, $143::bigint), coalesce(u.wait, $144::json),
    coalesce(u.inner_graph, $145::json), coalesce(u.inner_steps, $146::int), coalesce(u.wake_at, $147::bigint),
    coalesce(u.refers, $148::boolean), coalesce(u.hold, $149::boolean), coalesce(u.template, $150::json),
    coalesce(u.parents, $141::int), coalesce(u.parents, $141::int) = 0, $10::uuid, $11::text,
    nullif(($151::uuid[])[($152::int[])[4 * coalesce(u.place, $140::int) + 1]:($152::int[])[4 * coalesce(u.place,
    $140::int) + 2]], '{}'::uuid[]), nullif(($151::uuid[])[($152::int[])[4 * coalesce(u.place, $140::int) +
    3]:($152::int[])[4 * coalesce(u.place, $140::int) + 4]], '{}'::uuid[])
  FROM unnest($126::uuid[], $127::text[], $128::int[], $129::int[], $130::text[], $131::bigint[], $132::json[],
    $133::json[], $134::int[], $135::bigint[], $136::boolean[], $137::boolean[], $138::json[]) u(id, name, place,
    parents, run_if, delay_ms, wait, inner_graph, inner_steps, wake_at, refers, hold, template) WHERE EXISTS (SELECT
    1 FROM made)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted, workflows_submitted)
  SELECT $1::bigint, c.tenant, c.jobs, 1 FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs) WHERE EXISTS (SELECT
    1 FROM made)
)
SELECT named, young, EXISTS (SELECT 1 FROM made) AS made FROM valid;

-- insert-waiting-scheduled-jobs
WITH counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
  SELECT $1::bigint, c.tenant, c.jobs FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs)
)
INSERT INTO punctual.later (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
  max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
  backoff, requires, traceparent, artifact, artifact_by, schedule, occurrence, admit_at, blocked)
SELECT u.id, coalesce(u.payload, $32::json), coalesce(u.size_kib, $33::int), coalesce(u.tenant, $34::text),
  coalesce(u.queue, $35::int), coalesce(u.needs, $36::int), coalesce(u.lane, $37::int), coalesce(u.rank,
  $38::smallint), coalesce(u.run_at, $39::bigint), coalesce(u.max_attempts, $40::smallint), coalesce(u.max_losses,
  $41::smallint), coalesce(u.at_most_once, $42::boolean), coalesce(u.timeout_ms, $43::bigint),
  coalesce(u.created_at, $44::bigint), coalesce(u.start_before, $45::bigint), coalesce(u.task, $46::text),
  coalesce(u.created_by, $47::text), coalesce(u.key, $48::text), coalesce(u.concurrency_key, $49::text),
  coalesce(u.target, $50::json), coalesce(u.backoff, $51::json), coalesce(u.requires, $52::json),
  coalesce(u.traceparent, $53::text), coalesce(u.artifact, $54::uuid), coalesce(u.artifact_by, $55::bigint),
  coalesce(u.schedule, $56::text), coalesce(u.occurrence, $57::bigint), coalesce(u.admit_at, $58::bigint), true FROM
  unnest($4::uuid[], $5::json[], $6::int[], $7::text[], $8::int[], $9::int[], $10::int[], $11::smallint[],
  $12::bigint[], $13::smallint[], $14::smallint[], $15::boolean[], $16::bigint[], $17::bigint[], $18::bigint[],
  $19::text[], $20::text[], $21::text[], $22::text[], $23::json[], $24::json[], $25::json[], $26::text[],
  $27::uuid[], $28::bigint[], $29::text[], $30::bigint[], $31::bigint[]) u(id, payload, size_kib, tenant, queue,
  needs, lane, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, task,
  created_by, key, concurrency_key, target, backoff, requires, traceparent, artifact, artifact_by, schedule,
  occurrence, admit_at);

-- insert-workflow
WITH valid AS MATERIALIZED (
  SELECT (SELECT count(*) FROM unnest($4::int[], $5::text[], $6::text[]) n(id, tenant, name)
    JOIN punctual.queues q ON q.id BETWEEN n.id AND n.id AND q.tenant = n.tenant AND q.name = n.name) =
      cardinality($4::int[])
  AND (SELECT count(*) FROM unnest($7::int[], $8::bytea[]) n(id, signature)
    JOIN punctual.needs w ON w.id BETWEEN n.id AND n.id AND w.signature = n.signature) = cardinality($7::int[]) AS
      named,
    floor(extract(epoch FROM clock_timestamp()) * 1000) <= $9::bigint + 5000 AS young
), made AS (
  INSERT INTO punctual.workflows
    (id, tenant, name, key, on_failure, running, created_at, created_by, steps, steps_left, queues, tasks,
    definition, definition_version, schedule, occurrence, rerun_of, edges, last_place)
  SELECT $10::uuid, $11::text, $12::text, $13::text, $14::text, $15::text, $16::bigint, $17::text, $18::int,
    $18::int,
    $19::text[], $20::text[], $21::text, $22::int, $23::text, $24::bigint, $25::uuid, $99::int,
    $18::int - 1
  WHERE (SELECT named AND young FROM valid)
  ON CONFLICT (tenant, key) WHERE key IS NOT NULL DO NOTHING
  RETURNING id
), live AS (
  INSERT INTO punctual.jobs (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent, workflow, schedule, occurrence)
  SELECT u.id, coalesce(u.payload, $29::json), coalesce(u.size_kib, $30::int), $31::text, $32::int, $33::int,
    $34::int, $35::smallint, $36::bigint, $37::smallint, $38::smallint, $39::boolean, $40::bigint, $41::bigint,
    $42::bigint, $43::text, $44::text, $45::text, $46::text, $47::json, $48::json, $49::json, $50::text, $10::uuid,
    $23::text, $24::bigint FROM unnest($26::uuid[], $27::json[], $28::int[]) u(id, payload, size_kib) WHERE EXISTS
    (SELECT 1 FROM made)
), later AS (
  INSERT INTO punctual.later (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent, artifact, artifact_by, admit_at, held, blocked, workflow, schedule, occurrence)
  SELECT u.id, coalesce(u.payload, $54::json), coalesce(u.size_kib, $55::int), $56::text, $57::int, $58::int,
    $59::int, $60::smallint, $61::bigint, $62::smallint, $63::smallint, $64::boolean, $65::bigint, $66::bigint,
    $67::bigint, $68::text, $69::text, $70::text, $71::text, $72::json, $73::json, $74::json, $75::text, $76::uuid,
    $77::bigint, $78::bigint, $79::boolean, $80::boolean, $10::uuid, $23::text, $24::bigint FROM unnest($51::uuid[],
    $52::json[], $53::int[]) u(id, payload, size_kib) WHERE EXISTS (SELECT 1 FROM made)
), steps AS (
  INSERT INTO punctual.steps
    (id, name, place, parents, run_if, delay_ms, wait, inner_graph, inner_steps, wake_at, refers, hold, template,
      parents_left, released, workflow, tenant, parent_ids, child_ids)
  SELECT u.id, coalesce(u.name, $85::text), coalesce(u.place, $86::int), coalesce(u.parents, $87::int), $88::text,
    $89::bigint, $90::json, $91::json, $92::int, $93::bigint, $94::boolean, $95::boolean, $96::json,
    coalesce(u.parents, $87::int), coalesce(u.parents, $87::int) = 0, $10::uuid, $11::text,
    nullif(($97::uuid[])[($98::int[])[4 * coalesce(u.place, $86::int) + 1]:($98::int[])[4 * coalesce(u.place,
    $86::int) + 2]], '{}'::uuid[]), nullif(($97::uuid[])[($98::int[])[4 * coalesce(u.place, $86::int) +
    3]:($98::int[])[4 * coalesce(u.place, $86::int) + 4]], '{}'::uuid[])
  FROM unnest($81::uuid[], $82::text[], $83::int[], $84::int[]) u(id, name, place, parents) WHERE EXISTS (SELECT 1
    FROM made)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted, workflows_submitted)
  SELECT $1::bigint, c.tenant, c.jobs, 1 FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs) WHERE EXISTS (SELECT
    1 FROM made)
)
SELECT named, young, EXISTS (SELECT 1 FROM made) AS made FROM valid;

-- jobs-of-artifact
(SELECT j.id FROM punctual.jobs j WHERE substring(j.target::text FROM '"artifact":"([0-9a-f-]{36})"') = $2 AND
  j.tenant = $1 LIMIT $3)
UNION ALL
(SELECT l.id FROM punctual.later l WHERE substring(l.target::text FROM '"artifact":"([0-9a-f-]{36})"') = $2 AND
  l.tenant = $1 LIMIT $3)
LIMIT $3;

-- judge-occurrences
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), due AS MATERIALIZED (
  SELECT o.* FROM punctual.occurrences o WHERE o.judge_at <= $4::bigint AND EXISTS (SELECT 1 FROM term)
  ORDER BY o.judge_at LIMIT $5::int
), seen AS (
  SELECT o.schedule, o.at, o.by_hand, coalesce(o.late_by, j.late_by, h.late_by, l.late_by,
    CASE WHEN c.job IS NOT NULL THEN greatest(0, c.claimed_at - j.run_at) END) AS late_by, j.id IS NULL AND l.id IS
      NULL AS ended FROM due o
    
LEFT JOIN LATERAL (SELECT * FROM punctual.jobs WHERE id = o.job OFFSET 0) j ON true
LEFT JOIN LATERAL (SELECT * FROM punctual.claims WHERE job = o.job OFFSET 0) c ON true
LEFT JOIN LATERAL (SELECT * FROM punctual.later WHERE id = o.job OFFSET 0) l ON true
LEFT JOIN LATERAL (
  SELECT h.id, h.late_by, h.state, h.attempts, h.error FROM punctual.job_history h
  WHERE h.tenant = o.tenant AND h.id = o.job AND h.finished_at >= o.recorded_at - 86400000
    AND h.finished_at <= $4::bigint + 86400000
  LIMIT 1) h ON true
), judged AS (
  UPDATE punctual.occurrences o SET judge_at = NULL, late_by = s.late_by,
    state = CASE WHEN s.late_by > o.late_after OR s.late_by IS NULL AND NOT s.ended THEN 'late' ELSE o.state END
  FROM seen s WHERE o.schedule = s.schedule AND o.at = s.at AND o.by_hand = s.by_hand
  RETURNING o.tenant, o.schedule, o.at, o.state, o.late_by, o.job
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, occurrences_late)
  SELECT $4::bigint, tenant, count(*) FROM judged WHERE state = 'late' GROUP BY tenant
), answer AS (
  SELECT o.at, o.state, o.late_by AS "lateBy", o.tenant, s.name AS schedule, o.job
  FROM judged o JOIN punctual.schedules s ON s.id = o.schedule
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- keep-answer
INSERT INTO punctual.idempotency AS i (tenant, key, request, status, location, answer, ids, created_at)
VALUES ($1, $2, $3::bytea, $4::smallint, $5, $6::json, $7::uuid[], $8::bigint)
ON CONFLICT (tenant, key) DO UPDATE SET request = excluded.request, status = excluded.status,
  location = excluded.location, answer = excluded.answer, ids = excluded.ids, created_at = excluded.created_at
  WHERE i.created_at < $9::bigint
RETURNING 1 AS kept;

-- keep-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), moved AS (
  DELETE FROM punctual.job_history h USING unnest($4::uuid[], $5::text[], $6::bigint[]) u(id, tenant, finished_at)
  WHERE h.tenant = u.tenant AND h.id = u.id AND h.finished_at = u.finished_at
    AND h.finished_at >= $7::bigint AND h.finished_at < $8::bigint AND EXISTS (SELECT 1 FROM term)
  RETURNING h.*
), answer AS (
  INSERT INTO punctual.job_history_kept (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, fence, worker, epoch, claimed_at, progress, started_at, finished_at, state, outcome, result,
    error, execution)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, m.fence, m.worker, m.epoch, m.claimed_at,
    m.progress, m.started_at, m.finished_at, m.state, m.outcome, m.result, m.error, m.execution
  FROM moved m
  RETURNING id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- keep-names
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), kept_queues AS (
  UPDATE punctual.queues SET used_at = $6::bigint
  WHERE id = ANY($4::int[]) AND used_at < $7::bigint AND EXISTS (SELECT 1 FROM term)
), answer AS (
  UPDATE punctual.needs SET used_at = $6::bigint
  WHERE id = ANY($5::int[]) AND used_at < $7::bigint AND EXISTS (SELECT 1 FROM term)
  RETURNING id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- ledger-known-since
SELECT ledger_known_since AS at FROM punctual.cluster;

-- limit-origin
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.origin_limits AS l (tenant, origin, concurrency, rate_limit, rate_per, rate_burst,
    changed_at)
  SELECT $4::text, $5::text, $6::int, $7::int, $8::bigint, $9::int, $10::bigint
  WHERE EXISTS (SELECT 1 FROM term) AND (
    EXISTS (SELECT 1 FROM punctual.origin_limits WHERE tenant = $4::text AND origin = $5::text)
    OR (SELECT count(*) FROM punctual.origin_limits WHERE tenant = $4::text) < 1000)
  ON CONFLICT (tenant, origin) DO UPDATE SET concurrency = excluded.concurrency, rate_limit = excluded.rate_limit,
    rate_per = excluded.rate_per, rate_burst = excluded.rate_burst, changed_at = excluded.changed_at
  RETURNING tenant, origin, concurrency, rate_limit, rate_per, rate_burst
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- limit-origin-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.origin_limits AS l (tenant, origin, concurrency, rate_limit, rate_per, rate_burst,
    changed_at)
  SELECT $4::text, $5::text, $6::int, $7::int, $8::bigint, $9::int, $10::bigint
  WHERE EXISTS (SELECT 1 FROM term) AND (
    EXISTS (SELECT 1 FROM punctual.origin_limits WHERE tenant = $4::text AND origin = $5::text)
    OR (SELECT count(*) FROM punctual.origin_limits WHERE tenant = $4::text) < 1000)
  ON CONFLICT (tenant, origin) DO UPDATE SET concurrency = excluded.concurrency, rate_limit = excluded.rate_limit,
    rate_per = excluded.rate_per, rate_burst = excluded.rate_burst, changed_at = excluded.changed_at
  RETURNING tenant, origin, concurrency, rate_limit, rate_per, rate_burst
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $11::uuid, $12::bigint, $13::text, $14::uuid, $15::text, $16::text, $17::text, $18::text,
    $19::text, $20::text, $21::json, $22::json, $23::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- limit-queue
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.queues (tenant, name, created_at, weight, concurrency, key_concurrency, rate_limit,
    rate_per, rate_burst)
  SELECT $4::text, $5::text, $6::bigint, $7::int, $8::int, $9::int, $10::int, $11::bigint, $12::int
  WHERE EXISTS (SELECT 1 FROM term)
  ON CONFLICT (tenant, name) DO UPDATE SET weight = excluded.weight, concurrency = excluded.concurrency,
    key_concurrency = excluded.key_concurrency, rate_limit = excluded.rate_limit, rate_per = excluded.rate_per,
    rate_burst = excluded.rate_burst
  RETURNING id, tenant, name, paused, created_at, weight, concurrency, key_concurrency, rate_limit, rate_per,
rate_burst, full_at, debt
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- limit-queue-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  INSERT INTO punctual.queues (tenant, name, created_at, weight, concurrency, key_concurrency, rate_limit,
    rate_per, rate_burst)
  SELECT $4::text, $5::text, $6::bigint, $7::int, $8::int, $9::int, $10::int, $11::bigint, $12::int
  WHERE EXISTS (SELECT 1 FROM term)
  ON CONFLICT (tenant, name) DO UPDATE SET weight = excluded.weight, concurrency = excluded.concurrency,
    key_concurrency = excluded.key_concurrency, rate_limit = excluded.rate_limit, rate_per = excluded.rate_per,
    rate_burst = excluded.rate_burst
  RETURNING id, tenant, name, paused, created_at, weight, concurrency, key_concurrency, rate_limit, rate_per,
rate_burst, full_at, debt
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $13::uuid, $14::bigint, $15::text, $16::uuid, $17::text, $18::text, $19::text, $20::text,
    $21::text, $22::text, $23::json, $24::json, $25::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- list-api-keys
SELECT id, name, operator, tenant, scopes, queues, tasks, expires_at AS "expiresAt", created_at AS "createdAt",
created_by AS "createdBy", last_used_at AS "lastUsedAt" FROM punctual.api_keys WHERE id < $1::uuid ORDER BY id DESC
  LIMIT $2::int;

-- list-api-keys-of-tenant
SELECT id, name, operator, tenant, scopes, queues, tasks, expires_at AS "expiresAt", created_at AS "createdAt",
  created_by AS "createdBy", last_used_at AS "lastUsedAt" FROM punctual.api_keys WHERE coalesce(tenant, '') =
    $3::text AND id < $1::uuid
ORDER BY id DESC LIMIT $2::int;

-- list-artifacts
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state,
    a.created_at,
  a.created_by, a.ready_at, a.expires_at, a.job, a.output, 512 AS bytes FROM punctual.artifacts a
WHERE a.tenant = $1 AND a.id < $2::uuid AND a.state <> 'gone' AND ($3::text IS NULL OR a.name = $3)
  AND ($4::text IS NULL OR a.version = $4) AND ($5::uuid IS NULL OR a.job = $5::uuid)
  AND ($6::text IS NULL OR a.state = $6)
ORDER BY a.id DESC LIMIT $7::int + 1) s WINDOW in_order AS (ORDER BY id DESC)) t
WHERE place_in_portion <= $7::int AND bytes_before < $8::bigint ORDER BY id DESC;

-- list-audit-chain-of-all
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT a.id, a.at, a.tenant, a.key_id AS "keyId", a.key_name AS "keyName", a.address, a.request_id AS
    "requestId",
  a.action, a.kind, a.subject, a.before, a.after, a.outcome, a.sequence, encode(a.previous, 'hex') AS previous,
    encode(a.hash, 'hex') AS hash, coalesce(octet_length(a.before::text), 0) + coalesce(octet_length(a.after::text),
    0) + 512 AS bytes FROM punctual.audit a
   WHERE $1::text IS NULL AND ($2::bigint IS NULL OR a.at >= $2) AND ($3::bigint IS NULL OR a.at < $3)
    AND ($4::uuid IS NULL OR a.key_id = $4) AND ($5::text IS NULL OR a.action = $5)
    AND ($6::text IS NULL OR a.kind = $6) AND ($7::text IS NULL OR a.subject = $7) AND a.sequence > $8::bigint ORDER
      BY a.sequence LIMIT $9::int + 1) s WINDOW in_order AS (ORDER BY sequence)) t
WHERE place_in_portion <= $9::int AND bytes_before < $10::bigint ORDER BY sequence;

-- list-audit-chain-of-one
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT a.id, a.at, a.tenant, a.key_id AS "keyId", a.key_name AS "keyName", a.address, a.request_id AS
    "requestId",
  a.action, a.kind, a.subject, a.before, a.after, a.outcome, a.sequence, encode(a.previous, 'hex') AS previous,
    encode(a.hash, 'hex') AS hash, coalesce(octet_length(a.before::text), 0) + coalesce(octet_length(a.after::text),
    0) + 512 AS bytes FROM punctual.audit a
   WHERE a.tenant = $1::text AND ($2::bigint IS NULL OR a.at >= $2) AND ($3::bigint IS NULL OR a.at < $3)
    AND ($4::uuid IS NULL OR a.key_id = $4) AND ($5::text IS NULL OR a.action = $5)
    AND ($6::text IS NULL OR a.kind = $6) AND ($7::text IS NULL OR a.subject = $7) AND a.sequence > $8::bigint ORDER
      BY a.sequence LIMIT $9::int + 1) s WINDOW in_order AS (ORDER BY sequence)) t
WHERE place_in_portion <= $9::int AND bytes_before < $10::bigint ORDER BY sequence;

-- list-audit-of-all
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT a.id, a.at, a.tenant, a.key_id AS "keyId", a.key_name AS "keyName", a.address, a.request_id AS
    "requestId",
  a.action, a.kind, a.subject, a.before, a.after, a.outcome, a.sequence, encode(a.previous, 'hex') AS previous,
    encode(a.hash, 'hex') AS hash, coalesce(octet_length(a.before::text), 0) + coalesce(octet_length(a.after::text),
    0) + 512 AS bytes FROM punctual.audit a
   WHERE $1::text IS NULL AND ($2::bigint IS NULL OR a.at >= $2) AND ($3::bigint IS NULL OR a.at < $3)
    AND ($4::uuid IS NULL OR a.key_id = $4) AND ($5::text IS NULL OR a.action = $5)
    AND ($6::text IS NULL OR a.kind = $6) AND ($7::text IS NULL OR a.subject = $7) AND a.id < $8::uuid AND a.id >=
      $11::uuid
   ORDER BY a.id DESC LIMIT $9::int + 1) s WINDOW in_order AS (ORDER BY id DESC)) t
WHERE place_in_portion <= $9::int AND bytes_before < $10::bigint ORDER BY id DESC;

-- list-audit-of-one
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT a.id, a.at, a.tenant, a.key_id AS "keyId", a.key_name AS "keyName", a.address, a.request_id AS
    "requestId",
  a.action, a.kind, a.subject, a.before, a.after, a.outcome, a.sequence, encode(a.previous, 'hex') AS previous,
    encode(a.hash, 'hex') AS hash, coalesce(octet_length(a.before::text), 0) + coalesce(octet_length(a.after::text),
    0) + 512 AS bytes FROM punctual.audit a
   WHERE a.tenant = $1::text AND ($2::bigint IS NULL OR a.at >= $2) AND ($3::bigint IS NULL OR a.at < $3)
    AND ($4::uuid IS NULL OR a.key_id = $4) AND ($5::text IS NULL OR a.action = $5)
    AND ($6::text IS NULL OR a.kind = $6) AND ($7::text IS NULL OR a.subject = $7) AND a.id < $8::uuid AND a.id >=
      $11::uuid
   ORDER BY a.id DESC LIMIT $9::int + 1) s WINDOW in_order AS (ORDER BY id DESC)) t
WHERE place_in_portion <= $9::int AND bytes_before < $10::bigint ORDER BY id DESC;

-- list-batches
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT b.id, b.tenant, b.state, b.on_failure AS "onFailure", cardinality(b.members) AS size, b.run,
  b.due_at AS "dueAt", b.start_timeout_ms AS "startTimeoutMs", b.created_at AS "createdAt",
  b.created_by AS "createdBy", b.started_at AS "startedAt", b.ended_at AS "endedAt", b.error, b.places,
  b.schedule, b.occurrence, 512 + coalesce(octet_length(b.places::text), 0) AS bytes FROM punctual.batches b
WHERE b.tenant = $1::text AND b.id < $2::uuid AND ($3::text[] IS NULL OR b.state = ANY ($3::text[]))
  AND ($6::text IS NULL OR b.schedule = $6::text)
ORDER BY b.id DESC LIMIT $4::int + 1) s WINDOW in_order AS (ORDER BY id DESC)) t
WHERE place_in_portion <= $4::int AND bytes_before < $5::bigint ORDER BY id DESC;

-- list-definition-versions
SELECT d.version FROM punctual.workflow_definitions d
WHERE d.tenant = $1 AND d.name = $2 ORDER BY d.version DESC LIMIT 1000;

-- list-found-jobs
  SELECT * FROM (
    SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
      sum(bytes) OVER in_order - bytes AS bytes_before
    FROM (
SELECT *, 1024 + coalesce(octet_length(target::text), 0) + coalesce(octet_length(requires::text), 0) +
  coalesce(octet_length(payload::text), 0) + coalesce(octet_length(earlier_attempts::text), 0) +
  coalesce(octet_length(result::text), 0) + coalesce(octet_length(error::text), 0) +
  coalesce(octet_length(execution::text), 0) AS bytes
FROM (
  SELECT place, raw, id, tenant, queue, rank, run_at, attempts, failures, losses, max_attempts, max_losses,
    at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key, target,
    backoff, requires, schedule, occurrence, workflow, batch, artifact, artifact_by, held, fence, worker, epoch,
    claimed_at, cancelled_at, handed_on_at, progress, started_at, finished_at, state, outcome,
    coalesce(cardinality(earlier_attempts), 0) AS earlier_count, step, step_inner, step_waits, step_event,
    step_until,
    CASE WHEN (payload IS NULL OR 'payload' = ANY ($8::text[]) OR pg_column_size(payload) <= 2056 AND
      octet_length(payload::text) <= 2048) THEN payload END AS payload,
    CASE WHEN (result IS NULL OR 'result' = ANY ($8::text[]) OR pg_column_size(result) <= 2056 AND
      octet_length(result::text) <= 2048) THEN result END AS result,
    CASE WHEN (error IS NULL OR 'stack' = ANY ($8::text[]) OR pg_column_size(error) <= 2056 AND
      octet_length(error::text) <= 2048) THEN error ELSE (concat('{"message":', punctual.readable(error) ->
      'message',
',"code":' || (punctual.readable(error) -> 'code')::text, '}'))::json END AS error,
    CASE WHEN (earlier_attempts IS NULL OR 'attempts' = ANY ($8::text[]) OR pg_column_size(earlier_attempts) <= 8200
      AND octet_length(earlier_attempts::text) <= 8192) THEN array_to_json(
earlier_attempts[greatest(1, cardinality(earlier_attempts) - 99):])
      ELSE array_to_json(earlier_attempts[cardinality(earlier_attempts):]) END AS earlier_attempts,
    CASE WHEN (execution IS NULL OR 'attempts' = ANY ($8::text[]) OR pg_column_size(execution) <= 8200 AND
      octet_length(execution::text) <= 8192) THEN execution END AS execution,
    NOT (execution IS NULL OR 'attempts' = ANY ($8::text[]) OR pg_column_size(execution) <= 8200 AND
      octet_length(execution::text) <= 8192) AS without_execution,
    NOT (payload IS NULL OR 'payload' = ANY ($8::text[]) OR pg_column_size(payload) <= 2056 AND
      octet_length(payload::text) <= 2048) AS without_payload, NOT (result IS NULL OR 'result' = ANY ($8::text[]) OR
      pg_column_size(result) <= 2056 AND octet_length(result::text) <= 2048) AS without_result,
    NOT (error IS NULL OR 'stack' = ANY ($8::text[]) OR pg_column_size(error) <= 2056 AND octet_length(error::text)
      <= 2048) AS without_stack
  FROM (
    
SELECT 'live' AS place, false AS raw, j.id, j.tenant, q.name AS queue, j.rank, j.run_at, j.attempts, j.failures,
  j.losses, j.max_attempts, j.max_losses, j.at_most_once, j.timeout_ms, j.created_at, j.start_before, j.late_by,
  j.task, j.created_by, j.key, j.concurrency_key, j.target, j.backoff, j.requires, j.payload, j.earlier_attempts,
  j.schedule, j.occurrence, j.workflow, j.batch, NULL::uuid AS artifact, NULL::bigint AS artifact_by, false AS held,
  c.fence, c.worker, c.epoch, c.claimed_at, c.cancelled_at, c.handed_on_at, c.progress, c.started_at, NULL::bigint
  AS finished_at, CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END AS state, NULL::text AS outcome,
  NULL::json AS result, NULL::json AS error, NULL::json AS execution
FROM punctual.jobs j
JOIN punctual.queues q ON q.id = j.queue
LEFT JOIN punctual.claims c ON c.job BETWEEN j.id AND j.id WHERE j.tenant = $1 AND j.id = ANY ($2::uuid[])
  UNION ALL 
SELECT 'later' AS place, l.submission IS NOT NULL AS raw, l.id, l.tenant, coalesce(q.name, s.raw ->> 'queue',
  'default') AS queue, coalesce(l.rank, 5::smallint) AS rank, coalesce(l.run_at, l.admit_at) AS run_at, l.attempts,
  l.failures, l.losses, coalesce(l.max_attempts, 4::smallint) AS max_attempts, coalesce(l.max_losses, 3::smallint)
  AS max_losses, coalesce(l.at_most_once, false) AS at_most_once, coalesce(l.timeout_ms, 1200000) AS timeout_ms,
  l.created_at, l.start_before, l.late_by, coalesce(l.task, s.raw ->> 'task') AS task, l.created_by, l.key,
  l.concurrency_key, coalesce(l.target, s.raw -> 'target') AS target, l.backoff, l.requires, coalesce(l.payload,
  s.raw -> 'payload', 'null'::json) AS payload, l.earlier_attempts, l.schedule, l.occurrence, l.workflow, l.batch,
  l.artifact, l.artifact_by, l.held, NULL::int AS fence, NULL::uuid AS worker, NULL::bigint AS epoch, NULL::bigint
  AS claimed_at, NULL::bigint AS cancelled_at, NULL::bigint AS handed_on_at, NULL::json AS progress, NULL::bigint AS
  started_at, NULL::bigint AS finished_at, CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END AS state,
  NULL::text AS outcome, NULL::json AS result, NULL::json AS error, NULL::json AS execution
FROM punctual.later l
CROSS JOIN LATERAL punctual.readable(l.submission) s(raw)
LEFT JOIN punctual.queues q ON q.id = l.queue WHERE l.tenant = $1 AND l.id = ANY ($3::uuid[])
  UNION ALL 
SELECT 'history' AS place, false AS raw, h.id, h.tenant, q.name AS queue, h.rank, h.run_at, h.attempts, h.failures,
  h.losses, h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms, h.created_at, h.start_before, h.late_by,
  h.task, h.created_by, h.key, h.concurrency_key, h.target, h.backoff, h.requires, h.payload, h.earlier_attempts,
  h.schedule, h.occurrence, h.workflow, h.batch, NULL::uuid AS artifact, NULL::bigint AS artifact_by, false AS held,
  h.fence, h.worker, h.epoch, h.claimed_at, NULL::bigint AS cancelled_at, NULL::bigint AS handed_on_at, h.progress,
  h.started_at, h.finished_at, h.state, h.outcome, h.result, h.error, h.execution
FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses,
  e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task,
  e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload,
  e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at,
  e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts,
  e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before,
  e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent,
  e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch,
  e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history_kept e) h
JOIN punctual.queues q ON q.id = h.queue WHERE h.tenant = $1 AND h.id = ANY ($4::uuid[]) AND h.finished_at >=
  $5::bigint) p LEFT JOIN LATERAL (
    SELECT s.name AS step, s.inner_workflow AS step_inner,
    CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) THEN true END
      AS step_waits,
    CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) THEN s.wait ->>
      'event' END AS step_event,
    CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) AND s.wait IS
      NOT NULL THEN s.wake_at END AS step_until
    FROM punctual.steps s WHERE s.id = p.id AND p.workflow IS NOT NULL) w ON true OFFSET 0) r) s WINDOW in_order AS
      (ORDER BY id DESC)) t
  WHERE place_in_portion <= $6::int AND bytes_before < $7::bigint ORDER BY id DESC;

-- list-job-outputs
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state,
    a.created_at,
  a.created_by, a.ready_at, a.expires_at, a.job, a.output, 512 AS bytes FROM punctual.artifacts a
WHERE a.job = $3::uuid AND a.tenant = $1 AND a.id < $2::uuid AND a.state <> 'gone'
ORDER BY a.id DESC LIMIT $4::int + 1) s WINDOW in_order AS (ORDER BY id DESC)) t
WHERE place_in_portion <= $4::int AND bytes_before < $5::bigint ORDER BY id DESC;

-- list-managed-schedules
SELECT s.name FROM punctual.schedules s
WHERE s.tenant = $1 AND s.managed_by = $2 AND s.name > $3 AND s.deleted_at IS NULL
ORDER BY s.name LIMIT $4;

-- list-nodes
SELECT id, url, version, last_seen AS "lastSeen" FROM (
  SELECT * FROM punctual.nodes ORDER BY last_seen DESC LIMIT 1000) n
ORDER BY started_at, id;

-- list-origin-limits
SELECT tenant, origin, concurrency, rate_limit, rate_per, rate_burst FROM punctual.origin_limits WHERE tenant = $1
  AND origin > $2 ORDER BY origin LIMIT $3::int + 1;

-- list-queues
SELECT id, tenant, name, paused, created_at, weight, concurrency, key_concurrency, rate_limit, rate_per,
rate_burst, full_at, debt FROM punctual.queues WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3::int + 1;

-- list-schedules
  SELECT * FROM (
    SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
      sum(bytes) OVER in_order - bytes AS bytes_before
    FROM (SELECT *, coalesce(octet_length(definition::text), 0) + coalesce(octet_length(payload::text), 0) AS bytes
      FROM (
     SELECT s.id, s.tenant, s.name, s.paused, s.watermark, s.fire_at, s.last_job, s.last_workflow,
s.last_batch, s.created_at,
s.created_by, s.changed_at, s.changed_by, s.version, s.deleted_at, s.managed_by, definition, last_at, last_run,
  last_run_workflow, last_run_batch, NOT (payload IS NULL OR $6::boolean OR pg_column_size(payload) <= 2056 AND
  octet_length(payload::text) <= 2048) AS without_payload,
       CASE WHEN (payload IS NULL OR $6::boolean OR pg_column_size(payload) <= 2056 AND octet_length(payload::text)
         <= 2048) THEN payload END AS payload
     FROM (
       SELECT s.id, s.tenant, s.name, s.paused, s.watermark, s.fire_at, s.last_job, s.last_workflow,
s.last_batch, s.created_at,
s.created_by, s.changed_at, s.changed_by, s.version, s.deleted_at, s.managed_by, r.definition -> 'payload' AS
  payload,
(SELECT json_object_agg(d.key, d.value) FROM json_each(r.definition) d WHERE d.key <> 'payload') AS definition,
  o.last_at, o.last_run, o.last_run_workflow, o.last_run_batch FROM punctual.schedules s
       CROSS JOIN LATERAL (SELECT CASE WHEN s.definition::text LIKE '%\\u%' THEN punctual.readable(s.definition)
         ELSE s.definition END AS definition) r 
LEFT JOIN LATERAL (
  SELECT coalesce(o.until, o.at) AS last_at, o.job AS last_run, o.workflow AS last_run_workflow,
    o.batch AS last_run_batch FROM punctual.occurrences o
  WHERE o.schedule = s.id AND o.at <= $2 AND NOT o.by_hand ORDER BY o.at DESC LIMIT 1) o ON true
       WHERE s.tenant = $1 AND s.name > $3 AND s.deleted_at IS NULL ORDER BY s.name LIMIT $4::int + 1) s
     OFFSET 0) r) s WINDOW in_order AS (ORDER BY name)) t
  WHERE place_in_portion <= $4::int AND bytes_before < $5::bigint ORDER BY name;

-- list-secrets
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT s.tenant, s.name, s.version, s.origins, s.created_at, s.created_by, s.changed_at, s.changed_by,
    coalesce(octet_length(s.origins::text), 0) + 256 AS bytes FROM punctual.secrets s
 WHERE s.tenant = $1 AND s.name > $2 ORDER BY s.name LIMIT $3::int + 1) s WINDOW in_order AS (ORDER BY name)) t
WHERE place_in_portion <= $3::int AND bytes_before < $4::bigint ORDER BY name;

-- list-signing-secrets
SELECT s.tenant, s.id, s.created_at, s.expires_at FROM punctual.signing_secrets s
WHERE s.tenant = $1 AND (s.expires_at IS NULL OR s.expires_at > $2::bigint) ORDER BY s.id DESC LIMIT 5;

-- list-tasks
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT tenant, name, definition, published_by, created_at, created_by, changed_at, changed_by, version,
    coalesce(octet_length(definition::text), 0) AS bytes FROM punctual.tasks
 WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3::int + 1) s WINDOW in_order AS (ORDER BY name)) t
WHERE place_in_portion <= $3::int AND bytes_before < $4::bigint ORDER BY name;

-- list-tenants
SELECT id, name, weight, rate_limit, rate_per, rate_burst, full_at, debt, created_at, quota_live_jobs,
  quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
  quota_artifact_bytes FROM punctual.tenants WHERE id > $1 ORDER BY id LIMIT $2;

-- list-workers
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT id, tenant, name, state, registration, registered_at AS "registeredAt", last_seen AS "lastSeen",
    operator, octet_length(registration::text) + 256 AS bytes FROM punctual.workers
 WHERE ($1::text IS NULL OR tenant = $1) AND NOT ($5::boolean AND operator) AND id < $2::uuid ORDER BY id DESC LIMIT
   $3::int + 1) s WINDOW in_order AS (ORDER BY id DESC)) t
WHERE place_in_portion <= $3::int AND bytes_before < $4::bigint ORDER BY id DESC;

-- list-workflow-definitions
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT d.tenant, d.name, d.version, d.on_failure, d.running, 1024 AS bytes, d.steps,
  encode(d.digest, 'hex') AS digest, d.queues, d.tasks, d.created_at,
  d.created_by, d.replaced_at FROM punctual.workflow_definitions d
 WHERE d.tenant = $1 AND d.name > $2 AND d.replaced_at IS NULL ORDER BY d.name LIMIT $3::int + 1) s WINDOW in_order
   AS (ORDER BY name)) t
WHERE place_in_portion <= $3::int AND bytes_before < $4::bigint ORDER BY name;

-- list-workflows
SELECT w.id, w.tenant, w.name, w.key, w.state, w.run, w.steps, w.steps_left, w.failed, w.on_failure, w.running,
  w.stopping, w.held, w.held_with_outer, w.rerun_of, w.queues, w.tasks, w.created_at, w.created_by, w.ended_at,
    w.definition,
  w.definition_version, w.schedule, w.occurrence, w.depth, w.outer_step,
  (SELECT o.workflow FROM punctual.steps o WHERE o.id = w.outer_step) AS outer_workflow FROM punctual.workflows w
WHERE w.tenant = $1 AND w.id < $2::uuid AND ($4::text[] IS NULL OR w.state = ANY ($4::text[]))
  AND ($5::text IS NULL OR w.name = $5::text) AND ($6::text IS NULL OR w.key = $6::text)
  AND ($7::text IS NULL OR w.definition = $7::text) AND ($8::text IS NULL OR w.schedule = $8::text)
ORDER BY w.id DESC LIMIT $3;

-- locate-jobs
SELECT j.id, 'live' AS place, CASE WHEN (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL THEN
  'pending' ELSE 'running' END AS state, false AS held,
  false AS raw, j.at_most_once AS "atMostOnce", j.run_at AS "runAt", j.start_before AS "startBefore",
  j.created_at AS "createdAt", j.created_by AS "createdBy", (256 + coalesce(pg_column_size(j.target), 0) +
    coalesce(pg_column_size(j.requires), 0) + coalesce(pg_column_size(j.payload), 0) +
    coalesce(pg_column_size(j.earlier_attempts), 0)) AS bytes, j.workflow,
  j.batch, false AS blocked
FROM unnest($2::uuid[]) u(id) JOIN punctual.jobs j ON j.id BETWEEN u.id AND u.id WHERE j.tenant = $1
UNION ALL
SELECT l.id, 'later', CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END, l.held, l.submission IS NOT NULL,
  coalesce(l.at_most_once, false),
  coalesce(l.run_at, l.admit_at), l.start_before, l.created_at, l.created_by, (256 +
    coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
    coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)), l.workflow, l.batch,
    l.blocked
FROM unnest($2::uuid[]) u(id) JOIN punctual.later l ON l.id BETWEEN u.id AND u.id WHERE l.tenant = $1
UNION ALL
SELECT h.id, 'history', h.state, false, false, h.at_most_once, h.run_at, NULL, h.created_at, h.created_by,
  (256 + coalesce(pg_column_size(h.target), 0) + coalesce(pg_column_size(h.requires), 0) +
    coalesce(pg_column_size(h.payload), 0) + coalesce(pg_column_size(h.earlier_attempts), 0) +
    coalesce(pg_column_size(h.result), 0) + coalesce(pg_column_size(h.error), 0) +
    coalesce(pg_column_size(h.execution), 0)), h.workflow, h.batch, false
FROM unnest($2::uuid[]) u(id) JOIN (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts,
  e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before,
  e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent,
  e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch,
  e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts,
  e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before,
  e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent,
  e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch,
  e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history_kept e) h
  ON h.tenant = $1 AND h.id BETWEEN u.id AND u.id AND h.finished_at >= $3;

-- lock-artifacts
SELECT pg_advisory_xact_lock(hashtextextended('punctual artifacts ' || $1, 0));

-- lock-bytes
SELECT pg_advisory_xact_lock(hashtextextended('punctual bytes ' || $1, 0));

-- lock-job-outputs
SELECT pg_advisory_xact_lock(hashtextextended('punctual outputs ' || $1, 0));

-- lock-keys
SELECT k.job
FROM unnest($1::text[], $2::text[], $3::uuid[]) u(tenant, key, holder)
JOIN punctual.keys k ON k.tenant = u.tenant AND k.key = u.key AND k.job = u.holder
ORDER BY k.tenant, k.key FOR UPDATE OF k;

-- lock-secrets
SELECT pg_advisory_xact_lock(hashtextextended('punctual secrets ' || $1, 0));

-- lock-signing-secrets
SELECT pg_advisory_xact_lock(hashtextextended('punctual signing secrets ' || $1, 0));

-- lock-usage
SELECT u.live, u.later, u.counted_at AS "countedAt", u.count_ms AS "countMs",
  t.quota_live_jobs AS "liveJobs", t.quota_later_jobs AS "laterJobs",
  floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
FROM punctual.tenant_usage u JOIN punctual.tenants t ON t.id = u.tenant
WHERE u.tenant = $1::text FOR UPDATE OF u;

-- lock-workflow-definitions
SELECT pg_advisory_xact_lock(hashtextextended('punctual workflow definitions ' || $1, 0));

-- look-at-job-outputs
SELECT EXISTS (
    SELECT 1 FROM punctual.claims c JOIN punctual.jobs j ON j.id = c.job
    WHERE c.job = $2::uuid AND c.fence = $3::int AND j.tenant = $1) AS running,
  count(a.id)::int AS count, coalesce(sum(a.size), 0)::bigint AS bytes,
  (SELECT coalesce(sum(t.size), 0)::bigint FROM punctual.artifacts t WHERE $5::boolean AND t.tenant = $1) AS
    "tenantBytes"
FROM (SELECT 1) one LEFT JOIN punctual.artifacts a ON a.job = $2::uuid AND a.output <> $4;

-- look-at-lease
  SELECT coalesce(l.epoch, 0) AS epoch, coalesce(l.holder, '') AS holder, coalesce(l.holder_url, '') AS "holderUrl",
    coalesce((extract(epoch FROM l.expires_at) * 1000)::bigint, 0) AS "expiresAt",
    coalesce(l.expires_at < clock_timestamp(), true) AS expired,
    (
l.session_pid IS NOT NULL AND l.session_start IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM pg_stat_activity a
  WHERE a.pid = l.session_pid AND (a.backend_start = l.session_start OR a.backend_start IS NULL))) AS "sessionGone",
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
    (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint AS "serverStartedAt"
  FROM (SELECT $1::int AS shard) asked LEFT JOIN punctual.leases l USING (shard);

-- look-back
SELECT
array_to_string(ARRAY(
  SELECT j.id FROM punctual.jobs j WHERE j.id >= $1::uuid AND j.id > $2::uuid ORDER BY j.id LIMIT $3), ',') AS ids,
EXISTS (SELECT 1 FROM punctual.later WHERE NOT held AND NOT blocked AND admit_at <= $4) AS admit,
EXISTS (SELECT 1 FROM punctual.cancel_requests WHERE id > 0) AS cancel,
EXISTS (SELECT 1 FROM punctual.steps WHERE wake_at <= $4) AS wake,
(SELECT true FROM punctual.later WHERE artifact IS NOT NULL ORDER BY artifact LIMIT 1) IS NOT NULL AS artifacts;

-- make-artifact-gone
UPDATE punctual.artifacts a SET state = 'gone', name = NULL, version = NULL, job = NULL
WHERE a.id = $2::uuid AND a.tenant = $1 AND a.state <> 'gone'
RETURNING a.id, a.sha256;

-- make-artifact-ready
UPDATE punctual.artifacts a SET state = 'ready', ready_at = $4::bigint, kind = $5, machine = $6, used_at =
  $4::bigint
WHERE a.id = $2::uuid AND a.tenant = $1 AND a.sha256 = $3 AND a.state = 'pending'
RETURNING a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
  a.created_by, a.ready_at, a.expires_at, a.job, a.output;

-- mark-swept
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.workflows w SET swept = true
  WHERE w.id = $4::uuid AND w.stopping IS NOT DISTINCT FROM $5::text AND w.run = $6::int AND w.held = $7::boolean
    AND EXISTS (SELECT 1 FROM term)
  RETURNING w.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- mark-task-tenant
INSERT INTO punctual.task_tenants (tenant, version, tasks, bytes) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant) DO UPDATE SET version = excluded.version,
  tasks = punctual.task_tenants.tasks + excluded.tasks, bytes = punctual.task_tenants.bytes + excluded.bytes
RETURNING tasks, bytes;

-- measure-to-admit
SELECT l.id, octet_length(l.submission::text) AS bytes, l.said_at AS "saidAt"
FROM unnest($2::uuid[]) u(id) JOIN punctual.later l ON l.id BETWEEN u.id AND u.id
WHERE NOT l.held AND NOT l.blocked AND l.admit_at <= $1;

-- move-audit-anchor
UPDATE punctual.audit_chain c SET removed_sequence = last.sequence, removed_hash = last.hash
FROM (
  SELECT p.sequence, p.hash FROM (
    SELECT f.sequence, f.hash, bool_and(f.at < $1::bigint) OVER (ORDER BY f.sequence) AS is_old FROM (
      SELECT a.sequence, a.hash, a.at FROM punctual.audit a WHERE a.sequence IS NOT NULL
      ORDER BY a.sequence LIMIT $2::int) f) p
  WHERE p.is_old ORDER BY p.sequence DESC LIMIT 1) last
RETURNING c.removed_sequence;

-- move-audit-head
UPDATE punctual.audit_chain SET sequence = $2::bigint, hash = decode($3::text, 'hex')
WHERE sequence = $1::bigint RETURNING sequence;

-- move-schedules
UPDATE punctual.schedules s SET
  watermark = u.watermark, fire_at = u.fire_at, last_job = coalesce(u.last_job, s.last_job),
  last_workflow = CASE WHEN u.last_job IS NULL THEN s.last_workflow ELSE u.last_workflow END,
  last_batch = CASE WHEN u.last_job IS NULL THEN s.last_batch ELSE u.last_batch END
FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::uuid[], $7::uuid[], $8::uuid[])
  u(id, version, moved_from, watermark, fire_at, last_job, last_workflow, last_batch)
WHERE s.id BETWEEN u.id AND u.id AND s.version = u.version AND s.watermark = u.moved_from
RETURNING s.id;

-- names-hold
SELECT (SELECT count(*) FROM unnest($1::int[], $2::text[], $3::text[]) n(id, tenant, name)
  JOIN punctual.queues q ON q.id BETWEEN n.id AND n.id AND q.tenant = n.tenant AND q.name = n.name) =
    cardinality($1::int[])
AND (SELECT count(*) FROM unnest($4::int[], $5::bytea[]) n(id, signature)
  JOIN punctual.needs w ON w.id BETWEEN n.id AND n.id AND w.signature = n.signature) = cardinality($4::int[]) AS
    named;

-- next-definition-number
INSERT INTO punctual.definition_numbers AS n (tenant, name, version)
SELECT $1, $2, 1 + coalesce(
  (SELECT f.version FROM punctual.definition_numbers f WHERE f.tenant = $1 AND f.name = ''), 0)
ON CONFLICT (tenant, name) DO UPDATE SET version = n.version + 1 RETURNING n.version;

-- next-expiry
SELECT least(
(SELECT j.start_before FROM punctual.jobs j
 WHERE j.start_before IS NOT NULL AND j.attempts = 0
   AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL
 ORDER BY j.start_before LIMIT 1),
(SELECT min(start_before) FROM punctual.later WHERE start_before IS NOT NULL AND attempts = 0)) AS at;

-- next-fire
SELECT fire_at AS at FROM punctual.schedules WHERE fire_at IS NOT NULL ORDER BY fire_at LIMIT 1;

-- next-judgement
SELECT judge_at AS at FROM punctual.occurrences WHERE judge_at IS NOT NULL ORDER BY judge_at LIMIT 1;

-- next-overdue-artifact
SELECT min(l.artifact_by) AS at FROM punctual.later l WHERE l.artifact IS NOT NULL;

-- next-wake
SELECT min(wake_at) AS at FROM punctual.steps WHERE wake_at > $1::bigint;

-- park-steps
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.jobs j USING unnest($4::uuid[]) u(id)
  WHERE j.id BETWEEN u.id AND u.id AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL AND EXISTS
    (SELECT 1 FROM term)
  RETURNING j.*
), moved AS (
  INSERT INTO punctual.later (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, size_kib, admit_at, held, blocked)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, m.size_kib, 4503599627370496 AS admit_at,
    false AS held, true AS blocked
  FROM gone m
  RETURNING id
), stopped AS (
  UPDATE punctual.later l SET blocked = true, admit_at = 4503599627370496 FROM unnest($4::uuid[]) u(id)
  WHERE l.id BETWEEN u.id AND u.id AND NOT l.blocked AND EXISTS (SELECT 1 FROM term)
  RETURNING l.id
), marked AS (
  UPDATE punctual.steps s SET parked = true
  WHERE s.id = ANY (ARRAY(SELECT id FROM gone) || ARRAY(SELECT id FROM stopped))
), answer AS (SELECT (SELECT count(*) FROM moved) AS moved, (SELECT count(*) FROM stopped) AS stopped) SELECT
  answer.* FROM term LEFT JOIN answer ON true;

-- parse-later
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.later l SET submission = NULL, (id, payload, size_kib, queue, needs, lane, rank, run_at,
    max_attempts, max_losses, at_most_once, timeout_ms, start_before, task, key, concurrency_key, target, backoff,
    requires, traceparent, artifact, artifact_by, admit_at, held, blocked) = ROW(u.id, coalesce(u.payload,
    $29::json), coalesce(u.size_kib, $30::int), coalesce(u.queue, $31::int), coalesce(u.needs, $32::int),
    coalesce(u.lane, $33::int), coalesce(u.rank, $34::smallint), coalesce(u.run_at, $35::bigint),
    coalesce(u.max_attempts, $36::smallint), coalesce(u.max_losses, $37::smallint), coalesce(u.at_most_once,
    $38::boolean), coalesce(u.timeout_ms, $39::bigint), coalesce(u.start_before, $40::bigint), coalesce(u.task,
    $41::text), coalesce(u.key, $42::text), coalesce(u.concurrency_key, $43::text), coalesce(u.target, $44::json),
    coalesce(u.backoff, $45::json), coalesce(u.requires, $46::json), coalesce(u.traceparent, $47::text),
    coalesce(u.artifact, $48::uuid), coalesce(u.artifact_by, $49::bigint), coalesce(u.admit_at, $50::bigint),
    coalesce(u.held, $51::boolean), coalesce(u.blocked, $52::boolean))
  FROM unnest($4::uuid[], $5::json[], $6::int[], $7::int[], $8::int[], $9::int[], $10::smallint[], $11::bigint[],
    $12::smallint[], $13::smallint[], $14::boolean[], $15::bigint[], $16::bigint[], $17::text[], $18::text[],
    $19::text[], $20::json[], $21::json[], $22::json[], $23::text[], $24::uuid[], $25::bigint[], $26::bigint[],
    $27::boolean[], $28::boolean[]) u(id, payload, size_kib, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, start_before, task, key, concurrency_key, target, backoff, requires,
    traceparent, artifact, artifact_by, admit_at, held, blocked)
  WHERE l.id BETWEEN u.id AND u.id AND l.submission IS NOT NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING l.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- pause-before-start
WITH ended AS (UPDATE punctual.leases SET epoch = epoch + 1, expires_at = 'epoch', session_pid = NULL)
UPDATE punctual.cluster SET paused = true;

-- pause-cluster
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.cluster SET paused = $4::boolean WHERE paused <> $4::boolean AND EXISTS (SELECT 1 FROM term)
  RETURNING paused
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- pause-cluster-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.cluster SET paused = $4::boolean WHERE paused <> $4::boolean AND EXISTS (SELECT 1 FROM term)
  RETURNING paused
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $5::uuid, $6::bigint, $7::text, $8::uuid, $9::text, $10::text, $11::text, $12::text, $13::text,
    $14::text, $15::json, $16::json, $17::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1 FROM term))
    SELECT answer.* FROM term LEFT JOIN answer ON true;

-- pause-queue
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.queues SET paused = $6::boolean
  WHERE tenant = $4::text AND name = $5::text AND paused <> $6::boolean AND EXISTS (SELECT 1 FROM term)
  RETURNING id, tenant, name, paused, created_at, weight, concurrency, key_concurrency, rate_limit, rate_per,
rate_burst, full_at, debt
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- pause-queue-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.queues SET paused = $6::boolean
  WHERE tenant = $4::text AND name = $5::text AND paused <> $6::boolean AND EXISTS (SELECT 1 FROM term)
  RETURNING id, tenant, name, paused, created_at, weight, concurrency, key_concurrency, rate_limit, rate_per,
rate_burst, full_at, debt
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $7::uuid, $8::bigint, $9::text, $10::uuid, $11::text, $12::text, $13::text, $14::text,
    $15::text, $16::text, $17::json, $18::json, $19::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- postpone-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.jobs j USING unnest($4::uuid[], $5::bigint[], $6::smallint[], $7::json[], $8::bigint[],
    $9::boolean[])
    u(id, run_at, rank, payload, admit_at, held)
  WHERE j.id BETWEEN u.id AND u.id AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL AND EXISTS
    (SELECT 1 FROM term)
  RETURNING j.*, u.run_at AS new_run_at, u.rank AS new_rank, u.payload AS new_payload, u.admit_at, u.held
), answer AS (
  INSERT INTO punctual.later (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, size_kib, admit_at, held)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, coalesce(m.new_rank, m.rank) AS rank, coalesce(m.new_run_at,
    m.run_at) AS run_at, m.attempts, m.failures, m.losses, m.max_attempts, m.max_losses, m.at_most_once,
    m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task, m.created_by, m.key, m.concurrency_key, m.target,
    m.backoff, m.requires, m.traceparent, coalesce(m.new_payload, m.payload) AS payload, m.earlier_attempts,
    m.schedule, m.occurrence, m.workflow, m.batch, coalesce((octet_length((m.new_payload)::text) +
    coalesce(octet_length(m.target::text), 0)) >> 10, m.size_kib) AS size_kib, coalesce(m.admit_at, m.new_run_at,
    m.run_at) AS admit_at, m.held AS held
  FROM gone m
  RETURNING id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- postpone-jobs-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.jobs j USING unnest($4::uuid[], $5::bigint[], $6::smallint[], $7::json[], $8::bigint[],
    $9::boolean[])
    u(id, run_at, rank, payload, admit_at, held)
  WHERE j.id BETWEEN u.id AND u.id AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL AND EXISTS
    (SELECT 1 FROM term)
  RETURNING j.*, u.run_at AS new_run_at, u.rank AS new_rank, u.payload AS new_payload, u.admit_at, u.held
), answer AS (
  INSERT INTO punctual.later (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, size_kib, admit_at, held)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, coalesce(m.new_rank, m.rank) AS rank, coalesce(m.new_run_at,
    m.run_at) AS run_at, m.attempts, m.failures, m.losses, m.max_attempts, m.max_losses, m.at_most_once,
    m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task, m.created_by, m.key, m.concurrency_key, m.target,
    m.backoff, m.requires, m.traceparent, coalesce(m.new_payload, m.payload) AS payload, m.earlier_attempts,
    m.schedule, m.occurrence, m.workflow, m.batch, coalesce((octet_length((m.new_payload)::text) +
    coalesce(octet_length(m.target::text), 0)) >> 10, m.size_kib) AS size_kib, coalesce(m.admit_at, m.new_run_at,
    m.run_at) AS admit_at, m.held AS held
  FROM gone m
  RETURNING id
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $10::uuid, $11::bigint, $12::text, $13::uuid, $14::text, $15::text, $16::text, $17::text,
    $18::text, $19::text, $20::json, $21::json, $22::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- publish-limits
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), published AS (
  UPDATE punctual.cluster SET max_payload = $4::bigint, max_job_timeout = $5::bigint
  WHERE (max_payload, max_job_timeout) IS DISTINCT FROM ($4::bigint, $5::bigint) AND EXISTS (SELECT 1 FROM term)
), answer AS (
  SELECT EXISTS (SELECT 1 FROM punctual.audit a WHERE a.sequence IS NULL) AS unchained,
    (SELECT a.at FROM punctual.audit a WHERE a.sequence IS NOT NULL ORDER BY a.sequence LIMIT 1) AS oldest
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- put-back-passed-over
INSERT INTO punctual.occurrences (schedule, tenant, at, until, count, state, reason, recorded_at)
SELECT $1::uuid, $2, u.* FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[],
  $8::bigint[]) u(at, until, count, state, reason, recorded_at);

-- read-adder
SELECT s.name, c.fence FROM punctual.steps s
LEFT JOIN LATERAL (SELECT c.fence FROM punctual.claims c WHERE c.job = s.id LIMIT 1) c ON true
WHERE s.id = $1::uuid AND s.workflow = $2::uuid AND s.tenant = $3::text;

-- read-ahead
SELECT o.at, o.job, o.workflow IS NULL AND o.batch IS NULL AS "isJob" FROM punctual.occurrences o
WHERE o.schedule = $1::uuid AND o.at > $2 AND NOT o.by_hand AND o.job IS NOT NULL ORDER BY o.at;

-- read-audit-ends
SELECT sequence, encode(hash, 'hex') AS hash, removed_sequence AS "removedSequence",
  encode(removed_hash, 'hex') AS "removedHash"
FROM punctual.audit_chain;

-- read-batch
SELECT b.id, b.tenant, b.state, b.on_failure AS "onFailure", cardinality(b.members) AS size, b.run,
  b.due_at AS "dueAt", b.start_timeout_ms AS "startTimeoutMs", b.created_at AS "createdAt",
  b.created_by AS "createdBy", b.started_at AS "startedAt", b.ended_at AS "endedAt", b.error, b.places,
  b.schedule, b.occurrence, ARRAY(
  SELECT m.id || ' ' || coalesce(
    (SELECT 'running' FROM punctual.jobs j WHERE j.id = m.id),
    (SELECT 'blocked' FROM punctual.later l WHERE l.id = m.id),
    (SELECT h.state FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures,
      e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by,
      e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload,
      e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at,
      e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
      punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at,
      e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at,
      e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires,
      e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence,
      e.worker, e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result,
      e.error, e.execution FROM punctual.job_history_kept e) h
     WHERE h.tenant = $1::text AND h.id = m.id AND h.finished_at >= b.created_at - 172800000),
    '')
  FROM unnest(b.members) WITH ORDINALITY m(id, place) ORDER BY m.place) AS jobs
FROM punctual.batches b WHERE b.tenant = $1::text AND b.id = $2::uuid;

-- read-cancel-requests
SELECT c.id, c.tenant, c.job, c.requested_by AS "requestedBy" FROM punctual.cancel_requests c
WHERE c.id > $1 ORDER BY c.id LIMIT $2;

-- read-claims
SELECT c.fence, c.worker, c.epoch, c.claimed_at AS "claimedAt", c.cancelled_at AS "cancelledAt", c.handed_on_at AS
  "handedOnAt", c.progress, c.started_at AS "startedAt", j.id, j.tenant, j.queue, j.needs, j.lane, j.rank, j.run_at
  AS "runAt", j.start_before AS "startBefore", j.size_kib AS "sizeKib", j.task, j.timeout_ms AS "timeoutMs",
  j.failures, j.losses, j.max_attempts AS "maxAttempts", j.max_losses AS "maxLosses", j.at_most_once AS
  "atMostOnce", j.backoff, j.late_by AS "lateBy", j.schedule, j.workflow, j.batch,
  j.concurrency_key AS "key"
FROM punctual.claims c JOIN punctual.jobs j ON j.id BETWEEN c.job AND c.job
WHERE c.job = ANY($1::uuid[]);

-- read-cluster
SELECT paused, secret FROM punctual.cluster;

-- read-due-schedules
  SELECT s.id, s.tenant, s.name, s.paused, s.watermark, s.fire_at, s.last_job, s.last_workflow,
s.last_batch, s.created_at,
s.created_by, s.changed_at, s.changed_by, s.version, s.deleted_at, s.managed_by, s.definition FROM (
    SELECT s.*, sum(pg_column_size(s.definition)) OVER (ORDER BY s.fire_at, s.id) - pg_column_size(s.definition)
      AS bytes_before
    FROM (SELECT * FROM punctual.schedules WHERE fire_at <= $1 ORDER BY fire_at LIMIT $2) s) s
  WHERE s.bytes_before < $3;

-- read-edges
SELECT string_agg(s.id::text, ' ') AS ids, g.ends, s.run_if AS "runIf", s.parents, s.parents_left AS "parentsLeft",
  s.ok, s.bad, s.released, s.outcome,
  s.delay_ms AS "delayMs", s.wait::text AS wait, s.inner_graph IS NOT NULL AS inner, s.refers
FROM (
  SELECT string_agg(f.n::text, ' ') AS ends, f.children
  FROM (
    SELECT n, children, sum(cardinality(children)) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) -
      cardinality(children) AS before
    FROM (
      SELECT p.n, CASE WHEN p.added = '{}' THEN coalesce(p.child_ids[width_bucket(p.passed, p.child_ids) +
        1:width_bucket(p.passed, p.child_ids) + $1], '{}')
        ELSE ARRAY(SELECT b.id FROM unnest(p.child_ids[width_bucket(p.passed, p.child_ids) +
          1:width_bucket(p.passed, p.child_ids) + $1] || p.added) b(id) ORDER BY b.id LIMIT $1) END AS children
      FROM (
        SELECT p.*, ARRAY(
          SELECT e.child FROM punctual.edges e
          WHERE (e.parent, e.child) > (p.id, p.passed) AND e.parent <= p.id ORDER BY e.parent, e.child LIMIT $1) AS
            added
        FROM (
          SELECT p.id, p.child_ids, CASE WHEN ($4::int[]) IS NULL THEN $3::int ELSE
            nullif(($4::int[])[width_bucket(p.id, $2::uuid[])], -1) END AS n, CASE WHEN ($6::uuid[]) IS NULL THEN
            $5::uuid ELSE ($6::uuid[])[width_bucket(p.id, $2::uuid[])] END AS passed
          FROM punctual.steps p WHERE p.id = ANY($2::uuid[]) OFFSET 0) p OFFSET 0) p OFFSET 0) c) f
  WHERE f.before < $1
  GROUP BY f.children) g
JOIN punctual.steps s ON s.id = ANY(g.children)
GROUP BY g.ends, s.run_if, s.parents, s.parents_left, s.ok, s.bad, s.released, s.outcome, s.delay_ms, s.wait::text,
  s.inner_graph IS NOT NULL, s.refers;

-- read-ended-members
SELECT h.id, h.state FROM unnest($2::uuid[]) u(id)
JOIN (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses,
  e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task,
  e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload,
  e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at,
  e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts,
  e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before,
  e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent,
  e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch,
  e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history_kept e) h ON h.tenant = $1::text AND h.id = u.id AND h.finished_at >= $3::bigint;

-- read-error-groups
WITH examined AS MATERIALIZED (
  SELECT h.id, h.finished_at, h.task, h.queue, h.error FROM punctual.job_history h
  WHERE h.tenant = $1::text AND h.state = 'failed' AND h.id < $2::uuid AND h.finished_at >= $3::bigint
  ORDER BY h.id DESC LIMIT $4::int
), shaped AS MATERIALIZED (
  SELECT e.id, e.task, e.finished_at, punctual.error_fingerprint(e.task, e.error) AS fingerprint, e.error
  FROM examined e
  WHERE e.finished_at >= $5::bigint AND e.finished_at < $5::bigint + $6::bigint * $7::bigint
    AND ($8::text[] IS NULL OR e.queue = ANY (ARRAY(
      SELECT q.id FROM punctual.queues q WHERE q.tenant = $1::text AND q.name = ANY ($8::text[]))))
    AND ($9::text[] IS NULL OR e.task = ANY ($9::text[]))
), groups AS (
  SELECT s.fingerprint, (s.finished_at - $5::bigint) / $6::bigint AS slot, count(*) AS count,
    min(s.finished_at) AS first, max(s.finished_at) AS last, (array_agg(s.id ORDER BY s.finished_at DESC))[1] AS
      example
  FROM shaped s GROUP BY 1, 2
), reached AS (
  SELECT count(*) AS examined, (array_agg(id ORDER BY id))[1] AS reach FROM examined
)
SELECT r.examined, r.reach, g.*, s.task, punctual.readable(s.error) ->> 'code' AS code,
  punctual.error_shape(s.error) AS message
FROM reached r LEFT JOIN groups g ON true LEFT JOIN shaped s ON s.id = g.example;

-- read-figures-beside
SELECT w.steps + (SELECT coalesce(sum(s.inner_steps), 0) FROM punctual.steps s WHERE s.workflow = w.id AND
  s.inner_steps > 0)
  AS steps, w.edges, w.last_place AS "lastPlace"
FROM punctual.workflows w WHERE w.id = $1::uuid;

-- read-graph
SELECT e.id AS parent, c.id AS child FROM punctual.steps c CROSS JOIN LATERAL (SELECT unnest(g.parent_ids) AS id
  FROM punctual.steps g WHERE g.id BETWEEN c.id AND c.id
  UNION ALL SELECT e.parent FROM punctual.edges e WHERE e.child BETWEEN c.id AND c.id) e
WHERE c.workflow = $1 AND c.tenant = $2;

-- read-graph-steps
SELECT s.id, s.name, s.run_if AS "runIf", s.outcome, s.finished_at AS "finishedAt", s.released, s.wait, s.refers,
  s.added_by AS "addedBy", s.inner_graph IS NOT NULL AS inner, h.id IS NOT NULL AS "hasHistory",
    coalesce(h.at_most_once AND h.attempts > 0, false) AS "ranOnce"
FROM punctual.steps s
LEFT JOIN LATERAL (
  SELECT h.id, h.at_most_once, h.attempts FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at,
    e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at,
    e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires,
    e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker,
    e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error,
    e.execution FROM punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank,
    e.run_at, e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms,
    e.created_at, e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff,
    e.requires, e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch,
    e.fence, e.worker, e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result,
    e.error, e.execution FROM punctual.job_history_kept e) h
  WHERE h.tenant = s.tenant AND h.id = s.id AND h.finished_at = s.finished_at LIMIT 1) h ON true
WHERE s.workflow = $1::uuid ORDER BY s.place;

-- read-inner-graph
SELECT s.inner_graph AS graph, s.inner_workflow AS inner, s.released AND s.wake_at IS NOT NULL AS "isDue", s.refers,
  (SELECT l.payload FROM punctual.later l WHERE l.id = s.id) AS payload
FROM punctual.steps s WHERE s.id = $1::uuid AND s.outcome IS NULL;

-- read-job
  SELECT place, raw, id, tenant, queue, rank, run_at, attempts, failures, losses, max_attempts, max_losses,
    at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key, target,
    backoff, requires, schedule, occurrence, workflow, batch, artifact, artifact_by, held, fence, worker, epoch,
    claimed_at, cancelled_at, handed_on_at, progress, started_at, finished_at, state, outcome, payload, result,
    error, execution, array_to_json(
earlier_attempts[greatest(1, cardinality(earlier_attempts) - 99):]) AS earlier_attempts,
    coalesce(cardinality(earlier_attempts), 0) AS earlier_count, step, step_inner, step_waits, step_event,
      step_until
  FROM (
      
SELECT 'live' AS place, false AS raw, j.id, j.tenant, q.name AS queue, j.rank, j.run_at, j.attempts, j.failures,
  j.losses, j.max_attempts, j.max_losses, j.at_most_once, j.timeout_ms, j.created_at, j.start_before, j.late_by,
  j.task, j.created_by, j.key, j.concurrency_key, j.target, j.backoff, j.requires, j.payload, j.earlier_attempts,
  j.schedule, j.occurrence, j.workflow, j.batch, NULL::uuid AS artifact, NULL::bigint AS artifact_by, false AS held,
  c.fence, c.worker, c.epoch, c.claimed_at, c.cancelled_at, c.handed_on_at, c.progress, c.started_at, NULL::bigint
  AS finished_at, CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END AS state, NULL::text AS outcome,
  NULL::json AS result, NULL::json AS error, NULL::json AS execution
FROM punctual.jobs j
JOIN punctual.queues q ON q.id = j.queue
LEFT JOIN punctual.claims c ON c.job BETWEEN j.id AND j.id WHERE j.tenant = $1 AND j.id = $2::uuid
    UNION ALL 
SELECT 'later' AS place, l.submission IS NOT NULL AS raw, l.id, l.tenant, coalesce(q.name, s.raw ->> 'queue',
  'default') AS queue, coalesce(l.rank, 5::smallint) AS rank, coalesce(l.run_at, l.admit_at) AS run_at, l.attempts,
  l.failures, l.losses, coalesce(l.max_attempts, 4::smallint) AS max_attempts, coalesce(l.max_losses, 3::smallint)
  AS max_losses, coalesce(l.at_most_once, false) AS at_most_once, coalesce(l.timeout_ms, 1200000) AS timeout_ms,
  l.created_at, l.start_before, l.late_by, coalesce(l.task, s.raw ->> 'task') AS task, l.created_by, l.key,
  l.concurrency_key, coalesce(l.target, s.raw -> 'target') AS target, l.backoff, l.requires, coalesce(l.payload,
  s.raw -> 'payload', 'null'::json) AS payload, l.earlier_attempts, l.schedule, l.occurrence, l.workflow, l.batch,
  l.artifact, l.artifact_by, l.held, NULL::int AS fence, NULL::uuid AS worker, NULL::bigint AS epoch, NULL::bigint
  AS claimed_at, NULL::bigint AS cancelled_at, NULL::bigint AS handed_on_at, NULL::json AS progress, NULL::bigint AS
  started_at, NULL::bigint AS finished_at, CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END AS state,
  NULL::text AS outcome, NULL::json AS result, NULL::json AS error, NULL::json AS execution
FROM punctual.later l
CROSS JOIN LATERAL punctual.readable(l.submission) s(raw)
LEFT JOIN punctual.queues q ON q.id = l.queue WHERE l.tenant = $1 AND l.id = $2::uuid
    UNION ALL 
SELECT 'history' AS place, false AS raw, h.id, h.tenant, q.name AS queue, h.rank, h.run_at, h.attempts, h.failures,
  h.losses, h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms, h.created_at, h.start_before, h.late_by,
  h.task, h.created_by, h.key, h.concurrency_key, h.target, h.backoff, h.requires, h.payload, h.earlier_attempts,
  h.schedule, h.occurrence, h.workflow, h.batch, NULL::uuid AS artifact, NULL::bigint AS artifact_by, false AS held,
  h.fence, h.worker, h.epoch, h.claimed_at, NULL::bigint AS cancelled_at, NULL::bigint AS handed_on_at, h.progress,
  h.started_at, h.finished_at, h.state, h.outcome, h.result, h.error, h.execution
FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses,
  e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task,
  e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload,
  e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at,
  e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts,
  e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before,
  e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent,
  e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch,
  e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history_kept e) h
JOIN punctual.queues q ON q.id = h.queue WHERE h.tenant = $1 AND h.id = $2::uuid AND h.finished_at >= $3) p
  LEFT JOIN LATERAL (
    SELECT s.name AS step, s.inner_workflow AS step_inner,
    CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) THEN true END
      AS step_waits,
    CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) THEN s.wait ->>
      'event' END AS step_event,
    CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) AND s.wait IS
      NOT NULL THEN s.wake_at END AS step_until
    FROM punctual.steps s WHERE s.id = p.id AND p.workflow IS NOT NULL) w ON true;

-- read-joiners
SELECT s.id FROM (SELECT unnest(g.child_ids) AS id FROM punctual.steps g WHERE g.id BETWEEN $1::uuid AND $1::uuid
  UNION ALL SELECT e.child FROM punctual.edges e WHERE e.parent BETWEEN $1::uuid AND $1::uuid) c JOIN punctual.steps
    s ON s.id BETWEEN c.id AND c.id
WHERE NOT s.released AND s.outcome IS NULL;

-- read-ledger
  SELECT o.at, o.by_hand AS "byHand", o.state, o.reason, o.job, o.workflow, o.batch,
    o.late_after AS "lateAfter", o.until, o.count, coalesce(o.late_by, j.late_by, h.late_by, l.late_by,
    CASE WHEN c.job IS NOT NULL THEN greatest(0, c.claimed_at - j.run_at) END) AS "lateBy",
    CASE WHEN j.id IS NOT NULL AND c.job IS NULL AND j.attempts = 0 OR l.id IS NOT NULL AND l.attempts = 0
      THEN 'pending'
      WHEN h.id IS NOT NULL AND h.attempts = 0 THEN CASE
        WHEN o.workflow IS NULL THEN h.state
        -- Whatever became of its first step, others may have run.
        ELSE (SELECT w.state FROM punctual.workflows w WHERE w.id = o.workflow AND w.state = 'cancelled') END
    END AS "neverStarted"
  FROM punctual.occurrences o 
LEFT JOIN LATERAL (SELECT * FROM punctual.jobs WHERE id = o.job OFFSET 0) j ON true
LEFT JOIN LATERAL (SELECT * FROM punctual.claims WHERE job = o.job OFFSET 0) c ON true
LEFT JOIN LATERAL (SELECT * FROM punctual.later WHERE id = o.job OFFSET 0) l ON true
LEFT JOIN LATERAL (
  SELECT h.id, h.late_by, h.state, h.attempts, h.error FROM punctual.job_history h
  WHERE h.tenant = o.tenant AND h.id = o.job AND h.finished_at >= o.recorded_at - 86400000
    AND h.finished_at <= $1::bigint + 86400000
  LIMIT 1) h ON true
  WHERE o.schedule = $2::uuid AND (o.at, o.by_hand) < ($5::bigint, $6::boolean) AND o.at <= $4::bigint
    AND o.at >= coalesce((
      SELECT r.at FROM (
        SELECT p.at, p.until FROM punctual.occurrences p
        WHERE p.schedule = $2::uuid AND p.at < $3::bigint AND NOT p.by_hand ORDER BY p.at DESC LIMIT 1) r
      WHERE r.until >= $3::bigint), $3::bigint)
  ORDER BY o.at DESC, o.by_hand DESC LIMIT $7;

-- read-log-lines
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT seq, fence, line, octet_length(line::text) AS bytes FROM punctual.job_logs
 WHERE job = $2::uuid AND tenant = $1 AND seq > $3 AND stored_at >= $4 ORDER BY seq LIMIT $5::int + 1) s WINDOW
   in_order AS (ORDER BY seq)) t
WHERE place_in_portion <= $5::int AND bytes_before < $6::bigint ORDER BY seq;

-- read-member-ids
SELECT b.members FROM punctual.batches b WHERE b.tenant = $1::text AND b.id = $2::uuid;

-- read-members-of-day
SELECT h.* FROM punctual.batches b CROSS JOIN LATERAL unnest(b.members) m(id) CROSS JOIN LATERAL (
  SELECT h.id, h.tenant, h.finished_at AS "finishedAt", (256 + coalesce(pg_column_size(h.target), 0) +
    coalesce(pg_column_size(h.requires), 0) + coalesce(pg_column_size(h.payload), 0) +
    coalesce(pg_column_size(h.earlier_attempts), 0) + coalesce(pg_column_size(h.result), 0) +
    coalesce(pg_column_size(h.error), 0) + coalesce(pg_column_size(h.execution), 0)) AS bytes
  FROM punctual.job_history h
  WHERE h.tenant = b.tenant AND h.id = m.id AND h.finished_at >= $2::bigint AND h.finished_at < $3::bigint
  LIMIT 1) h
WHERE b.id = ANY($1::uuid[]);

-- read-needs
SELECT n.id, n.tenant, n.target, n.handler, n.labels, l.concurrency, l.rate_limit, l.rate_per, l.rate_burst
FROM punctual.needs n
LEFT JOIN LATERAL (
  SELECT * FROM punctual.origin_limits o
  WHERE n.target = 'http' AND o.tenant = n.tenant AND o.origin = n.handler LIMIT 1) l ON true
WHERE n.id = ANY($1::int[]);

-- read-older-batches
SELECT w.id, w.tenant, w.ended_at AS "endedAt", cardinality(w.members) AS size FROM punctual.batches w
WHERE w.id > $1::uuid AND w.id < $2::uuid ORDER BY w.id LIMIT $3::int;

-- read-older-workflows
SELECT w.id, w.tenant, w.ended_at AS "endedAt", w.steps AS size FROM punctual.workflows w
WHERE w.id > $1::uuid AND w.id < $2::uuid ORDER BY w.id LIMIT $3::int;

-- read-open-batch
SELECT b.id, b.tenant, b.on_failure AS "onFailure", b.members, b.due_at AS "dueAt",
b.start_timeout_ms AS "startTimeoutMs", b.cancelled_at AS "cancelledAt", b.state, b.run FROM punctual.batches b
  WHERE b.tenant = $1::text AND b.id = $2::uuid;

-- read-open-batches
SELECT b.id, b.tenant, b.on_failure AS "onFailure", b.members, b.due_at AS "dueAt",
  b.start_timeout_ms AS "startTimeoutMs", b.cancelled_at AS "cancelledAt" FROM punctual.batches b
WHERE b.state = $1::text AND b.ended_at IS NULL AND (b.due_at, b.id) > ($2::bigint, $3::uuid)
ORDER BY b.due_at, b.id LIMIT $4::int;

-- read-outbox
SELECT o.job, o.workflow, o.state, o.finished_at AS "finishedAt", o.place FROM punctual.outbox o
WHERE o.job > $1::uuid ORDER BY o.job LIMIT $2;

-- read-outbox-of
SELECT o.job, o.workflow, o.state, o.finished_at AS "finishedAt", o.place
FROM punctual.steps s JOIN punctual.outbox o ON o.job BETWEEN s.id AND s.id WHERE s.workflow = $1 LIMIT $2;

-- read-overdue-batches
SELECT b.id, b.tenant, b.on_failure AS "onFailure", b.members, b.due_at AS "dueAt",
  b.start_timeout_ms AS "startTimeoutMs", b.cancelled_at AS "cancelledAt" FROM punctual.batches b
WHERE b.state = 'pending' AND b.ended_at IS NULL AND (b.due_at, b.id) > ($1::bigint, $2::uuid)
  AND b.due_at + b.start_timeout_ms <= $3::bigint
ORDER BY b.due_at, b.id LIMIT $4::int;

-- read-pages
SELECT p.* FROM unnest($1::int[], $2::int[], $3::int[], $4::smallint[], $5::bigint[], $6::uuid[])
  c(queue, needs, lane, rank, run_at, id)
CROSS JOIN LATERAL (
  SELECT j.id, j.tenant, j.queue, j.needs, j.lane, j.rank, j.run_at AS "runAt", j.start_before AS "startBefore",
    j.concurrency_key AS "key",
  j.attempts + 1 AS fence, greatest(j.size_kib, pg_column_size(j.payload) >> 10) AS "sizeKib" FROM punctual.jobs j
  WHERE j.queue = c.queue AND j.needs = c.needs AND j.lane = c.lane AND j.rank = c.rank
    AND (j.run_at, j.id) >= (c.run_at, c.id) AND (j.workflow IS NULL OR (SELECT w.held FROM punctual.workflows w
      WHERE w.id = j.workflow) IS NOT TRUE)
  ORDER BY j.run_at, j.id
  LIMIT $7) p;

-- read-parents
SELECT s.name, s.outcome IS NOT NULL OR (SELECT true FROM punctual.outbox o WHERE o.job = s.id) IS NOT NULL AS
  "hasEnded"
FROM (SELECT unnest(g.parent_ids) AS id FROM punctual.steps g WHERE g.id BETWEEN $1::uuid AND $1::uuid
  UNION ALL SELECT e.parent FROM punctual.edges e WHERE e.child BETWEEN $1::uuid AND $1::uuid) p JOIN punctual.steps
    s ON s.id BETWEEN p.id AND p.id ORDER BY s.place;

-- read-previous
SELECT s.id, CASE
  WHEN s.last_workflow IS NOT NULL
  THEN coalesce((SELECT w.ended_at IS NULL FROM punctual.workflows w WHERE w.id = s.last_workflow), false)
  WHEN s.last_batch IS NOT NULL
  THEN coalesce((SELECT b.ended_at IS NULL FROM punctual.batches b WHERE b.id = s.last_batch), false)
  ELSE coalesce(
    (SELECT true FROM punctual.jobs j WHERE j.id = s.last_job),
    (SELECT true FROM punctual.later l WHERE l.id = s.last_job), false) END AS lives,
  EXISTS (SELECT 1 FROM punctual.occurrences o WHERE o.schedule = s.id AND o.state = 'waiting') AS awaited
FROM unnest($1::uuid[]) u(id) JOIN punctual.schedules s ON s.id = u.id;

-- read-queue-minutes
SELECT m.minute, m.ended, m.ready, m.oldest_ready_ms AS "oldestReadyMs" FROM punctual.queue_minutes m
WHERE m.queue = $1::int AND m.minute >= $2::bigint AND m.minute < $3::bigint ORDER BY m.minute;

-- read-queues
SELECT id, tenant, name, paused, created_at, weight, concurrency, key_concurrency, rate_limit, rate_per,
rate_burst, full_at, debt FROM punctual.queues WHERE id = ANY($1::int[]);

-- read-ready-occurrences
WITH RECURSIVE waiting AS (
  (SELECT o.schedule, o.at FROM punctual.occurrences o WHERE o.state = 'waiting'
   ORDER BY o.schedule, o.at LIMIT 1)
  UNION ALL
  SELECT n.schedule, n.at FROM waiting w CROSS JOIN LATERAL (
    SELECT o.schedule, o.at FROM punctual.occurrences o WHERE o.state = 'waiting' AND o.schedule > w.schedule
    ORDER BY o.schedule, o.at LIMIT 1) n
)
SELECT w.schedule, w.at, s.tenant, s.name, coalesce(s.last_workflow, s.last_batch, s.last_job) AS "lastRun",
  NOT CASE
  WHEN s.last_workflow IS NOT NULL
  THEN coalesce((SELECT w.ended_at IS NULL FROM punctual.workflows w WHERE w.id = s.last_workflow), false)
  WHEN s.last_batch IS NOT NULL
  THEN coalesce((SELECT b.ended_at IS NULL FROM punctual.batches b WHERE b.id = s.last_batch), false)
  ELSE coalesce(
    (SELECT true FROM punctual.jobs j WHERE j.id = s.last_job),
    (SELECT true FROM punctual.later l WHERE l.id = s.last_job), false) END AS ready
FROM waiting w JOIN punctual.schedules s ON s.id = w.schedule;

-- read-relatives
WITH RECURSIVE up AS (
  SELECT p.id FROM (SELECT unnest(g.parent_ids) AS id FROM punctual.steps g WHERE g.id BETWEEN $1::uuid AND $1::uuid
  UNION ALL SELECT e.parent FROM punctual.edges e WHERE e.child BETWEEN $1::uuid AND $1::uuid) p
  UNION
  SELECT p.id FROM up u CROSS JOIN LATERAL (SELECT unnest(g.parent_ids) AS id FROM punctual.steps g WHERE g.id
    BETWEEN u.id AND u.id
  UNION ALL SELECT e.parent FROM punctual.edges e WHERE e.child BETWEEN u.id AND u.id) p
), down AS (
  SELECT c.id FROM (SELECT unnest(g.child_ids) AS id FROM punctual.steps g WHERE g.id BETWEEN $1::uuid AND $1::uuid
  UNION ALL SELECT e.child FROM punctual.edges e WHERE e.parent BETWEEN $1::uuid AND $1::uuid) c
  UNION
  SELECT c.id FROM down d CROSS JOIN LATERAL (SELECT unnest(g.child_ids) AS id FROM punctual.steps g WHERE g.id
    BETWEEN d.id AND d.id
  UNION ALL SELECT e.child FROM punctual.edges e WHERE e.parent BETWEEN d.id AND d.id) c
)
SELECT
  ARRAY(SELECT p.id FROM (SELECT unnest(g.parent_ids) AS id FROM punctual.steps g WHERE g.id BETWEEN $1::uuid AND
    $1::uuid
  UNION ALL SELECT e.parent FROM punctual.edges e WHERE e.child BETWEEN $1::uuid AND $1::uuid) p ORDER BY 1 LIMIT
    1001) AS "dependsOn",
  ARRAY(SELECT c.id FROM (SELECT unnest(g.child_ids) AS id FROM punctual.steps g WHERE g.id BETWEEN $1::uuid AND
    $1::uuid
  UNION ALL SELECT e.child FROM punctual.edges e WHERE e.parent BETWEEN $1::uuid AND $1::uuid) c ORDER BY 1 LIMIT
    1001) AS dependents,
  ARRAY(SELECT u.id FROM up u LIMIT 1001) AS ancestors,
  ARRAY(SELECT d.id FROM down d LIMIT 1001) AS descendants;

-- read-runs
SELECT o.at FROM punctual.occurrences o
WHERE o.schedule = $1::uuid AND o.at >= $2 AND o.at <= $3 AND NOT o.by_hand
  AND (o.job IS NOT NULL OR o.state = 'waiting');

-- read-schedule
  SELECT s.id, s.tenant, s.name, s.paused, s.watermark, s.fire_at, s.last_job, s.last_workflow,
s.last_batch, s.created_at,
s.created_by, s.changed_at, s.changed_by, s.version, s.deleted_at, s.managed_by, s.definition, o.last_at,
  o.last_run, o.last_run_workflow, o.last_run_batch FROM punctual.schedules s 
LEFT JOIN LATERAL (
  SELECT coalesce(o.until, o.at) AS last_at, o.job AS last_run, o.workflow AS last_run_workflow,
    o.batch AS last_run_batch FROM punctual.occurrences o
  WHERE o.schedule = s.id AND o.at <= $2 AND NOT o.by_hand ORDER BY o.at DESC LIMIT 1) o ON true
  WHERE s.tenant = $1 AND s.name = $3 AND s.deleted_at IS NULL;

-- read-schedules-ahead
SELECT s.id, s.tenant, s.name, s.fire_at AS "fireAt", s.created_at AS "createdAt",
  json_strip_nulls(json_build_object(
  'cron', d.value -> 'cron', 'every', d.value -> 'every', 'at', d.value -> 'at', 'timezone', d.value -> 'timezone',
  'dst', d.value -> 'dst', 'startAt', d.value -> 'startAt', 'endAt', d.value -> 'endAt'))::text AS timing
FROM (
  SELECT * FROM punctual.schedules
  WHERE (fire_at, id) > ($1::bigint, $2::uuid) AND fire_at < $3::bigint ORDER BY fire_at, id LIMIT 200) s
CROSS JOIN LATERAL (
  SELECT CASE WHEN strpos(s.definition::text, '\u') = 0 THEN s.definition ELSE punctual.readable(s.definition) END
    AS value
) d ORDER BY s.fire_at, s.id;

-- read-sealed-secrets
SELECT s.tenant, s.name, s.version, s.key_id AS "keyId", s.sealed, s.origins FROM punctual.secrets s
WHERE s.tenant = $1 AND s.name = ANY ($2::text[]);

-- read-sealed-signing-secrets
SELECT s.tenant, s.id, s.created_at, s.expires_at, s.key_id AS "keyId", s.sealed FROM punctual.signing_secrets s
WHERE s.tenant = $1 AND (s.expires_at IS NULL OR s.expires_at > $2::bigint) ORDER BY s.id DESC LIMIT 5;

-- read-secrets-of-key
SELECT s.tenant, s.name::text AS name, s.version AS version, s.key_id AS "keyId", s.sealed FROM punctual.secrets s
WHERE s.key_id = $1 AND (s.tenant, s.name) > ($2::text, $3::text)
ORDER BY s.tenant, s.name LIMIT 200 FOR UPDATE SKIP LOCKED;

-- read-signing-secrets-of-key
SELECT s.tenant, s.id::text AS name, 1 AS version, s.key_id AS "keyId", s.sealed FROM punctual.signing_secrets s
WHERE s.key_id = $1 AND (s.tenant, s.id) > ($2::text, $3::uuid)
ORDER BY s.tenant, s.id LIMIT 200 FOR UPDATE SKIP LOCKED;

-- read-sources
SELECT s.id, s.bad,
  (SELECT i.id FROM punctual.workflows i WHERE i.id = s.inner_workflow AND i.state = 'running') AS "innerRunning"
FROM unnest($1::uuid[]) u(id) JOIN punctual.steps s ON s.id BETWEEN u.id AND u.id
WHERE s.bad > 0 OR s.inner_workflow IS NOT NULL;

-- read-step-attempts
SELECT u.id, m.fence, m.at, m.outcome,
  (SELECT min(coalesce((a ->> 'startedAt')::bigint, (a ->> 'claimedAt')::bigint)) FROM unnest(m.earlier_attempts) a
    WHERE coalesce((a ->> 'startedAt')::bigint, (a ->> 'claimedAt')::bigint) >= u.since) AS first_at,
  (SELECT json_agg(json_build_array(a -> 'fence', coalesce((a ->> 'startedAt')::bigint, (a ->>
    'claimedAt')::bigint), a -> 'finishedAt', a -> 'outcome') ORDER BY n)
    FROM unnest(m.earlier_attempts[greatest(1, cardinality(m.earlier_attempts) - 18):])
      WITH ORDINALITY e(a, n)
    WHERE coalesce((a ->> 'startedAt')::bigint, (a ->> 'claimedAt')::bigint) >= u.since) AS earlier
FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) u(id, finished_at, since)
CROSS JOIN LATERAL (
  SELECT h.fence, coalesce(h.started_at, h.claimed_at) AS at, h.outcome, h.earlier_attempts FROM (SELECT e.id,
    e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses, e.max_attempts,
    e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task, e.created_by,
    e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload, e.earlier_attempts,
    e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at, e.progress,
    e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM punctual.job_history e
    UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses,
    e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task,
    e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload,
    e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at,
    e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
    punctual.job_history_kept e) h
  WHERE h.tenant = $1 AND h.id = u.id AND h.finished_at = u.finished_at
  UNION ALL
  SELECT c.fence, c.at, NULL, j.earlier_attempts FROM punctual.jobs j
  LEFT JOIN LATERAL (SELECT c.fence, coalesce(c.started_at, c.claimed_at) AS at
    FROM punctual.claims c WHERE c.job = j.id LIMIT 1) c ON true
  WHERE u.finished_at IS NULL AND j.id = u.id
  UNION ALL
  SELECT NULL, NULL, NULL, l.earlier_attempts FROM punctual.later l WHERE u.finished_at IS NULL AND l.id = u.id
  LIMIT 1) m;

-- read-step-hold
SELECT s.parked, w.held FROM punctual.steps s JOIN punctual.workflows w ON w.id BETWEEN s.workflow AND s.workflow
WHERE s.id = $1::uuid;

-- read-step-ids
SELECT s.id FROM punctual.steps s WHERE s.workflow = $1::uuid AND s.tenant = $2;

-- read-step-payloads
SELECT l.id, l.payload, l.task FROM punctual.later l WHERE l.id = ANY($1::uuid[]);

-- read-step-result
SELECT h.result FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures,
  e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by,
  e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload,
  e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at,
  e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts,
  e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before,
  e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent,
  e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch,
  e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
  punctual.job_history_kept e) h
WHERE h.tenant = $1 AND h.id = $2::uuid AND h.finished_at = $3::bigint AND h.state = 'succeeded';

-- read-steps
SELECT s.id, s.name, s.place, s.run_if, s.added_by, s.inner_workflow, coalesce(s.finished_at, o.finished_at) AS
  finished_at,
  CASE WHEN s.outcome IS NOT NULL THEN s.outcome
    WHEN l.id IS NOT NULL THEN CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END
    WHEN c.job IS NOT NULL THEN 'running' WHEN j.id IS NOT NULL THEN 'pending'
    ELSE o.state END AS state,
  CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) THEN true END AS
    step_waits,
  CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) THEN s.wait ->>
    'event' END AS step_event,
  CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) AND s.wait IS NOT
    NULL THEN s.wake_at END AS step_until,
  concat_ws(',', array_to_string(s.parent_ids, ','),
    (SELECT string_agg(e.parent::text, ',') FROM punctual.edges e WHERE e.child = s.id)) AS parents
FROM (
  SELECT s.* FROM punctual.steps s WHERE s.workflow = $1 AND s.tenant = $2 AND s.id > $3::uuid
  ORDER BY s.id LIMIT $4) s
LEFT JOIN LATERAL (
  SELECT l.id, l.blocked FROM punctual.later l WHERE s.outcome IS NULL AND l.id = s.id LIMIT 1) l ON true
LEFT JOIN LATERAL (SELECT j.id FROM punctual.jobs j WHERE s.outcome IS NULL AND j.id = s.id LIMIT 1) j ON true
LEFT JOIN LATERAL (SELECT c.job FROM punctual.claims c WHERE s.outcome IS NULL AND c.job = s.id LIMIT 1) c ON true
LEFT JOIN LATERAL (
  SELECT o.state, o.finished_at FROM punctual.outbox o WHERE s.outcome IS NULL AND o.job = s.id LIMIT 1) o ON true
ORDER BY s.id;

-- read-steps-beside
SELECT s.id, s.name, s.outcome, s.bad, s.added_by AS "addedBy" FROM unnest($2::text[]) u(name)
CROSS JOIN LATERAL (
  SELECT s.* FROM punctual.steps s WHERE s.workflow = $1::uuid AND s.name = u.name LIMIT 1) s;

-- read-steps-named
SELECT s.id, s.name, s.place, s.run_if, s.added_by, s.inner_workflow, coalesce(s.finished_at, o.finished_at) AS
  finished_at,
  CASE WHEN s.outcome IS NOT NULL THEN s.outcome
    WHEN l.id IS NOT NULL THEN CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END
    WHEN c.job IS NOT NULL THEN 'running' WHEN j.id IS NOT NULL THEN 'pending'
    ELSE o.state END AS state,
  CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) THEN true END AS
    step_waits,
  CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) THEN s.wait ->>
    'event' END AS step_event,
  CASE WHEN s.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL) AND s.wait IS NOT
    NULL THEN s.wake_at END AS step_until,
  ARRAY(SELECT p.name FROM (SELECT unnest(g.parent_ids) AS id FROM punctual.steps g WHERE g.id BETWEEN s.id AND s.id
  UNION ALL SELECT e.parent FROM punctual.edges e WHERE e.child BETWEEN s.id AND s.id) e JOIN punctual.steps p ON
    p.id BETWEEN e.id AND e.id
    ORDER BY p.place) AS after,
  (SELECT a.name FROM punctual.steps a WHERE a.id = s.added_by) AS adder
FROM punctual.steps s
LEFT JOIN LATERAL (
  SELECT l.id, l.blocked FROM punctual.later l WHERE s.outcome IS NULL AND l.id = s.id LIMIT 1) l ON true
LEFT JOIN LATERAL (SELECT j.id FROM punctual.jobs j WHERE s.outcome IS NULL AND j.id = s.id LIMIT 1) j ON true
LEFT JOIN LATERAL (SELECT c.job FROM punctual.claims c WHERE s.outcome IS NULL AND c.job = s.id LIMIT 1) c ON true
LEFT JOIN LATERAL (
  SELECT o.state, o.finished_at FROM punctual.outbox o WHERE s.outcome IS NULL AND o.job = s.id LIMIT 1) o ON true
WHERE s.workflow = $1 AND s.tenant = $2 AND s.name = ANY($3::text[]) ORDER BY s.place;

-- read-steps-of-day
SELECT h.* FROM punctual.steps s
LEFT JOIN LATERAL (
  SELECT o.finished_at FROM punctual.outbox o WHERE s.finished_at IS NULL AND o.job = s.id LIMIT 1) o ON true
CROSS JOIN LATERAL (
  SELECT h.id, h.tenant, h.finished_at AS "finishedAt", (256 + coalesce(pg_column_size(h.target), 0) +
    coalesce(pg_column_size(h.requires), 0) + coalesce(pg_column_size(h.payload), 0) +
    coalesce(pg_column_size(h.earlier_attempts), 0) + coalesce(pg_column_size(h.result), 0) +
    coalesce(pg_column_size(h.error), 0) + coalesce(pg_column_size(h.execution), 0)) AS bytes
  FROM punctual.job_history h
  WHERE h.tenant = s.tenant AND h.id = s.id AND h.finished_at >= $2::bigint AND h.finished_at < $3::bigint AND
    h.finished_at = coalesce(s.finished_at, o.finished_at)
  LIMIT 1) h
WHERE s.workflow = ANY($1::uuid[]);

-- read-submissions
SELECT l.id, l.submission FROM unnest($1::uuid[]) u(id) JOIN punctual.later l ON l.id BETWEEN u.id AND u.id
WHERE l.submission IS NOT NULL;

-- read-submitted-steps
SELECT p.* FROM (
SELECT r.*, sum(coalesce(octet_length(r.payload::text), 0) + coalesce(octet_length(r.inner::text), 0))
  OVER (ORDER BY r.id ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) AS before
FROM (
SELECT s.id, s.name, s.place, s.run_if AS "runIf", s.delay_ms AS "delayMs", s.wait, s.inner_graph AS inner,
  s.refers,
  s.hold,
  s.added_by IS NOT NULL AS "isAdded",
  CASE WHEN s.refers THEN s.template ELSE m.payload END AS payload,
  q.name AS queue, m.rank, m.max_attempts AS "maxAttempts", m.max_losses AS "maxLosses",
  m.at_most_once AS "atMostOnce", m.timeout_ms AS "timeoutMs", m.task, m.concurrency_key AS "concurrencyKey",
  m.target, m.backoff, m.requires
FROM (
  SELECT s.* FROM punctual.steps s WHERE s.workflow = $2::uuid AND s.tenant = $1 AND s.id > $3::uuid
  ORDER BY s.id LIMIT $4) s
LEFT JOIN LATERAL (
  SELECT j.queue, j.rank, j.max_attempts, j.max_losses, j.at_most_once, j.timeout_ms, j.task, j.concurrency_key,
    j.target, j.backoff, j.requires, CASE WHEN s.refers THEN NULL ELSE j.payload END AS payload
    FROM punctual.jobs j WHERE j.id = s.id AND s.outcome IS NULL
  UNION ALL
  SELECT l.queue, l.rank, l.max_attempts, l.max_losses, l.at_most_once, l.timeout_ms, l.task, l.concurrency_key,
    l.target, l.backoff, l.requires, CASE WHEN s.refers THEN NULL ELSE l.payload END AS payload
    FROM punctual.later l WHERE l.id = s.id AND s.outcome IS NULL
  UNION ALL
  SELECT h.queue, h.rank, h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms, h.task, h.concurrency_key,
    h.target, h.backoff, h.requires, CASE WHEN s.refers THEN NULL ELSE h.payload END AS payload
    FROM (SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at, e.attempts, e.failures, e.losses,
      e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at, e.start_before, e.late_by, e.task,
      e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires, e.traceparent, e.payload,
      e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence, e.worker, e.epoch, e.claimed_at,
      e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result, e.error, e.execution FROM
      punctual.job_history e UNION ALL SELECT e.id, e.tenant, e.queue, e.needs, e.lane, e.rank, e.run_at,
      e.attempts, e.failures, e.losses, e.max_attempts, e.max_losses, e.at_most_once, e.timeout_ms, e.created_at,
      e.start_before, e.late_by, e.task, e.created_by, e.key, e.concurrency_key, e.target, e.backoff, e.requires,
      e.traceparent, e.payload, e.earlier_attempts, e.schedule, e.occurrence, e.workflow, e.batch, e.fence,
      e.worker, e.epoch, e.claimed_at, e.progress, e.started_at, e.finished_at, e.state, e.outcome, e.result,
      e.error, e.execution FROM punctual.job_history_kept e) h WHERE h.tenant = s.tenant AND h.id = s.id AND
      h.finished_at = coalesce(s.finished_at,
      (SELECT o.finished_at FROM punctual.outbox o WHERE o.job = s.id))
  LIMIT 1) m ON true
LEFT JOIN punctual.queues q ON q.id = m.queue) r) p
WHERE coalesce(p.before, 0) < $5::int ORDER BY p.id;

-- read-target
SELECT j.tenant, j.target FROM punctual.jobs j WHERE j.id = $2::uuid AND j.tenant = $1;

-- read-task-changes
SELECT c.version AS last, t.tenant, t.version, t.tasks FROM punctual.task_changes c
LEFT JOIN LATERAL (
  SELECT tenant, version, tasks FROM punctual.task_tenants WHERE version > $1 ORDER BY version LIMIT $2) t ON true
WHERE c.id = 1 ORDER BY t.version;

-- read-tasks
SELECT name, definition FROM punctual.tasks WHERE tenant = $1 AND name = ANY($2::text[]);

-- read-tenants
SELECT id, name, weight, rate_limit, rate_per, rate_burst, full_at, debt, created_at, quota_live_jobs,
  quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes,
  quota_artifact_bytes FROM punctual.tenants
WHERE id = ANY(ARRAY(SELECT DISTINCT q.tenant FROM punctual.queues q WHERE q.id = ANY($1::int[])));

-- read-to-admit
WITH oldest AS MATERIALIZED (
  SELECT l.id, l.tenant, l.created_at AS "createdAt", l.created_by AS "createdBy",
  (256 + coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
    coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)) +
    coalesce(pg_column_size(l.submission), 0)
  * CASE WHEN pg_column_compression(l.submission) IS NULL THEN 1 ELSE 8 END AS bytes
  FROM punctual.later l WHERE NOT l.held AND NOT l.blocked AND l.admit_at <= $1 AND l.id <> ALL ($3::uuid[])
  ORDER BY l.admit_at LIMIT $2::int)
SELECT * FROM oldest
UNION ALL
(SELECT l.id, l.tenant, l.created_at AS "createdAt", l.created_by AS "createdBy",
  (256 + coalesce(pg_column_size(l.target), 0) + coalesce(pg_column_size(l.requires), 0) +
    coalesce(pg_column_size(l.payload), 0) + coalesce(pg_column_size(l.earlier_attempts), 0)) +
    coalesce(pg_column_size(l.submission), 0)
  * CASE WHEN pg_column_compression(l.submission) IS NULL THEN 1 ELSE 8 END AS bytes
 FROM (
   SELECT * FROM punctual.later l WHERE NOT l.held AND NOT l.blocked AND l.admit_at <= $1 AND l.id <> ALL
     ($3::uuid[])
     AND (SELECT count(*) FROM oldest) = $2::int
   ORDER BY l.admit_at OFFSET $2::int LIMIT 100000) l
 WHERE l.tenant <> ALL (ARRAY(SELECT DISTINCT o.tenant FROM oldest o)) LIMIT 500);

-- read-unchained
SELECT c.sequence AS "headSequence", encode(c.hash, 'hex') AS "headHash", EXISTS (
    SELECT 1 FROM punctual.audit w WHERE w.sequence IS NULL AND w.outcome = 'unknown') AS waits, e.*
FROM punctual.audit_chain c LEFT JOIN LATERAL (
  SELECT a.id, a.at, a.tenant, a.key_id AS "keyId", a.key_name AS "keyName", a.address, a.request_id AS "requestId",
  a.action, a.kind, a.subject, a.before, a.after, a.outcome FROM punctual.audit a
  WHERE a.sequence IS NULL AND (a.outcome <> 'unknown' OR a.epoch IS DISTINCT FROM $1::bigint OR a.at < $2::bigint)
  ORDER BY a.id LIMIT $3::int) e ON true
ORDER BY e.id;

-- read-unended-steps
SELECT s.id, s.inner_workflow AS inner, s.parked, l.id IS NOT NULL AS later, coalesce(l.blocked, false) AS blocked,
  coalesce(l.attempts, j.attempts) AS attempts, c.job IS NOT NULL AS claimed, (l.id IS NULL AND j.id IS NULL) AS
    gone
FROM (
  SELECT s.id, s.inner_workflow, s.parked FROM punctual.steps s
  WHERE s.workflow = $1 AND s.id > $2 AND s.outcome IS NULL
  ORDER BY s.id LIMIT $3) s
LEFT JOIN LATERAL (
  SELECT l.id, l.blocked, l.attempts FROM punctual.later l WHERE l.id = s.id LIMIT 1) l ON true
LEFT JOIN LATERAL (SELECT j.id, j.attempts FROM punctual.jobs j WHERE j.id = s.id LIMIT 1) j ON true
LEFT JOIN LATERAL (SELECT c.job FROM punctual.claims c WHERE c.job = s.id LIMIT 1) c ON true
ORDER BY s.id;

-- read-unswept
SELECT w.id, w.tenant, w.run, w.stopping, w.running, w.held FROM punctual.workflows w
WHERE NOT w.swept ORDER BY w.id LIMIT $1;

-- read-wait
SELECT s.wait, s.wake_at AS "wakeAt", s.inner_workflow AS inner FROM punctual.steps s
WHERE s.id = $1::uuid AND s.released AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL);

-- read-waiting
SELECT j.id, j.tenant, j.queue, j.needs, j.lane, j.rank, j.run_at AS "runAt", j.start_before AS "startBefore",
  j.concurrency_key AS "key",
  j.attempts + 1 AS fence, greatest(j.size_kib, pg_column_size(j.payload) >> 10) AS "sizeKib" FROM
    unnest($1::uuid[]) u(id) JOIN punctual.jobs j ON j.id BETWEEN u.id AND u.id
WHERE (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL AND (j.workflow IS NULL OR (SELECT w.held FROM
  punctual.workflows w WHERE w.id = j.workflow) IS NOT TRUE);

-- read-waiting-ahead
SELECT u.id FROM unnest($1::uuid[]) u(id) WHERE coalesce(
(SELECT true FROM punctual.jobs j WHERE j.id = u.id AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS
  NULL),
(SELECT true FROM punctual.later l WHERE l.id = u.id), false);

-- read-waiting-members
SELECT l.id, l.tenant, l.queue, l.needs, l.lane, l.rank, l.run_at AS "runAt", l.start_before AS "startBefore",
  l.concurrency_key AS "key",
  l.attempts + 1 AS fence, l.size_kib AS "sizeKib", l.artifact IS NOT NULL AS awaits FROM punctual.later l
WHERE l.id = ANY($1::uuid[]) AND l.blocked;

-- read-waiting-steps
SELECT s.id, s.name, s.wait, s.released FROM punctual.steps s
WHERE s.workflow = $1::uuid AND s.outcome IS NULL AND s.wait IS NOT NULL;

-- read-woken-steps
SELECT s.id, s.workflow, s.tenant, s.wait, s.inner_graph IS NOT NULL AS inner, coalesce((SELECT w.held FROM
  punctual.workflows w WHERE w.id = s.workflow), false) AS held
FROM punctual.steps s
WHERE s.wake_at <= $1::bigint AND s.outcome IS NULL
  AND NOT EXISTS (SELECT 1 FROM punctual.outbox o WHERE o.job = s.id)
ORDER BY s.wake_at LIMIT $2;

-- read-work
SELECT j.id, j.payload, j.target, j.traceparent, j.workflow FROM punctual.jobs j WHERE j.id = ANY($1::uuid[]);

-- read-workers
SELECT * FROM (
  SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
    sum(bytes) OVER in_order - bytes AS bytes_before
  FROM (SELECT id, tenant, name, state, registration, registered_at AS "registeredAt", last_seen AS "lastSeen",
    operator, octet_length(registration::text) + 256 AS bytes FROM punctual.workers
 WHERE state <> 'dead' AND id > $1::uuid ORDER BY id LIMIT $2::int + 1) s WINDOW in_order AS (ORDER BY id)) t
WHERE place_in_portion <= $2::int AND bytes_before < $3::bigint ORDER BY id;

-- read-workflow
SELECT w.id, w.tenant, w.name, w.key, w.state, w.run, w.steps, w.steps_left, w.failed, w.on_failure, w.running,
w.stopping, w.held, w.held_with_outer, w.rerun_of, w.queues, w.tasks, w.created_at, w.created_by, w.ended_at,
  w.definition,
w.definition_version, w.schedule, w.occurrence, w.depth, w.outer_step,
(SELECT o.workflow FROM punctual.steps o WHERE o.id = w.outer_step) AS outer_workflow FROM punctual.workflows w
  WHERE w.tenant = $1 AND w.id = $2::uuid;

-- read-workflow-definition
SELECT d.tenant, d.name, d.version, d.on_failure, d.running, d.bytes, d.steps,
encode(d.digest, 'hex') AS digest, d.queues, d.tasks, d.created_at,
d.created_by, d.replaced_at, d.jobs FROM punctual.workflow_definitions d WHERE d.tenant = $1 AND d.name = $2
AND CASE WHEN $3::int IS NULL THEN d.replaced_at IS NULL ELSE d.version = $3::int END;

-- read-workflow-family
WITH RECURSIVE up AS (
  SELECT w.id, w.outer_step FROM punctual.workflows w WHERE w.id = $1::uuid
  UNION
  SELECT w.id, w.outer_step FROM up u
  JOIN punctual.steps s ON s.id BETWEEN u.outer_step AND u.outer_step
  JOIN punctual.workflows w ON w.id BETWEEN s.workflow AND s.workflow
), down AS (
  SELECT u.id FROM up u
  UNION
  SELECT s.inner_workflow FROM down d
  JOIN punctual.steps s ON s.workflow BETWEEN d.id AND d.id WHERE s.inner_workflow IS NOT NULL
)
SELECT d.id FROM down d;

-- read-workflows-of-ends
SELECT w.id, w.tenant, w.on_failure AS "onFailure", w.stopping, w.steps_left AS "stepsLeft", w.failed, w.held,
  o.id AS "outerStep", o.workflow AS "outerWorkflow"
FROM unnest($1::uuid[]) u(id) JOIN punctual.workflows w ON w.id BETWEEN u.id AND u.id
-- The step that it is, unless that has started another one since.
LEFT JOIN LATERAL (
  SELECT o.id, o.workflow FROM punctual.steps o WHERE o.id = w.outer_step AND o.inner_workflow = w.id LIMIT 1) o ON
    true;

-- record-occurrences
WITH recorded AS (
  INSERT INTO punctual.occurrences (schedule, at, by_hand, tenant, state, reason, job, late_after, until, count,
    judge_at, workflow, batch, recorded_at)
  SELECT u.*, $12::bigint FROM unnest($1::uuid[], $2::bigint[], $3::boolean[], $4::text[], $5::text[], $6::text[],
    $7::uuid[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $13::uuid[], $14::uuid[])
    u(schedule, at, by_hand, tenant, state, reason, job, late_after, until, count, judge_at, workflow, batch)
  ON CONFLICT (schedule, at, by_hand) DO NOTHING
  RETURNING job, tenant, state, count
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, occurrences_missed)
  SELECT $12::bigint, tenant, sum(count) FROM recorded WHERE state = 'missed' GROUP BY tenant
)
SELECT job FROM recorded WHERE job IS NOT NULL;

-- redeem-sign-in-code
WITH code AS (
  DELETE FROM punctual.sign_in_codes WHERE hash = $1::bytea RETURNING key_id, expires_at AS until
)
SELECT k.hash, id, name, operator, tenant, scopes, queues, tasks, expires_at AS "expiresAt", created_at AS
  "createdAt",
  created_by AS "createdBy", last_used_at AS "lastUsedAt" FROM code c JOIN punctual.api_keys k ON k.id = c.key_id
WHERE c.until > $2::bigint AND (k.expires_at IS NULL OR k.expires_at > $2::bigint);

-- redrive-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.job_history h USING unnest($5::uuid[]) u(id)
  WHERE h.tenant = $4::text AND h.id = u.id AND h.state IN ('failed', 'cancelled') AND NOT h.at_most_once
    AND h.workflow IS NULL AND h.batch IS NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING h.*
), answer AS (
  INSERT INTO punctual.jobs (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
    target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence, workflow, batch,
    size_kib, edited)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, $6::bigint AS run_at, m.attempts, 0 AS failures, 0 AS
    losses, m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, NULL AS start_before,
    m.late_by, m.task, m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent,
    m.payload, CASE WHEN m.fence IS NULL THEN m.earlier_attempts
    ELSE array_append(m.earlier_attempts, json_build_object(
      'fence', m.fence, 'epoch', m.epoch, 'worker', m.worker, 'claimedAt', m.claimed_at, 'startedAt', m.started_at,
      'finishedAt', m.finished_at, 'outcome', m.outcome, 'error', m.error, 'execution', m.execution)) END AS
        earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, (octet_length((m.payload)::text) +
        coalesce(octet_length(m.target::text), 0)) >> 10 AS size_kib, true AS edited
  FROM gone m
  RETURNING jobs.id, jobs.tenant, jobs.queue, jobs.needs, jobs.lane, jobs.rank, jobs.run_at AS "runAt",
    jobs.start_before AS "startBefore", jobs.concurrency_key AS "key",
    jobs.attempts + 1 AS fence, jobs.size_kib AS "sizeKib"
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_retried)
  SELECT $6::bigint, $4, count(*) FROM answer HAVING count(*) > 0
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- redrive-jobs-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.job_history h USING unnest($5::uuid[]) u(id)
  WHERE h.tenant = $4::text AND h.id = u.id AND h.state IN ('failed', 'cancelled') AND NOT h.at_most_once
    AND h.workflow IS NULL AND h.batch IS NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING h.*
), answer AS (
  INSERT INTO punctual.jobs (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
    target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence, workflow, batch,
    size_kib, edited)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, $6::bigint AS run_at, m.attempts, 0 AS failures, 0 AS
    losses, m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, NULL AS start_before,
    m.late_by, m.task, m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent,
    m.payload, CASE WHEN m.fence IS NULL THEN m.earlier_attempts
    ELSE array_append(m.earlier_attempts, json_build_object(
      'fence', m.fence, 'epoch', m.epoch, 'worker', m.worker, 'claimedAt', m.claimed_at, 'startedAt', m.started_at,
      'finishedAt', m.finished_at, 'outcome', m.outcome, 'error', m.error, 'execution', m.execution)) END AS
        earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, (octet_length((m.payload)::text) +
        coalesce(octet_length(m.target::text), 0)) >> 10 AS size_kib, true AS edited
  FROM gone m
  RETURNING jobs.id, jobs.tenant, jobs.queue, jobs.needs, jobs.lane, jobs.rank, jobs.run_at AS "runAt",
    jobs.start_before AS "startBefore", jobs.concurrency_key AS "key",
    jobs.attempts + 1 AS fence, jobs.size_kib AS "sizeKib"
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_retried)
  SELECT $6::bigint, $4, count(*) FROM answer HAVING count(*) > 0
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $7::uuid, $8::bigint, $9::text, $10::uuid, $11::text, $12::text, $13::text, $14::text,
    $15::text, $16::text, $17::json, $18::json, $19::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- refuse-waiting-occurrence
WITH refused AS (
  UPDATE punctual.occurrences o SET state = 'missed', reason = $3::text
  WHERE o.schedule = $1::uuid AND o.at = $2::bigint AND NOT o.by_hand AND o.state = 'waiting'
  RETURNING o.tenant
)
INSERT INTO punctual.tallies (at, tenant, occurrences_missed) SELECT $4::bigint, tenant, 1 FROM refused;

-- rekey-secrets
UPDATE punctual.secrets s SET key_id = $1, sealed = u.sealed
FROM unnest($2::text[], $3::text[], $4::bytea[]) u(tenant, name, sealed)
WHERE s.tenant = u.tenant AND s.name = u.name;

-- rekey-signing-secrets
UPDATE punctual.signing_secrets s SET key_id = $1, sealed = u.sealed
FROM unnest($2::text[], $3::uuid[], $4::bytea[]) u(tenant, name, sealed)
WHERE s.tenant = u.tenant AND s.id = u.name;

-- release-claims
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), freed AS (
  DELETE FROM punctual.claims c USING unnest($4::uuid[], $5::int[], $6::json[]) u(job, fence, attempt)
  WHERE c.job BETWEEN u.job AND u.job AND c.fence = u.fence AND EXISTS (SELECT 1 FROM term)
  RETURNING c.job, c.fence, u.attempt
), answer AS (
  UPDATE punctual.jobs j SET
    attempts = f.fence,
    earlier_attempts = CASE WHEN f.attempt IS NULL THEN j.earlier_attempts
      ELSE array_append(j.earlier_attempts, f.attempt) END
  FROM freed f WHERE j.id BETWEEN f.job AND f.job
  RETURNING j.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- release-term
UPDATE punctual.leases SET expires_at = 'epoch', session_pid = NULL
WHERE shard = $1 AND epoch = $2 AND holder = $3 RETURNING epoch;

-- remove-audit-entries
DELETE FROM punctual.audit a
WHERE a.sequence <= (SELECT c.removed_sequence FROM punctual.audit_chain c);

-- remove-needs
WITH term AS (SELECT 1 AS held FROM punctual.leases
WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), page AS (
  SELECT id FROM punctual.needs WHERE id > $4::int ORDER BY id LIMIT $6::int
), gone AS (
  DELETE FROM punctual.needs n
  WHERE n.id = ANY(ARRAY(SELECT id FROM page)) AND n.used_at < $5::bigint AND true AND EXISTS (SELECT 1 FROM term)
  RETURNING n.id
), answer AS (
  SELECT count(*) AS read, max(page.id) AS last, (SELECT count(*) FROM gone) AS removed FROM page
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- remove-queues
WITH term AS (SELECT 1 AS held FROM punctual.leases
WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), page AS (
  SELECT id FROM punctual.queues WHERE id > $4::int ORDER BY id LIMIT $6::int
), gone AS (
  DELETE FROM punctual.queues n
  WHERE n.id = ANY(ARRAY(SELECT id FROM page)) AND n.used_at < $5::bigint AND NOT n.paused AND n.weight = 1 AND
    n.concurrency IS NULL AND n.key_concurrency = 1 AND n.rate_limit IS NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING n.id
), answer AS (
  SELECT count(*) AS read, max(page.id) AS last, (SELECT count(*) FROM gone) AS removed FROM page
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- renew-answer
UPDATE punctual.idempotency i SET answer = $4::json
WHERE i.tenant = $1 AND i.key = $2 AND i.request = $3::bytea
RETURNING 1 AS renewed;

-- renew-keys
UPDATE punctual.keys k SET said_at = coalesce(u.said_at, floor(extract(epoch FROM clock_timestamp()) *
  1000000)::bigint)
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) u(tenant, key, job, said_at)
WHERE k.tenant = u.tenant AND k.key = u.key AND k.job = u.job;

-- renew-term
UPDATE punctual.leases SET expires_at = clock_timestamp() + $4::bigint * interval '1 millisecond'
WHERE shard = $1 AND epoch = $2 AND holder = $3 AND expires_at > clock_timestamp()
RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now, (extract(epoch FROM
  pg_postmaster_start_time()) * 1000)::bigint AS "serverStartedAt";

-- reopen-steps
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), locked_in_job_history AS MATERIALIZED (
  SELECT h.id FROM unnest($6::uuid[], $7::bigint[]) u(id, finished_at)
  JOIN punctual.job_history h ON h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at
  WHERE EXISTS (SELECT 1 FROM term) FOR UPDATE OF h
), locked_in_job_history_kept AS MATERIALIZED (
  SELECT h.id FROM unnest($6::uuid[], $7::bigint[]) u(id, finished_at)
  JOIN punctual.job_history_kept h ON h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at
  WHERE EXISTS (SELECT 1 FROM term) FOR UPDATE OF h
), locked AS MATERIALIZED (SELECT id FROM locked_in_job_history UNION ALL SELECT id FROM
  locked_in_job_history_kept), own AS MATERIALIZED (
  SELECT 1 AS yes WHERE (SELECT count(*) FROM locked) = cardinality($6::uuid[]) AND EXISTS (SELECT 1 FROM term)
), gone_from_job_history AS (
  DELETE FROM punctual.job_history h
  USING unnest($6::uuid[], $7::bigint[], $8::boolean[]) u(id, finished_at, blocked)
  WHERE h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at AND EXISTS (SELECT 1 FROM own)
  RETURNING h.id, h.tenant, h.queue, h.needs, h.lane, h.rank, h.run_at, h.attempts, h.failures, h.losses,
    h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms, h.created_at, h.start_before, h.late_by, h.task,
    h.created_by, h.key, h.concurrency_key, h.target, h.backoff, h.requires, h.traceparent, h.payload,
    h.earlier_attempts, h.schedule, h.occurrence, h.workflow, h.batch, h.fence, h.worker, h.epoch, h.claimed_at,
    h.progress, h.started_at, h.finished_at, h.state, h.outcome, h.result, h.error, h.execution, u.blocked AS
    is_blocked
), gone_from_job_history_kept AS (
  DELETE FROM punctual.job_history_kept h
  USING unnest($6::uuid[], $7::bigint[], $8::boolean[]) u(id, finished_at, blocked)
  WHERE h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at AND EXISTS (SELECT 1 FROM own)
  RETURNING h.id, h.tenant, h.queue, h.needs, h.lane, h.rank, h.run_at, h.attempts, h.failures, h.losses,
    h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms, h.created_at, h.start_before, h.late_by, h.task,
    h.created_by, h.key, h.concurrency_key, h.target, h.backoff, h.requires, h.traceparent, h.payload,
    h.earlier_attempts, h.schedule, h.occurrence, h.workflow, h.batch, h.fence, h.worker, h.epoch, h.claimed_at,
    h.progress, h.started_at, h.finished_at, h.state, h.outcome, h.result, h.error, h.execution, u.blocked AS
    is_blocked
), gone AS (SELECT * FROM gone_from_job_history UNION ALL SELECT * FROM gone_from_job_history_kept), moved AS (
  INSERT INTO punctual.later (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, size_kib, admit_at, blocked)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, $9::bigint AS run_at, m.attempts, 0 AS failures, 0 AS
    losses, m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, NULL AS start_before,
    m.late_by, m.task, m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent,
    coalesce((SELECT s.template FROM punctual.steps s WHERE s.id = m.id), m.payload) AS payload, CASE WHEN m.fence
    IS NULL THEN m.earlier_attempts
    ELSE array_append(m.earlier_attempts, json_build_object(
      'fence', m.fence, 'epoch', m.epoch, 'worker', m.worker, 'claimedAt', m.claimed_at, 'startedAt', m.started_at,
      'finishedAt', m.finished_at, 'outcome', m.outcome, 'error', m.error, 'execution', m.execution)) END AS
        earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, (octet_length(m.payload::text) +
        coalesce(octet_length(m.target::text), 0)) >> 10 AS size_kib, CASE WHEN m.is_blocked THEN 4503599627370496
        ELSE $9::bigint END AS admit_at, m.is_blocked AS blocked
  FROM gone m
  RETURNING id
), changed AS (
  UPDATE punctual.steps s SET parents = u.parents, parents_left = u.parents_left, ok = u.ok, bad = u.bad,
    released = u.released, wake_at = u.wake_at, parked = u.parked, outcome = NULL, finished_at = NULL,
    inner_workflow = CASE WHEN $20::boolean THEN NULL ELSE s.inner_workflow END
  FROM unnest($10::uuid[], $11::int[], $12::int[], $13::int[], $14::boolean[], $15::bigint[], $21::boolean[],
    $19::int[]) u(id, parents_left, ok, bad, released, wake_at, parked, parents)
  WHERE s.id BETWEEN u.id AND u.id AND EXISTS (SELECT 1 FROM own)
), removed AS (
  DELETE FROM punctual.steps s WHERE s.id = ANY($18::uuid[]) AND EXISTS (SELECT 1 FROM own)
), cut_below AS (
  DELETE FROM punctual.edges e WHERE e.parent = ANY($18::uuid[]) AND EXISTS (SELECT 1 FROM own)
), cut_above AS (
  DELETE FROM punctual.edges e WHERE e.child = ANY($18::uuid[]) AND EXISTS (SELECT 1 FROM own)
), again AS (
  UPDATE punctual.workflows w SET state = 'running', run = w.run + 1, steps = w.steps - cardinality($18::uuid[]),
    steps_left = $16::int, failed = $17::int, stopping = NULL, ended_at = NULL,
    held = $22::boolean, held_with_outer = CASE WHEN w.held THEN w.held_with_outer ELSE $22::boolean END,
    edges = CASE WHEN cardinality($18::uuid[]) = 0 THEN w.edges END
  WHERE w.id = $4::uuid AND EXISTS (SELECT 1 FROM own)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_retried, workflows_retried)
  SELECT $9::bigint, $5::text, count(*),
    (SELECT (w.ended_at IS NOT NULL)::int FROM punctual.workflows w WHERE w.id = $4::uuid)
  FROM moved HAVING count(*) > 0
), answer AS (SELECT (SELECT count(*) FROM moved) AS moved FROM own) SELECT answer.* FROM term LEFT JOIN answer ON
  true;

-- reopen-steps-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), locked_in_job_history AS MATERIALIZED (
  SELECT h.id FROM unnest($6::uuid[], $7::bigint[]) u(id, finished_at)
  JOIN punctual.job_history h ON h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at
  WHERE EXISTS (SELECT 1 FROM term) FOR UPDATE OF h
), locked_in_job_history_kept AS MATERIALIZED (
  SELECT h.id FROM unnest($6::uuid[], $7::bigint[]) u(id, finished_at)
  JOIN punctual.job_history_kept h ON h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at
  WHERE EXISTS (SELECT 1 FROM term) FOR UPDATE OF h
), locked AS MATERIALIZED (SELECT id FROM locked_in_job_history UNION ALL SELECT id FROM
  locked_in_job_history_kept), own AS MATERIALIZED (
  SELECT 1 AS yes WHERE (SELECT count(*) FROM locked) = cardinality($6::uuid[]) AND EXISTS (SELECT 1 FROM term)
), gone_from_job_history AS (
  DELETE FROM punctual.job_history h
  USING unnest($6::uuid[], $7::bigint[], $8::boolean[]) u(id, finished_at, blocked)
  WHERE h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at AND EXISTS (SELECT 1 FROM own)
  RETURNING h.id, h.tenant, h.queue, h.needs, h.lane, h.rank, h.run_at, h.attempts, h.failures, h.losses,
    h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms, h.created_at, h.start_before, h.late_by, h.task,
    h.created_by, h.key, h.concurrency_key, h.target, h.backoff, h.requires, h.traceparent, h.payload,
    h.earlier_attempts, h.schedule, h.occurrence, h.workflow, h.batch, h.fence, h.worker, h.epoch, h.claimed_at,
    h.progress, h.started_at, h.finished_at, h.state, h.outcome, h.result, h.error, h.execution, u.blocked AS
    is_blocked
), gone_from_job_history_kept AS (
  DELETE FROM punctual.job_history_kept h
  USING unnest($6::uuid[], $7::bigint[], $8::boolean[]) u(id, finished_at, blocked)
  WHERE h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at AND EXISTS (SELECT 1 FROM own)
  RETURNING h.id, h.tenant, h.queue, h.needs, h.lane, h.rank, h.run_at, h.attempts, h.failures, h.losses,
    h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms, h.created_at, h.start_before, h.late_by, h.task,
    h.created_by, h.key, h.concurrency_key, h.target, h.backoff, h.requires, h.traceparent, h.payload,
    h.earlier_attempts, h.schedule, h.occurrence, h.workflow, h.batch, h.fence, h.worker, h.epoch, h.claimed_at,
    h.progress, h.started_at, h.finished_at, h.state, h.outcome, h.result, h.error, h.execution, u.blocked AS
    is_blocked
), gone AS (SELECT * FROM gone_from_job_history UNION ALL SELECT * FROM gone_from_job_history_kept), moved AS (
  INSERT INTO punctual.later (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, size_kib, admit_at, blocked)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, $9::bigint AS run_at, m.attempts, 0 AS failures, 0 AS
    losses, m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, NULL AS start_before,
    m.late_by, m.task, m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent,
    coalesce((SELECT s.template FROM punctual.steps s WHERE s.id = m.id), m.payload) AS payload, CASE WHEN m.fence
    IS NULL THEN m.earlier_attempts
    ELSE array_append(m.earlier_attempts, json_build_object(
      'fence', m.fence, 'epoch', m.epoch, 'worker', m.worker, 'claimedAt', m.claimed_at, 'startedAt', m.started_at,
      'finishedAt', m.finished_at, 'outcome', m.outcome, 'error', m.error, 'execution', m.execution)) END AS
        earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, (octet_length(m.payload::text) +
        coalesce(octet_length(m.target::text), 0)) >> 10 AS size_kib, CASE WHEN m.is_blocked THEN 4503599627370496
        ELSE $9::bigint END AS admit_at, m.is_blocked AS blocked
  FROM gone m
  RETURNING id
), changed AS (
  UPDATE punctual.steps s SET parents = u.parents, parents_left = u.parents_left, ok = u.ok, bad = u.bad,
    released = u.released, wake_at = u.wake_at, parked = u.parked, outcome = NULL, finished_at = NULL,
    inner_workflow = CASE WHEN $20::boolean THEN NULL ELSE s.inner_workflow END
  FROM unnest($10::uuid[], $11::int[], $12::int[], $13::int[], $14::boolean[], $15::bigint[], $21::boolean[],
    $19::int[]) u(id, parents_left, ok, bad, released, wake_at, parked, parents)
  WHERE s.id BETWEEN u.id AND u.id AND EXISTS (SELECT 1 FROM own)
), removed AS (
  DELETE FROM punctual.steps s WHERE s.id = ANY($18::uuid[]) AND EXISTS (SELECT 1 FROM own)
), cut_below AS (
  DELETE FROM punctual.edges e WHERE e.parent = ANY($18::uuid[]) AND EXISTS (SELECT 1 FROM own)
), cut_above AS (
  DELETE FROM punctual.edges e WHERE e.child = ANY($18::uuid[]) AND EXISTS (SELECT 1 FROM own)
), again AS (
  UPDATE punctual.workflows w SET state = 'running', run = w.run + 1, steps = w.steps - cardinality($18::uuid[]),
    steps_left = $16::int, failed = $17::int, stopping = NULL, ended_at = NULL,
    held = $22::boolean, held_with_outer = CASE WHEN w.held THEN w.held_with_outer ELSE $22::boolean END,
    edges = CASE WHEN cardinality($18::uuid[]) = 0 THEN w.edges END
  WHERE w.id = $4::uuid AND EXISTS (SELECT 1 FROM own)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_retried, workflows_retried)
  SELECT $9::bigint, $5::text, count(*),
    (SELECT (w.ended_at IS NOT NULL)::int FROM punctual.workflows w WHERE w.id = $4::uuid)
  FROM moved HAVING count(*) > 0
), answer AS (SELECT (SELECT count(*) FROM moved) AS moved FROM own), entry AS (INSERT INTO punctual.audit (epoch,
  id, at, tenant, key_id, key_name, address, request_id, action, kind, subject, before, after, outcome)
  SELECT $2::bigint, $23::uuid, $24::bigint, $25::text, $26::uuid, $27::text, $28::text, $29::text, $30::text,
    $31::text, $32::text, $33::json, $34::json, $35::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- replace-job-output
UPDATE punctual.artifacts a SET state = 'gone', job = NULL
WHERE a.tenant = $1 AND a.job = $2::uuid AND a.output = $3 RETURNING a.sha256;

-- replace-later
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.later l SET (id, payload, size_kib, queue, needs, lane, rank, run_at, max_attempts, max_losses,
    at_most_once, timeout_ms, start_before, task, key, concurrency_key, target, backoff, requires, traceparent,
    artifact, artifact_by, admit_at, held, blocked) = ROW(u.id, coalesce(u.payload, $29::json), coalesce(u.size_kib,
    $30::int), coalesce(u.queue, $31::int), coalesce(u.needs, $32::int), coalesce(u.lane, $33::int),
    coalesce(u.rank, $34::smallint), coalesce(u.run_at, $35::bigint), coalesce(u.max_attempts, $36::smallint),
    coalesce(u.max_losses, $37::smallint), coalesce(u.at_most_once, $38::boolean), coalesce(u.timeout_ms,
    $39::bigint), coalesce(u.start_before, $40::bigint), coalesce(u.task, $41::text), coalesce(u.key, $42::text),
    coalesce(u.concurrency_key, $43::text), coalesce(u.target, $44::json), coalesce(u.backoff, $45::json),
    coalesce(u.requires, $46::json), coalesce(u.traceparent, $47::text), coalesce(u.artifact, $48::uuid),
    coalesce(u.artifact_by, $49::bigint), coalesce(u.admit_at, $50::bigint), coalesce(u.held, $51::boolean),
    coalesce(u.blocked, $52::boolean))
  FROM unnest($4::uuid[], $5::json[], $6::int[], $7::int[], $8::int[], $9::int[], $10::smallint[], $11::bigint[],
    $12::smallint[], $13::smallint[], $14::boolean[], $15::bigint[], $16::bigint[], $17::text[], $18::text[],
    $19::text[], $20::json[], $21::json[], $22::json[], $23::text[], $24::uuid[], $25::bigint[], $26::bigint[],
    $27::boolean[], $28::boolean[]) u(id, payload, size_kib, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, start_before, task, key, concurrency_key, target, backoff, requires,
    traceparent, artifact, artifact_by, admit_at, held, blocked)
  WHERE l.id BETWEEN u.id AND u.id AND l.submission IS NULL AND l.attempts = 0 AND EXISTS (SELECT 1 FROM term)
  RETURNING l.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- replace-live
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), gone AS (
  DELETE FROM punctual.jobs j USING unnest($4::uuid[], $5::json[], $6::int[], $7::int[], $8::int[], $9::int[],
    $10::smallint[], $11::bigint[], $12::smallint[], $13::smallint[], $14::boolean[], $15::bigint[], $16::bigint[],
    $17::text[], $18::text[], $19::text[], $20::json[], $21::json[], $22::json[], $23::text[], $24::uuid[],
    $25::bigint[], $26::bigint[], $27::boolean[], $28::boolean[]) u(id, payload, size_kib, queue, needs, lane, rank,
    run_at, max_attempts, max_losses, at_most_once, timeout_ms, start_before, task, key, concurrency_key, target,
    backoff, requires, traceparent, artifact, artifact_by, admit_at, held, blocked)
  WHERE j.id BETWEEN u.id AND u.id AND j.attempts = 0 AND (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS
    NULL AND EXISTS (SELECT 1 FROM term)
  RETURNING j.*, u.id AS new_id, coalesce(u.payload, $29::json) AS new_payload, coalesce(u.size_kib, $30::int) AS
    new_size_kib, coalesce(u.queue, $31::int) AS new_queue, coalesce(u.needs, $32::int) AS new_needs,
    coalesce(u.lane, $33::int) AS new_lane, coalesce(u.rank, $34::smallint) AS new_rank, coalesce(u.run_at,
    $35::bigint) AS new_run_at, coalesce(u.max_attempts, $36::smallint) AS new_max_attempts, coalesce(u.max_losses,
    $37::smallint) AS new_max_losses, coalesce(u.at_most_once, $38::boolean) AS new_at_most_once,
    coalesce(u.timeout_ms, $39::bigint) AS new_timeout_ms, coalesce(u.start_before, $40::bigint) AS
    new_start_before, coalesce(u.task, $41::text) AS new_task, coalesce(u.key, $42::text) AS new_key,
    coalesce(u.concurrency_key, $43::text) AS new_concurrency_key, coalesce(u.target, $44::json) AS new_target,
    coalesce(u.backoff, $45::json) AS new_backoff, coalesce(u.requires, $46::json) AS new_requires,
    coalesce(u.traceparent, $47::text) AS new_traceparent, coalesce(u.artifact, $48::uuid) AS new_artifact,
    coalesce(u.artifact_by, $49::bigint) AS new_artifact_by, coalesce(u.admit_at, $50::bigint) AS new_admit_at,
    coalesce(u.held, $51::boolean) AS new_held, coalesce(u.blocked, $52::boolean) AS new_blocked
), answer AS (
  INSERT INTO punctual.later (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, artifact, artifact_by, size_kib, admit_at, held, blocked)
  SELECT m.new_id AS id, m.tenant, m.new_queue AS queue, m.new_needs AS needs, m.new_lane AS lane, m.new_rank AS
    rank, m.new_run_at AS run_at, m.attempts, m.failures, m.losses, m.new_max_attempts AS max_attempts,
    m.new_max_losses AS max_losses, m.new_at_most_once AS at_most_once, m.new_timeout_ms AS timeout_ms,
    m.created_at, m.new_start_before AS start_before, m.late_by, m.new_task AS task, m.created_by, m.new_key AS key,
    m.new_concurrency_key AS concurrency_key, m.new_target AS target, m.new_backoff AS backoff, m.new_requires AS
    requires, m.new_traceparent AS traceparent, m.new_payload AS payload, m.earlier_attempts, m.schedule,
    m.occurrence, m.workflow, m.batch, m.new_artifact AS artifact, m.new_artifact_by AS artifact_by, m.new_size_kib
    AS size_kib, m.new_admit_at AS admit_at, m.new_held AS held, m.new_blocked AS blocked
  FROM gone m
  RETURNING id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- replace-workflow-definition
UPDATE punctual.workflow_definitions d SET replaced_at = $3::bigint
WHERE d.tenant = $1 AND d.name = $2 AND d.replaced_at IS NULL RETURNING d.tenant, d.name, d.version, d.on_failure,
  d.running, d.bytes, d.steps,
  encode(d.digest, 'hex') AS digest, d.queues, d.tasks, d.created_at,
  d.created_by, d.replaced_at;

-- resolve-artifacts
WITH asked AS MATERIALIZED (
  SELECT u.n, a.id, a.tenant, a.state, a.runnable, a.used_at
  FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[]) WITH ORDINALITY u(tenant, id, name, version, n)
  LEFT JOIN LATERAL (
    (SELECT i.* FROM punctual.artifacts i WHERE i.id = u.id AND i.tenant = u.tenant AND i.state <> 'gone')
    UNION ALL
    (SELECT v.* FROM punctual.artifacts v WHERE v.tenant = u.tenant AND v.name = u.name AND v.version = u.version)
    UNION ALL
    (SELECT r.* FROM punctual.artifacts r
     WHERE u.version IS NULL AND r.tenant = u.tenant AND r.name = u.name AND r.state = 'ready'
     ORDER BY r.ready_at DESC, r.id DESC LIMIT 1)) a ON true
), used AS (
  UPDATE punctual.artifacts a SET used_at = $5::bigint
  WHERE a.id IN (SELECT k.id FROM asked k WHERE k.used_at < $5::bigint - 3600000)
)
SELECT k.n::int AS n, k.id, k.tenant, k.state, k.runnable FROM asked k ORDER BY k.n;

-- retry-batch
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), locked_in_job_history AS MATERIALIZED (
  SELECT h.id FROM punctual.job_history h
  WHERE h.tenant = $4::text AND h.id = ANY($6::uuid[]) AND h.finished_at >= $7::bigint
    AND NOT (h.at_most_once AND h.attempts > 0) AND EXISTS (SELECT 1 FROM term)
  FOR UPDATE
), locked_in_job_history_kept AS MATERIALIZED (
  SELECT h.id FROM punctual.job_history_kept h
  WHERE h.tenant = $4::text AND h.id = ANY($6::uuid[]) AND h.finished_at >= $7::bigint
    AND NOT (h.at_most_once AND h.attempts > 0) AND EXISTS (SELECT 1 FROM term)
  FOR UPDATE
), locked AS MATERIALIZED (SELECT id FROM locked_in_job_history UNION ALL SELECT id FROM
  locked_in_job_history_kept), gone_from_job_history AS (
  DELETE FROM punctual.job_history h
  WHERE h.tenant = $4::text AND h.id = ANY(ARRAY(SELECT id FROM locked)) AND h.finished_at >= $7::bigint
    AND (SELECT count(*) FROM locked) = cardinality($6::uuid[])
  RETURNING h.id, h.tenant, h.queue, h.needs, h.lane, h.rank, h.run_at, h.attempts, h.failures, h.losses,
    h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms, h.created_at, h.start_before, h.late_by, h.task,
    h.created_by, h.key, h.concurrency_key, h.target, h.backoff, h.requires, h.traceparent, h.payload,
    h.earlier_attempts, h.schedule, h.occurrence, h.workflow, h.batch, h.fence, h.worker, h.epoch, h.claimed_at,
    h.progress, h.started_at, h.finished_at, h.state, h.outcome, h.result, h.error, h.execution
), gone_from_job_history_kept AS (
  DELETE FROM punctual.job_history_kept h
  WHERE h.tenant = $4::text AND h.id = ANY(ARRAY(SELECT id FROM locked)) AND h.finished_at >= $7::bigint
    AND (SELECT count(*) FROM locked) = cardinality($6::uuid[])
  RETURNING h.id, h.tenant, h.queue, h.needs, h.lane, h.rank, h.run_at, h.attempts, h.failures, h.losses,
    h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms, h.created_at, h.start_before, h.late_by, h.task,
    h.created_by, h.key, h.concurrency_key, h.target, h.backoff, h.requires, h.traceparent, h.payload,
    h.earlier_attempts, h.schedule, h.occurrence, h.workflow, h.batch, h.fence, h.worker, h.epoch, h.claimed_at,
    h.progress, h.started_at, h.finished_at, h.state, h.outcome, h.result, h.error, h.execution
), gone AS (SELECT * FROM gone_from_job_history UNION ALL SELECT * FROM gone_from_job_history_kept), answer AS (
  INSERT INTO punctual.later (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, size_kib, admit_at, blocked)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, $8::bigint AS run_at, m.attempts, 0 AS failures, 0 AS
    losses, m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by,
    m.task, m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload, CASE
    WHEN m.fence IS NULL THEN m.earlier_attempts
    ELSE array_append(m.earlier_attempts, json_build_object(
      'fence', m.fence, 'epoch', m.epoch, 'worker', m.worker, 'claimedAt', m.claimed_at, 'startedAt', m.started_at,
      'finishedAt', m.finished_at, 'outcome', m.outcome, 'error', m.error, 'execution', m.execution)) END AS
        earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, (octet_length((m.payload)::text) +
        coalesce(octet_length(m.target::text), 0)) >> 10 AS size_kib, $8::bigint AS admit_at, true AS blocked
  FROM gone m
  RETURNING later.id, later.tenant, later.queue, later.needs, later.lane, later.rank, later.run_at AS "runAt",
    later.start_before AS "startBefore", later.concurrency_key AS "key",
    later.attempts + 1 AS fence, later.size_kib AS "sizeKib"
), reopened AS (
  UPDATE punctual.batches b SET state = 'pending', run = b.run + 1, due_at = $8::bigint, started_at = NULL,
    cancelled_at = NULL, ended_at = NULL, error = NULL
  WHERE b.id = $5::uuid AND EXISTS (SELECT 1 FROM gone)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_retried)
  SELECT $8::bigint, $4::text, count(*) FROM gone HAVING count(*) > 0
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- retry-jobs
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), freed AS (
  DELETE FROM punctual.claims c
  USING unnest($5::uuid[], $6::int[], $7::text[], $8::bigint[], $9::bigint[], $10::json[]) u(id, fence, outcome,
    run_at, late_by, attempt)
  WHERE c.job BETWEEN u.id AND u.id AND c.fence = coalesce(u.fence, $11::int) AND EXISTS (SELECT 1 FROM term)
  RETURNING c.job, c.fence, coalesce(u.outcome, $12::text) AS outcome, coalesce(u.run_at, $13::bigint) AS run_at,
    coalesce(u.late_by, $14::bigint) AS late_by, coalesce(u.attempt, $15::json) AS attempt
), again AS (
  UPDATE punctual.jobs j SET
    attempts = f.fence,
    failures = j.failures + (f.outcome IN ('failed', 'timed-out'))::int,
    losses = j.losses + (f.outcome = 'lost')::int,
    run_at = f.run_at,
    late_by = coalesce(j.late_by, f.late_by),
    earlier_attempts = array_append(j.earlier_attempts, f.attempt)
  FROM freed f WHERE j.id BETWEEN f.job AND f.job
  RETURNING j.id, j.tenant, f.outcome
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_retried, jobs_requeued)
  SELECT $4::bigint, tenant, count(*) FILTER (WHERE outcome <> 'lost'), count(*) FILTER (WHERE outcome = 'lost')
  FROM again GROUP BY tenant
), answer AS (SELECT count(*) AS changed, CASE WHEN count(*) < cardinality($5::uuid[]) THEN ARRAY(SELECT id FROM
  again) END AS ids FROM again) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- rotate-api-key
WITH forgotten AS (
  DELETE FROM punctual.api_keys WHERE id = ANY (ARRAY(
    SELECT id FROM punctual.api_keys
    WHERE coalesce(tenant, '') = (SELECT coalesce(o.tenant, '') FROM punctual.api_keys o WHERE o.id = $1::uuid) AND
      expires_at < $8::bigint LIMIT 100))
), old AS (
  UPDATE punctual.api_keys SET expires_at = least(expires_at, $4::bigint)
  WHERE id = $1::uuid AND (expires_at IS NULL OR expires_at > $6::bigint) AND (SELECT count(*) FROM (
  SELECT 1 FROM punctual.api_keys WHERE coalesce(tenant, '') = (SELECT coalesce(o.tenant, '') FROM punctual.api_keys
    o WHERE o.id = $1::uuid) LIMIT 10000) k) < 10000
  RETURNING name, operator, tenant, scopes, queues, tasks
)
INSERT INTO punctual.api_keys
  (id, name, hash, operator, tenant, scopes, queues, tasks, expires_at, created_at, created_by)
SELECT $2::uuid, name, $3::bytea, operator, tenant, scopes, queues, tasks, $5::bigint, $6::bigint, $7::text FROM old
RETURNING id, name, operator, tenant, scopes, queues, tasks, expires_at AS "expiresAt", created_at AS "createdAt",
  created_by AS "createdBy", last_used_at AS "lastUsedAt";

-- save-buckets
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), of_queues AS (
  UPDATE punctual.queues q SET full_at = u.full_at, debt = u.debt
  FROM unnest($4::int[], $5::bigint[], $6::int[]) u(id, full_at, debt) WHERE q.id = u.id AND EXISTS (SELECT 1 FROM
    term)
), answer AS (
  UPDATE punctual.tenants t SET full_at = u.full_at, debt = u.debt
  FROM unnest($7::text[], $8::bigint[], $9::int[]) u(id, full_at, debt) WHERE t.id = u.id AND EXISTS (SELECT 1 FROM
    term)
  RETURNING t.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- save-progress
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.claims c SET progress = u.progress
  FROM unnest($4::uuid[], $5::int[], $6::json[]) u(job, fence, progress)
  WHERE c.job BETWEEN u.job AND u.job AND c.fence = u.fence AND EXISTS (SELECT 1 FROM term)
  RETURNING c.job
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- see-node
WITH seen AS (
  INSERT INTO punctual.nodes (id, url, version, started_at, last_seen) VALUES ($1, $2, $3, $4, $4)
  ON CONFLICT (id) DO UPDATE SET url = $2, version = $3, last_seen = $4
)
SELECT id, url FROM punctual.nodes WHERE id <> $1 AND last_seen > $4 - 60000;

-- see-workers
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.workers w SET last_seen = u.last_seen, state = u.state
  FROM unnest($4::uuid[], $5::bigint[], $6::text[]) u(id, last_seen, state)
  WHERE w.id = u.id AND EXISTS (SELECT 1 FROM term)
  RETURNING w.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- see-workers-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.workers w SET last_seen = u.last_seen, state = u.state
  FROM unnest($4::uuid[], $5::bigint[], $6::text[]) u(id, last_seen, state)
  WHERE w.id = u.id AND EXISTS (SELECT 1 FROM term)
  RETURNING w.id
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $7::uuid, $8::bigint, $9::text, $10::uuid, $11::text, $12::text, $13::text, $14::text,
    $15::text, $16::text, $17::json, $18::json, $19::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- session-pid
SELECT pg_backend_pid() AS pid;

-- set-last-run
UPDATE punctual.schedules SET last_job = $2::uuid, last_workflow = $3::uuid, last_batch = $4::uuid
WHERE id = $1::uuid;

-- share-reach
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  UPDATE punctual.workflows w SET queues = $5::text[], tasks = $6::text[]
  WHERE w.id = ANY($4::uuid[]) AND EXISTS (SELECT 1 FROM term) RETURNING w.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- skip-occurrences
UPDATE punctual.occurrences o SET state = 'skipped', reason = $3, job = NULL, judge_at = NULL
FROM unnest($2::bigint[]) u(at)
WHERE o.schedule = $1::uuid AND o.at = u.at AND NOT o.by_hand;

-- skip-waiting
UPDATE punctual.occurrences o SET state = 'skipped', reason = $2
WHERE o.schedule = $1::uuid AND o.state = 'waiting';

-- start-batch
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), locked AS (
  SELECT l.id FROM punctual.later l
  WHERE l.id = ANY($9::uuid[]) AND l.batch = $5::uuid AND l.blocked AND l.artifact IS NULL
    AND l.attempts + 1 = CASE WHEN ($11::int[]) IS NULL THEN $10::int ELSE nullif(($11::int[])[width_bucket(l.id,
      $9::uuid[])], -1) END AND EXISTS (SELECT 1 FROM term)
  FOR UPDATE
), gone AS (
  DELETE FROM punctual.later l
  WHERE l.id = ANY(ARRAY(SELECT id FROM locked)) AND (SELECT count(*) FROM locked) = cardinality($9::uuid[])
  RETURNING l.*
), moved AS (
  INSERT INTO punctual.jobs (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
    target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence, workflow, batch,
    size_kib, edited)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, m.size_kib, true AS edited
  FROM gone m
), claimed AS (
  INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
  SELECT g.id, CASE WHEN ($11::int[]) IS NULL THEN $10::int ELSE nullif(($11::int[])[width_bucket(g.id,
    $9::uuid[])], -1) END, CASE WHEN ($13::uuid[]) IS NULL THEN $12::uuid ELSE ($13::uuid[])[width_bucket(g.id,
    $9::uuid[])] END, $2, $4 FROM gone g
), started AS (
  UPDATE punctual.batches b SET state = 'running', started_at = $4::bigint
  WHERE b.id = $5::uuid AND EXISTS (SELECT 1 FROM gone)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_assigned, lateness, lateness_ms, batches_started)
  SELECT $4::bigint, $6::text, count(*), $7::bigint[], $8::bigint, 1 FROM gone HAVING count(*) > 0
), answer AS (SELECT g.id, g.task, g.timeout_ms AS "timeoutMs", g.failures, g.losses, g.max_attempts AS
  "maxAttempts", g.max_losses AS "maxLosses", g.at_most_once AS "atMostOnce", g.backoff, g.run_at AS "runAt",
  g.late_by AS "lateBy", g.schedule, g.workflow, g.batch FROM gone g) SELECT answer.* FROM term LEFT JOIN answer ON
  true;

-- start-waiting-occurrence
UPDATE punctual.occurrences o SET state = 'ran', reason = NULL, job = $3::uuid, judge_at = $4::bigint,
  workflow = $5::uuid, batch = $6::uuid
WHERE o.schedule = $1::uuid AND o.at = $2::bigint AND NOT o.by_hand AND o.state = 'waiting'
RETURNING o.at;

-- store-batch
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), valid AS MATERIALIZED (SELECT (SELECT count(*)
    FROM unnest($5::int[], $6::text[], $7::text[]) n(id, tenant, name)
      JOIN punctual.queues q ON q.id BETWEEN n.id AND n.id AND q.tenant = n.tenant AND q.name = n.name) =
        cardinality($5::int[])
    AND (SELECT count(*) FROM unnest($8::int[], $9::bytea[]) n(id, signature)
      JOIN punctual.needs w ON w.id BETWEEN n.id AND n.id AND w.signature = n.signature) = cardinality($8::int[]) AS
        named),
made AS (
  INSERT INTO punctual.batches (id, tenant, on_failure, members, places, due_at, start_timeout_ms, created_at,
    created_by,
    schedule, occurrence)
  SELECT $10::uuid, $11::text, $12::text, $13::uuid[], $14::json, $15::bigint, $16::bigint, $4::bigint, $17::text,
    $18::text, $19::bigint
  WHERE (SELECT named FROM valid) AND EXISTS (SELECT 1 FROM term)
), stored AS (
  INSERT INTO punctual.later (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent, artifact, artifact_by, admit_at, blocked, batch, schedule, occurrence)
  SELECT u.id, coalesce(u.payload, $46::json), coalesce(u.size_kib, $47::int), coalesce(u.tenant, $48::text),
    coalesce(u.queue, $49::int), coalesce(u.needs, $50::int), coalesce(u.lane, $51::int), coalesce(u.rank,
    $52::smallint), coalesce(u.run_at, $53::bigint), coalesce(u.max_attempts, $54::smallint), coalesce(u.max_losses,
    $55::smallint), coalesce(u.at_most_once, $56::boolean), coalesce(u.timeout_ms, $57::bigint),
    coalesce(u.created_at, $58::bigint), coalesce(u.start_before, $59::bigint), coalesce(u.task, $60::text),
    coalesce(u.created_by, $61::text), coalesce(u.key, $62::text), coalesce(u.concurrency_key, $63::text),
    coalesce(u.target, $64::json), coalesce(u.backoff, $65::json), coalesce(u.requires, $66::json),
    coalesce(u.traceparent, $67::text), coalesce(u.artifact, $68::uuid), coalesce(u.artifact_by, $69::bigint),
    coalesce(u.admit_at, $70::bigint), true, $10::uuid, $18::text, $19::bigint FROM unnest($20::uuid[], $21::json[],
    $22::int[], $23::text[], $24::int[], $25::int[], $26::int[], $27::smallint[], $28::bigint[], $29::smallint[],
    $30::smallint[], $31::boolean[], $32::bigint[], $33::bigint[], $34::bigint[], $35::text[], $36::text[],
    $37::text[], $38::text[], $39::json[], $40::json[], $41::json[], $42::text[], $43::uuid[], $44::bigint[],
    $45::bigint[]) u(id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts, max_losses,
    at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target, backoff,
    requires, traceparent, artifact, artifact_by, admit_at) WHERE (SELECT named FROM valid) AND EXISTS (SELECT 1
    FROM term)
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted, batches_submitted)
  SELECT $4::bigint, $11::text, cardinality($13::uuid[]), 1 WHERE (SELECT named FROM valid) AND EXISTS (SELECT 1
    FROM term)
), answer AS (SELECT named FROM valid) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- submit-and-claim
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), stored AS (
  INSERT INTO punctual.jobs (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent) SELECT $12::uuid, $13::json, $14::int, $15::text, $16::int, $17::int, $18::int,
    $19::smallint, $20::bigint, $21::smallint, $22::smallint, $23::boolean, $24::bigint, $25::bigint, $26::bigint,
    $27::text, $28::text, $29::text, $30::text, $31::json, $32::json, $33::json, $34::text
  WHERE EXISTS (SELECT 1 FROM term) AND EXISTS (SELECT 1 FROM punctual.queues q
      WHERE q.id = $7::int AND q.tenant = $8::text AND q.name = $9::text)
    AND EXISTS (SELECT 1 FROM punctual.needs w WHERE w.id = $10::int AND w.signature = $11::bytea)
  RETURNING id, tenant, run_at
), claimed AS (
  INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
  SELECT id, 1, $4::uuid, $2, $5::bigint FROM stored
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted, jobs_assigned, lateness, lateness_ms)
  SELECT $5::bigint, tenant, 1, 1, $6::bigint[], greatest(0, $5::bigint - run_at) FROM stored
), answer AS (SELECT id FROM stored) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- submit-and-claim-counted
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), free AS MATERIALIZED (
  SELECT u.tenant FROM punctual.tenant_usage u
  WHERE u.tenant = $15::text AND EXISTS (SELECT 1 FROM term) FOR UPDATE SKIP LOCKED
), room AS (
  UPDATE punctual.tenant_usage u SET live = u.live + 1 FROM punctual.tenants t
  WHERE u.tenant = (SELECT tenant FROM free) AND t.id = u.tenant
    AND (t.quota_live_jobs IS NULL OR u.live + 1 <= t.quota_live_jobs) AND EXISTS (SELECT 1 FROM term)
  RETURNING u.tenant
), stored AS (
  INSERT INTO punctual.jobs (id, payload, size_kib, tenant, queue, needs, lane, rank, run_at, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, task, created_by, key, concurrency_key, target,
    backoff, requires, traceparent) SELECT $12::uuid, $13::json, $14::int, $15::text, $16::int, $17::int, $18::int,
    $19::smallint, $20::bigint, $21::smallint, $22::smallint, $23::boolean, $24::bigint, $25::bigint, $26::bigint,
    $27::text, $28::text, $29::text, $30::text, $31::json, $32::json, $33::json, $34::text
  WHERE EXISTS (SELECT 1 FROM room) AND EXISTS (SELECT 1 FROM punctual.queues q
      WHERE q.id = $7::int AND q.tenant = $8::text AND q.name = $9::text)
    AND EXISTS (SELECT 1 FROM punctual.needs w WHERE w.id = $10::int AND w.signature = $11::bytea)
  RETURNING id, tenant, run_at
), claimed AS (
  INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
  SELECT id, 1, $4::uuid, $2, $5::bigint FROM stored
), counted AS (
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted, jobs_assigned, lateness, lateness_ms)
  SELECT $5::bigint, tenant, 1, 1, $6::bigint[], greatest(0, $5::bigint - run_at) FROM stored
), answer AS (SELECT id FROM stored) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- sum-artifact-bytes
SELECT coalesce(sum(a.size), 0)::bigint AS bytes FROM punctual.artifacts a WHERE a.tenant = $1;

-- take-over-keys
UPDATE punctual.keys k SET job = u.job, said_at = coalesce(u.said_at, floor(extract(epoch FROM clock_timestamp()) *
  1000000)::bigint)
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::bigint[]) u(tenant, key, holder, job, said_at)
WHERE k.tenant = u.tenant AND k.key = u.key AND k.job = u.holder;

-- take-passed-over
DELETE FROM punctual.occurrences o
WHERE o.schedule = $1::uuid AND o.at <= $3 AND NOT o.by_hand AND o.job IS NULL AND o.state <> 'waiting'
  AND o.at >= coalesce((
    SELECT r.at FROM (
      SELECT p.at, p.until FROM punctual.occurrences p
      WHERE p.schedule = $1::uuid AND p.at < $2 AND NOT p.by_hand ORDER BY p.at DESC LIMIT 1) r
    WHERE r.until >= $2), $2)
RETURNING o.at, o.until, o.count, o.state, o.reason, o.recorded_at AS "recordedAt";

-- take-room
UPDATE punctual.tenant_usage u SET live = u.live + $2::bigint, later = u.later + $3::bigint
FROM punctual.tenants t
WHERE u.tenant = $1::text AND t.id = u.tenant AND u.live IS NOT NULL AND u.later IS NOT NULL
  AND ($2::bigint = 0 OR t.quota_live_jobs IS NULL OR u.live + $2::bigint <= t.quota_live_jobs)
  AND ($3::bigint = 0 OR t.quota_later_jobs IS NULL OR u.later + $3::bigint <= t.quota_later_jobs)
RETURNING u.tenant;

-- take-term
  WITH taken AS (
    UPDATE punctual.leases l SET
      epoch = greatest(l.epoch, $4::bigint) + 1, holder = $2, holder_url = $3, session_pid = $5::int,
      session_start = (SELECT a.backend_start FROM pg_stat_activity a WHERE a.pid = $5::int),
      expires_at = clock_timestamp() + $6::bigint * interval '1 millisecond'
    WHERE l.shard = $1 AND (l.holder = $2 OR l.expires_at < clock_timestamp() OR (
l.session_pid IS NOT NULL AND l.session_start IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM pg_stat_activity a
  WHERE a.pid = l.session_pid AND (a.backend_start = l.session_start OR a.backend_start IS NULL))))
    RETURNING l.epoch
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, leader_elections) SELECT floor(extract(epoch FROM clock_timestamp()) *
      1000), '', 1 FROM taken
  ), recorded AS (
    INSERT INTO punctual.terms (shard, epoch, holder, reason, taken_at)
    SELECT $1, epoch, $2, $7, floor(extract(epoch FROM clock_timestamp()) * 1000) FROM taken
    ON CONFLICT DO NOTHING
  )
  SELECT epoch FROM taken;

-- tally-history
SELECT minute, coalesce(sum(leader_elections), 0)::bigint AS leader_elections, coalesce(sum(jobs_submitted),
  0)::bigint AS jobs_submitted, coalesce(sum(jobs_assigned), 0)::bigint AS jobs_assigned,
  coalesce(sum(jobs_completed), 0)::bigint AS jobs_completed, coalesce(sum(jobs_failed), 0)::bigint AS jobs_failed,
  coalesce(sum(jobs_cancelled), 0)::bigint AS jobs_cancelled, coalesce(sum(jobs_retried), 0)::bigint AS
  jobs_retried, coalesce(sum(jobs_requeued), 0)::bigint AS jobs_requeued, coalesce(sum(stale_completions),
  0)::bigint AS stale_completions, coalesce(sum(stale_failures), 0)::bigint AS stale_failures,
  coalesce(sum(occurrences_late), 0)::bigint AS occurrences_late, coalesce(sum(occurrences_missed), 0)::bigint AS
  occurrences_missed, coalesce(sum(workflows_submitted), 0)::bigint AS workflows_submitted,
  coalesce(sum(workflows_retried), 0)::bigint AS workflows_retried, coalesce(sum(workflows_succeeded), 0)::bigint AS
  workflows_succeeded, coalesce(sum(workflows_failed), 0)::bigint AS workflows_failed,
  coalesce(sum(workflows_cancelled), 0)::bigint AS workflows_cancelled, coalesce(sum(steps_skipped), 0)::bigint AS
  steps_skipped, coalesce(sum(batches_submitted), 0)::bigint AS batches_submitted, coalesce(sum(batches_started),
  0)::bigint AS batches_started, coalesce(sum(batches_succeeded), 0)::bigint AS batches_succeeded,
  coalesce(sum(batches_failed), 0)::bigint AS batches_failed, coalesce(sum(batches_cancelled), 0)::bigint AS
  batches_cancelled, coalesce(sum(batches_timed_out), 0)::bigint AS batches_timed_out, coalesce(sum(lateness_ms),
  0)::bigint AS lateness_ms, coalesce(punctual.sum_histograms(lateness), '{}'::bigint[]) AS lateness
FROM (
  SELECT minute, tenant, leader_elections, jobs_submitted, jobs_assigned, jobs_completed, jobs_failed,
    jobs_cancelled, jobs_retried, jobs_requeued, stale_completions, stale_failures, occurrences_late,
    occurrences_missed, workflows_submitted, workflows_retried, workflows_succeeded, workflows_failed,
    workflows_cancelled, steps_skipped, batches_submitted, batches_started, batches_succeeded, batches_failed,
    batches_cancelled, batches_timed_out, lateness_ms, lateness FROM punctual.tally_minutes WHERE minute >=
    $2::bigint AND minute < $3::bigint
  UNION ALL SELECT (at / 60000) * 60000, tenant, leader_elections, jobs_submitted, jobs_assigned, jobs_completed,
    jobs_failed, jobs_cancelled, jobs_retried, jobs_requeued, stale_completions, stale_failures, occurrences_late,
    occurrences_missed, workflows_submitted, workflows_retried, workflows_succeeded, workflows_failed,
    workflows_cancelled, steps_skipped, batches_submitted, batches_started, batches_succeeded, batches_failed,
    batches_cancelled, batches_timed_out, lateness_ms, lateness FROM punctual.tallies
  WHERE at >= $2::bigint AND at < $3::bigint
) t
WHERE $1::text IS NULL OR tenant = $1
GROUP BY minute ORDER BY minute;

-- tally-totals
SELECT coalesce(sum(leader_elections), 0)::bigint AS leader_elections, coalesce(sum(jobs_submitted), 0)::bigint AS
  jobs_submitted, coalesce(sum(jobs_assigned), 0)::bigint AS jobs_assigned, coalesce(sum(jobs_completed), 0)::bigint
  AS jobs_completed, coalesce(sum(jobs_failed), 0)::bigint AS jobs_failed, coalesce(sum(jobs_cancelled), 0)::bigint
  AS jobs_cancelled, coalesce(sum(jobs_retried), 0)::bigint AS jobs_retried, coalesce(sum(jobs_requeued), 0)::bigint
  AS jobs_requeued, coalesce(sum(stale_completions), 0)::bigint AS stale_completions, coalesce(sum(stale_failures),
  0)::bigint AS stale_failures, coalesce(sum(occurrences_late), 0)::bigint AS occurrences_late,
  coalesce(sum(occurrences_missed), 0)::bigint AS occurrences_missed, coalesce(sum(workflows_submitted), 0)::bigint
  AS workflows_submitted, coalesce(sum(workflows_retried), 0)::bigint AS workflows_retried,
  coalesce(sum(workflows_succeeded), 0)::bigint AS workflows_succeeded, coalesce(sum(workflows_failed), 0)::bigint
  AS workflows_failed, coalesce(sum(workflows_cancelled), 0)::bigint AS workflows_cancelled,
  coalesce(sum(steps_skipped), 0)::bigint AS steps_skipped, coalesce(sum(batches_submitted), 0)::bigint AS
  batches_submitted, coalesce(sum(batches_started), 0)::bigint AS batches_started, coalesce(sum(batches_succeeded),
  0)::bigint AS batches_succeeded, coalesce(sum(batches_failed), 0)::bigint AS batches_failed,
  coalesce(sum(batches_cancelled), 0)::bigint AS batches_cancelled, coalesce(sum(batches_timed_out), 0)::bigint AS
  batches_timed_out, coalesce(sum(lateness_ms), 0)::bigint AS lateness_ms,
  coalesce(punctual.sum_histograms(lateness), '{}'::bigint[]) AS lateness
FROM (SELECT tenant, leader_elections, jobs_submitted, jobs_assigned, jobs_completed, jobs_failed, jobs_cancelled,
  jobs_retried, jobs_requeued, stale_completions, stale_failures, occurrences_late, occurrences_missed,
  workflows_submitted, workflows_retried, workflows_succeeded, workflows_failed, workflows_cancelled, steps_skipped,
  batches_submitted, batches_started, batches_succeeded, batches_failed, batches_cancelled, batches_timed_out,
  lateness_ms, lateness FROM punctual.tally_totals UNION ALL SELECT tenant, leader_elections, jobs_submitted,
  jobs_assigned, jobs_completed, jobs_failed, jobs_cancelled, jobs_retried, jobs_requeued, stale_completions,
  stale_failures, occurrences_late, occurrences_missed, workflows_submitted, workflows_retried, workflows_succeeded,
  workflows_failed, workflows_cancelled, steps_skipped, batches_submitted, batches_started, batches_succeeded,
  batches_failed, batches_cancelled, batches_timed_out, lateness_ms, lateness FROM punctual.tallies) t
WHERE $1::text IS NULL OR tenant = $1;

-- tie-inner-workflow
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), tied AS (
  UPDATE punctual.steps s SET inner_workflow = $5::uuid, wake_at = NULL
  WHERE s.id = $4::uuid AND EXISTS (SELECT 1 FROM term) RETURNING s.id
), answer AS (
  UPDATE punctual.workflows w SET outer_step = $4::uuid, depth = $6::int
  WHERE w.id = $5::uuid AND EXISTS (SELECT 1 FROM tied) RETURNING w.id
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- unlimit-origin
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  DELETE FROM punctual.origin_limits WHERE tenant = $4::text AND origin = $5::text AND EXISTS (SELECT 1 FROM term)
  RETURNING tenant, origin, concurrency, rate_limit, rate_per, rate_burst
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- unlimit-origin-audited
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), answer AS (
  DELETE FROM punctual.origin_limits WHERE tenant = $4::text AND origin = $5::text AND EXISTS (SELECT 1 FROM term)
  RETURNING tenant, origin, concurrency, rate_limit, rate_per, rate_burst
), entry AS (INSERT INTO punctual.audit (epoch, id, at, tenant, key_id, key_name, address, request_id, action, kind,
  subject, before, after, outcome)
  SELECT $2::bigint, $6::uuid, $7::bigint, $8::text, $9::uuid, $10::text, $11::text, $12::text, $13::text,
    $14::text, $15::text, $16::json, $17::json, $18::text WHERE EXISTS (SELECT 1 FROM answer) AND EXISTS (SELECT 1
    FROM term)) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- unpark-steps
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), chosen AS MATERIALIZED (
  SELECT s.id FROM unnest($4::uuid[]) u(id) JOIN punctual.steps s ON s.id BETWEEN u.id AND u.id
  WHERE s.parked AND EXISTS (SELECT 1 FROM term)
), postponed AS (
  UPDATE punctual.later l SET blocked = l.artifact IS NOT NULL, run_at = greatest(l.run_at, $5::bigint),
    admit_at = CASE WHEN l.artifact IS NULL THEN greatest(greatest(l.run_at, $5::bigint) - $6::bigint, $5::bigint)
      ELSE l.admit_at END
  WHERE l.id = ANY (ARRAY(SELECT id FROM chosen)) AND l.blocked AND (l.held OR l.artifact IS NOT NULL OR
    greatest(l.run_at, $5::bigint) > $7::bigint)
  RETURNING l.id
), freed AS (
  DELETE FROM punctual.later l
  WHERE l.id = ANY (ARRAY(SELECT id FROM chosen)) AND l.blocked AND NOT (l.held OR l.artifact IS NOT NULL OR
    greatest(l.run_at, $5::bigint) > $7::bigint)
  RETURNING l.*, greatest(l.run_at, $5::bigint) AS new_run_at
), live AS (
  INSERT INTO punctual.jobs (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses, max_attempts,
    max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
    target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence, workflow, batch,
    size_kib, edited)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.new_run_at AS run_at, m.attempts, m.failures, m.losses,
    m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task,
    m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload,
    m.earlier_attempts, m.schedule, m.occurrence, m.workflow, m.batch, m.size_kib, true AS edited
  FROM freed m
  RETURNING jobs.id, jobs.tenant, jobs.queue, jobs.needs, jobs.lane, jobs.rank, jobs.run_at AS "runAt",
    jobs.start_before AS "startBefore", jobs.concurrency_key AS "key",
    jobs.attempts + 1 AS fence, jobs.size_kib AS "sizeKib"
), marked AS (
  UPDATE punctual.steps s SET parked = false WHERE s.id = ANY (ARRAY(SELECT id FROM chosen))
), answer AS (
  SELECT (SELECT count(*) FROM chosen) AS chosen, (SELECT json_agg(l) FROM live l) AS live,
    (SELECT count(*) FROM postponed) AS postponed
) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- update-schedule
UPDATE punctual.schedules s SET
  definition = $3::json, paused = $4, watermark = $5::bigint, fire_at = $6::bigint, changed_at = $7::bigint,
  changed_by = $8, version = s.version + 1
WHERE s.id = $1::uuid AND s.version = $2 AND s.deleted_at IS NULL
RETURNING s.id;

-- use-api-keys
UPDATE punctual.api_keys k SET last_used_at = $2::bigint
WHERE k.id = ANY ($1::uuid[]) AND (k.last_used_at IS NULL OR k.last_used_at < $2::bigint);

-- use-needs
UPDATE punctual.needs n SET used_at = greatest(n.used_at, $2::bigint)
FROM (SELECT * FROM unnest($1::int[]) u(id) ORDER BY u.id) u
WHERE n.id BETWEEN u.id AND u.id
RETURNING n.id, n.used_at AS "usedAt";

-- use-queues
UPDATE punctual.queues n SET used_at = greatest(n.used_at, $2::bigint)
FROM (SELECT * FROM unnest($1::int[]) u(id) ORDER BY u.id) u
WHERE n.id BETWEEN u.id AND u.id
RETURNING n.id, n.used_at AS "usedAt";

-- void-batch
WITH term AS (SELECT 1 AS held FROM punctual.leases
  WHERE shard = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE), locked AS (
  SELECT c.job FROM punctual.claims c
  WHERE c.job = ANY($5::uuid[]) AND c.fence = CASE WHEN ($7::int[]) IS NULL THEN $6::int ELSE
    nullif(($7::int[])[width_bucket(c.job, $5::uuid[])], -1) END AND EXISTS (SELECT 1 FROM term)
  FOR UPDATE
), freed AS (
  DELETE FROM punctual.claims c
  WHERE c.job = ANY(ARRAY(SELECT job FROM locked)) AND (SELECT count(*) FROM locked) = cardinality($5::uuid[])
  RETURNING c.job
), gone AS (
  DELETE FROM punctual.jobs j WHERE j.id = ANY(ARRAY(SELECT job FROM freed)) RETURNING j.*
), moved AS (
  INSERT INTO punctual.later (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses,
    max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
    concurrency_key, target, backoff, requires, traceparent, payload, earlier_attempts, schedule, occurrence,
    workflow, batch, size_kib, admit_at, blocked)
  SELECT m.id, m.tenant, m.queue, m.needs, m.lane, m.rank, m.run_at, CASE WHEN ($7::int[]) IS NULL THEN $6::int ELSE
    nullif(($7::int[])[width_bucket(m.id, $5::uuid[])], -1) END AS attempts, m.failures, m.losses, m.max_attempts,
    m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before, m.late_by, m.task, m.created_by,
    m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.traceparent, m.payload, CASE WHEN (CASE WHEN
    $9::bytea IS NULL THEN $8::json ELSE convert_from(substring($9::bytea FROM ($10::int[])[width_bucket(m.id,
    $5::uuid[])] FOR nullif(($11::int[])[width_bucket(m.id, $5::uuid[])], 0)), 'UTF8')::json END) IS NULL THEN
    m.earlier_attempts
      ELSE array_append(m.earlier_attempts, CASE WHEN $9::bytea IS NULL THEN $8::json ELSE
        convert_from(substring($9::bytea FROM ($10::int[])[width_bucket(m.id, $5::uuid[])] FOR
        nullif(($11::int[])[width_bucket(m.id, $5::uuid[])], 0)), 'UTF8')::json END) END AS earlier_attempts,
        m.schedule, m.occurrence, m.workflow, m.batch, m.size_kib, m.run_at AS admit_at, true AS blocked
  FROM gone m
), waiting AS (
  UPDATE punctual.batches b SET state = 'pending', started_at = NULL
  WHERE b.id = $4::uuid AND EXISTS (SELECT 1 FROM gone)
), answer AS (SELECT g.id FROM gone g) SELECT answer.* FROM term LEFT JOIN answer ON true;

-- wait-for-store
SELECT set_config('idle_in_transaction_session_timeout', '15000', true), set_config('lock_timeout', '15000', true);

-- walk-awaited-artifacts
WITH RECURSIVE awaited AS (
  (SELECT l.artifact, 1 AS n FROM punctual.later l WHERE l.artifact > $1::uuid ORDER BY l.artifact LIMIT 1)
  UNION ALL
  SELECT (SELECT l.artifact FROM punctual.later l WHERE l.artifact > w.artifact ORDER BY l.artifact LIMIT 1), w.n +
    1
  FROM awaited w WHERE w.artifact IS NOT NULL AND w.n < $2::int
)
SELECT string_agg(w.artifact::text, ',') FILTER (WHERE a.state IS DISTINCT FROM 'pending') AS arrived,
  max(w.artifact::text) FILTER (WHERE w.n = $2::int) AS "after"
FROM awaited w
LEFT JOIN LATERAL (SELECT a.state FROM punctual.artifacts a WHERE a.id = w.artifact LIMIT 1) a ON true
WHERE w.artifact IS NOT NULL;

-- withdraw-artifact
UPDATE punctual.artifacts a SET state = 'gone', name = NULL, version = NULL
WHERE a.id = $2::uuid AND a.tenant = $1 AND a.state = 'pending' AND a.created_by = $3
RETURNING a.sha256;

-- write-secret
INSERT INTO punctual.secrets AS s (tenant, name, version, key_id, sealed, origins, created_at, created_by,
  changed_at,
  changed_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $7, $8)
ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, key_id = excluded.key_id, sealed =
  excluded.sealed,
  origins = excluded.origins, changed_at = excluded.changed_at, changed_by = excluded.changed_by
RETURNING s.tenant, s.name, s.version, s.origins, s.created_at, s.created_by, s.changed_at, s.changed_by;

-- write-task
INSERT INTO punctual.tasks (tenant, name, definition, published_by, created_at, created_by, changed_at, changed_by)
VALUES ($1, $2, $3, $4, $5, $6, $5, $6)
ON CONFLICT (tenant, name) DO UPDATE SET definition = excluded.definition, published_by = excluded.published_by,
  changed_at = excluded.changed_at, changed_by = excluded.changed_by, version = punctual.tasks.version + 1
RETURNING tenant, name, definition, published_by, created_at, created_by, changed_at, changed_by, version;
