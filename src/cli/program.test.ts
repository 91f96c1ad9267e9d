import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cliUnderTest, type ShellOptions } from '../../test/cli-under-test.js';
import type { Attempt, Job } from '../core/job.js';
import { runCli } from './program.js';

/**
 * How commands map onto the HTTP contract, seen from a server that answers as told. What a real node makes of
 * the requests is the business of the integration tests.
 */

interface Seen {
  readonly route: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}
type Answer = unknown | ((seen: Seen) => unknown);

let server: Server;
let seen: Seen[];
let answers: Record<string, Answer>;

beforeEach(async () => {
  seen = [];
  answers = {};
  server = createServer(async (request, response) => {
    const body = request.method === 'POST' ? await json(request).catch(() => null) : null;
    const call = { route: `${request.method} ${request.url}`, headers: request.headers, body };
    seen.push(call);
    const answer = answers[call.route];
    const value = typeof answer === 'function' ? answer(call) : answer;
    const status = value === undefined ? 404 : ((value as { status?: number }).status ?? 200);
    response.writeHead(status, {
      'content-type': status < 400 ? 'application/json' : 'application/problem+json',
    });
    response.end(JSON.stringify(value ?? { code: 'JOB_NOT_FOUND', detail: 'No such job.', status }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => new Promise<unknown>((resolve) => server.close(resolve)));

const ID = '0198c4f2-0000-7000-8000-000000000001';

const job = (fields: Partial<Job> = {}): Job => ({
  id: ID,
  tenant: 'default',
  task: 'greet',
  target: { type: 'handler', name: 'greet' },
  queue: 'default',
  state: 'pending',
  priority: 5,
  payload: null,
  result: null,
  error: null,
  key: null,
  hold: false,
  runAt: '2026-12-24T18:00:00.000Z',
  startBefore: null,
  createdAt: '2026-12-24T18:00:00.000Z',
  createdBy: 'test',
  scheduledAt: null,
  scheduledBy: null,
  schedule: null,
  workflow: null,
  ...{ step: null, waitsFor: null },
  batch: null,
  attempt: 0,
  failures: 0,
  maxAttempts: 4,
  retry: {},
  timeout: '20m',
  delivery: 'at-least-once',
  concurrencyKey: null,
  requires: {},
  fence: 0,
  worker: null,
  startedAt: null,
  handedOnAt: null,
  cancelRequestedAt: null,
  finishedAt: null,
  lateBy: null,
  progress: null,
  dependsOn: [],
  dependents: [],
  ancestors: [],
  descendants: [],
  attempts: [],
  ...fields,
});

const shellEnvironment = () => ({
  PUNCTUAL_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  PUNCTUAL_API_KEY: 'secret',
});

async function punctual(args: string[], shell: ShellOptions = {}) {
  const run = cliUnderTest({ ...shell, environment: { ...shellEnvironment(), ...shell.environment } });
  const code = await runCli(args, run.cli);
  return { code, stdout: run.stdout(), stderr: run.stderr() };
}

describe('job submit', () => {
  it('prints the id alone, so that a shell can keep it', async () => {
    answers['POST /v1/jobs'] = job();
    const run = await punctual([
      'job',
      'submit',
      '--task',
      'greet',
      '--payload',
      '{"name":"Ada"}',
      '--delay',
      '5s',
    ]);
    expect(run).toEqual({ code: 0, stdout: `${ID}\n`, stderr: '' });
    expect(seen[0]).toMatchObject({
      body: { task: 'greet', payload: { name: 'Ada' }, delay: '5s' },
      headers: { authorization: 'Bearer secret' },
    });
  });

  it('sends the tenant that was asked for', async () => {
    answers['POST /v1/jobs'] = job();
    await punctual(['--tenant', 'acme', 'job', 'submit', '--task', 'greet']);
    expect(seen[0]!.headers['punctual-tenant']).toBe('acme');
  });

  it('waits for the end and exits 3 when it is not a success', async () => {
    answers['POST /v1/jobs'] = job();
    answers[`GET /v1/jobs/${ID}?wait=500ms`] = job({ state: 'failed', error: { message: 'no luck' } });
    const run = await punctual(['job', 'submit', '--task', 'greet', '--wait', '--json']);
    expect(run.code).toBe(3);
    expect(JSON.parse(run.stdout)).toMatchObject({ state: 'failed' });
    expect(JSON.parse(run.stderr.split('\n').at(-2)!)).toMatchObject({ error: { code: 'JOB_UNSUCCESSFUL' } });
  });

  it('exits 124 when the wait is over, with the job as it is then', async () => {
    answers['POST /v1/jobs'] = job();
    answers[`GET /v1/jobs/${ID}?wait=1ms`] = job({ state: 'running', attempt: 1 });
    const run = await punctual(['job', 'submit', '--task', 'greet', '--wait', '1ms']);
    expect(run.code).toBe(124);
    expect(run.stderr).toContain(`has not ended within 1ms`);
  });

  it('submits the lines of a file from stdin', async () => {
    answers['POST /v1/jobs/bulk'] = { ids: ['a', 'b'] };
    const stdin = Readable.from(['{"task":"a"}\n{"task":"b"}\n']);
    const run = await punctual(['job', 'submit', '--file', '-'], { stdin });
    expect(run).toMatchObject({ code: 0, stdout: 'a\nb\n' });
    expect(seen[0]!.body).toEqual({ jobs: [{ task: 'a' }, { task: 'b' }] });
  });

  it('refuses options beside a file that would not count', async () => {
    const run = await punctual(['job', 'submit', '--file', '-', '--max-attempts', '2']);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('--max-attempts cannot be combined with --file');
    expect(seen).toEqual([]);
  });
});

describe('job list', () => {
  it('reads page after page with --all', async () => {
    answers['GET /v1/jobs?limit=1000&state=failed'] = { data: [job()], next: 'cursor' };
    answers['GET /v1/jobs?limit=1000&state=failed&after=cursor'] = {
      data: [job({ id: 'second' })],
      next: null,
    };
    const run = await punctual(['job', 'list', '--state', 'failed', '--all', '--json']);
    expect(JSON.parse(run.stdout).data.map((each: Job) => each.id)).toEqual([ID, 'second']);
  });

  it('goes on until it has as many as were asked for, because a page may be short', async () => {
    answers['GET /v1/jobs?limit=3&include=payload'] = { data: [job()], next: 'a' };
    answers['GET /v1/jobs?limit=2&include=payload&after=a'] = {
      data: [job({ id: 'second' }), job({ id: 'third' })],
      next: 'b',
    };
    const run = await punctual(['job', 'list', '--limit', '3', '--include', 'payload', '--json']);
    expect(JSON.parse(run.stdout)).toMatchObject({
      data: [{ id: ID }, { id: 'second' }, { id: 'third' }],
      next: 'b',
    });
  });

  it('takes every filter of the API, several states and fields of the payload among them', async () => {
    const query = new URLSearchParams({
      limit: '50',
      state: 'failed,cancelled',
      keyPrefix: 'order-',
      minAttempts: '2',
      'payload.customer': '7',
      'payload.zip': '"7"',
    });
    answers[`GET /v1/jobs?${query}`] = { data: [job()], next: null };
    const filters = ['--state', 'failed,cancelled', '--key-prefix', 'order-', '--min-attempts', '2'];
    const fields = ['--payload', 'customer=7', '--payload', 'zip="7"'];
    const run = await punctual(['job', 'list', ...filters, ...fields, '--json']);
    expect(JSON.parse(run.stdout).data).toHaveLength(1);
  });

  it.each([
    [['--state', 'failed,lost'], 'Allowed choices'],
    [['--payload', 'customer'], 'path=value'],
    [['--payload', 'a=1', '--payload', 'a=2'], 'twice'],
    [['--payload', 'a=12345678901234567890'], 'digits'],
    [['--min-attempts', '-1'], 'whole number'],
  ])('%j is not used correctly', async (args, words) => {
    const run = await punctual(['job', 'list', ...args]);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain(words);
  });

  it('says on stderr that there are more, and keeps stdout for the table', async () => {
    answers['GET /v1/jobs?limit=1'] = { data: [job()], next: 'cursor' };
    const run = await punctual(['job', 'list', '--limit', '1']);
    expect(run.stdout.split('\n')).toHaveLength(3);
    expect(run.stderr).toContain('--all');
  });
});

describe('a list on a terminal of 80 columns', () => {
  const jobs = ['a1', 'a2', 'b1'].map((end) =>
    job({ id: `0198c4f2-0000-7000-8000-0000000000${end}`, task: 'a-task', key: `the-key-of-the-job-${end}` }),
  );
  const terminal = { isTTY: true, columns: 80, environment: { NO_COLOR: '1' } };
  const lines = async (...args: string[]) => {
    answers['GET /v1/jobs?limit=50'] = { data: jobs, next: null };
    return (await punctual(['job', 'list', ...args], terminal)).stdout.trimEnd().split('\n');
  };

  it('does not wrap, and its ids are beginnings that differ', async () => {
    const [heading, ...rows] = await lines();
    for (const line of [heading!, ...rows]) expect(line.length).toBeLessThanOrEqual(80);
    const ids = rows.map((row) => row.split(' ')[0]!);
    expect(new Set(ids).size).toBe(3);
    for (const [at, id] of ids.entries()) expect(jobs[at]!.id.startsWith(id)).toBe(true);
    expect(heading).not.toContain('PRIO');
  });

  it('has the errors of some of its jobs where there is room for them', async () => {
    const failed = job({ state: 'failed', attempt: 1, failures: 1, error: { message: 'boom', code: 'E1' } });
    answers['GET /v1/jobs?limit=50'] = { data: [failed, job()], next: null };
    const headings = async (columns: number) =>
      (await punctual(['job', 'list'], { ...terminal, columns })).stdout.split('\n')[0];
    expect(await headings(80)).not.toContain('ERROR');
    expect(await headings(80)).toContain('ATTEMPT');
    expect(await headings(140)).toMatch(/PRIO.*KEY +ERROR$/);
    expect((await punctual(['job', 'list'])).stdout).toMatch(/- +E1: boom\n.* -\n$/);
    answers['GET /v1/jobs?limit=50'] = { data: [job()], next: null };
    expect(await headings(140)).not.toContain('ERROR');
  });

  it('is whole with --wide', async () => {
    const [heading, ...rows] = await lines('--wide');
    expect(heading).toMatch(/PRIO.*KEY$/);
    for (const [at, row] of rows.entries()) expect(row).toContain(jobs[at]!.id);
  });
});

describe('job watch', () => {
  it('prints every change once and exits 0 at a success', async () => {
    const states = [
      job({ state: 'running', attempt: 1 }),
      job({ state: 'running', attempt: 1 }),
      job({ state: 'running', attempt: 1, progress: { progress: 0.5, message: 'half', at: '' } }),
      job({ state: 'succeeded', attempt: 1 }),
    ];
    answers[`GET /v1/jobs/${ID}`] = job();
    answers[`GET /v1/jobs/${ID}?wait=500ms`] = () => states.shift();
    const run = await punctual(['job', 'watch', ID]);
    const lines = run.stdout.trim().split('\n');
    expect(lines.map((line) => line.replace(/^\S+ +/, ''))).toEqual([
      'pending',
      'running, attempt 1',
      'running, attempt 1, 50 %, half',
      'succeeded',
    ]);
    expect(run.code).toBe(0);
  });
});

describe('job cancel', () => {
  const [early, late] = ['2026-01-01T18:00:00.000Z', '2026-01-01T18:00:30.000Z'];
  const cancel = async (before: string | null) => {
    answers[`GET /v1/jobs/${ID}`] = job({ state: 'running', attempt: 1, cancelRequestedAt: before });
    const cancelRequestedAt = before ?? late;
    answers[`POST /v1/jobs/${ID}/cancel`] = job({ state: 'running', attempt: 1, cancelRequestedAt });
    return (await punctual(['job', 'cancel', ID])).stdout;
  };

  it('says whether the worker is told to stop now or was told before', async () => {
    expect(await cancel(null)).toBe(`${ID}  running, attempt 1; told to stop\n`);
    expect(await cancel(early)).toMatch(/; was told to stop already, .*, and has not confirmed yet\n$/);
  });

  it('needs no right to read', async () => {
    answers[`GET /v1/jobs/${ID}`] = { status: 403, code: 'FORBIDDEN', detail: 'No.' };
    answers[`POST /v1/jobs/${ID}/cancel`] = job({ state: 'cancelled' });
    expect(await punctual(['job', 'cancel', ID])).toMatchObject({ code: 0, stdout: `${ID}  cancelled\n` });
  });
});

describe('job submit with a task that nobody knows', () => {
  const worker = (state: string, ...tasks: string[]) => ({ state, tasks });
  const submit = async (shell: ShellOptions, ...args: string[]) => {
    answers['POST /v1/jobs'] = job({ task: 'gret' });
    return punctual(['job', 'submit', '--task', 'gret', ...args], {
      environment: { NO_COLOR: '1' },
      ...shell,
    });
  };
  const known = (workers: object[], tasks: string[], next: string | null = null) => {
    answers['GET /v1/workers?limit=200'] = { data: workers, next };
    answers['GET /v1/tasks?limit=1000'] = { data: tasks.map((name) => ({ name })), next: null };
  };
  const terminal = { isTTY: true };

  it('stores the job, and tells a person which task was probably meant', async () => {
    known([worker('alive', 'other', 'greet')], []);
    expect(await submit(terminal)).toEqual({
      code: 0,
      stdout: `${ID}\n`,
      stderr: 'No live worker has the task gret, and it is not defined. Did you mean greet?\n',
    });
    known([worker('dead', 'gret')], ['greet']);
    expect((await submit(terminal)).stderr).toContain('Did you mean greet?');
  });

  it('says nothing if the task is served or defined, nothing is like it, or not all is known', async () => {
    known([worker('alive', 'gret', 'greet')], []);
    expect((await submit(terminal)).stderr).toBe('');
    known([worker('alive', 'greet')], ['gret']);
    expect((await submit(terminal)).stderr).toBe('');
    known([worker('alive', 'something')], ['else']);
    expect((await submit(terminal)).stderr).toBe('');
    known([worker('alive', 'greet')], [], 'more');
    expect((await submit(terminal)).stderr).toBe('');
    answers['GET /v1/workers?limit=200'] = { status: 403, code: 'FORBIDDEN', detail: 'No.' };
    expect(await submit(terminal)).toMatchObject({ code: 0, stderr: '' });
  });

  it('asks nothing more for programs', async () => {
    known([worker('alive', 'greet')], []);
    await submit({ isTTY: false });
    await submit(terminal, '--json');
    expect(seen.map(({ route }) => route)).toEqual(['POST /v1/jobs', 'POST /v1/jobs']);
  });
});

describe('job get', () => {
  it('finds a job by its key', async () => {
    answers['GET /v1/jobs?key=order-42&limit=1'] = { data: [job()], next: null };
    answers[`GET /v1/jobs/${ID}`] = job({ key: 'order-42' });
    const run = await punctual(['job', 'get', '--key', 'order-42']);
    expect(run.stdout).toMatch(/^key +order-42$/m);
  });

  it('shows the stack of an error below it, and nothing of it that moves the cursor', async () => {
    const error = { code: 'E1', message: 'boom', stack: 'Error: boom\n    at handler (t.mjs:1:2)\u001b[2J' };
    answers[`GET /v1/jobs/${ID}`] = job({ state: 'failed', attempt: 1, failures: 1, error });
    const run = await punctual(['job', 'get', ID]);
    expect(run.stdout).toMatch(/^error +boom \(E1\)$/m);
    expect(run.stdout).toContain('\n    Error: boom\n    at handler (t.mjs:1:2)\ufffd[2J\n');
  });

  it('says what the loss of an attempt means for a job that was cancelled', async () => {
    const error = { code: 'LOST', message: 'The attempt was lost: its worker died.' };
    answers[`GET /v1/jobs/${ID}`] = job({ state: 'cancelled', attempt: 1, error });
    const lost =
      'The attempt was lost: its worker died. It had been told to stop, so the job is cancelled; whether';
    expect((await punctual(['job', 'get', ID])).stdout).toContain(lost);
    answers[`GET /v1/jobs/${ID}`] = job({ state: 'failed', attempt: 1, error });
    expect((await punctual(['job', 'get', ID])).stdout).toContain('its worker died. (LOST)');
  });

  it('counts the attempts since the job was run again, and says whose start was late', async () => {
    const attempt = (fence: number, outcome: Attempt['outcome']) =>
      ({ attempt: fence, fence, outcome, worker: 'w', claimedAt: '', error: null }) as Attempt;
    const late = { lateBy: 3_900, maxAttempts: 3 };
    const attempts = [1, 2, 3].map((fence) => attempt(fence, 'failed'));
    const again = job({ ...late, attempt: 4, attempts: [...attempts, attempt(4, null)], state: 'running' });
    answers[`GET /v1/jobs/${ID}`] = again;
    answers['GET /v1/jobs?limit=50'] = { data: [again], next: null };
    const shown = await punctual(['job', 'get', ID]);
    expect(shown.stdout).toMatch(/^attempt +4, of which 1 of 3 count$/m);
    expect(shown.stdout).toMatch(/^late by +3\.9s \(the first attempt\)$/m);
    expect((await punctual(['job', 'list'])).stdout).toMatch(/ 1\/3 /);
    for (const [fields, expected] of [
      [{ state: 'pending', attempt: 1, failures: 1, attempts: [attempt(1, 'failed')] }, '1 of 3'],
      [{ state: 'succeeded', attempt: 2, failures: 1, attempts: [attempt(2, 'succeeded')] }, '2 of 3'],
      [{ state: 'failed', attempt: 3, failures: 3, attempts: [attempt(3, 'timed-out')] }, '3 of 3'],
      [
        { state: 'running', attempt: 2, failures: 0, attempts: [attempt(2, null)] },
        '2, of which 1 of 3 count',
      ],
    ] as [Partial<Job>, string][]) {
      answers[`GET /v1/jobs/${ID}`] = job({ maxAttempts: 3, ...fields });
      expect((await punctual(['job', 'get', ID])).stdout).toMatch(new RegExp(`^attempt +${expected}$`, 'm'));
    }
  });

  it('shows the workers of attempts whole or not at all: those that have left cannot be found by a beginning', async () => {
    const worker = '0198aaaa-0000-7000-8000-000000000002';
    const claimedAt = '2026-12-24T18:00:00.000Z';
    const error = { message: 'no luck '.repeat(20) };
    const attempt = { attempt: 1, fence: 1, outcome: 'failed', worker, claimedAt, error } as Attempt;
    answers[`GET /v1/jobs/${ID}`] = job({ state: 'failed', attempt: 1, failures: 1, attempts: [attempt] });
    const shown = async (columns: number) =>
      (await punctual(['job', 'get', ID], { isTTY: true, columns })).stdout.match(/0198aaaa[0-9a-f-]*/g);
    expect(await shown(80)).toBeNull();
    expect(await shown(140)).toEqual([worker]);
  });

  it('exits 5 for a job that does not exist and says what to do', async () => {
    const run = await punctual(['job', 'get', ID]);
    expect(run.code).toBe(5);
    expect(run.stdout).toBe('');
    expect(run.stderr).toContain('punctual job list');
  });
});

describe('job list', () => {
  it('shows the errors of failed jobs, shortened', async () => {
    const failed = (error: Job['error']) => job({ state: 'failed', attempt: 1, failures: 1, error });
    const data = [
      failed({ code: 'E1', message: 'boom' }),
      failed({ message: 'long '.repeat(50) }),
      failed(null),
    ];
    answers['GET /v1/jobs?limit=50&state=failed'] = { data, next: null };
    const [heading, coded, long, none] = (await punctual(['job', 'list', '--state', 'failed'])).stdout.split(
      '\n',
    );
    expect(heading).toMatch(/ERROR$/);
    expect(coded).toMatch(/ E1: boom$/);
    expect(long).toMatch(/ long long .{60,80}…$/);
    expect(none).toMatch(/-$/);
  });
});

describe('a change of many jobs', () => {
  const part = { matched: 3, changed: 3, dryRun: false, more: false, next: null, refused: [] };

  it('changes what it has counted, however long that takes', async () => {
    const run = cliUnderTest({ environment: shellEnvironment() });
    let now = Date.parse('2026-07-01T12:00:00Z');
    answers['POST /v1/jobs/delete'] = () => {
      now += 3_600_000;
      return part;
    };
    const args = ['job', 'delete', '--since', '2d', '--until', '1h', '--yes'];
    expect(await runCli(args, { ...run.cli, now: () => now })).toBe(0);
    const filter = { since: '2026-06-29T12:00:00.000Z', until: '2026-07-01T11:00:00.000Z' };
    expect(seen.map(({ body }) => body)).toEqual([{ filter, dryRun: true }, { filter }]);
  });

  it('ends after the part that is under way when it is interrupted, and says how many were changed', async () => {
    const stop = new AbortController();
    answers['POST /v1/jobs/cancel'] = ({ body }: Seen) => {
      if ((body as { dryRun?: boolean }).dryRun) return { ...part, matched: 9, changed: 0 };
      stop.abort();
      return { ...part, more: true, next: ID };
    };
    const run = await punctual(['job', 'cancel', '--all', '--yes'], { interrupted: stop.signal });
    expect(run).toMatchObject({ code: 130, stdout: '' });
    expect(run.stderr).toMatch(/^3 jobs cancelled before this ended early\.$/m);
    expect(seen).toHaveLength(2);
  });
});

describe('job logs', () => {
  it('follows a log without printing a line twice', async () => {
    const line = (message: string) => ({ at: '2026-12-24T18:00:00.000Z', level: 'info', message, fence: 1 });
    const logs = [[line('one')], [line('one'), line('two')]];
    answers[`GET /v1/jobs/${ID}/logs?limit=1000`] = () => ({ data: logs.shift(), next: null });
    answers[`GET /v1/jobs/${ID}?wait=1s`] = job({ state: 'succeeded' });
    const run = await punctual(['job', 'logs', ID, '--follow', '--json']);
    expect(
      run.stdout
        .trim()
        .split('\n')
        .map((text) => JSON.parse(text).message),
    ).toEqual(['one', 'two']);
  });
});

describe('errors', () => {
  it('exits 7 when nobody answers', async () => {
    const run = await punctual(['queue', 'list'], { environment: { PUNCTUAL_URL: 'http://127.0.0.1:1' } });
    expect(run.code).toBe(7);
    expect(run.stderr).toContain('UNREACHABLE');
  });

  it('exits 4 when the key is not accepted', async () => {
    answers['GET /v1/workers?limit=1000'] = { status: 401, code: 'UNAUTHENTICATED', detail: 'No such key.' };
    expect((await punctual(['worker', 'list'])).code).toBe(4);
  });

  it('exits 6 on a conflict', async () => {
    answers['POST /v1/cluster/pause'] = { status: 409, code: 'ALREADY_PAUSED', detail: 'It is paused.' };
    expect((await punctual(['cluster', 'pause'])).code).toBe(6);
  });

  it('exits 130 when interrupted while it waits', async () => {
    const interruption = new AbortController();
    answers['POST /v1/jobs'] = job();
    answers[`GET /v1/jobs/${ID}?wait=500ms`] = () => {
      interruption.abort();
      return job({ state: 'running', attempt: 1 });
    };
    const run = await punctual(['job', 'submit', '--task', 'greet', '--wait'], {
      interrupted: interruption.signal,
    });
    expect(run.code).toBe(130);
  });

  it.each([
    ['an unknown command', ['jbo'], 'did you mean job?'],
    ['an unknown verb', ['job', 'lst'], 'did you mean list?'],
    ['an unknown option', ['job', 'list', '--limti', '3'], 'did you mean --limit?'],
    ['a wrong value', ['job', 'submit', '--priority', '10'], 'from 1 to 9'],
    ['a missing argument', ['job', 'get'], 'Give the id'],
    ['an option without effect', ['up', '--tenant', 'acme'], '--tenant has no meaning'],
    ['no node at all', ['up', '--nodes', '0'], 'from 1 to 100'],
    ['a worker without a module', ['worker', 'run', '--queues', '*'], 'name a module with --module'],
    [
      'a schedule without a time',
      ['schedule', 'create', 'x', '--task', 't'],
      'one of --cron, --every and --at',
    ],
    ['two times', ['schedule', 'preview', '--every', '1h', '--cron', '@daily'], 'give exactly one of --cron'],
    ['another database', ['up', '--database-url', 'mysql://a'], '--database-url: expected the address of a'],
    ['a state that is none', ['job', 'list', '--state', 'done'], 'Allowed choices are blocked, pending'],
  ])('exits 2 on %s', async (_what, args, part) => {
    const run = await punctual(args);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain(part);
  });

  it.each([
    ['up', ['up', '--module', 'missing.mjs']],
    ['server', ['server']],
    ['worker run', ['worker', 'run', '--module', 'missing.mjs']],
  ])('warns of a misspelt variable of the environment: %s', async (_, args) => {
    const environment = { PUNCTUAL_LEASE_TLL: '7s', PUNCTUAL_URL: 'http://127.0.0.1:1' };
    const { stderr } = await punctual(args, { environment });
    expect(stderr.match(/PUNCTUAL_LEASE_TLL \(did you mean PUNCTUAL_LEASE_TTL\?\)/g)).toHaveLength(1);
  });

  it('prints help on stdout and exits 0', async () => {
    const run = await punctual(['job', 'submit', '--help']);
    expect(run.code).toBe(0);
    expect(run.stdout).toContain('--concurrency-key');
    expect(run.stdout).toContain('Global Options:');
  });

  it('prints the help of a command that is named after `help`', async () => {
    const run = await punctual(['help', 'doctor']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toContain('--database-url');
  });
});

describe('--print-config', () => {
  it('says where each setting came from and hides secrets', async () => {
    const environment = {
      PUNCTUAL_LEASE_TTL: '7s',
      PUNCTUAL_DATABASE_URL: 'postgres://u:word@h/d',
      PUNCTUAL_SECRET_KEY: 'ab'.repeat(32),
    };
    const run = await punctual(['server', '--port', '9000', '--print-config', '--json'], { environment });
    const settings = new Map(
      JSON.parse(run.stdout).data.map((each: { name: string }) => [each.name, each] as const),
    );
    expect(settings.get('port')).toMatchObject({ value: 9000, source: 'flag' });
    expect(settings.get('leaseTtl')).toMatchObject({ value: '7s', source: 'PUNCTUAL_LEASE_TTL' });
    expect(settings.get('host')).toMatchObject({ source: 'default' });
    expect(settings.get('secretKey')).toMatchObject({ value: '(hidden)', source: 'PUNCTUAL_SECRET_KEY' });
    expect(run.stdout).not.toContain('u:word');
    expect(run.stdout).not.toContain('abab');
  });
});
