import { expect, it } from 'vitest';
import { AUDIT_ACTIONS } from '../core/audit.js';
import { ROUTES } from './routes.js';

/** Submissions are not recorded: the job, workflow or batch itself says who made it and when. */
const SUBMISSIONS = ['submitJob', 'submitJobs', 'submitWorkflow', 'rerunWorkflow', 'submitBatch'];
/** The protocol of workers and of nodes. */
const PROTOCOL = ['work', 'attempt', 'node'];

const changing = ROUTES.filter(
  ({ id, method, scope }) => method !== 'GET' && !SUBMISSIONS.includes(id) && !PROTOCOL.includes(scope),
);

it.each(changing.map((route) => [route.id, route] as const))(
  '%s says how the audit records it, or why not',
  (_, route) => {
    const { audit } = route;
    if (audit !== undefined && typeof audit === 'object' && 'none' in audit) {
      expect(audit.none).toMatch(/\.$/);
      return;
    }
    const actions = [audit ?? []].flat();
    expect(actions.length).toBeGreaterThan(0);
    for (const action of actions) expect(AUDIT_ACTIONS).toContain(action);
  },
);

it('what only reads, submits or belongs to a protocol is not recorded', () => {
  const others = ROUTES.filter((route) => !changing.includes(route));
  expect(others.filter(({ audit }) => audit !== undefined).map(({ id }) => id)).toEqual([]);
});

it('every action is recorded by a route, except for tasks, which have none yet', () => {
  const recorded = new Set(ROUTES.flatMap(({ audit }) => (Array.isArray(audit) ? audit : [audit])));
  const missing = AUDIT_ACTIONS.filter((action) => !recorded.has(action));
  expect(missing.filter((action) => !action.startsWith('task.'))).toEqual([]);
});
