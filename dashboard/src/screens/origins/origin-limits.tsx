import { useState } from 'preact/hooks';
import type { OriginView } from '../../../../src/core/wire.js';
import { FormDialog, TextField } from '../../parts/form.js';
import { noneText, numberOrNone, rateOf, rateText } from '../../parts/limit-text.js';

interface OriginLimitsProps {
  readonly origin: Pick<OriginView, 'origin' | 'concurrency' | 'rate'>;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Limits the calls to an origin. */
export function OriginLimitsDialog({ origin: view, onClose, onDone }: OriginLimitsProps) {
  const { origin } = view;
  const [concurrency, setConcurrency] = useState(noneText(view.concurrency));
  const [rate, setRate] = useState(rateText(view.rate));
  return (
    <FormDialog
      title={`Limits of ${origin}`}
      onClose={onClose}
      action={{
        label: 'Set limits',
        method: 'PUT',
        path: '/v1/origins',
        body: { origin, concurrency: numberOrNone(concurrency), rate: rateOf(rate) },
        cli: `punctual origin limit ${origin} --concurrency ${concurrency} --rate ${rate}`,
        scope: 'admin',
        done: `The limits of ${origin} are set.`,
        onDone,
      }}
    >
      {(problem) => (
        <div class="field-pair">
          <TextField
            label="Calls at a time"
            hint="A number, or none"
            {...{ value: concurrency, onChange: setConcurrency, problem, pointer: '/concurrency' }}
          />
          <TextField
            label="Rate of calls"
            hint="Such as 100/1s, or none"
            {...{ value: rate, onChange: setRate, problem, pointer: '/rate' }}
          />
        </div>
      )}
    </FormDialog>
  );
}
