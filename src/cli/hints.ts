import type { ErrorCode } from '../core/errors.js';

/** What to do about each error, for the person in front of the terminal; null where its own text says so. */
export const HINTS: Readonly<Record<ErrorCode, string | null>> = {
  INVALID_REQUEST: 'Correct the named field and try again; `--help` lists what the command takes.',
  MALFORMED_REQUEST: 'Check that --url names a Punctual node and nothing in between rewrites requests.',
  MALFORMED_JSON: 'Check the JSON, and quote it for the shell: --payload \'{"name": "Ada"}\'.',
  UNSUPPORTED_MEDIA_TYPE: 'Check that --url names a Punctual node and nothing in between rewrites requests.',
  BODY_TOO_LARGE: 'Send less at once: split the file, or raise PUNCTUAL_MAX_BULK_BYTES on the nodes.',
  PAYLOAD_TOO_LARGE:
    'Keep big data elsewhere and send a reference, or raise PUNCTUAL_MAX_PAYLOAD on the nodes.',
  HEADERS_TOO_LARGE: 'Check the key and the tenant: neither is longer than a line.',
  REQUEST_TIMED_OUT: 'Try again; the connection to the node may be slow.',
  UNAUTHENTICATED:
    'Give a valid key with --api-key or PUNCTUAL_API_KEY; ' +
    '`punctual key create --operator --database-url URL` makes one.',
  FORBIDDEN: 'Use a key that may do this.',
  NOT_FOUND: 'Check that --url names a Punctual node of the same version as this program.',
  METHOD_NOT_ALLOWED: 'Check that the nodes run the same version as this program.',
  JOB_NOT_FOUND: 'Check the id and --tenant; `punctual job list` shows the newest jobs.',
  QUEUE_NOT_FOUND: '`punctual queue list` shows the queues; one comes into being with its first job.',
  TENANT_NOT_FOUND: '`punctual tenant list` shows the tenants.',
  TENANT_EXISTS: '`punctual tenant limit` changes a tenant.',
  SCHEDULE_NOT_FOUND: '`punctual schedule list` shows the schedules.',
  WORKER_NOT_FOUND: '`punctual worker list` shows the workers.',
  STALE_FENCE: 'Nothing: another attempt owns the job now, and its result counts.',
  ATTEMPT_STOPPED: 'Nothing: the attempt was cancelled or ran out of time.',
  JOB_STARTED: 'Only jobs that have not started can be changed; `punctual job get ID` shows where it is.',
  JOB_ENDED: '`punctual job get ID` shows how it ended; `punctual job retry ID` runs a failed one again.',
  JOB_NOT_ENDED: 'Wait for its end with `punctual job watch ID`, or cancel it first.',
  JOB_NOT_HELD: 'Nothing to release: `punctual job why ID` says what it waits for.',
  JOB_HELD: 'Let it go on with `punctual job release ID`.',
  ALREADY_PAUSED: 'Nothing to do; `resume` lets it go on.',
  NOT_PAUSED: 'Nothing to do; it is not paused.',
  SCHEDULE_EXISTS:
    'Choose another name, or change the schedule that has it with `punctual schedule create --replace`.',
  AT_MOST_ONCE: 'Submit a new job if the work may be done again.',
  DUPLICATE_KEY: 'Use another --key, or look at the job that has it: `punctual job get --key KEY`.',
  NO_LEADER: 'Try again in a few seconds; `punctual cluster status` shows whether a node leads.',
  SHUTTING_DOWN: 'Try again in a few seconds, or ask another node with --url.',
  DATABASE_UNAVAILABLE: 'Check that Postgres runs and that the address, user and password are right.',
  DATABASE_TOO_OLD: null,
  DATABASE_NOT_WRITABLE: null,
  DATABASE_NEWER: null,
  EMBEDDED_POSTGRES: null,
  PORT_IN_USE: null,
  UNREACHABLE: null,
  TIMED_OUT: 'The job goes on; follow it with `punctual job watch ID`.',
  JOB_UNSUCCESSFUL: '`punctual job get ID` shows its attempts, `punctual job logs ID` what it wrote.',
  USAGE: '`--help` after any command shows how it is used.',
  CONFIGURATION:
    'Correct the setting; `--print-config` on up, server and worker run shows where each comes from.',
  INTERNAL: 'Try again; if it stays, look at the logs of the node (DATA/logs of `punctual up`).',
};
