-- oldest-program: 0.1.0
--
-- Artifacts: what tenants have uploaded, by name and version. The bytes are in a store, once per SHA-256. A new table, and new
-- columns that are null; no row is rewritten.

CREATE TABLE punctual.artifacts (
  id          uuid PRIMARY KEY,
  tenant      text NOT NULL,
  -- Both or none.
  name        text,
  version     text,
  sha256      text NOT NULL,
  size        bigint NOT NULL,
  -- Whether the bytes must be something that a worker can run.
  runnable    boolean NOT NULL,
  -- elf, script, file; null until the bytes were checked.
  kind        text,
  -- The processor that an ELF is made for.
  machine     text,
  -- pending, ready; gone: nobody is shown it any more, and its bytes go with it unless another row has the same.
  state       text NOT NULL DEFAULT 'pending',
  created_at  bigint NOT NULL,
  created_by  text NOT NULL,
  -- When all bytes had arrived and were checked.
  ready_at    bigint,
  -- Until when a pending one may be uploaded.
  expires_at  bigint NOT NULL,
  -- When it was last named by a submission, to the hour.
  used_at     bigint NOT NULL,
  -- The job that left it in `output/`, and the attempt.
  job         uuid,
  fence       int,
  output      text,
  CHECK ((name IS NULL) = (version IS NULL))
);
CREATE UNIQUE INDEX artifacts_by_version ON punctual.artifacts (tenant, name, version) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX artifacts_by_output ON punctual.artifacts (job, output) WHERE job IS NOT NULL;
-- With the sizes, whose sum is what the tenant's quota is about.
CREATE INDEX artifacts_by_tenant ON punctual.artifacts (tenant, id) INCLUDE (size);
-- The newest of a name.
CREATE INDEX artifacts_by_name ON punctual.artifacts (tenant, name, ready_at, id) WHERE name IS NOT NULL AND state = 'ready';
-- Whether bytes are still needed.
CREATE INDEX artifacts_by_sha256 ON punctual.artifacts (sha256);
-- What may have to go: all but those that have a name and their bytes.
CREATE INDEX artifacts_to_forget ON punctual.artifacts (state, used_at, id) WHERE name IS NULL OR state <> 'ready';

-- The artifact that a job waits for, and until when. Such a job is blocked.
ALTER TABLE punctual.later ADD COLUMN artifact uuid, ADD COLUMN artifact_by bigint;
CREATE INDEX later_by_awaited_artifact ON punctual.later (artifact, id) WHERE artifact IS NOT NULL;
CREATE INDEX later_by_artifact_time ON punctual.later (artifact_by) WHERE artifact IS NOT NULL;

-- Which jobs name an artifact; others have no entry. As text, because the operators of json fail where a string of the target has a
-- NUL, as the body of a call may. That body may also look as if it named an artifact, which then counts as named.
CREATE INDEX jobs_by_artifact ON punctual.jobs ((substring(target::text FROM '"artifact":"([0-9a-f-]{36})"')))
  WHERE substring(target::text FROM '"artifact":"([0-9a-f-]{36})"') IS NOT NULL;
CREATE INDEX later_by_artifact ON punctual.later ((substring(target::text FROM '"artifact":"([0-9a-f-]{36})"')))
  WHERE substring(target::text FROM '"artifact":"([0-9a-f-]{36})"') IS NOT NULL;

ALTER TABLE punctual.artifacts ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.artifacts FOR SELECT USING (tenant = current_setting('punctual.tenant', true));

ALTER TABLE punctual.tenants ADD COLUMN quota_artifact_bytes bigint;
DROP TRIGGER quotas_given ON punctual.tenants;
DROP TRIGGER quotas_changed ON punctual.tenants;
CREATE TRIGGER quotas_given AFTER INSERT ON punctual.tenants FOR EACH ROW
  WHEN ((NEW.quota_live_jobs, NEW.quota_later_jobs, NEW.quota_schedules, NEW.quota_queues, NEW.quota_submissions_per_second,
    NEW.quota_payload_bytes, NEW.quota_artifact_bytes)
    IS DISTINCT FROM (NULL::int, NULL::int, NULL::int, NULL::int, NULL::int, NULL::int, NULL::bigint))
  EXECUTE FUNCTION punctual.quotas_changed();
CREATE TRIGGER quotas_changed
  AFTER UPDATE OF quota_live_jobs, quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second,
    quota_payload_bytes, quota_artifact_bytes ON punctual.tenants FOR EACH ROW
  WHEN ((NEW.quota_live_jobs, NEW.quota_later_jobs, NEW.quota_schedules, NEW.quota_queues, NEW.quota_submissions_per_second,
    NEW.quota_payload_bytes, NEW.quota_artifact_bytes) IS DISTINCT FROM (OLD.quota_live_jobs, OLD.quota_later_jobs,
    OLD.quota_schedules, OLD.quota_queues, OLD.quota_submissions_per_second, OLD.quota_payload_bytes, OLD.quota_artifact_bytes))
  EXECUTE FUNCTION punctual.quotas_changed();
