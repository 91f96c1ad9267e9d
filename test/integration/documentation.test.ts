import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../database.js';
import { DocumentationReader } from '../documentation-reader.js';
import { nodeForTest } from '../node-for-tests.js';
import { readSnippets, type Snippet } from '../snippets.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLES = `${ROOT}/examples`;
const PAGES = [
  'README.md',
  ...readdirSync(`${ROOT}/docs`)
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
].filter((page) => readSnippets(page).some(isPlayable));
const run = promisify(execFile);

function isPlayable({ language, text }: Snippet): boolean {
  return language === 'js' || (language === 'sh' && !seeksProcesses(text));
}

/** Looks for processes by name, and would find those of other tests and of whoever works on this machine. */
function seeksProcesses(text: string): boolean {
  return text.includes('pgrep');
}

/** Programs that the pages take for granted and that a machine may lack all the same. */
const MISSING_TOOLS = ['bash', 'curl', 'jq', 'sed', 'seq', 'wc'].filter((tool) => !isInstalled(tool));

function isInstalled(tool: string): boolean {
  return process.env.PATH!.split(delimiter).some((folder) => existsSync(join(folder, tool)));
}

describe('the page', () => {
  it.skipIf(MISSING_TOOLS.length > 0).each(PAGES)('%s works as it is written', async (page) => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const reader = await DocumentationReader.open(database);
    onTestFinished(() => reader.close(), 30_000);
    const served = [
      'docs/http.md',
      'docs/events.md',
      'docs/batches.md',
      'docs/workflows.md',
      'docs/artifacts.md',
    ];
    if (served.includes(page)) await reader.play({ language: 'sh', text: SERVED });
    const printed: string[] = [];
    for (const snippet of readSnippets(page).filter(isPlayable)) printed.push(await reader.play(snippet));
    for (const word of EXPECTED[page] ?? []) expect(printed.join('\n')).toContain(word);
  });
});

/** What a page about a running node takes for granted. */
const SERVED = `
  export PUNCTUAL_DATABASE_URL=postgres://user:password@host/database
  bin/punctual key create --operator
  bin/punctual server --port 8080`;

/** Words that somebody who follows a page gets to see. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'README.md': ['Hello Ada', 'due-time', "{ text: 'Hello Ada' }"],
  'docs/access.md': ['pk_tn_', 'shop', 'mailer', 'queues mail'],
  'docs/get-started.md': ['Hello Ada', 'due-time', 'cancelled', '1000', 'pk_op_', 'worker-1'],
  'docs/artifacts.md': ['"state":"ready"', 'notes', 'hello'],
  'docs/http.md': ['"key":"greet-ada"'],
  'docs/workflows.md': ['"name":"publish"', '"state":"blocked"'],
  'docs/batches.md': ['"onFailure":"cancel-rest"', '"state":"blocked"'],
  'docs/events.md': ['event: hello', 'read the state from here on'],
  'docs/http-targets.md': ['POST /hook true', 'body: { seen: true }', 'HTTP_STATUS_401', 'nightly'],
  'docs/idempotency.md': ['idempotency-replayed: true'],
  'docs/keys.md': ['greet-ada', 'repeated: true', 'replaced: true', 'Hello Ada'],
  'docs/limits.md': ['100/1s', 'mail: at most 5 at a time', 'acme', 'opensIn'],
  'docs/operations.md': ['pk_op_', 'dispatch is on'],
  'docs/sdk.md': [
    "backoff: { base: '2s', factor: 2, max: '10m', jitter: 0.1 }",
    'span pay attempt 1: ended',
    'BEGIN, INSERT INTO payments, COMMIT',
    'BEGIN, INSERT INTO payments, ROLLBACK',
    'report pay: a negative amount',
    "{ text: 'Hello Tess', fence: 2 }",
    'greeting Tess, attempt 2',
  ],
  'docs/secrets.md': ['https://api.example.com', 'whsec_', 'stripe  deleted', '50 36'],
  'docs/schedules.md': [
    'every 1s',
    '30 2 * * * (Europe/Berlin)',
    'Sun 2027-03-28 03:30:00',
    "{ text: 'Hello Eve' }",
  ],
  'docs/tasks.md': ['"timeout":"2m"', 'payload: name', 'Hello Ada', '6 {', '/payload/name: is required'],
  'docs/worker-protocol.md': ['HELLO', 'left'],
};

it('the error in the page about HTTP is what a node answers', async () => {
  const node = await nodeForTest();
  const shown = readSnippets('docs/http.md').find(({ language }) => language === 'json')!;
  const { body } = await node.ask('POST', '/v1/jobs', { body: { task: 'a', priority: 0 } });
  expect({ ...body, requestId: '' }).toEqual({ ...JSON.parse(shown.text), requestId: '' });
});

/** What each example prints, as far as it is the same every time. */
const EXAMPLE_OUTPUT: Readonly<Record<string, readonly RegExp[]>> = {
  'batch.mjs': [/^rank 0 is done\nrank 1 is done\nrank 2 is done$/m],
  'bulk.mjs': [/^500 halves, 500 failures, the first: 1 is odd$/m],
  'hello.mjs': [/^submitted [0-9a-f-]{36}$/m, /^Hello Ada$/m],
  'schedule.mjs': [/^tick 1 for Ada$/m, /^tick 2 for Ada$/m, /^on record: ran, ran$/m],
  'schema.mjs': [/^Ada pays by /m, /^refused: \/payload\/customer /m, /^refused: \/payload\/due /m],
  'tasks.mjs': [],
  'workflow.mjs': [/^Grace published <h1>HelloAda<\/h1>$/m, /^page-publish after \[.*\]: succeeded$/m],
};

/** What goes wrong in the examples on purpose. */
const EXAMPLE_WARNING = /^(an attempt of half failed|more attempts failed, which are not listed)$/;

it.each(readdirSync(EXAMPLES))('the example %s runs', async (example) => {
  const node = await nodeForTest();
  const { stdout, stderr } = await run(process.execPath, [`${EXAMPLES}/${example}`], {
    env: { PATH: process.env.PATH, PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey },
  });
  // Workers log to standard error; in an example nothing goes wrong but what it shows.
  const logged = stderr
    .split('\n')
    // Node itself may write there, too.
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
  expect(logged.filter(({ level, msg }) => level > 30 && !EXAMPLE_WARNING.test(msg))).toEqual([]);
  expect(EXAMPLE_OUTPUT).toHaveProperty([example]);
  for (const pattern of EXAMPLE_OUTPUT[example]!) expect(stdout).toMatch(pattern);
});
