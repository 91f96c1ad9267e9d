/** The errors a program can read: one class, and one table of everything that follows from an error's code. */

/**
 * Every code the product can answer with: the HTTP status, the exit code of the CLI, what the code means, and what the
 * person in front of the terminal can do about it (null where the error's own message says so).
 */
// biome-ignore format: a table is read by the line
export const ERROR_CODES = {
  INVALID_REQUEST: { status: 422, exit: 2, title: 'The request is not valid',
    hint: 'Correct the named field and try again.' },
  MALFORMED_JSON: { status: 400, exit: 2, title: 'The body is not valid JSON',
    hint: null },
  MALFORMED_REQUEST: { status: 400, exit: 2, title: 'The request is not valid HTTP',
    hint: 'Check that --url names a Punctual node and nothing in between rewrites requests.' },
  REQUEST_TIMED_OUT: { status: 408, exit: 7, title: 'The request took too long to arrive',
    hint: 'Try again; the connection to the node may be slow.' },
  HEADERS_TOO_LARGE: { status: 431, exit: 2, title: 'The headers are too large',
    hint: 'Check the key and the tenant: neither is longer than a line.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, exit: 2, title: 'The body must be JSON',
    hint: 'Check that --url names a Punctual node and nothing in between rewrites requests.' },
  BODY_TOO_LARGE: { status: 413, exit: 2, title: 'The request is too large',
    hint: 'Send less at once: split the file, or raise PUNCTUAL_MAX_BULK_BYTES on the nodes.' },
  PAYLOAD_TOO_LARGE: { status: 413, exit: 2, title: 'The payload is too large',
    hint: 'Keep big data elsewhere and send a reference, or raise PUNCTUAL_MAX_PAYLOAD on the nodes.' },
  TARGET_UNAVAILABLE: { status: 422, exit: 2, title: 'Commands are not allowed here',
    hint: 'Upload the program with `punctual artifact push FILE`, or have the operator set PUNCTUAL_ALLOW_COMMANDS on nodes and workers.' },
  UNAUTHENTICATED: { status: 401, exit: 4, title: 'A valid key is required',
    hint: 'Give a valid key with --api-key or PUNCTUAL_API_KEY; `punctual key create --operator --database-url URL` makes one.' },
  CROSS_SITE: { status: 403, exit: 4, title: 'The request does not come from the dashboard of this node',
    hint: 'Open the dashboard at the address of the node; programs send a key in the header authorization.' },
  INSECURE_SIGN_IN: { status: 403, exit: 4, title: 'The connection is not secure',
    hint: 'Open the dashboard over HTTPS or on the machine of the node, or start the node with --insecure if nobody else can read what goes over this network.' },
  FORBIDDEN: { status: 403, exit: 4, title: 'The key may not do this',
    hint: 'Use a key that may do this.' },
  NOT_FOUND: { status: 404, exit: 5, title: 'There is no such route',
    hint: 'Check that --url names a Punctual node of the same version as this program.' },
  METHOD_NOT_ALLOWED: { status: 405, exit: 2, title: 'The route does not take this method',
    hint: 'Check that the nodes run the same version as this program.' },
  JOB_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such job',
    hint: 'Check the id and --tenant; `punctual job list` shows the newest jobs.' },
  WORKFLOW_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such workflow',
    hint: 'Check the id and --tenant; `punctual workflow list` shows the newest workflows.' },
  DEFINITION_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such workflow definition',
    hint: '`punctual workflow definitions` shows those that there are, `punctual workflow definition NAME` the versions of one.' },
  WORKFLOW_ENDED: { status: 409, exit: 6, title: 'The workflow has already ended',
    hint: '`punctual workflow get ID` shows how it ended; `punctual workflow retry ID` runs what failed again.' },
  WORKFLOW_HELD: { status: 409, exit: 6, title: 'The workflow is on hold already',
    hint: '`punctual workflow release ID` lets it go on.' },
  WORKFLOW_NOT_HELD: { status: 409, exit: 6, title: 'The workflow is not on hold',
    hint: '`punctual workflow get ID` shows it; a job that is on hold by itself is released with `punctual job release ID`.' },
  STEPS_GONE: { status: 410, exit: 6, title: 'Steps of the workflow have left history',
    hint: 'Submit the workflow again from its source.' },
  STEP_NOT_FOUND: { status: 404, exit: 5, title: 'The workflow has no such step',
    hint: '`punctual workflow get ID` shows its steps, and which version of a definition it was started from.' },
  NOTHING_TO_RETRY: { status: 409, exit: 6, title: 'No step of the workflow can be retried',
    hint: '`punctual workflow get ID` shows how its steps ended.' },
  WORKFLOW_STOPS: { status: 409, exit: 6, title: 'The workflow is being stopped',
    hint: 'Nothing is added to a workflow whose rest is skipped; `punctual workflow get ID` shows why.' },
  RERUN_LOSES_STEPS: { status: 409, exit: 6, title: 'Steps that others added would be lost',
    hint: 'Run again from an earlier step, so that whoever added them runs again, too.' },
  STEP_OF_WORKFLOW: { status: 409, exit: 6, title: 'The job is a step of a workflow',
    hint: 'Retry or cancel the whole workflow: `punctual workflow get ID` shows it.' },
  QUEUE_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such queue',
    hint: '`punctual queue list` shows the queues; one comes into being with its first job.' },
  ORIGIN_NOT_FOUND: { status: 404, exit: 5, title: 'The origin has no limits of its own',
    hint: '`punctual origin list` shows the origins; name them without a path.' },
  TENANT_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such tenant',
    hint: '`punctual tenant list` shows the tenants.' },
  TENANT_EXISTS: { status: 409, exit: 6, title: 'There is such a tenant already',
    hint: '`punctual tenant limit` changes a tenant.' },
  SCHEDULE_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such schedule',
    hint: '`punctual schedule list` shows the schedules.' },
  TASK_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such task',
    hint: '`punctual task list` shows the tasks that are defined; others are known to workers only.' },
  TASK_DEFINED: { status: 409, exit: 6, title: 'The task was defined by a person',
    hint: 'Delete the definition with `punctual task delete NAME`, or publish with --publish overwrite.' },
  WORKER_NOT_FOUND: { status: 404, exit: 5, title: 'The worker is not registered here',
    hint: '`punctual worker list` shows the workers.' },
  KEY_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such key',
    hint: '`punctual key list` shows the keys.' },
  KEY_EXPIRED: { status: 409, exit: 6, title: 'The key has expired',
    hint: 'Make a new one with `punctual key create`.' },
  SECRET_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such secret',
    hint: '`punctual secret list` shows the names; `punctual secret set NAME --origin ORIGIN` makes one.' },
  SECRET_ORIGIN: { status: 403, exit: 4, title: 'The secret may not go to this origin',
    hint: 'Set it again with all of its origins: `punctual secret set NAME --origin ORIGIN`.' },
  SIGNING_SECRET_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such signing secret',
    hint: '`punctual signing-secret list` shows those that are valid.' },
  SECRETS_UNAVAILABLE: { status: 503, exit: 7, title: 'The node cannot encrypt or decrypt secrets',
    hint: 'Give all nodes the master key: PUNCTUAL_SECRET_KEY or PUNCTUAL_SECRET_KEY_FILE; `punctual doctor` says which is missing.' },
  ARTIFACT_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such artifact',
    hint: '`punctual artifact list` shows the artifacts; `punctual artifact push FILE --name NAME` uploads one.' },
  ARTIFACT_EXISTS: { status: 409, exit: 6, title: 'The version belongs to other bytes',
    hint: 'Versions never change: push it under another --version.' },
  ARTIFACT_IN_USE: { status: 409, exit: 6, title: 'The artifact is in use',
    hint: '`punctual artifact get ID` shows who names it.' },
  ARTIFACT_PENDING: { status: 409, exit: 6, title: 'The artifact is not uploaded yet',
    hint: 'Upload it with `punctual artifact push FILE`.' },
  ARTIFACT_TOO_LARGE: { status: 413, exit: 2, title: 'The artifact is too large',
    hint: 'Make it smaller (strip it of symbols), or raise PUNCTUAL_MAX_ARTIFACT_BYTES on the nodes.' },
  ARTIFACT_SIZE: { status: 422, exit: 2, title: 'More or fewer bytes came than were announced',
    hint: 'The file may have changed meanwhile, or the connection broke: push it again.' },
  ARTIFACT_HASH: { status: 422, exit: 2, title: 'Other bytes came than were announced',
    hint: 'The file may have changed meanwhile: push it again.' },
  ARTIFACT_NOT_RUNNABLE: { status: 422, exit: 2, title: 'The artifact cannot be run',
    hint: 'A file that is not to be run is uploaded with `punctual artifact push FILE --data`, or with `"runnable": false`.' },
  UPLOAD_EXPIRED: { status: 410, exit: 6, title: 'The time for the upload is over',
    hint: 'Push the file again: that makes a new address for the upload.' },
  UPLOAD_DONE: { status: 409, exit: 6, title: 'The artifact was uploaded already',
    hint: 'Nothing: it can be used.' },
  UPLOAD_INCOMPLETE: { status: 409, exit: 6, title: 'Parts of the upload are missing',
    hint: 'Push the file again: only the parts that are missing are sent.' },
  UPLOAD_STALLED: { status: 408, exit: 7, title: 'The upload stopped for too long',
    hint: 'Push the file again; the connection to the node may be slow.' },
  LENGTH_REQUIRED: { status: 411, exit: 2, title: 'The request does not say how many bytes come',
    hint: 'Send the header content-length.' },
  OUTPUT_TOO_LARGE: { status: 413, exit: 2, title: 'The job leaves too much',
    hint: 'Leave fewer or smaller files, or raise PUNCTUAL_MAX_OUTPUT_BYTES on the nodes.' },
  RANGE_NOT_SATISFIABLE: { status: 416, exit: 2, title: 'There are no such bytes',
    hint: 'Ask for a range within the artifact, or for all of it.' },
  ARTIFACT_STORE_UNAVAILABLE: { status: 503, exit: 7, title: 'The store of artifacts cannot be used',
    hint: 'Check PUNCTUAL_ARTIFACT_STORE on the nodes and what it names; a node tries it when it starts, and its log says what is wrong.' },
  SHARD_NOT_FOUND: { status: 404, exit: 5, title: 'The node has no such shard',
    hint: '`punctual cluster status` shows the shards.' },
  TOO_MANY_WORKERS: { status: 429, exit: 7, title: 'The tenant has too many workers',
    hint: 'Stop workers that are not needed; fewer with more slots do the same work.' },
  STALE_FENCE: { status: 409, exit: 6, title: 'This attempt does not own the job',
    hint: 'Nothing: the attempt has ended, or another one owns the job now, and its result counts.' },
  ATTEMPT_STOPPED: { status: 409, exit: 6, title: 'The attempt was told to stop',
    hint: 'Nothing: the attempt was cancelled or ran out of time.' },
  BATCH_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such batch',
    hint: 'Check the id and --tenant; `punctual batch list` shows the newest batches.' },
  BATCH_ENDED: { status: 409, exit: 6, title: 'The batch has already ended',
    hint: '`punctual batch get ID` shows how it ended; `punctual batch retry ID` runs a failed one again.' },
  BATCH_NOT_ENDED: { status: 409, exit: 6, title: 'The batch has not ended',
    hint: 'Wait for its end, or cancel it first with `punctual batch cancel ID`.' },
  BATCH_NOT_RETRYABLE: { status: 409, exit: 6, title: 'The batch cannot be started again as a whole',
    hint: 'Submit a new batch.' },
  BATCH_MEMBER: { status: 409, exit: 6, title: 'The job is a member of a batch, which is steered as a whole',
    hint: 'Use `punctual batch cancel ID` or `punctual batch retry ID`.' },
  JOB_STARTED: { status: 409, exit: 6, title: 'The job has already started',
    hint: 'Only jobs that have not started can be changed; `punctual job get ID` shows where it is.' },
  JOB_ENDED: { status: 409, exit: 6, title: 'The job has already ended',
    hint: '`punctual job get ID` shows how it ended; `punctual job retry ID` runs a failed one again.' },
  JOB_NOT_ENDED: { status: 409, exit: 6, title: 'The job has not ended',
    hint: 'Wait for its end with `punctual job watch ID`, or cancel it first.' },
  JOB_NOT_HELD: { status: 409, exit: 6, title: 'The job is not on hold',
    hint: 'Nothing to release: `punctual job why ID` says what it waits for.' },
  JOB_HELD: { status: 409, exit: 6, title: 'The job is on hold already',
    hint: 'Let it go on with `punctual job release ID`.' },
  ALREADY_PAUSED: { status: 409, exit: 6, title: 'It is paused already',
    hint: 'Nothing to do; `resume` lets it go on.' },
  NOT_PAUSED: { status: 409, exit: 6, title: 'It is not paused',
    hint: 'Nothing to do; it is not paused.' },
  SCHEDULE_EXISTS: { status: 409, exit: 6, title: 'There is a schedule of that name already',
    hint: 'Choose another name, or change the schedule that has it with `punctual schedule create --replace`.' },
  SCHEDULE_MANAGED: { status: 409, exit: 6, title: 'The schedule is in the code of another program',
    hint: 'Choose another name, or delete the schedule with `punctual schedule delete NAME` first.' },
  AT_MOST_ONCE: { status: 409, exit: 6, title: 'An at-most-once job is never started again',
    hint: 'Submit a new job if the work may be done again.' },
  AMBIGUOUS_ID: { status: 409, exit: 6, title: 'Several ids begin like this',
    hint: 'Give more characters of the id; `--wide` shows ids in full.' },
  DUPLICATE_KEY: { status: 409, exit: 6, title: 'The key belongs to another job',
    hint: 'Use another --key, or look at the job that has it: `punctual job get --key KEY`.' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, exit: 2, title: 'The Idempotency-Key belongs to another request',
    hint: 'Use a new --idempotency-key for each request, and the same one only to repeat it unchanged.' },
  IDEMPOTENCY_IN_FLIGHT: { status: 409, exit: 6, title: 'The first request with this Idempotency-Key is not answered yet',
    hint: 'Try again shortly: it is answered like the first request then.' },
  ROLE_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such database role',
    hint: 'Create it first (`CREATE ROLE … LOGIN`), and write it as Postgres does: in lower case unless it was quoted.' },
  QUOTA_EXCEEDED: { status: 429, exit: 6, title: 'A quota is used up',
    hint: 'Use less of it, or ask the operator for more: `punctual tenant limit ID --quota NAME=N`.' },
  RATE_LIMITED: { status: 429, exit: 7, title: 'The key makes too many requests',
    hint: 'Ask less often, send many jobs in one request, or spread the work over several keys.' },
  TOO_MANY_CONNECTIONS: { status: 503, exit: 7, title: 'Too many connections to this node are open',
    hint: 'Close connections that are not needed, ask another node with --url, or raise PUNCTUAL_MAX_CONNECTIONS on the nodes.' },
  NO_LEADER: { status: 503, exit: 7, title: 'The shard has no leader at the moment',
    hint: 'Try again in a few seconds; `punctual cluster status` shows whether a node leads.' },
  SHUTTING_DOWN: { status: 503, exit: 7, title: 'The node is stopping',
    hint: 'Try again in a few seconds, or ask another node with --url.' },
  TOO_MANY_WAITS: { status: 503, exit: 7, title: 'Too many calls wait at this node',
    hint: 'Ask another node with --url, or wait for fewer results at a time.' },
  TOO_MANY_LISTENERS: { status: 503, exit: 7, title: 'Too many listen to events here',
    hint: 'Ask another node with --url, or listen with one stream instead of several.' },
  TOO_BUSY: { status: 503, exit: 7, title: 'The node has too much to do at the moment',
    hint: 'Try again in a few seconds, or send less at once.' },
  DATABASE_UNAVAILABLE: { status: 503, exit: 7, title: 'The database cannot be reached',
    hint: 'Check that Postgres runs and that the address, user and password are right.' },
  DATABASE_POOLED: { status: 500, exit: 1, title: 'The database is behind a pooler that nodes cannot use', hint: null },
  DATABASE_TOO_OLD: { status: 500, exit: 1, title: 'The database server is too old', hint: null },
  DATABASE_NOT_WRITABLE: { status: 500, exit: 1, title: 'The database cannot be written to', hint: null },
  DATABASE_NEWER: { status: 500, exit: 1, title: 'The database needs a newer program', hint: null },
  EMBEDDED_POSTGRES: { status: 500, exit: 1, title: 'The embedded Postgres could not be started', hint: null },
  ALREADY_RUNNING: { status: 409, exit: 1, title: 'It runs already', hint: null },
  PORT_IN_USE: { status: 500, exit: 1, title: 'The port is taken', hint: null },
  UNREACHABLE: { status: 503, exit: 7, title: 'The server cannot be reached', hint: null },
  TIMED_OUT: { status: 504, exit: 124, title: 'The wait is over',
    hint: 'The job goes on; follow it with `punctual job watch ID`.' },
  JOB_UNSUCCESSFUL: { status: 500, exit: 3, title: 'The job ended unsuccessfully',
    hint: '`punctual job get ID` shows its attempts, `punctual job logs ID` what it wrote.' },
  WORKFLOW_UNSUCCESSFUL: { status: 500, exit: 3, title: 'The workflow ended unsuccessfully',
    hint: '`punctual workflow get ID` shows its steps; `punctual workflow retry ID` runs the failed ones again.' },
  BATCH_UNSUCCESSFUL: { status: 500, exit: 3, title: 'The batch ended unsuccessfully',
    hint: '`punctual batch get ID` shows its members; `punctual batch retry ID` starts all of them again.' },
  USAGE: { status: 400, exit: 2, title: 'The command is not used that way',
    hint: null },
  CONFIGURATION: { status: 500, exit: 2, title: 'The configuration is not valid',
    hint: 'Correct the setting; `--print-config` on up, server and worker run shows where each comes from.' },
  INTERNAL: { status: 500, exit: 1, title: 'Something went wrong on our side',
    hint: 'Try again; if it stays, look at the logs of the node (DATA/logs of `punctual up`).' },
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

/** One thing that is wrong with an input, with a JSON pointer to the field. */
export interface FieldError {
  readonly pointer: string;
  readonly detail: string;
}

export interface PunctualErrorOptions {
  readonly cause?: unknown;
  readonly errors?: readonly FieldError[];
  /** Seconds after which trying again makes sense. */
  readonly retryAfter?: number;
  /** What to do, where the hint of the code does not fit; null where the message says it. */
  readonly hint?: string | null;
  /** The quota that a request went beyond. */
  readonly quota?: ExceededQuota;
}

/** A quota of a tenant that a request went beyond. */
export interface ExceededQuota {
  readonly name: string;
  readonly limit: number;
}

/** The base of every error of the product; `code` is stable, `message` is for people. */
export class PunctualError extends Error {
  readonly code: ErrorCode;
  readonly errors: readonly FieldError[];
  readonly retryAfter: number | undefined;
  readonly quota: ExceededQuota | undefined;
  /** What the person in front of the terminal can do about it; null where the message says so. */
  readonly hint: string | null;

  constructor(code: ErrorCode, detail: string, options: PunctualErrorOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PunctualError';
    this.code = code;
    this.errors = options.errors ?? [];
    this.retryAfter = options.retryAfter;
    this.quota = options.quota;
    this.hint = options.hint === undefined ? usualHint(code, options.quota) : options.hint;
  }

  get status(): number {
    return ERROR_CODES[this.code].status;
  }

  get exitCode(): number {
    return ERROR_CODES[this.code].exit;
  }

  get title(): string {
    return ERROR_CODES[this.code].title;
  }
}

function usualHint(code: ErrorCode, quota: ExceededQuota | undefined): string | null {
  // The setting of the nodes does not raise the quota of a tenant.
  if (code === 'PAYLOAD_TOO_LARGE' && quota)
    return `Keep big data elsewhere and send a reference, or ask the operator for more: \`punctual tenant limit ID --quota ${quota.name}=N\`.`;
  // What no quota of the tenant allows, no other quota would.
  if (code === 'QUOTA_EXCEEDED' && !quota) return null;
  return ERROR_CODES[code].hint;
}

/** The most mistakes that one answer lists. A check stops at one more than these, which shows that the list is cut. */
export const MOST_ERRORS = 20;
/** Pointers and details quote what was sent, which can be of any length. */
const MOST_POINTER_LENGTH = 512;
const MOST_DETAIL_LENGTH = 1_024;

/** An input with one or more wrong fields. */
export function invalid(errors: readonly FieldError[]): PunctualError {
  const told = errors.slice(0, MOST_ERRORS).map(({ pointer, detail }) => ({
    pointer: shortened(pointer, MOST_POINTER_LENGTH),
    detail: shortened(detail, MOST_DETAIL_LENGTH),
  }));
  const [first] = told;
  const isCut = errors.length > MOST_ERRORS;
  const more = isCut ? ' (and many more)' : told.length > 1 ? ` (and ${told.length - 1} more)` : '';
  const detail = first ? `${first.pointer || 'the body'}: ${first.detail}${more}` : 'not valid';
  if (isCut) told.push({ pointer: '', detail: `has more mistakes; the first ${MOST_ERRORS} are listed` });
  return new PunctualError('INVALID_REQUEST', detail, { errors: told });
}

/** The beginning of a text that may be of any length. */
export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

/** Longer than any name that is allowed: what is cut here is wrong for its length alone. */
const MOST_STEP_LENGTH = 200;

/** One step of a JSON pointer, escaped. */
export function pointerStep(name: string | number): string {
  return `/${shortened(String(name), MOST_STEP_LENGTH).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Marks a branch that the types rule out; reaching it is a bug of ours. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}

/** Whether a value is one of our error codes. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CODES, code);
}

/** Any thrown value as a PunctualError, so that its code and status can be read. */
export function asPunctualError(thrown: unknown): PunctualError {
  if (thrown instanceof PunctualError) return thrown;
  return new PunctualError('INTERNAL', messageOf(thrown), { cause: thrown });
}

/** What a thrown value says about itself, whatever was thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  if (typeof thrown === 'string') return thrown;
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return Object.prototype.toString.call(thrown);
  }
}
