import type { TSchema } from 'typebox';
import { ARTIFACT_OR_COMMAND, ARTIFACT_TIMEOUT_RULE, REFUSED_VARIABLE } from '../core/exec-target.js';
import { REFUSED_HEADER } from '../core/http-target.js';
import { explain } from '../core/schemas/explain.js';
import { JobSubmission } from '../core/schemas/submission.js';
import { MAX_LABELS_BYTES } from '../core/submission.js';

/**
 * Writes the SQL function that checks a submission, from the schema that checks it in the nodes. The output is part of a
 * migration, and a test compares the newest of those with what this makes today: whoever changes the schema adds a
 * migration with the output of `npm run submission-check`. No running program uses this.
 *
 * The function reads the fields in one pass over the top level, because a payload can be large, and has a statement for
 * each check, because Postgres prepares a whole expression each time but only those statements that it comes to. A field
 * that is given twice is refused if either value is wrong, where nodes look at the last one only.
 */

/** The part of JSON Schema that a submission uses. */
interface Rules {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Rules[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Rules;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Rules>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Rules | boolean;
  readonly maxProperties?: number;
  readonly propertyNames?: Rules;
  readonly 'x-expected'?: string;
  readonly '~refine'?: readonly unknown[];
}

/** A value as SQL can look at it: its JSON type, its text without quotes, and where it stands in the submission. */
interface Given {
  readonly type: string;
  readonly text: string;
  readonly at: string;
  /** How many objects it is inside of. */
  readonly depth: number;
}

/** What the rules between fields need of a field, by its name. */
const KEPT: Readonly<Record<string, string>> = {
  task: 'has_task := true;',
  target: `has_target := true;
IF v1 ->> 'type' = 'http' AND v1 ? 'body' AND v1 ->> 'method' IN ('GET', 'HEAD') THEN
  pointer := '/target/body'; wrong := 'does not go together with the method';
  EXIT checks;
END IF;
IF v1 ->> 'type' = 'http' AND punctual.duration_ms(v1 ->> 'timeout') < 1 THEN
  pointer := '/target/timeout'; wrong := 'must be at least 1ms';
  EXIT checks;
END IF;
IF v1 ->> 'type' = 'exec' AND (v1 ? 'artifact') = (v1 ? 'command') THEN
  pointer := '/target/artifact'; wrong := '${ARTIFACT_OR_COMMAND}';
  EXIT checks;
END IF;
IF v1 ->> 'type' = 'exec' AND v1 ? 'artifactTimeout' AND NOT v1 ? 'artifact' THEN
  pointer := '/target/artifactTimeout'; wrong := '${ARTIFACT_TIMEOUT_RULE}';
  EXIT checks;
END IF;
IF v1 ->> 'type' = 'exec' AND punctual.duration_ms(v1 -> 'limits' ->> 'cpuTime') < 1 THEN
  pointer := '/target/limits/cpuTime'; wrong := 'must be at least 1ms';
  EXIT checks;
END IF;`,
  payload: 'payload_bytes := octet_length(value::text);',
  key: "key := value #>> '{}';",
  keyMode: "key_mode := value #>> '{}';",
  delivery: "delivery := value #>> '{}';",
  retry: 'retry := v1;',
};
const READ: Readonly<Record<string, string>> = {
  runAt: 'run_at',
  delay: 'delay',
  startBefore: 'start_before',
  timeout: 'timeout',
  keyWindow: 'key_window',
};

/** The fields that most submissions have; they are compared first. */
const USUAL = ['payload', 'task', 'key', 'queue', 'delay', 'retry', 'timeout'];

/** A payload of so many bytes is within every limit that makes sense, so that the limits need not be read for it. */
const SMALL_PAYLOAD = 512;

/** The rules between fields, as `completeSubmission` has them, with the limits of the node that leads. */
const RULES = `IF has_task IS NOT DISTINCT FROM has_target THEN
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
EXIT checks WHEN timeout IS NULL AND coalesce(payload_bytes, 0) <= ${SMALL_PAYLOAD};
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
`;

/** The function that throws if a submission is not valid; answers with its key. */
export function submissionCheckSql(): string {
  const { properties = {} } = JobSubmission as unknown as Rules;
  const names = [...USUAL, ...Object.keys(properties).filter((name) => !USUAL.includes(name))];
  const fields = names.map((name, i) => {
    const given = { type: 'json_typeof(value)', text: `value #>> '{}'`, at: `/${name}`, depth: 0 };
    const checks = `${check(properties[name]!, given, READ[name])}${KEPT[name] ? `${KEPT[name]}\n` : ''}`;
    return `${i === 0 ? 'IF' : 'ELSIF'} name = ${quoted(name)} THEN\n${indent(checks, 2)}`;
  });
  return `CREATE OR REPLACE FUNCTION punctual.check_submission(submission json, now_ms bigint) RETURNS text
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
${indent(fields.join(''), 6)}      ELSE
        pointer := '/' || left(name, 200); wrong := 'is not a known field';
        EXIT checks;
      END IF;
    END LOOP;
${indent(RULES, 4)}  END;
  IF wrong IS NULL THEN RETURN key; END IF;
  RAISE EXCEPTION 'punctual: %: %', pointer, wrong
    USING ERRCODE = 'invalid_parameter_value', DETAIL = coalesce(code, 'INVALID_REQUEST');
END $check$;
`;
}

/** Statements that leave the checks when the value is wrong; what they read goes into a variable. */
function check(rules: Rules, given: Given, read?: string): string {
  if (rules.anyOf) return checkTagged(rules.anyOf, given);
  if (rules.type === 'object' && rules.properties) return asObject(given) + checkFields(rules, given);
  if (rules.type === 'object') return asObject(given) + checkMap(rules, given);
  if (rules.type === 'array') return checkList(rules, given);
  if (rules.type === undefined && !rules.enum && !('const' in rules)) return '';
  const reader = readerOf(rules);
  const [found] = explain(rules as unknown as TSchema, null);
  if (!reader || !read) return refuseUnless(isRight(rules, given), given.at, found!.detail);
  return `${read} := CASE WHEN ${given.type} = 'string' THEN ${reader}(${given.text}) END;
${refuseUnless(`${read} IS NOT NULL`, given.at, found!.detail)}`;
}

/** The variable that holds an object. */
const object = ({ depth }: Given) => `v${depth + 1}`;

function asObject(given: Given): string {
  const value =
    given.depth === 0 ? 'value::jsonb' : `v${given.depth} -> ${quoted(given.at.split('/').at(-1)!)}`;
  return `${refuseUnless(`${given.type} = 'object'`, given.at, 'must be an object')}${object(given)} := ${value};\n`;
}

function checkFields(rules: Rules, given: Given): string {
  const { properties = {}, required = [] } = rules;
  if (rules.additionalProperties !== false) throw new Error(`${given.at}: must refuse unknown fields`);
  const v = object(given);
  const known = `${v} - ARRAY[${Object.keys(properties).map(quoted).join(', ')}] = '{}'`;
  const fields = Object.entries(properties).map(([name, field]) => {
    const at = `${given.at}/${name}`;
    const value = `${v} -> ${quoted(name)}`;
    const inside = {
      type: `jsonb_typeof(${value})`,
      text: `${v} ->> ${quoted(name)}`,
      at,
      depth: given.depth + 1,
    };
    if (required.includes(name)) {
      return refuseUnless(`${v} ? ${quoted(name)}`, at, 'is required') + check(field, inside);
    }
    const checks = check(field, inside);
    return checks && `IF ${v} ? ${quoted(name)} THEN\n${indent(checks, 2)}END IF;\n`;
  });
  const names = Object.keys(properties).map((name) => JSON.stringify(name));
  return (
    refuseUnless(known, given.at, `must have no other fields than ${names.join(', ')}`) + fields.join('')
  );
}

/** A choice by the field `type`. */
function checkTagged(choices: readonly Rules[], given: Given): string {
  const tagOf = ({ properties }: Rules) => String(properties!.type!.const);
  const v = object(given);
  const at = `${given.at}/type`;
  const branches = choices.map((choice) => {
    const checks = checkFields(choice, given);
    return `IF ${v} ->> 'type' = ${quoted(tagOf(choice))} THEN\n${indent(checks, 2)}`;
  });
  const tags = choices.map((choice) => JSON.stringify(tagOf(choice)));
  return `${asObject(given)}${refuseUnless(`${v} ? 'type'`, at, 'is required')}${branches.join('ELS')}ELSE
${indent(refuse(at, `must be one of ${tags.join(', ')}`), 2)}END IF;
`;
}

/** The entries of a map have to be looked at one by one, each kind of map by a function of its own. */
function checkMap(rules: Rules, given: Given): string {
  const looked = LOOKED_AT[given.at];
  return looked ? checkReferring(rules, given, looked) : checkTexts(rules, given);
}

/** Maps whose values are texts or references to secrets: the function that looks at each, and the names that it refuses. */
const LOOKED_AT: Readonly<Record<string, readonly [name: string, refused: string]>> = {
  '/target/headers': ['look_at_headers', REFUSED_HEADER],
  '/target/env': ['look_at_variables', REFUSED_VARIABLE],
};

function checkReferring(
  { maxProperties }: Rules,
  given: Given,
  [name, refused]: readonly [string, string],
): string {
  return `SELECT h.pointer, h.wrong INTO pointer, wrong
FROM punctual.${name}(${object(given)}, ${quoted(given.at)}, ${maxProperties}, ${quoted(refused)}) h;
EXIT checks WHEN wrong IS NOT NULL;
`;
}

/** A list of numbers or texts, inside of an object. */
function checkList({ items, maxItems }: Rules, given: Given): string {
  const list = `v${given.depth} -> ${quoted(given.at.split('/').at(-1)!)}`;
  const each = { type: 'jsonb_typeof(e.value)', text: `e.value #>> '{}'`, at: given.at, depth: given.depth };
  const areRight = `CASE WHEN ${given.type} = 'array' THEN jsonb_array_length(${list}) <= ${maxItems} AND NOT EXISTS (
  SELECT FROM jsonb_array_elements(${list}) e WHERE (${isRight(items!, each)}) IS NOT TRUE) END`;
  const { minimum, maximum } = items!;
  const what = minimum === undefined ? 'texts' : `whole numbers from ${minimum} to ${maximum}`;
  const detail = `must be a list of at most ${maxItems} ${what}`;
  return refuseUnless(areRight, given.at, detail);
}

/** A map from text to text: its entries have to be looked at one by one. */
function checkTexts(rules: Rules, given: Given): string {
  const { maxProperties, propertyNames, additionalProperties } = rules;
  const names = lineOf(propertyNames?.pattern);
  const values = lineOf((additionalProperties as Rules).pattern);
  if (!names || !values || maxProperties === undefined) throw new Error(`${given.at}: not a map of texts`);
  const bounds = [maxProperties, names.max, values.max, MAX_LABELS_BYTES].join(', ');
  return `SELECT t.pointer, t.wrong INTO pointer, wrong
FROM punctual.look_at_texts(${object(given)}, ${quoted(given.at)}, ${bounds}) t;
EXIT checks WHEN wrong IS NOT NULL;
`;
}

/** SQL that is true where a value that is neither object nor array keeps all rules. */
function isRight(rules: Rules, { type, text }: Given): string {
  const among = (values: readonly unknown[]) => values.map((value) => quoted(String(value))).join(', ');
  if (rules.enum) return `${type} = 'string' AND ${text} IN (${among(rules.enum)})`;
  if ('const' in rules) return `${type} = 'string' AND ${text} = ${among([rules.const])}`;
  if (rules.type === 'boolean') return `${type} = 'boolean'`;
  if (rules.type === 'integer' || rules.type === 'number') {
    const { minimum, maximum } = rules;
    return `${type} = 'number' AND punctual.is_number(${text}, ${minimum}, ${maximum}, ${rules.type === 'integer'})`;
  }
  if (rules.type === 'string') return `${type} = 'string' AND ${isRightText(rules, text)}`;
  throw new Error(`no SQL for ${JSON.stringify(rules)}`);
}

/** What code checks in a node has a function of the same meaning in SQL. */
const READERS: Readonly<Record<string, string>> = {
  'a duration such as 250ms, 30s, 20m, 6h or 2d': 'punctual.duration_ms',
  'an RFC 3339 time such as 2026-12-24T18:00:00Z': 'punctual.moment_ms',
};

/**
 * What a regular expression can tell about a URL: its scheme, that there is a host, and that there is no user before it. The rest
 * is left to the node that admits the job.
 */
const URL_EXPECTED = 'an http or https URL';
const isUrl = (text: string) =>
  `${text} ~* '^ *https?:[/\\\\]*[^/\\\\?# ]' AND ${text} !~* '^ *https?:[/\\\\]*[^/\\\\?#]*[^/\\\\?#:@][^/\\\\?#]*@'`;

function readerOf(rules: Rules): string | undefined {
  if (!rules['~refine'] || rules['x-expected'] === URL_EXPECTED) return undefined;
  const reader = READERS[rules['x-expected'] ?? ''];
  if (!reader) throw new Error(`no SQL for a text that must be ${rules['x-expected']}`);
  return reader;
}

/** Half of a surrogate pair and NUL are in no Postgres text; the caller has put U+0001 in their places. */
const CONTROL_CHARACTERS = `'[\\u0001-\\u001f\\u007f]'`;
const LINE = /^\^\[\^\\u0000-\\u001f\\u007f\\ud800-\\udfff\]\{(\d+),(\d+)\}\$$/;
/** The pattern that `passage()` makes: all control characters but tabs and line ends are refused. */
const PASSAGE = /^\^\[\^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f\\ud800-\\udfff\]\{0,(\d+)\}\$$/;
const PASSAGE_REFUSES = `'[\\u0001-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f]'`;
const NAME = /^\^\[[\w.:-]+\]\{1,\d{1,3}\}\$$/;

function isRightText(rules: Rules, text: string): string {
  const reader = readerOf(rules);
  if (reader) return `${reader}(${text}) IS NOT NULL`;
  const line = lineOf(rules.pattern);
  if (line) {
    const url = rules['x-expected'] === URL_EXPECTED ? ` AND ${isUrl(text)}` : '';
    return `char_length(${text}) BETWEEN ${line.min} AND ${line.max} AND ${text} !~ ${CONTROL_CHARACTERS}${url}`;
  }
  const longest = PASSAGE.exec(rules.pattern ?? '')?.[1];
  if (longest !== undefined) return `char_length(${text}) <= ${longest} AND ${text} !~ ${PASSAGE_REFUSES}`;
  if (!NAME.test(rules.pattern ?? '')) throw new Error(`no SQL for the pattern ${rules.pattern}`);
  return `${text} ~ ${quoted(rules.pattern!)}`;
}

/** The bounds of a pattern that `line()` made. Regular expressions of Postgres count to 255 only. */
function lineOf(pattern = ''): { readonly min: number; readonly max: number } | null {
  const [, min, max] = LINE.exec(pattern) ?? [];
  return max === undefined ? null : { min: Number(min), max: Number(max) };
}

function refuseUnless(isRight: string, at: string, detail: string): string {
  return `IF (${isRight}) IS NOT TRUE THEN\n${indent(refuse(at, detail), 2)}END IF;\n`;
}

function refuse(at: string, detail: string): string {
  return `pointer := ${quoted(at)}; wrong := ${quoted(detail)};\nEXIT checks;\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function indent(text: string, blanks: number): string {
  return text.replaceAll(/^(?=.)/gm, ' '.repeat(blanks));
}
