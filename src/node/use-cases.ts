import type { NodeContext } from '../api/context.js';
import { EndLines } from '../api/end-lines.js';
import { Attempts } from '../api/use-cases/attempts.js';
import { Authentication } from '../api/use-cases/authentication.js';
import { Cluster } from '../api/use-cases/cluster.js';
import { Jobs } from '../api/use-cases/jobs.js';
import { Queues } from '../api/use-cases/queues.js';
import { Schedules } from '../api/use-cases/schedules.js';
import { Tenants } from '../api/use-cases/tenants.js';
import { WorkerSessions } from '../api/use-cases/workers.js';
import type { HealthView, PeerUseCases, UseCases } from '../api/use-cases.js';
import type { Hint } from '../cluster/hint-sender.js';
import { LeaderElsewhere } from '../cluster/leader-elsewhere.js';

/** Everything a node can be asked for. */
export function buildUseCases(
  context: NodeContext,
  localKey: string,
  looking: Pick<PeerUseCases, 'lookAtLease' | 'lookAtNodes'>,
): UseCases {
  const authentication = new Authentication(context, localKey);
  const lines = new EndLines(() => context.currentLeader());
  return {
    jobs: new Jobs(context),
    attempts: new Attempts(context),
    workers: new WorkerSessions(context),
    queues: new Queues(context),
    tenants: new Tenants(context),
    schedules: new Schedules(context),
    cluster: new Cluster(context),
    authenticate: (bearer) => authentication.authenticate(bearer),
    peers: {
      // The body comes from a node that has proved to be one; a hint that is wrong is refused by the claim, as long as
      // it tells nothing that the claim would otherwise read.
      hint: async (body) => {
        const { jobs, startBefore } = body as Hint;
        // A node of an older version leaves things out; the look-back reads what it could not tell.
        const complete = jobs.filter(
          (job) => typeof job.sizeKib === 'number' && typeof job.lane === 'number' && job.key !== undefined,
        );
        const places = complete.map((job) => ({ ...job, row: null }));
        await context.currentLeader()?.hint(places, startBefore);
      },
      openEnds: (line, say) => lines.open(line, say),
      changeEnds: (line, change) => lines.change(line, change),
      closeEnds: (line) => lines.close(line),
      ...looking,
    },
    ready: () => checkReady(context),
  };
}

/**
 * Ready means: the database answers, and requests reach a leader, here or elsewhere. Whether the database answers is known
 * from the connection of the lease, which is asked all the time and shared with nobody: no traffic makes a healthy node
 * look ill, and asking costs nothing.
 */
async function checkReady(context: NodeContext): Promise<HealthView> {
  const silentMs = context.databaseSilentMs();
  const database =
    silentMs === null
      ? { ok: false, detail: 'no connection' }
      : { ok: silentMs < context.config.leaseTtl, detail: `answered ${Math.round(silentMs)} ms ago` };
  if (!database.ok)
    return { ok: false, checks: { database, leader: { ok: false, detail: 'not known without a database' } } };
  const leader = await context.leader().then(
    () => ({ ok: true, detail: 'this node leads' }),
    (error: unknown) =>
      error instanceof LeaderElsewhere
        ? { ok: true, detail: `the leader is at ${error.url}` }
        : { ok: false, detail: 'no leader at the moment' },
  );
  return { ok: leader.ok, checks: { database, leader } };
}
