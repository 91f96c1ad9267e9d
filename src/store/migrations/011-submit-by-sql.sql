-- oldest-program: 0.1.0
--
-- Submission by SQL for roles that may do nothing else, checked by the rules of the API.

-- Who may submit and cancel jobs by SQL besides the owner of the schema: for which tenant ('*' for all), and as which creator.
-- A role by its name: a restored copy of the database can meet other numbers.
CREATE TABLE punctual.submit_grants (
  role        name NOT NULL,
  tenant      text NOT NULL,
  creator     text NOT NULL,
  granted_at  bigint NOT NULL,
  PRIMARY KEY (role, tenant)
);

-- The limits of the node that leads, which it writes when its term begins; null before the first. It is the leader that
-- reads the submissions of callers' transactions, so its limits are the ones that decide.
ALTER TABLE punctual.cluster ADD COLUMN max_payload bigint, ADD COLUMN max_job_timeout bigint;

-- Milliseconds of a duration such as 30s; null if it is none. The same as parseDuration in the nodes: more than a hundred
-- years are taken for a mistake. One expression, which Postgres puts in place of the call.
CREATE FUNCTION punctual.duration_ms(duration text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN duration ~ '^[0-9]{1,15}(\.[0-9]{1,6})?(ms|s|m|h|d)$' THEN
    nullif(least(floor(rtrim(duration, 'mshd')::float8 * CASE
      WHEN duration LIKE '%ms' THEN 1 WHEN duration LIKE '%s' THEN 1000 WHEN duration LIKE '%m' THEN 60000
      WHEN duration LIKE '%h' THEN 3600000 ELSE 86400000 END + 0.5), 3162240000001), 3162240000001)::bigint END
$$;

-- Milliseconds of an RFC 3339 moment; null if it is none. The same as parseMoment in the nodes.
CREATE FUNCTION punctual.moment_ms(moment text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  parts text[] := regexp_match(moment, '^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})'
    '(?:\.([0-9]{1,9}))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))$');
  year int := parts[1];
  month int := parts[2];
  day int := parts[3];
  hours int := parts[4];
  minutes int := parts[5];
  seconds int := parts[6];
  -- Minutes that the moment's clock is ahead of UTC.
  ahead int := CASE parts[8] WHEN '-' THEN -1 ELSE 1 END
    * (60 * coalesce(parts[9]::int, 0) + coalesce(parts[10]::int, 0));
  ms bigint;
BEGIN
  IF (hours <= 23 AND minutes <= 59 AND seconds <= 59 AND month BETWEEN 1 AND 12 AND day >= 1
    AND coalesce(parts[9]::int, 0) <= 23 AND coalesce(parts[10]::int, 0) <= 59
    AND day <= CASE WHEN month IN (4, 6, 9, 11) THEN 30 WHEN month <> 2 THEN 31
      WHEN year % 4 = 0 AND (year % 100 <> 0 OR year % 400 = 0) THEN 29 ELSE 28 END) IS NOT TRUE THEN
    RETURN NULL;
  END IF;
  -- The calendar repeats after 400 years; dates of Postgres have no year 0.
  ms := (make_date(year + 400, month, day) - 146097 - DATE '1970-01-01')::bigint * 86400000
    + ((hours * 60 + minutes - ahead) * 60 + seconds) * 1000 + rpad(left(coalesce(parts[7], ''), 3), 3, '0')::int;
  -- The last moment that has four digits for its year.
  RETURN CASE WHEN ms <= 253402300799999 THEN ms END;
END $$;

-- Whether the text of a JSON number lies within bounds. It is read as the nodes read it, into 64 bits; one that is too
-- long for them is left to the node that admits the job.
CREATE FUNCTION punctual.is_number(number text, lowest float8, highest float8, whole boolean) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN length(number) > 308 OR number ~ '[eE]' AND number !~ '^.{1,40}[eE][+-]?[0-9]{1,2}$' THEN true
    ELSE number::float8 BETWEEN lowest AND highest AND (NOT whole OR number::float8 = floor(number::float8)) END
$$;

-- What is wrong with a map from text to text; null if nothing is.
CREATE FUNCTION punctual.look_at_texts(
  given jsonb, at text, most_entries int, longest_name int, longest_value int, most_bytes int,
  OUT pointer text, OUT wrong text
) LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  name text;
  value jsonb;
  entries int := 0;
BEGIN
  pointer := at;
  FOR name, value IN SELECT f.key, f.value FROM jsonb_each(given) f LOOP
    entries := entries + 1;
    pointer := at || '/' || left(name, 200);
    IF name = '' OR char_length(name) > longest_name OR name ~ '[\u0001-\u001f\u007f]' THEN
      wrong := format('the name must be text of 1 to %s characters without control characters', longest_name);
      RETURN;
    END IF;
    IF jsonb_typeof(value) <> 'string' OR char_length(value #>> '{}') > longest_value
      OR value #>> '{}' ~ '[\u0001-\u001f\u007f]' THEN
      wrong := format('must be text of 0 to %s characters without control characters', longest_value);
      RETURN;
    END IF;
  END LOOP;
  pointer := at;
  IF entries > most_entries THEN
    wrong := format('must have at most %s entries', most_entries);
  -- Postgres writes a blank after each colon and comma, nodes do not.
  ELSIF octet_length(given::text) - greatest(2 * entries - 1, 0) > most_bytes THEN
    wrong := format('must be at most %s bytes in all', most_bytes);
  END IF;
END $$;

-- A submission as Postgres can look into it: it cannot where JSON holds NUL or half of a surrogate pair. No field but the
-- payload may hold those, nor any control character, so one such character stands for them here. Something else takes the
-- places of escaped backslashes first, because what follows one is no escape: for a check an escaped slash, which has the
-- same length; for reading a key \u005c, which has the same meaning.
CREATE FUNCTION punctual.checkable(submission json, backslash text) RETURNS json
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT regexp_replace(replace(submission::text, '\\', backslash), '\\u0000'
    '|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})'
    '|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}', '\\u0001', 'g')::json
$$;

-- Throws if a submission breaks a rule of the API; answers with its key. What only a node can check (how deep a payload is
-- nested, how many sets of labels a tenant has) is checked when the job is admitted. Made by `npm run submission-check`.
CREATE OR REPLACE FUNCTION punctual.check_submission(submission json, now_ms bigint) RETURNS text
LANGUAGE plpgsql STABLE AS $check$
DECLARE
  name text; value json; v1 jsonb; v2 jsonb;
  code text; pointer text; wrong text;
  has_task boolean; has_target boolean; payload_bytes int; key text; delivery text; retry jsonb;
  run_at bigint; delay bigint; start_before bigint; timeout bigint; key_mode text; key_window bigint;
  max_payload bigint; max_job_timeout bigint;
BEGIN
  <<checks>> BEGIN
    FOR name, value IN SELECT f.key, f.value FROM json_each(submission) f LOOP
      IF name = 'payload' THEN
        payload_bytes := octet_length(value::text);
      ELSIF name = 'task' THEN
        IF (json_typeof(value) = 'string' AND value #>> '{}' ~ '^[A-Za-z0-9._:-]{1,128}$') IS NOT TRUE THEN
          pointer := '/task'; wrong := 'must be 1 to 128 letters, digits, ".", "_", "-" or ":"';
          EXIT checks;
        END IF;
        has_task := true;
      ELSIF name = 'key' THEN
        IF (json_typeof(value) = 'string' AND char_length(value #>> '{}') BETWEEN 1 AND 512 AND value #>> '{}' !~ '[\u0001-\u001f\u007f]') IS NOT TRUE THEN
          pointer := '/key'; wrong := 'must be text of 1 to 512 characters without control characters';
          EXIT checks;
        END IF;
        key := value #>> '{}';
      ELSIF name = 'queue' THEN
        IF (json_typeof(value) = 'string' AND value #>> '{}' ~ '^[A-Za-z0-9._:-]{1,128}$') IS NOT TRUE THEN
          pointer := '/queue'; wrong := 'must be 1 to 128 letters, digits, ".", "_", "-" or ":"';
          EXIT checks;
        END IF;
      ELSIF name = 'delay' THEN
        delay := CASE WHEN json_typeof(value) = 'string' THEN punctual.duration_ms(value #>> '{}') END;
        IF (delay IS NOT NULL) IS NOT TRUE THEN
          pointer := '/delay'; wrong := 'must be a duration such as 250ms, 30s, 20m, 6h or 2d';
          EXIT checks;
        END IF;
      ELSIF name = 'retry' THEN
        IF (json_typeof(value) = 'object') IS NOT TRUE THEN
          pointer := '/retry'; wrong := 'must be an object';
          EXIT checks;
        END IF;
        v1 := value::jsonb;
        IF (v1 - ARRAY['maxAttempts', 'backoff', 'onWorkerLost'] = '{}') IS NOT TRUE THEN
          pointer := '/retry'; wrong := 'must have no other fields than "maxAttempts", "backoff", "onWorkerLost"';
          EXIT checks;
        END IF;
        IF v1 ? 'maxAttempts' THEN
          IF (jsonb_typeof(v1 -> 'maxAttempts') = 'number' AND punctual.is_number(v1 ->> 'maxAttempts', 1, 1000, true)) IS NOT TRUE THEN
            pointer := '/retry/maxAttempts'; wrong := 'must be a whole number from 1 to 1000';
            EXIT checks;
          END IF;
        END IF;
        IF v1 ? 'backoff' THEN
          IF (jsonb_typeof(v1 -> 'backoff') = 'object') IS NOT TRUE THEN
            pointer := '/retry/backoff'; wrong := 'must be an object';
            EXIT checks;
          END IF;
          v2 := v1 -> 'backoff';
          IF (v2 - ARRAY['base', 'factor', 'max', 'jitter'] = '{}') IS NOT TRUE THEN
            pointer := '/retry/backoff'; wrong := 'must have no other fields than "base", "factor", "max", "jitter"';
            EXIT checks;
          END IF;
          IF v2 ? 'base' THEN
            IF (jsonb_typeof(v2 -> 'base') = 'string' AND punctual.duration_ms(v2 ->> 'base') IS NOT NULL) IS NOT TRUE THEN
              pointer := '/retry/backoff/base'; wrong := 'must be a duration such as 250ms, 30s, 20m, 6h or 2d';
              EXIT checks;
            END IF;
          END IF;
          IF v2 ? 'factor' THEN
            IF (jsonb_typeof(v2 -> 'factor') = 'number' AND punctual.is_number(v2 ->> 'factor', 1, 100, false)) IS NOT TRUE THEN
              pointer := '/retry/backoff/factor'; wrong := 'must be a number from 1 to 100';
              EXIT checks;
            END IF;
          END IF;
          IF v2 ? 'max' THEN
            IF (jsonb_typeof(v2 -> 'max') = 'string' AND punctual.duration_ms(v2 ->> 'max') IS NOT NULL) IS NOT TRUE THEN
              pointer := '/retry/backoff/max'; wrong := 'must be a duration such as 250ms, 30s, 20m, 6h or 2d';
              EXIT checks;
            END IF;
          END IF;
          IF v2 ? 'jitter' THEN
            IF (jsonb_typeof(v2 -> 'jitter') = 'number' AND punctual.is_number(v2 ->> 'jitter', 0, 1, false)) IS NOT TRUE THEN
              pointer := '/retry/backoff/jitter'; wrong := 'must be a number from 0 to 1';
              EXIT checks;
            END IF;
          END IF;
        END IF;
        IF v1 ? 'onWorkerLost' THEN
          IF (jsonb_typeof(v1 -> 'onWorkerLost') = 'object') IS NOT TRUE THEN
            pointer := '/retry/onWorkerLost'; wrong := 'must be an object';
            EXIT checks;
          END IF;
          v2 := v1 -> 'onWorkerLost';
          IF (v2 - ARRAY['maxAttempts'] = '{}') IS NOT TRUE THEN
            pointer := '/retry/onWorkerLost'; wrong := 'must have no other fields than "maxAttempts"';
            EXIT checks;
          END IF;
          IF v2 ? 'maxAttempts' THEN
            IF (jsonb_typeof(v2 -> 'maxAttempts') = 'number' AND punctual.is_number(v2 ->> 'maxAttempts', 1, 1000, true)) IS NOT TRUE THEN
              pointer := '/retry/onWorkerLost/maxAttempts'; wrong := 'must be a whole number from 1 to 1000';
              EXIT checks;
            END IF;
          END IF;
        END IF;
        retry := v1;
      ELSIF name = 'timeout' THEN
        timeout := CASE WHEN json_typeof(value) = 'string' THEN punctual.duration_ms(value #>> '{}') END;
        IF (timeout IS NOT NULL) IS NOT TRUE THEN
          pointer := '/timeout'; wrong := 'must be a duration such as 250ms, 30s, 20m, 6h or 2d';
          EXIT checks;
        END IF;
      ELSIF name = 'target' THEN
        IF (json_typeof(value) = 'object') IS NOT TRUE THEN
          pointer := '/target'; wrong := 'must be an object';
          EXIT checks;
        END IF;
        v1 := value::jsonb;
        IF (v1 ? 'type') IS NOT TRUE THEN
          pointer := '/target/type'; wrong := 'is required';
          EXIT checks;
        END IF;
        IF v1 ->> 'type' = 'handler' THEN
          IF (v1 - ARRAY['type', 'name'] = '{}') IS NOT TRUE THEN
            pointer := '/target'; wrong := 'must have no other fields than "type", "name"';
            EXIT checks;
          END IF;
          IF (v1 ? 'type') IS NOT TRUE THEN
            pointer := '/target/type'; wrong := 'is required';
            EXIT checks;
          END IF;
          IF (jsonb_typeof(v1 -> 'type') = 'string' AND v1 ->> 'type' = 'handler') IS NOT TRUE THEN
            pointer := '/target/type'; wrong := 'must be "handler"';
            EXIT checks;
          END IF;
          IF (v1 ? 'name') IS NOT TRUE THEN
            pointer := '/target/name'; wrong := 'is required';
            EXIT checks;
          END IF;
          IF (jsonb_typeof(v1 -> 'name') = 'string' AND v1 ->> 'name' ~ '^[A-Za-z0-9._:-]{1,128}$') IS NOT TRUE THEN
            pointer := '/target/name'; wrong := 'must be 1 to 128 letters, digits, ".", "_", "-" or ":"';
            EXIT checks;
          END IF;
        ELSIF v1 ->> 'type' = 'http' THEN
          code := 'TARGET_UNAVAILABLE';
          pointer := '/target/type'; wrong := 'is not available yet; there is only "handler"';
          EXIT checks;
        ELSIF v1 ->> 'type' = 'exec' THEN
          code := 'TARGET_UNAVAILABLE';
          pointer := '/target/type'; wrong := 'is not available yet; there is only "handler"';
          EXIT checks;
        ELSE
          pointer := '/target/type'; wrong := 'must be one of "handler", "http", "exec"';
          EXIT checks;
        END IF;
        has_target := true;
      ELSIF name = 'runAt' THEN
        run_at := CASE WHEN json_typeof(value) = 'string' THEN punctual.moment_ms(value #>> '{}') END;
        IF (run_at IS NOT NULL) IS NOT TRUE THEN
          pointer := '/runAt'; wrong := 'must be an RFC 3339 time such as 2026-12-24T18:00:00Z';
          EXIT checks;
        END IF;
      ELSIF name = 'priority' THEN
        IF (json_typeof(value) = 'number' AND punctual.is_number(value #>> '{}', 1, 9, true)) IS NOT TRUE THEN
          pointer := '/priority'; wrong := 'must be a whole number from 1 to 9';
          EXIT checks;
        END IF;
      ELSIF name = 'keyMode' THEN
        IF (json_typeof(value) = 'string' AND value #>> '{}' IN ('keep', 'replace', 'debounce', 'throttle', 'reuse-when-ended')) IS NOT TRUE THEN
          pointer := '/keyMode'; wrong := 'must be one of "keep", "replace", "debounce", "throttle", "reuse-when-ended"';
          EXIT checks;
        END IF;
        key_mode := value #>> '{}';
      ELSIF name = 'keyWindow' THEN
        key_window := CASE WHEN json_typeof(value) = 'string' THEN punctual.duration_ms(value #>> '{}') END;
        IF (key_window IS NOT NULL) IS NOT TRUE THEN
          pointer := '/keyWindow'; wrong := 'must be a duration such as 250ms, 30s, 20m, 6h or 2d';
          EXIT checks;
        END IF;
      ELSIF name = 'delivery' THEN
        IF (json_typeof(value) = 'string' AND value #>> '{}' IN ('at-least-once', 'at-most-once')) IS NOT TRUE THEN
          pointer := '/delivery'; wrong := 'must be one of "at-least-once", "at-most-once"';
          EXIT checks;
        END IF;
        delivery := value #>> '{}';
      ELSIF name = 'concurrencyKey' THEN
        IF (json_typeof(value) = 'string' AND char_length(value #>> '{}') BETWEEN 1 AND 512 AND value #>> '{}' !~ '[\u0001-\u001f\u007f]') IS NOT TRUE THEN
          pointer := '/concurrencyKey'; wrong := 'must be text of 1 to 512 characters without control characters';
          EXIT checks;
        END IF;
      ELSIF name = 'requires' THEN
        IF (json_typeof(value) = 'object') IS NOT TRUE THEN
          pointer := '/requires'; wrong := 'must be an object';
          EXIT checks;
        END IF;
        v1 := value::jsonb;
        SELECT t.pointer, t.wrong INTO pointer, wrong
        FROM punctual.look_at_texts(v1, '/requires', 32, 128, 256, 4096) t;
        EXIT checks WHEN wrong IS NOT NULL;
      ELSIF name = 'startBefore' THEN
        start_before := CASE WHEN json_typeof(value) = 'string' THEN punctual.moment_ms(value #>> '{}') END;
        IF (start_before IS NOT NULL) IS NOT TRUE THEN
          pointer := '/startBefore'; wrong := 'must be an RFC 3339 time such as 2026-12-24T18:00:00Z';
          EXIT checks;
        END IF;
      ELSIF name = 'hold' THEN
        IF (json_typeof(value) = 'boolean') IS NOT TRUE THEN
          pointer := '/hold'; wrong := 'must be true or false';
          EXIT checks;
        END IF;
      ELSE
        pointer := '/' || left(name, 200); wrong := 'is not a known field';
        EXIT checks;
      END IF;
    END LOOP;
    IF has_task IS NOT DISTINCT FROM has_target THEN
      pointer := '/task'; wrong := 'give either "task" or "target"';
      EXIT checks;
    END IF;
    IF key_mode IS NOT NULL AND key IS NULL THEN
      pointer := '/keyMode'; wrong := 'needs a "key"';
      EXIT checks;
    END IF;
    IF key_mode IN ('debounce', 'throttle') THEN
      IF coalesce(key_window, 0) = 0 THEN
        pointer := '/keyWindow';
        wrong := CASE WHEN key_window = 0 THEN 'must be at least 1ms' ELSE format('is needed with the mode "%s"', key_mode) END;
        EXIT checks;
      END IF;
    ELSIF key_window IS NOT NULL THEN
      pointer := '/keyWindow'; wrong := 'belongs to the modes "debounce" and "throttle" of "keyMode"';
      EXIT checks;
    END IF;
    IF key_mode = 'debounce' AND (run_at IS NOT NULL OR delay IS NOT NULL) THEN
      pointer := CASE WHEN run_at IS NOT NULL THEN '/runAt' ELSE '/delay' END;
      wrong := 'is given by "keyWindow" with the mode "debounce"';
      EXIT checks;
    END IF;
    IF run_at IS NOT NULL AND delay IS NOT NULL THEN
      pointer := '/delay'; wrong := 'give either "runAt" or "delay"';
      EXIT checks;
    END IF;
    IF start_before <= (CASE WHEN key_mode = 'debounce' THEN now_ms + key_window
        WHEN delay IS NULL THEN greatest(run_at, now_ms) ELSE now_ms + delay END) THEN
      pointer := '/startBefore'; wrong := 'must lie after the time the job is due';
      EXIT checks;
    END IF;
    IF delivery = 'at-most-once' AND retry IS NOT NULL THEN
      pointer := CASE WHEN (retry ->> 'maxAttempts')::numeric > 1 THEN '/retry/maxAttempts'
        WHEN (retry -> 'onWorkerLost' ->> 'maxAttempts')::numeric > 1 THEN '/retry/onWorkerLost/maxAttempts' END;
      IF pointer IS NOT NULL THEN
        wrong := 'an at-most-once job is started exactly once, so this must be 1';
        EXIT checks;
      END IF;
    END IF;
    EXIT checks WHEN timeout IS NULL AND coalesce(payload_bytes, 0) <= 512;
    SELECT c.max_payload, c.max_job_timeout INTO max_payload, max_job_timeout FROM punctual.cluster c;
    IF timeout < 1 THEN
      pointer := '/timeout'; wrong := 'must be at least 1ms';
    ELSIF timeout > max_job_timeout THEN
      pointer := '/timeout';
      wrong := format('must be at most %s ms, the setting maxJobTimeout of the nodes', max_job_timeout);
    ELSIF payload_bytes > max_payload THEN
      code := 'PAYLOAD_TOO_LARGE';
      pointer := '/payload'; wrong := format('must be at most %s bytes as JSON', max_payload);
    END IF;
  END;
  IF wrong IS NULL THEN RETURN key; END IF;
  RAISE EXCEPTION 'punctual: %: %', pointer, wrong
    USING ERRCODE = 'invalid_parameter_value', DETAIL = coalesce(code, 'INVALID_REQUEST');
END $check$;

-- The creator of what a role submits for a tenant by what was granted to it; throws if nothing was. A role has the grants
-- of the roles whose rights it inherits, as with all rights of Postgres.
CREATE FUNCTION punctual.granted_creator(caller name, tenant text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
  creator text;
BEGIN
  SELECT g.creator INTO creator FROM punctual.submit_grants g
  WHERE g.tenant IN (granted_creator.tenant, '*')
    AND pg_has_role(caller, to_regrole(quote_ident(g.role))::oid, 'USAGE')
  ORDER BY g.role <> caller, g.tenant = '*', g.role LIMIT 1;
  IF FOUND THEN RETURN creator; END IF;
  RAISE EXCEPTION 'punctual: the role % may not submit or cancel jobs of the tenant %', quote_ident(caller), tenant
    USING ERRCODE = 'insufficient_privilege', DETAIL = 'FORBIDDEN',
      HINT = format('Grant it with: punctual db grant submit %s --tenant %s', quote_ident(caller), tenant);
END $$;

-- Submission inside the caller's own transaction. It only inserts into `later`, where nobody waits for it: a
-- caller's open transaction can then block nobody. The leader admits the job once it is committed. It runs with the
-- rights of its owner, so that a caller needs no other right than to call it; settings of the caller's session must not
-- change what its text means.
CREATE OR REPLACE FUNCTION punctual.submit_job(tenant text, submission json) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, punctual, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
  now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
  job_id uuid := (lpad(to_hex(now_ms), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid;
  -- Here current_user is the owner. The caller is the role of SET ROLE, or else the one that logged in.
  caller name := CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END;
  -- What the checks read; see punctual.checkable.
  checked json := CASE WHEN strpos(submission::text, '\u') = 0 THEN submission
    ELSE punctual.checkable(submission, '\/') END;
  creator text;
  key text;
  repeated_id uuid;
BEGIN
  IF (tenant ~ '^[A-Za-z0-9._:-]{1,128}$' AND json_typeof(submission) = 'object') IS NOT TRUE THEN
    RAISE EXCEPTION 'punctual: %', CASE WHEN json_typeof(submission) = 'object'
        THEN quote_nullable(tenant) || ' is not a tenant id' ELSE 'the submission must be a JSON object' END
      USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_REQUEST';
  END IF;
  -- The owner may submit for every tenant.
  creator := CASE WHEN pg_has_role(caller, current_user, 'USAGE') THEN 'transaction:' || caller
    ELSE punctual.granted_creator(caller, tenant) END;
  key := punctual.check_submission(checked, now_ms);
  IF key IS NOT NULL THEN
    IF strpos(submission::text, '\u') > 0 THEN key := punctual.checkable(submission, '\u005c') ->> 'key'; END IF;
    -- A repetition that can be seen is answered with the job that has the key, as by the API.
    IF coalesce(checked ->> 'keyMode', 'keep') = 'keep' THEN
      repeated_id := punctual.job_of_key(tenant, key);
      IF repeated_id IS NOT NULL THEN RETURN repeated_id; END IF;
    END IF;
  END IF;
  WITH stored AS (
    INSERT INTO punctual.later (id, tenant, admit_at, submission, key, created_at, created_by)
    VALUES (job_id, submit_job.tenant, now_ms, submit_job.submission, key, now_ms, creator)
  )
  INSERT INTO punctual.tallies (at, tenant, jobs_submitted) VALUES (now_ms, submit_job.tenant, 1);
  RETURN job_id;
END $$;

-- `punctual db grant submit ROLE` gives the right to call it.
REVOKE ALL ON FUNCTION punctual.submit_job(text, json) FROM PUBLIC;
