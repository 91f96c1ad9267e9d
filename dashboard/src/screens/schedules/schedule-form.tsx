import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../../api/client.js';
import { asProblem, type Problem } from '../../api/problem.js';
import { TextField } from '../../parts/form.js';
import { toast } from '../../parts/toasts.js';
import { goTo } from '../../routing/location.js';
import { momentOfLocal } from '../jobs/local-time.js';
import { OccurrenceList } from './occurrence-list.js';
import { type Draft, mistakesOf } from './schedule-draft.js';
import { DueFields, MoreFields, RunsFields } from './schedule-fields.js';
import { type TypedTimes, usePreview } from './use-preview.js';
import './schedules.css';

/** A request that is made from the form. */
export interface FormRequest {
  readonly method: 'POST' | 'PATCH';
  readonly path: string;
  readonly body: string;
}

interface ScheduleFormProps {
  readonly draft: Draft;
  readonly onChange: (change: Partial<Draft>) => void;
  /** Missing where the name stands already. */
  readonly onName?: (name: string) => void;
  readonly name: string;
  readonly fixedTarget?: string | null;
  /** Null while there is nothing to send. */
  readonly request: FormRequest | null;
  readonly verb: string;
  readonly done: string;
  /** What stands beside the button. */
  readonly children?: ComponentChildren;
}

/** The form of a schedule, beside what it comes to. */
export function ScheduleForm(props: ScheduleFormProps) {
  const { draft, onChange, onName, name, request, verb, done, fixedTarget = null, children } = props;
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const preview = usePreview(timesOf(draft));
  const isReadable = Object.keys(mistakesOf(draft)).length === 0;
  const send = async (event: Event) => {
    event.preventDefault();
    if (!request || isBusy) return;
    setBusy(true);
    try {
      const { method, path, body } = request;
      await call(method, path, { body });
      toast({ kind: 'good', text: done });
      goTo(`/schedules/${encodeURIComponent(name)}`);
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  const fields = { draft, onChange, problem };
  return (
    <div class="grid">
      <form class="form card" onSubmit={(event) => void send(event)}>
        {onName && (
          <TextField
            label="Name"
            isRequired
            {...{ value: name, onChange: onName, problem, pointer: '/name' }}
          />
        )}
        <RunsFields {...fields} fixedTarget={fixedTarget} />
        <DueFields {...fields} problem={problem ?? preview.problem} />
        <MoreFields {...fields} />
        {problem && (
          <p class="notice notice-bad" role="alert">
            {problem.message}
          </p>
        )}
        <div class="dialog-buttons">
          {children}
          <button type="submit" class="button button-main" disabled={!request || !isReadable || isBusy}>
            {verb}
          </button>
        </div>
      </form>
      <section class="card" aria-labelledby="preview-title">
        <header class="card-top">
          <h2 id="preview-title">Next ten</h2>
        </header>
        {preview.problem ? (
          <p class="notice notice-bad" role="status">
            {preview.problem.message}
          </p>
        ) : (
          <OccurrenceList
            occurrences={preview.occurrences}
            {...(draft.due === 'cron' && { timezone: preview.timezone ?? 'UTC' })}
          />
        )}
      </section>
    </div>
  );
}

/** Null while nothing is known of when it is due. */
function timesOf({ due, cron, every, at, timezone, startAt, endAt }: Draft): TypedTimes | null {
  const [from, to] = [momentOfLocal(startAt), momentOfLocal(endAt)];
  const bounds = { ...(from !== null && { startAt: from }), ...(to !== null && { endAt: to }) };
  if (due === 'cron') return { cron, ...(timezone.trim() !== '' && { timezone }), ...bounds };
  if (due === 'every') return { every, ...bounds };
  const moment = momentOfLocal(at);
  return moment === null ? null : { at: moment };
}
