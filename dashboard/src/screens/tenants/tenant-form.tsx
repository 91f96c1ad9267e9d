import { useState } from 'preact/hooks';
import type { Quotas } from '../../../../src/core/quotas.js';
import type { TenantView } from '../../../../src/core/wire.js';
import type { Problem } from '../../api/problem.js';
import { FormDialog, TextField } from '../../parts/form.js';
import { noneText, numberOrNone, rateOf, rateText } from '../../parts/limit-text.js';

/** What each quota limits. */
export const QUOTA_LABELS: Readonly<Record<keyof Quotas, string>> = {
  liveJobs: 'Live jobs',
  laterJobs: 'Later jobs',
  schedules: 'Schedules',
  queues: 'Queues',
  submissionsPerSecond: 'Submissions a second',
  payloadBytes: 'Bytes of a payload',
  artifactBytes: 'Bytes of all artifacts',
};

const QUOTA_NAMES = Object.keys(QUOTA_LABELS) as (keyof Quotas)[];

interface TenantFormProps {
  /** Missing for a new one. */
  readonly tenant?: TenantView;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Makes a tenant, or changes its share, its rate and its quotas. */
export function TenantForm({ tenant, onClose, onDone }: TenantFormProps) {
  const [id, setId] = useState(tenant?.id ?? '');
  const [name, setName] = useState(tenant?.name ?? '');
  const [weight, setWeight] = useState(String(tenant?.weight ?? 1));
  const [rate, setRate] = useState(rateText(tenant?.rate ?? null));
  const [quotas, setQuotas] = useState(quotaTexts(tenant));
  const quotaBody = Object.fromEntries(QUOTA_NAMES.map((each) => [each, numberOrNone(quotas[each])]));
  const rest = {
    ...(name !== '' && { name }),
    weight: numberOrNone(weight),
    rate: rateOf(rate),
    quotas: quotaBody,
  };
  const words = [
    ...['--weight', weight, '--rate', rate],
    ...QUOTA_NAMES.flatMap((each) => ['--quota', `${each}=${quotas[each] || 'none'}`]),
  ].join(' ');
  const action = tenant
    ? {
        ...{
          label: 'Set limits',
          method: 'PATCH' as const,
          path: `/v1/tenants/${encodeURIComponent(tenant.id)}`,
        },
        ...{
          body: rest,
          cli: `punctual tenant limit ${tenant.id} ${words}`,
          done: `${tenant.id} is changed.`,
        },
      }
    : {
        ...{ label: 'Create', method: 'POST' as const, path: '/v1/tenants', body: { id, ...rest } },
        ...{ cli: `punctual tenant create ${id} ${words}`, done: `${id} is there.` },
      };
  return (
    <FormDialog
      title={tenant ? `Limits of ${tenant.id}` : 'New tenant'}
      onClose={onClose}
      action={id === '' ? null : { ...action, allTenants: true, scope: 'operator', onDone }}
    >
      {(problem) => (
        <>
          {!tenant && (
            <TextField
              label="Id"
              hint="Letters, digits, and . _ - :"
              isRequired
              {...{ value: id, onChange: setId, problem, pointer: '/id' }}
            />
          )}
          <TextField label="Name" {...{ value: name, onChange: setName, problem, pointer: '/name' }} />
          <div class="field-pair">
            <TextField
              label="Weight"
              hint="Its share of shared workers"
              {...{ value: weight, onChange: setWeight, problem, pointer: '/weight' }}
            />
            <TextField
              label="Rate of starts"
              hint="Such as 100/1s, or none"
              {...{ value: rate, onChange: setRate, problem, pointer: '/rate' }}
            />
          </div>
          <QuotaFields quotas={quotas} onChange={setQuotas} problem={problem} />
        </>
      )}
    </FormDialog>
  );
}

type QuotaTexts = Readonly<Record<keyof Quotas, string>>;

function quotaTexts(tenant: TenantView | undefined): QuotaTexts {
  const texts = QUOTA_NAMES.map((each) => [each, noneText(tenant?.quotas[each] ?? null)]);
  return Object.fromEntries(texts) as QuotaTexts;
}

interface QuotaFieldsProps {
  readonly quotas: QuotaTexts;
  readonly onChange: (quotas: QuotaTexts) => void;
  readonly problem: Problem | null;
}

function QuotaFields({ quotas, onChange, problem }: QuotaFieldsProps) {
  return (
    <fieldset>
      <legend>Quotas: a number, or none</legend>
      <div class="field-pair">
        {QUOTA_NAMES.map((each) => (
          <TextField
            key={each}
            label={QUOTA_LABELS[each]}
            value={quotas[each]}
            onChange={(text) => onChange({ ...quotas, [each]: text })}
            {...{ problem, pointer: `/quotas/${each}` }}
          />
        ))}
      </div>
    </fieldset>
  );
}
