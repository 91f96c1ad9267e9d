-- oldest-program: 0.1.0
--
-- How the last attempt of a job ran a program. A new column that is null; no row is rewritten. And submissions by SQL may have exec
-- targets. Whether a command is allowed is left to the node that admits the job.

ALTER TABLE punctual.job_history ADD COLUMN execution json;
ALTER TABLE punctual.job_history_kept ADD COLUMN execution json;

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
          IF (v1 - ARRAY['type', 'url', 'method', 'headers', 'body', 'expect', 'completion', 'timeout', 'redirects', 'retryStatuses'] = '{}') IS NOT TRUE THEN
            pointer := '/target'; wrong := 'must have no other fields than "type", "url", "method", "headers", "body", "expect", "completion", "timeout", "redirects", "retryStatuses"';
            EXIT checks;
          END IF;
          IF (v1 ? 'type') IS NOT TRUE THEN
            pointer := '/target/type'; wrong := 'is required';
            EXIT checks;
          END IF;
          IF (jsonb_typeof(v1 -> 'type') = 'string' AND v1 ->> 'type' = 'http') IS NOT TRUE THEN
            pointer := '/target/type'; wrong := 'must be "http"';
            EXIT checks;
          END IF;
          IF (v1 ? 'url') IS NOT TRUE THEN
            pointer := '/target/url'; wrong := 'is required';
            EXIT checks;
          END IF;
          IF (jsonb_typeof(v1 -> 'url') = 'string' AND char_length(v1 ->> 'url') BETWEEN 1 AND 8192 AND v1 ->> 'url' !~ '[\u0001-\u001f\u007f]' AND v1 ->> 'url' ~* '^ *https?:[/\\]*[^/\\?# ]' AND v1 ->> 'url' !~* '^ *https?:[/\\]*[^/\\?#]*[^/\\?#:@][^/\\?#]*@') IS NOT TRUE THEN
            pointer := '/target/url'; wrong := 'must be an http or https URL';
            EXIT checks;
          END IF;
          IF v1 ? 'method' THEN
            IF (jsonb_typeof(v1 -> 'method') = 'string' AND v1 ->> 'method' IN ('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD')) IS NOT TRUE THEN
              pointer := '/target/method'; wrong := 'must be one of "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"';
              EXIT checks;
            END IF;
          END IF;
          IF v1 ? 'headers' THEN
            IF (jsonb_typeof(v1 -> 'headers') = 'object') IS NOT TRUE THEN
              pointer := '/target/headers'; wrong := 'must be an object';
              EXIT checks;
            END IF;
            v2 := v1 -> 'headers';
            SELECT h.pointer, h.wrong INTO pointer, wrong
            FROM punctual.look_at_headers(v2, '/target/headers', 64, '^(accept-encoding|connection|content-length|expect|host|keep-alive|te|traceparent|tracestate|trailer|transfer-encoding|upgrade|(proxy-|punctual-|webhook-).*)$') h;
            EXIT checks WHEN wrong IS NOT NULL;
          END IF;
          IF v1 ? 'expect' THEN
            IF (CASE WHEN jsonb_typeof(v1 -> 'expect') = 'array' THEN jsonb_array_length(v1 -> 'expect') <= 100 AND NOT EXISTS (
              SELECT FROM jsonb_array_elements(v1 -> 'expect') e WHERE (jsonb_typeof(e.value) = 'number' AND punctual.is_number(e.value #>> '{}', 200, 599, true)) IS NOT TRUE) END) IS NOT TRUE THEN
              pointer := '/target/expect'; wrong := 'must be a list of at most 100 whole numbers from 200 to 599';
              EXIT checks;
            END IF;
          END IF;
          IF v1 ? 'completion' THEN
            IF (jsonb_typeof(v1 -> 'completion') = 'string' AND v1 ->> 'completion' IN ('auto', 'response')) IS NOT TRUE THEN
              pointer := '/target/completion'; wrong := 'must be one of "auto", "response"';
              EXIT checks;
            END IF;
          END IF;
          IF v1 ? 'timeout' THEN
            IF (jsonb_typeof(v1 -> 'timeout') = 'string' AND punctual.duration_ms(v1 ->> 'timeout') IS NOT NULL) IS NOT TRUE THEN
              pointer := '/target/timeout'; wrong := 'must be a duration such as 250ms, 30s, 20m, 6h or 2d';
              EXIT checks;
            END IF;
          END IF;
          IF v1 ? 'redirects' THEN
            IF (jsonb_typeof(v1 -> 'redirects') = 'number' AND punctual.is_number(v1 ->> 'redirects', 0, 5, true)) IS NOT TRUE THEN
              pointer := '/target/redirects'; wrong := 'must be a whole number from 0 to 5';
              EXIT checks;
            END IF;
          END IF;
          IF v1 ? 'retryStatuses' THEN
            IF (CASE WHEN jsonb_typeof(v1 -> 'retryStatuses') = 'array' THEN jsonb_array_length(v1 -> 'retryStatuses') <= 100 AND NOT EXISTS (
              SELECT FROM jsonb_array_elements(v1 -> 'retryStatuses') e WHERE (jsonb_typeof(e.value) = 'number' AND punctual.is_number(e.value #>> '{}', 200, 599, true)) IS NOT TRUE) END) IS NOT TRUE THEN
              pointer := '/target/retryStatuses'; wrong := 'must be a list of at most 100 whole numbers from 200 to 599';
              EXIT checks;
            END IF;
          END IF;
        ELSIF v1 ->> 'type' = 'exec' THEN
          IF (v1 - ARRAY['type', 'artifact', 'artifactTimeout', 'command', 'args', 'env', 'limits', 'isolation'] = '{}') IS NOT TRUE THEN
            pointer := '/target'; wrong := 'must have no other fields than "type", "artifact", "artifactTimeout", "command", "args", "env", "limits", "isolation"';
            EXIT checks;
          END IF;
          IF (v1 ? 'type') IS NOT TRUE THEN
            pointer := '/target/type'; wrong := 'is required';
            EXIT checks;
          END IF;
          IF (jsonb_typeof(v1 -> 'type') = 'string' AND v1 ->> 'type' = 'exec') IS NOT TRUE THEN
            pointer := '/target/type'; wrong := 'must be "exec"';
            EXIT checks;
          END IF;
          IF v1 ? 'artifact' THEN
            IF (jsonb_typeof(v1 -> 'artifact') = 'string' AND char_length(v1 ->> 'artifact') BETWEEN 1 AND 256 AND v1 ->> 'artifact' !~ '[\u0001-\u001f\u007f]') IS NOT TRUE THEN
              pointer := '/target/artifact'; wrong := 'must be text of 1 to 256 characters without control characters';
              EXIT checks;
            END IF;
          END IF;
          IF v1 ? 'artifactTimeout' THEN
            IF (jsonb_typeof(v1 -> 'artifactTimeout') = 'string' AND punctual.duration_ms(v1 ->> 'artifactTimeout') IS NOT NULL) IS NOT TRUE THEN
              pointer := '/target/artifactTimeout'; wrong := 'must be a duration such as 250ms, 30s, 20m, 6h or 2d';
              EXIT checks;
            END IF;
          END IF;
          IF v1 ? 'command' THEN
            IF (jsonb_typeof(v1 -> 'command') = 'string' AND char_length(v1 ->> 'command') BETWEEN 1 AND 4096 AND v1 ->> 'command' !~ '[\u0001-\u001f\u007f]') IS NOT TRUE THEN
              pointer := '/target/command'; wrong := 'must be text of 1 to 4096 characters without control characters';
              EXIT checks;
            END IF;
          END IF;
          IF v1 ? 'args' THEN
            IF (CASE WHEN jsonb_typeof(v1 -> 'args') = 'array' THEN jsonb_array_length(v1 -> 'args') <= 256 AND NOT EXISTS (
              SELECT FROM jsonb_array_elements(v1 -> 'args') e WHERE (jsonb_typeof(e.value) = 'string' AND char_length(e.value #>> '{}') <= 32768 AND e.value #>> '{}' !~ '[\u0001-\u0008\u000b\u000c\u000e-\u001f\u007f]') IS NOT TRUE) END) IS NOT TRUE THEN
              pointer := '/target/args'; wrong := 'must be a list of at most 256 texts';
              EXIT checks;
            END IF;
          END IF;
          IF v1 ? 'env' THEN
            IF (jsonb_typeof(v1 -> 'env') = 'object') IS NOT TRUE THEN
              pointer := '/target/env'; wrong := 'must be an object';
              EXIT checks;
            END IF;
            v2 := v1 -> 'env';
            SELECT h.pointer, h.wrong INTO pointer, wrong
            FROM punctual.look_at_variables(v2, '/target/env', 128, '^(BASHOPTS|BASH_ENV|ENV|GCONV_PATH|GLIBC_TUNABLES|LD_.*|LIBMOUNT_.*|LOCPATH|MALLOC_.*|NLSPATH|PS4|PUNCTUAL_.*|SHELLOPTS|TRACEPARENT)$') h;
            EXIT checks WHEN wrong IS NOT NULL;
          END IF;
          IF v1 ? 'limits' THEN
            IF (jsonb_typeof(v1 -> 'limits') = 'object') IS NOT TRUE THEN
              pointer := '/target/limits'; wrong := 'must be an object';
              EXIT checks;
            END IF;
            v2 := v1 -> 'limits';
            IF (v2 - ARRAY['cpuTime', 'cpus', 'memory', 'files', 'processes', 'output', 'disk'] = '{}') IS NOT TRUE THEN
              pointer := '/target/limits'; wrong := 'must have no other fields than "cpuTime", "cpus", "memory", "files", "processes", "output", "disk"';
              EXIT checks;
            END IF;
            IF v2 ? 'cpuTime' THEN
              IF (jsonb_typeof(v2 -> 'cpuTime') = 'string' AND punctual.duration_ms(v2 ->> 'cpuTime') IS NOT NULL) IS NOT TRUE THEN
                pointer := '/target/limits/cpuTime'; wrong := 'must be a duration such as 250ms, 30s, 20m, 6h or 2d';
                EXIT checks;
              END IF;
            END IF;
            IF v2 ? 'cpus' THEN
              IF (jsonb_typeof(v2 -> 'cpus') = 'number' AND punctual.is_number(v2 ->> 'cpus', 0.01, 1024, false)) IS NOT TRUE THEN
                pointer := '/target/limits/cpus'; wrong := 'must be a number from 0.01 to 1024';
                EXIT checks;
              END IF;
            END IF;
            IF v2 ? 'memory' THEN
              IF (jsonb_typeof(v2 -> 'memory') = 'number' AND punctual.is_number(v2 ->> 'memory', 1048576, 1125899906842624, true)) IS NOT TRUE THEN
                pointer := '/target/limits/memory'; wrong := 'must be a whole number from 1048576 to 1125899906842624';
                EXIT checks;
              END IF;
            END IF;
            IF v2 ? 'files' THEN
              IF (jsonb_typeof(v2 -> 'files') = 'number' AND punctual.is_number(v2 ->> 'files', 8, 1048576, true)) IS NOT TRUE THEN
                pointer := '/target/limits/files'; wrong := 'must be a whole number from 8 to 1048576';
                EXIT checks;
              END IF;
            END IF;
            IF v2 ? 'processes' THEN
              IF (jsonb_typeof(v2 -> 'processes') = 'number' AND punctual.is_number(v2 ->> 'processes', 1, 1048576, true)) IS NOT TRUE THEN
                pointer := '/target/limits/processes'; wrong := 'must be a whole number from 1 to 1048576';
                EXIT checks;
              END IF;
            END IF;
            IF v2 ? 'output' THEN
              IF (jsonb_typeof(v2 -> 'output') = 'number' AND punctual.is_number(v2 ->> 'output', 0, 1125899906842624, true)) IS NOT TRUE THEN
                pointer := '/target/limits/output'; wrong := 'must be a whole number from 0 to 1125899906842624';
                EXIT checks;
              END IF;
            END IF;
            IF v2 ? 'disk' THEN
              IF (jsonb_typeof(v2 -> 'disk') = 'number' AND punctual.is_number(v2 ->> 'disk', 0, 1125899906842624, true)) IS NOT TRUE THEN
                pointer := '/target/limits/disk'; wrong := 'must be a whole number from 0 to 1125899906842624';
                EXIT checks;
              END IF;
            END IF;
          END IF;
          IF v1 ? 'isolation' THEN
            IF (jsonb_typeof(v1 -> 'isolation') = 'string' AND v1 ->> 'isolation' IN ('none', 'auto', 'required')) IS NOT TRUE THEN
              pointer := '/target/isolation'; wrong := 'must be one of "none", "auto", "required"';
              EXIT checks;
            END IF;
          END IF;
        ELSE
          pointer := '/target/type'; wrong := 'must be one of "handler", "http", "exec"';
          EXIT checks;
        END IF;
        has_target := true;
        IF v1 ->> 'type' = 'http' AND v1 ? 'body' AND v1 ->> 'method' IN ('GET', 'HEAD') THEN
          pointer := '/target/body'; wrong := 'does not go together with the method';
          EXIT checks;
        END IF;
        IF v1 ->> 'type' = 'http' AND punctual.duration_ms(v1 ->> 'timeout') < 1 THEN
          pointer := '/target/timeout'; wrong := 'must be at least 1ms';
          EXIT checks;
        END IF;
        IF v1 ->> 'type' = 'exec' AND (v1 ? 'artifact') = (v1 ? 'command') THEN
          pointer := '/target/artifact'; wrong := 'give either "artifact" or "command"';
          EXIT checks;
        END IF;
        IF v1 ->> 'type' = 'exec' AND v1 ? 'artifactTimeout' AND NOT v1 ? 'artifact' THEN
          pointer := '/target/artifactTimeout'; wrong := 'belongs to "artifact"';
          EXIT checks;
        END IF;
        IF v1 ->> 'type' = 'exec' AND punctual.duration_ms(v1 -> 'limits' ->> 'cpuTime') < 1 THEN
          pointer := '/target/limits/cpuTime'; wrong := 'must be at least 1ms';
          EXIT checks;
        END IF;
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
