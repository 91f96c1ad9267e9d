import { randomUUID } from 'node:crypto';
import { type Owned, Submitter } from '../api/submitter.js';
import type { TenantQuotas } from '../api/tenant-quotas.js';
import { Term } from '../cluster/term.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { parseSubmission } from '../core/submission.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { Pool } from '../store/database.js';
import type { Names } from '../store/names.js';
import type { TaskDefinitions } from '../store/task-definitions.js';
import { findUsedNames, type UsedNames } from '../store/used-names.js';

interface RehearsalParts {
  readonly shard: number;
  readonly nodeId: string;
  readonly hot: Pool;
  readonly pool: Pool;
  readonly names: Names;
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  readonly quotas: TenantQuotas;
  readonly tasks: TaskDefinitions;
  /** Compiles the schemas of what clients and workers send. */
  readonly compileSchemas: () => Promise<void>;
  readonly dispatcherFor: (term: Term) => Dispatcher;
}

/** How many looks at the other nodes lie at most between two tries to rehearse: five minutes. */
const MOST_PAUSES = 60;

/** Tells at which looks a rehearsal is tried: ever fewer, while there is nothing to rehearse or it fails. */
export class RarerTries {
  private failures = 0;
  private pauses = 0;

  /** To be asked at each look. */
  isDue(): boolean {
    if (this.pauses === 0) return true;
    this.pauses -= 1;
    return false;
  }

  failed(): void {
    this.pauses = Math.min(MOST_PAUSES, 2 ** this.failures - 1);
    this.failures += 1;
  }
}

/** No row of the leases has it. */
const NO_EPOCH = -1;

/**
 * A standby does once what it will have to do in a hurry: the clients of a leader that ends come to it, and it takes the term. What a
 * process does for the first time takes it about ten times as long, because code is compiled, statements are planned, and
 * connections are opened.
 *
 * A rehearsal changes nothing, but that the names it borrows count as used. Its submissions are refused by the database at the
 * end of their transactions, because their ids are too old; its dispatcher only reads, and works under a term that nobody holds.
 */
export class Rehearsal {
  private readonly term: Term;

  constructor(private readonly parts: RehearsalParts) {
    // It is never trusted, so whatever else a dispatcher decides to write is not even sent.
    this.term = new Term(parts.shard, NO_EPOCH, `${parts.nodeId} rehearses`, Number.NEGATIVE_INFINITY);
  }

  /** Answers false if there are no jobs that a submission could be like, or if it was ended. */
  async run(): Promise<boolean> {
    const names = await findUsedNames(this.parts.hot);
    if (names === null) return false;
    await this.parts.compileSchemas();
    if (!this.term.over) await this.submit(names);
    return !this.term.over && (await this.lead());
  }

  /** Lets a rehearsal that runs end soon: from now on there is real work. */
  end(): void {
    this.term.end('the rehearsal is over');
  }

  private async submit(names: UsedNames): Promise<void> {
    const { quotas, tasks } = this.parts;
    await Promise.all([quotas.of(names.tenant), tasks.find(names.tenant, () => [])]);
    const submitter = this.refusedSubmitter();
    const submitAll = (keys: readonly (string | null)[]) =>
      Promise.all(keys.map((key) => mustBeRefused(submitter.submit(this.owned(names, key)))));
    await submitAll([null]);
    // Keys that no job has: such a submission would find the job.
    const newKey = () => `rehearsal ${randomUUID()}`;
    await submitAll([newKey()]);
    // Those with different keys go through a statement of their own.
    await submitAll([newKey(), newKey()]);
  }

  /** Its ids are as old as can be, so the database refuses each job at the end of its transaction. Nobody is told of them. */
  private refusedSubmitter(): Submitter {
    const { hot, pool, names, clock, config, log } = this.parts;
    return new Submitter({
      ...{ hot, pool, names, clock, config, log, databaseNow: () => 0 },
      submitKeyed: () => Promise.reject(new Error('a rehearsal replaces no jobs')),
      directStart: async () => false,
      hint: async () => undefined,
    });
  }

  private owned({ tenant, queue, target, handler }: UsedNames, key: string | null): Owned {
    const { config, clock } = this.parts;
    const form = { task: 'rehearsal', payload: '{}', ...(key !== null && { key }) };
    const { definition, payload } = parseSubmission(form, { ...config, now: clock.now() });
    const needs = { target, handler, labels: {} };
    return {
      owner: { tenant, createdBy: 'rehearsal' },
      submission: { definition: { ...definition, queue, needs }, payload },
    };
  }

  private async lead(): Promise<boolean> {
    const dispatcher = this.parts.dispatcherFor(this.term);
    try {
      await dispatcher.rehearse();
      return !this.term.over;
    } finally {
      this.end();
      await dispatcher.stop();
    }
  }
}

/** Waits for a submission that the database has to refuse as too late; every other end is a failure. */
async function mustBeRefused(submitted: Promise<unknown>): Promise<void> {
  const error = await submitted.then(
    () => new Error('a rehearsed submission was stored'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof PunctualError && error.code === 'DATABASE_UNAVAILABLE')) throw error;
}
