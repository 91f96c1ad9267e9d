import { useState } from 'preact/hooks';
import type { QueueView } from '../../../../src/core/wire.js';
import { FormDialog, TextField } from '../../parts/form.js';
import { noneText, numberOrNone, rateOf, rateText } from '../../parts/limit-text.js';

interface QueueLimitsProps {
  readonly queue: QueueView;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Changes the share and the limits of a queue. */
export function QueueLimitsDialog({ queue, onClose, onDone }: QueueLimitsProps) {
  const [weight, setWeight] = useState(String(queue.weight));
  const [concurrency, setConcurrency] = useState(noneText(queue.concurrency));
  const [perKey, setPerKey] = useState(String(queue.keyConcurrency));
  const [rate, setRate] = useState(rateText(queue.rate));
  const body = {
    weight: numberOrNone(weight),
    concurrency: numberOrNone(concurrency),
    keyConcurrency: numberOrNone(perKey),
    rate: rateOf(rate),
  };
  const words = `--weight ${weight} --concurrency ${concurrency} --per-key ${perKey} --rate ${rate}`;
  return (
    <FormDialog
      title={`Limits of ${queue.name}`}
      onClose={onClose}
      action={{
        label: 'Set limits',
        method: 'PATCH',
        path: `/v1/queues/${encodeURIComponent(queue.name)}`,
        body,
        cli: `punctual queue limit ${queue.name} ${words}`,
        scope: 'admin',
        done: `The limits of ${queue.name} are set.`,
        onDone,
      }}
    >
      {(problem) => (
        <>
          <div class="field-pair">
            <TextField
              label="Jobs at a time"
              hint="A number, or none"
              {...{ value: concurrency, onChange: setConcurrency, problem, pointer: '/concurrency' }}
            />
            <TextField
              label="Of one concurrency key"
              hint="At a time"
              {...{ value: perKey, onChange: setPerKey, problem, pointer: '/keyConcurrency' }}
            />
          </div>
          <div class="field-pair">
            <TextField
              label="Rate of starts"
              hint="Such as 100/1s, or none"
              {...{ value: rate, onChange: setRate, problem, pointer: '/rate' }}
            />
            <TextField
              label="Weight"
              hint="Its share beside the other queues"
              {...{ value: weight, onChange: setWeight, problem, pointer: '/weight' }}
            />
          </div>
        </>
      )}
    </FormDialog>
  );
}
