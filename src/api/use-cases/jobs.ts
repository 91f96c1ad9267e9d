import { invalid, PunctualError } from '../../core/errors.js';
import { isEnded, type ListedJob } from '../../core/job.js';
import { parseMoment } from '../../core/moment.js';
import { bulkEnvelope, JobChange, Redrive } from '../../core/schemas/submission.js';
import { validate } from '../../core/schemas/validate.js';
import {
  parsePayload,
  parseSubmission,
  parseSubmissions,
  type SubmissionContext,
} from '../../core/submission.js';
import { isUuid } from '../../core/uuid.js';
import type { Page, RedriveAnswer, StoredLogLine, Why } from '../../core/wire.js';
import type { Change } from '../../dispatch/steering.js';
import { type LogRow, readLogLines } from '../../store/job-logs.js';
import type { PlacedRow } from '../../store/job-places.js';
import { listJobs } from '../../store/list-jobs.js';
import { findKey, readJob } from '../../store/read-job.js';
import type { NodeContext } from '../context.js';
import { JobView, newlyPlaced } from '../job-view.js';
import type { Answered } from '../json-text.js';
import { PageText, writePage } from '../page-text.js';
import type { Caller, JobFilter, JobUseCases } from '../use-cases.js';

/** Rows of a list that are read at once. */
const PORTION = 50;
/** The same when each may be large: Postgres has to unpack them to see how many fit. */
const LARGE_PORTION = 16;

/** How often a key is tried whose job goes away before it can be read. */
const KEY_TRIES = 5;

/** Submitting, reading and steering jobs. */
export class Jobs implements JobUseCases {
  private readonly envelope: ReturnType<typeof bulkEnvelope>;

  constructor(private readonly node: NodeContext) {
    this.envelope = bulkEnvelope(node.config.maxBulkJobs);
  }

  async submit(caller: Caller, body: unknown): Promise<{ created: boolean; job: JobView }> {
    const submission = parseSubmission(body, this.submissionContext());
    const { tenant, actor } = caller;
    const { queue, hold } = submission.definition;
    for (let tries = 1; ; tries += 1) {
      const { id, row } = await this.node.submitter.submit({ tenant, createdBy: actor, submission });
      // A new job is as it was stored, whatever has become of it since; reading it again would cost a statement.
      if (row) return { created: true, job: new JobView(newlyPlaced(row, queue, hold), null) };
      const found = await readJob(this.node.hot, tenant, id);
      // Nothing is found when its history was removed just now: then its key is free again.
      if (found) return { created: false, job: this.view(found) };
      if (tries === KEY_TRIES) {
        throw new PunctualError('DATABASE_UNAVAILABLE', 'The job of this key cannot be read; try again.', {
          retryAfter: 1,
        });
      }
    }
  }

  async submitBulk(caller: Caller, body: unknown): Promise<{ ids: readonly string[] }> {
    const { jobs } = validate(this.envelope, body);
    const submissions = await parseSubmissions(jobs, this.submissionContext());
    const { tenant, actor } = caller;
    const owned = submissions.map((submission) => ({ tenant, createdBy: actor, submission }));
    const stored = await this.node.submitter.submitAll(owned);
    return { ids: stored.map(({ id }) => id) };
  }

  async list(caller: Caller, filter: JobFilter): Promise<Answered<Page<ListedJob>>> {
    if (filter.key !== undefined) return this.listByKey(caller, filter);
    if (filter.after !== undefined && !isUuid(filter.after)) {
      throw invalid([{ pointer: '/after', detail: 'must be the "next" of an earlier page' }]);
    }
    if (filter.worker !== undefined && !isUuid(filter.worker)) {
      throw invalid([{ pointer: '/worker', detail: 'must be the id of a worker' }]);
    }
    return writePage<PlacedRow>(filter.limit, {
      portion: filter.include ? LARGE_PORTION : PORTION,
      read: (last, size) =>
        listJobs(this.node.pool, caller.tenant, { ...filter, after: last?.id ?? filter.after }, size),
      write: (row) => this.view(row).text,
      cursor: (row) => row.id,
    });
  }

  async get(caller: Caller, id: string, waitMs: number, signal: AbortSignal): Promise<JobView> {
    const deadline = performance.now() + waitMs;
    for (;;) {
      const job = await this.read(caller, id);
      const left = deadline - performance.now();
      if (isEnded(job.state) || left <= 0 || signal.aborted) return job;
      if (!(await this.node.ends.wait({ tenant: caller.tenant, id }, left, signal)))
        return this.read(caller, id);
    }
  }

  async logs(
    caller: Caller,
    id: string,
    after: number,
    limit: number,
  ): Promise<Answered<Page<StoredLogLine>>> {
    await this.mustRead(caller, id);
    return writePage<LogRow>(limit, {
      portion: PORTION,
      read: (last, size) => readLogLines(this.node.pool, caller.tenant, id, last?.seq ?? after, size),
      write: ({ line, fence }) => `${line.slice(0, line.lastIndexOf('}'))},"fence":${fence}}`,
      cursor: (row) => String(row.seq),
    });
  }

  async change(caller: Caller, id: string, body: unknown): Promise<JobView> {
    const change = this.parseChange(body);
    await (await this.node.leader()).steering.change(caller.tenant, id, change);
    return this.read(caller, id);
  }

  async cancel(caller: Caller, id: string): Promise<JobView> {
    await (await this.node.leader()).steering.cancel(caller.tenant, id);
    return this.read(caller, id);
  }

  async retry(caller: Caller, id: string): Promise<JobView> {
    await (await this.node.leader()).steering.retry(caller.tenant, id);
    return this.read(caller, id);
  }

  async hold(caller: Caller, id: string): Promise<JobView> {
    await (await this.node.leader()).steering.hold(caller.tenant, id);
    return this.read(caller, id);
  }

  async release(caller: Caller, id: string): Promise<JobView> {
    await (await this.node.leader()).steering.release(caller.tenant, id);
    return this.read(caller, id);
  }

  async redrive(caller: Caller, body: unknown): Promise<RedriveAnswer> {
    const { dryRun = false, all = false, ...filter } = validate(Redrive, body ?? {});
    const isFiltered = filter.task !== undefined || filter.queue !== undefined;
    // Nobody means everything by saying nothing; to count is no harm.
    if (all === isFiltered && !(dryRun && !all)) {
      throw invalid([{ pointer: '/all', detail: 'give "task", "queue" or both, or else "all": true' }]);
    }
    const answer = await (await this.node.leader()).steering.redrive(caller.tenant, filter, dryRun);
    return { ...answer, dryRun };
  }

  async why(caller: Caller, id: string): Promise<Why> {
    const leader = await this.node.leader();
    return leader.why(await this.mustRead(caller, id));
  }

  private async listByKey(caller: Caller, filter: JobFilter): Promise<Answered<Page<ListedJob>>> {
    const id = await findKey(this.node.pool, caller.tenant, filter.key!);
    const row = id === null ? null : await readJob(this.node.pool, caller.tenant, id);
    const fits =
      row !== null &&
      (filter.state === undefined || row.state === filter.state) &&
      (filter.task === undefined || row.task === filter.task) &&
      (filter.queue === undefined || row.queue === filter.queue) &&
      (filter.worker === undefined || row.worker === filter.worker) &&
      (filter.schedule === undefined || row.schedule === filter.schedule);
    // It is one job at most, and so there is room for all of it.
    return new PageText(fits ? [this.view(row).text] : [], null);
  }

  private async read(caller: Caller, id: string): Promise<JobView> {
    return this.view(await this.mustRead(caller, id));
  }

  private async mustRead(caller: Caller, id: string): Promise<PlacedRow> {
    const row = await readJob(this.node.hot, caller.tenant, id);
    if (!row) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
    return row;
  }

  private view(row: PlacedRow): JobView {
    return new JobView(
      row,
      row.state === 'running' ? (this.node.currentLeader()?.progressOf(row.id) ?? null) : null,
    );
  }

  private submissionContext(): SubmissionContext {
    return { ...this.node.config, now: this.node.clock.now() };
  }

  private parseChange(body: unknown): Change {
    const { runAt, priority, payload } = validate(JobChange, body);
    return {
      ...(runAt !== undefined && { runAt: parseMoment(runAt)! }),
      ...(priority !== undefined && { priority }),
      ...(payload !== undefined && { payload: parsePayload(payload, this.node.config) }),
    };
  }
}
