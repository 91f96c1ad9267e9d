import { useState } from 'preact/hooks';
import type { Job } from '../../../../src/core/job.js';
import { call } from '../../api/client.js';
import { asProblem, type Problem } from '../../api/problem.js';
import { type Action, CopyAs, perform } from '../../parts/action.js';
import { Dialog } from '../../parts/dialog.js';
import { Field, fieldProblem } from '../../parts/field.js';
import { ProblemNote } from '../../parts/problem-note.js';
import { quoted } from '../../parts/quoted.js';
import { toast } from '../../parts/toasts.js';
import { jsonMistake, jsonText } from './json-text.js';
import { localText, momentOfLocal } from './local-time.js';

interface ChangeDialogProps {
  readonly job: Job;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** Changes when, how urgently and with what a job runs that has not started. */
export function ChangeDialog({ job, onClose, onChanged }: ChangeDialogProps) {
  // As it was when the window was opened: what others change meanwhile must not be sent as if it had been typed.
  const [before] = useState(() => ({
    at: localText(job.runAt),
    priority: String(job.priority),
    payload: jsonText(job.payload),
  }));
  const [value, setValue] = useState(before);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const set = (change: Partial<typeof before>) => setValue({ ...value, ...change });
  const runAt = value.at === before.at ? null : momentOfLocal(value.at);
  const mistake = jsonMistake(value.payload);
  const parts = {
    ...(runAt !== null && { runAt: JSON.stringify(runAt) }),
    ...(value.priority !== before.priority && { priority: value.priority }),
    ...(value.payload !== before.payload && { payload: value.payload }),
  };
  const isChanged = Object.keys(parts).length > 0;
  const request = {
    ...{ method: 'PATCH' as const, path: `/v1/jobs/${job.id}`, body: bodyOf(parts) },
    cli: [`punctual job change ${job.id}`, ...options(runAt, value, before)].join(' '),
  };
  const save = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    try {
      await call('PATCH', request.path, { body: request.body });
      toast({
        kind: 'good',
        text: 'The job is changed.',
        undo: async () => void (await perform(undo(job, parts, onChanged))),
      });
      onChanged();
      onClose();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title="Change the job" onClose={onClose} isWide>
      <form class="fields" onSubmit={(event) => void save(event)}>
        <div class="fields-row">
          <Field label="Due" problem={fieldProblem(problem, '/runAt')} hint="in your time zone">
            <input
              type="datetime-local"
              step="1"
              value={value.at}
              onInput={({ currentTarget }) => set({ at: currentTarget.value })}
            />
          </Field>
          <Field label="Priority" problem={fieldProblem(problem, '/priority')} hint="9 starts first">
            <select
              value={value.priority}
              onChange={({ currentTarget }) => set({ priority: currentTarget.value })}
            >
              {[9, 8, 7, 6, 5, 4, 3, 2, 1].map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </Field>
        </div>
        <Field label="Payload" problem={mistake ?? fieldProblem(problem, '/payload')}>
          <textarea
            class="mono"
            rows={10}
            spellcheck={false}
            value={value.payload}
            onInput={({ currentTarget }) => set({ payload: currentTarget.value })}
          />
        </Field>
        <ProblemNote problem={problem} />
        <div class="dialog-buttons">
          {isChanged && mistake === null && <CopyAs {...request} />}
          <button type="button" class="button" onClick={onClose}>
            Keep as it is
          </button>
          <button
            type="submit"
            class="button button-main"
            disabled={!isChanged || mistake !== null || isBusy}
          >
            Change the job
          </button>
        </div>
      </form>
    </Dialog>
  );
}

type Parts = Readonly<Partial<Record<'runAt' | 'priority' | 'payload', string>>>;

/** The body as text: numbers of the payload keep their digits. */
function bodyOf(parts: Parts): string {
  return `{${Object.entries(parts)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join(',')}}`;
}

function options(
  runAt: string | null,
  value: { readonly priority: string; readonly payload: string },
  before: { readonly priority: string; readonly payload: string },
): string[] {
  return [
    ...(runAt === null ? [] : [`--run-at ${runAt}`]),
    ...(value.priority === before.priority ? [] : [`--priority ${value.priority}`]),
    ...(value.payload === before.payload ? [] : [`--payload ${quoted(value.payload)}`]),
  ];
}

/** What gives the job back what it had before. */
function undo(job: Job, changed: Parts, onDone: () => void): Action {
  const was = {
    ...(changed.runAt !== undefined && { runAt: JSON.stringify(job.runAt) }),
    ...(changed.priority !== undefined && { priority: String(job.priority) }),
    ...(changed.payload !== undefined && { payload: jsonText(job.payload) }),
  };
  return {
    ...{ label: 'Undo', done: 'The job is as it was.', method: 'PATCH', scope: 'submit', onDone },
    ...{ path: `/v1/jobs/${job.id}`, body: bodyOf(was), cli: `punctual job change ${job.id}` },
  };
}
