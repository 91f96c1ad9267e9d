-- oldest-program: 0.1.0
--
-- Which failed jobs have failed alike. Functions only; no row is read or written.

-- The first line of an error's message, with whatever has a digit in it replaced: numbers, ids, addresses.
CREATE FUNCTION punctual.error_shape(error json) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT regexp_replace(
    regexp_replace(
      left(split_part(coalesce(
        CASE WHEN strpos(error::text, '\u') = 0 THEN error ELSE punctual.readable(error) END ->> 'message', ''), chr(10), 1), 300),
      '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', '#', 'g'),
    '[[:alnum:]_]*[0-9][[:alnum:]_]*', '#', 'g')
$$;

CREATE FUNCTION punctual.error_fingerprint(task text, error json) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT left(md5(concat_ws(chr(10), coalesce(task, ''),
    coalesce(CASE WHEN strpos(error::text, '\u') = 0 THEN error ELSE punctual.readable(error) END ->> 'code', ''),
    coalesce(punctual.error_shape(error), ''))), 16)
$$;
REVOKE ALL ON FUNCTION punctual.error_shape(json) FROM PUBLIC;
REVOKE ALL ON FUNCTION punctual.error_fingerprint(text, json) FROM PUBLIC;
