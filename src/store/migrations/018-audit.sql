-- oldest-program: 0.1.0
--
-- The audit: who did what, from where, when, and what it changed. Only new tables, so nothing waits for anything.

CREATE TABLE punctual.audit (
  id          uuid PRIMARY KEY,
  at          bigint NOT NULL,
  -- The term under which it was written; null for what any node writes.
  epoch       bigint,
  -- Whose the subject is; null for what belongs to the operator.
  tenant      text,
  key_id      uuid,
  key_name    text NOT NULL,
  address     text,
  request_id  text,
  action      text NOT NULL,
  kind        text NOT NULL,
  subject     text NOT NULL,
  before      json,
  after       json,
  outcome     text NOT NULL CHECK (outcome IN ('done', 'failed', 'unknown')),
  -- The place in the chain, which a pass of the leader fills in.
  sequence    bigint,
  previous    bytea,
  hash        bytea,
  CHECK ((sequence IS NULL) = (previous IS NULL) AND (sequence IS NULL) = (hash IS NULL))
);
CREATE UNIQUE INDEX audit_by_sequence ON punctual.audit (sequence);
CREATE INDEX audit_unchained ON punctual.audit (id) WHERE sequence IS NULL;
CREATE INDEX audit_by_tenant ON punctual.audit (tenant, id);
CREATE INDEX audit_by_tenant_in_order ON punctual.audit (tenant, sequence);

-- One row: the end of the chain, and the last entry that retention has removed.
CREATE TABLE punctual.audit_chain (
  one               boolean PRIMARY KEY DEFAULT true CHECK (one),
  sequence          bigint NOT NULL,
  hash              bytea NOT NULL,
  removed_sequence  bigint NOT NULL,
  removed_hash      bytea NOT NULL
);
INSERT INTO punctual.audit_chain (sequence, hash, removed_sequence, removed_hash)
VALUES (0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'));

-- Append-only, whoever writes: an entry is chained once, an unknown outcome becomes known once and before that, and an entry is
-- deleted only after the chain says that it was removed.
CREATE FUNCTION punctual.guard_audit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  is_same boolean;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    RAISE EXCEPTION 'the audit is append-only';
  ELSIF TG_OP = 'INSERT' THEN
    IF NEW.sequence IS NOT NULL THEN
      RAISE EXCEPTION 'an entry of the audit gets its place in the chain later';
    END IF;
    RETURN NEW;
  ELSIF TG_OP = 'DELETE' THEN
    IF OLD.sequence IS NULL OR OLD.sequence > (SELECT c.removed_sequence FROM punctual.audit_chain c) THEN
      RAISE EXCEPTION 'the audit is append-only';
    END IF;
    RETURN OLD;
  END IF;
  is_same := (OLD.id, OLD.at, OLD.epoch, OLD.tenant, OLD.key_id, OLD.key_name, OLD.address, OLD.request_id, OLD.action, OLD.kind,
      OLD.subject, OLD.before::text)
    IS NOT DISTINCT FROM (NEW.id, NEW.at, NEW.epoch, NEW.tenant, NEW.key_id, NEW.key_name, NEW.address, NEW.request_id,
      NEW.action, NEW.kind, NEW.subject, NEW.before::text);
  IF is_same AND OLD.sequence IS NULL AND NEW.sequence IS NOT NULL
    AND (OLD.after::text, OLD.outcome) IS NOT DISTINCT FROM (NEW.after::text, NEW.outcome) THEN
    RETURN NEW;
  END IF;
  IF is_same AND OLD.sequence IS NULL AND NEW.sequence IS NULL AND OLD.outcome = 'unknown' AND NEW.outcome <> 'unknown' THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'the audit is append-only';
END $$;
REVOKE ALL ON FUNCTION punctual.guard_audit() FROM PUBLIC;
CREATE TRIGGER audit_is_guarded BEFORE INSERT OR UPDATE OR DELETE ON punctual.audit
  FOR EACH ROW EXECUTE FUNCTION punctual.guard_audit();
CREATE TRIGGER audit_is_kept BEFORE TRUNCATE ON punctual.audit
  FOR EACH STATEMENT EXECUTE FUNCTION punctual.guard_audit();

-- The chain only grows, and what was removed are its oldest entries, none of them younger than a day.
CREATE FUNCTION punctual.guard_audit_chain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'UPDATE' OR NEW.sequence < OLD.sequence OR NEW.removed_sequence < OLD.removed_sequence THEN
    RAISE EXCEPTION 'the chain of the audit only grows';
  END IF;
  IF NEW.sequence = OLD.sequence AND NEW.hash <> OLD.hash THEN
    RAISE EXCEPTION 'the chain of the audit only grows';
  END IF;
  IF NEW.removed_sequence = OLD.removed_sequence THEN
    IF NEW.removed_hash <> OLD.removed_hash THEN
      RAISE EXCEPTION 'the chain of the audit only grows';
    END IF;
    RETURN NEW;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM punctual.audit a WHERE a.sequence = NEW.removed_sequence AND a.hash = NEW.removed_hash)
    OR EXISTS (SELECT 1 FROM punctual.audit a WHERE a.sequence <= NEW.removed_sequence
      AND a.at > extract(epoch FROM clock_timestamp()) * 1000 - 86400000) THEN
    RAISE EXCEPTION 'only the oldest entries of the audit are removed, after a day at least';
  END IF;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION punctual.guard_audit_chain() FROM PUBLIC;
CREATE TRIGGER audit_chain_is_guarded BEFORE INSERT OR UPDATE OR DELETE ON punctual.audit_chain
  FOR EACH ROW EXECUTE FUNCTION punctual.guard_audit_chain();
CREATE TRIGGER audit_chain_is_kept BEFORE TRUNCATE ON punctual.audit_chain
  FOR EACH STATEMENT EXECUTE FUNCTION punctual.guard_audit_chain();
