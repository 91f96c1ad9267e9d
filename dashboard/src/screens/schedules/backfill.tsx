import { useState } from 'preact/hooks';
import type { BackfillAnswer } from '../../../../src/core/wire.js';
import { call } from '../../api/client.js';
import { asProblem } from '../../api/problem.js';
import { plural } from '../../parts/duration-text.js';
import { FormDialog, TextField } from '../../parts/form.js';

interface BackfillProps {
  readonly name: string;
  readonly onClose: () => void;
}

/** Runs the occurrences of a past time that have no run on record, after having said how many these are. */
export function Backfill({ name, onClose }: BackfillProps) {
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const [preview, setPreview] = useState<string | null>(null);
  const path = `/v1/schedules/${encodeURIComponent(name)}/backfill`;
  const body = from && to ? { from: new Date(from).toISOString(), to: new Date(to).toISOString() } : null;
  const change = (set: (text: string) => void) => (text: string) => {
    set(text);
    setPreview(null);
  };
  const look = async () => {
    try {
      const { matched } = await call<BackfillAnswer>('POST', path, { body: { ...body, dryRun: true } });
      setPreview(`${plural(matched, 'occurrence')} would run.`);
    } catch (error) {
      setPreview(asProblem(error)?.message ?? null);
    }
  };
  return (
    <FormDialog
      title={`Backfill ${name}`}
      onClose={onClose}
      action={
        body && preview !== null
          ? {
              ...{ label: 'Run them', method: 'POST', path, body, scope: 'submit' },
              cli: `punctual schedule backfill ${name} --from ${body.from} --to ${body.to}`,
              done: 'The occurrences that had not run are on their way.',
            }
          : null
      }
    >
      {(problem) => (
        <>
          <div class="field-pair">
            <TextField
              label="From"
              type="datetime-local"
              {...{ value: from, onChange: change(setFrom), problem, pointer: '/from' }}
            />
            <TextField
              label="To"
              type="datetime-local"
              {...{ value: to, onChange: change(setTo), problem, pointer: '/to' }}
            />
          </div>
          <div class="row-between">
            <span role="status">{preview ?? 'In your time zone.'}</span>
            <button type="button" class="button" disabled={!body} onClick={() => void look()}>
              How many?
            </button>
          </div>
        </>
      )}
    </FormDialog>
  );
}
