import { inSlices } from '../core/time-slice.js';
import type { Gang } from './gang.js';
import { findObstacle, type Lack } from './gang-plan.js';
import { GangSurvey, type SurveyedLimit } from './gang-survey.js';
import type { LeaderState } from './leader-state.js';
import { describeNeeds } from './needs-text.js';
import { explainOrigin } from './origin-reasons.js';

/** What a batch waits for, for people. */
export interface GangReason {
  readonly waitingFor:
    | 'artifact'
    | 'start'
    | 'free-slots'
    | 'capacity'
    | 'limit'
    | 'rate'
    | 'origin'
    | 'queue-paused'
    | 'workers';
  /** One sentence. */
  readonly detail: string;
  readonly figures: Readonly<Record<string, number | string | boolean | null>>;
}

/** How long ago the term began, below which a leader calls no batch impossible: workers may not have come back yet. */
type Patience = { readonly termMs: number; readonly workerTimeoutMs: number };

/** What keeps a batch from starting: first what does so for ever, as things are, then what will pass. */
export async function explainGang(state: LeaderState, gang: Gang): Promise<GangReason> {
  const [missing] = gang.awaits;
  if (missing !== undefined) {
    const others = gang.awaits.size - 1;
    const more = others === 0 ? '' : others === 1 ? ' and of another one' : ` and of ${others} others`;
    const detail = `The artifact of job ${missing}${more} is not uploaded yet.`;
    const figures = { members: gang.members.length, membersWithoutArtifact: gang.awaits.size };
    return { waitingFor: 'artifact', detail, figures };
  }
  const survey = new GangSurvey(state);
  const groups = await inSlices(survey.groupsOf(gang));
  const uses = survey.usesOf(gang);
  // Nothing is told of workers that could run none of them: they may be those of other tenants.
  const fitting = [...new Set(groups.flatMap((group) => group.pools))].map((pool) => survey.pools[pool]!);
  const slots = fitting.reduce((sum, pool) => sum + pool.slots, 0);
  const freeSlots = fitting.reduce((sum, pool) => sum + pool.free, 0);
  const figures = { members: gang.members.length, slots, freeSlots, holdsSlots: gang.target !== null };
  const obstacle = await inSlices(findObstacle({ groups, uses }, survey.pools, survey.limits));
  const termMs = state.termMs;
  const patience = { termMs, workerTimeoutMs: state.config.workerTimeout };
  if (obstacle) return { ...ofObstacle(state, gang, obstacle, survey, patience), ...{ figures } };
  const lack = gang.lack;
  if (lack === null) return { waitingFor: 'start', detail: 'The batch is about to start.', figures };
  if (lack.kind === 'rate') {
    const now = state.clock.steady();
    for (const origin of survey.originsOf(gang)) {
      // A batch gets its slots all or nothing.
      if (origin.holdAt(now)?.kind === 'slots') continue;
      const held = explainOrigin(origin, now, (at) => state.onDatabaseClock(at));
      if (held)
        return { waitingFor: 'origin', detail: held.detail, figures: { ...held.figures, ...figures } };
    }
    const detail = 'The rate of one of its queues, or of its tenant, does not let the batch start yet.';
    return { waitingFor: 'rate', detail, figures };
  }
  if (lack.kind === 'limit') {
    const tight = [...uses].find(([limit, count]) => {
      const { most, running } = survey.limits[limit]!;
      return running + count > most;
    });
    const detail = 'The limits of its queues or concurrency keys have no room for all its members yet.';
    return { waitingFor: 'limit', detail, ...(tight && ofLimit(state, survey.limits[tight[0]]!)), figures };
  }
  const member = gang.kinds[lack.group]?.members[0]?.id;
  const holding = gang.target ? ' Slots that fall free are kept for it.' : '';
  const detail = `Not all ${gang.members.length} members find a free slot at the same time; job ${member} finds none.${holding}`;
  return { waitingFor: 'free-slots', detail, figures };
}

function ofObstacle(
  state: LeaderState,
  gang: Gang,
  obstacle: Lack,
  survey: GangSurvey,
  { termMs, workerTimeoutMs }: Patience,
): Omit<GangReason, 'figures'> {
  if (obstacle.kind === 'limit') return ofLimit(state, survey.limits[obstacle.limit]!);
  const kind = gang.kinds[obstacle.kind === 'slot' ? obstacle.group : 0]!;
  const queue = state.directory.queue(kind.queue);
  const needs = state.directory.needsOf(kind.needs);
  const where = `queue ${queue?.name ?? kind.queue}${needs ? describeNeeds(needs) : ''}`;
  const job = kind.members[0]!.id;
  if (termMs < workerTimeoutMs) {
    const detail = `Job ${job} finds no slot in ${where}; the leader is new, and workers may not have come back yet.`;
    return { waitingFor: 'workers', detail };
  }
  const detail = `The batch is larger than what all live workers have: job ${job} finds no slot in ${where}, even if nothing else ran.`;
  return { waitingFor: 'capacity', detail };
}

function ofLimit(
  state: LeaderState,
  { queue, key, most, origin }: SurveyedLimit,
): Omit<GangReason, 'figures'> {
  if (origin !== undefined) {
    const detail = `At most ${most === 1 ? '1 call' : `${most} calls`} to ${origin} run at the same time; the batch needs more room.`;
    return { waitingFor: 'origin', detail };
  }
  const info = state.directory.queue(queue);
  const name = info?.name ?? String(queue);
  if (key === null && info?.paused) return { waitingFor: 'queue-paused', detail: `Queue ${name} is paused.` };
  const whose = key === null ? `Queue ${name} lets` : `Queue ${name} lets of concurrency key ${key}`;
  return {
    waitingFor: 'limit',
    detail: `${whose} ${most} jobs run at the same time; the batch needs more room.`,
  };
}
