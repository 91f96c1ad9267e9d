-- oldest-program: 0.1.0
--
-- What the check of submissions by SQL needs for exec targets; migration 037 has the check itself. A function only; no row is touched.

-- What is wrong with the variables of a program: each is a text or a reference to a secret.
CREATE FUNCTION punctual.look_at_variables(
  given jsonb, at text, most_entries int, refused text, OUT pointer text, OUT wrong text
) LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  name text;
  value jsonb;
  entries int := 0;
BEGIN
  FOR name, value IN SELECT f.key, f.value FROM jsonb_each(given) f LOOP
    entries := entries + 1;
    pointer := at || '/' || left(name, 200);
    IF name !~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$' THEN
      wrong := 'the name must be the name of a variable';
    ELSIF name ~ refused THEN
      wrong := 'is a variable that a target may not set';
    ELSIF jsonb_typeof(value) = 'string' THEN
      IF char_length(value #>> '{}') > 32768
        OR value #>> '{}' ~ '[\u0001-\u0008\u000b\u000c\u000e-\u001f\u007f]' THEN
        wrong := 'must be text of 0 to 32768 characters without control characters other than tabs and line ends';
      END IF;
    ELSIF jsonb_typeof(value) <> 'object' OR value - ARRAY['$secret', 'prefix'] <> '{}' THEN
      wrong := 'must be text, or an object with "$secret" and perhaps "prefix"';
    ELSIF (jsonb_typeof(value -> '$secret') = 'string' AND value ->> '$secret' ~ '^[A-Za-z0-9._:-]{1,128}$') IS NOT TRUE THEN
      wrong := 'must name a secret';
    ELSIF value ? 'prefix' AND (jsonb_typeof(value -> 'prefix') = 'string'
      AND char_length(value ->> 'prefix') BETWEEN 1 AND 128
      AND value ->> 'prefix' !~ '[\u0001-\u001f\u007f]') IS NOT TRUE THEN
      wrong := 'must have a prefix of 1 to 128 characters without control characters';
    END IF;
    IF wrong IS NOT NULL THEN RETURN; END IF;
  END LOOP;
  pointer := at;
  IF entries > most_entries THEN
    wrong := format('must have at most %s entries', most_entries);
  END IF;
END $$;
