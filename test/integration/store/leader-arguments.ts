import { auditEntry } from '../../../src/core/audit.js';
import { uuidv7 } from '../../../src/core/uuid.js';
import { additionValues } from '../../../src/store/add-steps.js';
import { addEntry } from '../../../src/store/audit.js';
import { entryValues } from '../../../src/store/audit-entry.js';
import { ENDING_COLUMNS } from '../../../src/store/finish-jobs.js';
import { NEW_JOB_COLUMNS } from '../../../src/store/job-row.js';
import { leaderStatements } from '../../../src/store/leader-statement.js';
import { namesOfOne, namesTaken } from '../../../src/store/names.js';
import { PARSED_COLUMNS } from '../../../src/store/place-jobs.js';
import { MEMBER_COLUMNS } from '../../../src/store/submit-batch.js';
import { NO_CHANGE, portionValues } from '../../../src/store/workflow-portions.js';
import type { Population } from './populated-shard.js';
import { SUCCEEDED, TENANT, type TestShard, WORKER } from './test-shard.js';

/**
 * For every leader statement the values after the term with which it changes a populated shard. A statement
 * without an entry here fails the test of the fences, so that none can be added without proof of its fence.
 */
export async function leaderArguments(
  shard: TestShard,
  jobs: Population,
): Promise<Readonly<Record<string, readonly unknown[]>>> {
  const { now, batches } = jobs;
  const { row } = await shard.newJob();
  const parsed = { row: { ...row, id: jobs.unread }, admitAt: now, held: true };
  const attempt = JSON.stringify({ fence: 1 });
  const author = { keyId: null, keyName: 'test', address: null, requestId: null };
  const subject = { kind: 'jobs', name: 'ids', tenant: TENANT } as const;
  const begun = auditEntry(author, now, 'jobs.cancel', subject, { outcome: 'unknown' });
  await addEntry(shard.pool, begun, 1);
  const entry = entryValues({ ...begun, id: uuidv7(now) });
  const submitted = [
    ...[WORKER, now, [1]],
    ...namesOfOne(shard.made().names[0]!),
    ...NEW_JOB_COLUMNS.valuesOf(row),
  ];
  const values: Record<string, readonly unknown[]> = {
    'begin-audit-entry': entry,
    'end-audit-entry': [begun.id, 'done', '{}'],
    'submit-and-claim': submitted,
    'submit-and-claim-counted': submitted,
    'claim-jobs': [now, [], [], [], [], [jobs.waiting], 1, null, WORKER, null],
    'claim-known-jobs': [now, [], [], [], [], [jobs.waiting], 1, null, WORKER, null, []],
    'finish-jobs': [now, ...ENDING_COLUMNS.parameters([{ ...SUCCEEDED, id: jobs.running }])],
    'retry-jobs': [now, [jobs.running], ...Array(5).fill(null), 1, 'failed', now, 0, attempt],
    'release-claims': [[jobs.running], [1], [attempt]],
    'hand-on-claims': [now, [jobs.running], [1], [now]],
    'cancel-claims': [[jobs.running], [1], now],
    'save-progress': [[jobs.running], [1], ['{"progress":1}']],
    'end-waiting-live': [[jobs.waiting], ['cancelled'], [null], now],
    'end-waiting-later': [[jobs.held], ['cancelled'], [null], now],
    'postpone-jobs': [[jobs.waiting], [now + 1], [null], [null], [now], [true]],
    'change-later': [[jobs.held], [now + 1], [null], [null], [now], [false]],
    'change-live': [jobs.waiting, now + 1, null, null],
    'admit-jobs': [[jobs.held], [null], [null], [null]],
    'parse-later': PARSED_COLUMNS.parameters([parsed]),
    'apply-portion': portionValues(
      {
        ...{ counted: [jobs.endedStep], partly: null, ended: [] },
        steps: [{ ...NO_CHANGE, id: jobs.blocked, parentsLeft: 0, released: true }],
        released: [{ id: jobs.blocked, runAt: now, payload: null, parked: false }],
        workflows: [{ id: jobs.workflow, stepsEnded: 1, stepsFailed: 0, stopping: null }],
      },
      now,
      900_000,
    ),
    'cancel-workflow': [TENANT, jobs.workflow],
    'mark-swept': [jobs.workflow, null, 1, false],
    'hold-workflow': [TENANT, jobs.workflow, true, false],
    'park-steps': [[jobs.waiting]],
    'unpark-steps': [[jobs.blocked], now, 600_000, now + 900_000],
    'store-batch': [
      ...[now, ...namesTaken(shard.made().names), uuidv7(now), TENANT, 'continue'],
      ...[[row.id], '[]', now, null, 'test', null, null, ...MEMBER_COLUMNS.parameters([row])],
    ],
    'start-batch': [now, batches.waiting.id, TENANT, [1], 0, batches.waiting.members, 1, null, WORKER, null],
    'void-batch': [batches.running.id, batches.running.members, 1, null, null, null, null, null],
    'cancel-batch': [batches.running.id, now],
    'end-batch': [batches.over.id, 'failed', now, null],
    'retry-batch': [TENANT, batches.failed.id, batches.failed.members, 0, now],
    'reopen-steps': [
      ...[jobs.workflow, TENANT, [], [], [], now, [jobs.blocked], [1], [0], [0], [false], [null], 2, 0],
      ...[[], [1], false, [false], false],
    ],
    'add-steps': await additionValues(
      {
        ...{ workflow: jobs.workflow, tenant: TENANT, job: jobs.running, fence: 1, joiners: [jobs.blocked] },
        ...{ queues: [], tasks: [], edges: { parents: [], children: [] }, edgesInAll: 1, lastPlace: 9 },
        steps: [
          {
            ...{
              row,
              name: 'new',
              place: 9,
              runIf: 'all-succeeded',
              parents: 0,
              parentsLeft: 0,
              ok: 0,
              bad: 0,
            },
            ...{
              released: true,
              delayMs: 0,
              wait: null,
              inner: null,
              innerSteps: 0,
              wakeAt: null,
              refers: false,
              held: false,
            },
            ...{ admitAt: null, blocked: false },
          },
        ],
      },
      shard.made().names,
      now,
    ),
    'tie-inner-workflow': [jobs.blocked, jobs.workflow, 1],
    'share-reach': [[jobs.workflow], ['mail'], ['send']],
    'forget-workflows': [now + 60_000, 10, 100],
    'free-artifact-jobs': [[jobs.awaiting], now, 600_000],
    'forget-artifact': [jobs.unused, 'pending', 0, 1],
    'forget-definition-versions': ['', '', 0, now + 60_000],
    'keep-jobs': [[jobs.failed], [TENANT], [jobs.failedAt], 0, Number.MAX_SAFE_INTEGER],
    'add-workflow-event': [jobs.workflow, 'paid', 'null', now],
    'forget-cancel-requests': [[1]],
    'replace-later': PARSED_COLUMNS.parameters([{ ...parsed, row: { ...row, id: jobs.held } }]),
    'replace-live': PARSED_COLUMNS.parameters([{ ...parsed, row: { ...row, id: jobs.waiting } }]),
    'redrive-jobs': [TENANT, [jobs.failed], now],
    'delete-ended-jobs': [TENANT, [jobs.failed], 0],
    'keep-names': [[jobs.queue], [jobs.needs], now + 1, now + 1],
    'remove-queues': [0, now + 1, 100],
    'remove-needs': [0, now + 1, 100],
    'pause-cluster': [true],
    'publish-limits': [1_000, 1_000],
    'pause-queue': [TENANT, 'default', true],
    'limit-origin': [TENANT, 'https://new.example.com', 5, 10, 1_000, 4, now],
    'unlimit-origin': [TENANT, 'https://example.com'],
    'limit-queue': [TENANT, 'default', now, 2, 5, 3, 10, 1_000, 4],
    'save-buckets': [[jobs.queue], [now], [3], ['limited'], [now], [0]],
    'add-tenant': ['another', 'Another', now, 1, ...Array(10).fill(null)],
    'change-tenant': ['limited', 'Limited', 2, 10, 1_000, 1, ...Array(7).fill(5)],
    'create-schedule': [uuidv7(now), TENANT, 'another', '{}', false, now, null, 'test', 'program'],
    'judge-occurrences': [now, 100],
    'forget-occurrences': [now, 100],
    'forget-schedules': [now, 100],
    'fold-tallies': [now + 60_000, 100],
    'forget-old': [now + 60_000, now + 60_000, 100, 100, now + 60_000, 100],
    'add-queue-minute': [now, now - 86_400_000, [1], [1], [1], [1]],
    'add-stale': [[TENANT], [1], [1], now],
    'add-worker': [uuidv7(now), TENANT, 'another', '{}', now, false],
    'see-workers': [[WORKER], [now + 1], ['draining']],
    'forget-workers': [[WORKER]],
    'forget-dead-workers': [Number.MAX_SAFE_INTEGER, 0, 10],
  };
  const audited = leaderStatements().flatMap(({ name }) => {
    const [, plain] = /^(.+)-audited$/.exec(name) ?? [];
    return plain === undefined ? [] : [[name, [...(values[plain] ?? []), ...entry]] as const];
  });
  return { ...values, ...Object.fromEntries(audited) };
}
