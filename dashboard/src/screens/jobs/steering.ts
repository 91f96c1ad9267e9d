import type { Job } from '../../../../src/core/job.js';
import type { ManyJobsAnswer } from '../../../../src/core/wire.js';
import type { Action } from '../../parts/action.js';
import { toast } from '../../parts/toasts.js';
import { goTo } from '../../routing/location.js';

/** What can be done to a job as it is, each with its question or its way back. */

type Verb = 'cancel' | 'retry' | 'hold' | 'release';

function step(job: Job, verb: Verb, label: string, done: string): Omit<Action, 'undo' | 'question'> {
  return {
    ...{ label, done, method: 'POST', scope: 'submit' },
    path: `/v1/jobs/${job.id}/${verb}`,
    cli: `punctual job ${verb} ${job.id}`,
  };
}

/** The actions for a job, the most likely one first. */
export function actionsFor(job: Job, onDone: () => void): readonly Action[] {
  const { state } = job;
  const waits = state === 'pending' || state === 'blocked';
  const actions: Action[] = [];
  if ((state === 'failed' || state === 'cancelled') && mayRunAgain(job)) actions.push(retry(job, onDone));
  if (waits && job.batch === null) actions.push(job.hold ? release(job, onDone) : hold(job, onDone));
  if (waits || (state === 'running' && job.cancelRequestedAt === null)) actions.push(cancel(job, onDone));
  if (job.finishedAt !== null && job.workflow === null) actions.push(remove(job));
  return actions;
}

function mayRunAgain({ batch, delivery }: Job): boolean {
  return batch === null && delivery !== 'at-most-once';
}

function hold(job: Job, onDone: () => void): Action {
  const back = { ...step(job, 'release', 'Release', 'Released again.'), onDone };
  return { ...step(job, 'hold', 'Hold', 'The job is on hold.'), onDone, undo: back };
}

function release(job: Job, onDone: () => void): Action {
  const back = { ...step(job, 'hold', 'Hold', 'On hold again.'), onDone };
  return { ...step(job, 'release', 'Release', 'The job may start.'), onDone, undo: back };
}

function retry(job: Job, onDone: () => void): Action {
  const text =
    job.workflow === null
      ? 'It becomes due now and keeps its earlier attempts.'
      : 'Its workflow goes on from this step; what was skipped because of it is decided anew.';
  return {
    ...step(job, 'retry', 'Retry', 'The job runs again.'),
    ...{ onDone, question: { title: 'Run this job again?', text, verb: 'Retry' } },
  };
}

function cancel(job: Job, onDone: () => void): Action {
  const text =
    job.state === 'running'
      ? 'Its worker is told to stop. What it has done stays done.'
      : 'It ends without having run.';
  return {
    ...step(
      job,
      'cancel',
      'Cancel',
      job.state === 'running' ? 'The worker was told to stop.' : 'The job is cancelled.',
    ),
    ...{
      onDone,
      isDangerous: true,
      question: { title: 'Cancel this job?', text, verb: 'Cancel the job', isDangerous: true },
    },
  };
}

function remove(job: Job): Action {
  const text = 'Its payload, result, attempts, log and key are gone for good.';
  return {
    ...{ label: 'Delete', done: 'The deletion was carried out.', method: 'POST', scope: 'submit' },
    ...{ path: '/v1/jobs/delete', body: { ids: [job.id] }, cli: `punctual job delete ${job.id}` },
    question: { title: 'Delete this job?', text, verb: 'Delete the job', isDangerous: true },
    isDangerous: true,
    onDone: (answer) => {
      const [refused] = (answer as ManyJobsAnswer).refused;
      if (refused) toast({ kind: 'bad', text: refused.detail });
      else goTo('/jobs');
    },
  };
}

/** Whether it has not started and so can be changed. */
export function isChangeable({ state, attempt, batch }: Job): boolean {
  return (state === 'pending' || state === 'blocked') && attempt === 0 && batch === null;
}
