import { useState } from 'preact/hooks';
import type { SecretView } from '../../../../src/core/secret.js';
import { usePageList } from '../../api/page-list.js';
import { may } from '../../api/session.js';
import { ActionButton, CopyAs } from '../../parts/action.js';
import { EmptyState } from '../../parts/empty-state.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { type Column, Table } from '../../parts/table.js';
import { Words } from '../../parts/words.js';
import { SecretForm } from './secret-form.js';
import { SigningSecrets } from './signing-secrets.js';

/** Names of secrets, and where they may go; never their values. */
export default function SecretsScreen() {
  const list = usePageList<SecretView>('/v1/secrets', 100);
  const [form, setForm] = useState<{ readonly secret?: SecretView } | null>(null);
  const refresh = () => void list.restart();
  return (
    <>
      <ScreenTop title="Secrets">
        {may('admin') && (
          <button type="button" class="button button-main" onClick={() => setForm({})}>
            New secret
          </button>
        )}
        <CopyAs method="GET" path="/v1/secrets" cli="punctual secret list" />
      </ScreenTop>
      <div class="stack">
        <Table
          label="Secrets"
          columns={columnsOf(refresh, (secret) => setForm({ secret }))}
          rows={list.rows.value}
          keyOf={({ name }) => name}
          list={list}
          hasKeys
          empty={
            <EmptyState
              title="No secrets"
              command="punctual secret set stripe --origin https://api.stripe.com"
            >
              <p>Calls refer to secrets by name, so that no value stands in a job.</p>
            </EmptyState>
          }
        />
        <SigningSecrets />
      </div>
      {form && <SecretForm {...form} onClose={() => setForm(null)} onDone={refresh} />}
    </>
  );
}

function columnsOf(refresh: () => void, change: (secret: SecretView) => void): readonly Column<SecretView>[] {
  return [
    { title: 'Name', render: ({ name }) => <span class="mono">{name}</span> },
    { title: 'May go to', render: ({ origins }) => <Words words={origins} most={3} /> },
    {
      title: 'Version',
      isNumber: true,
      width: '80px',
      hiddenBelow: 'medium',
      render: ({ version }) => version,
    },
    {
      ...{ title: 'Changed', width: '110px', hiddenBelow: 'narrow' },
      render: ({ changedAt }) => <Moment at={changedAt} />,
    },
    { title: 'By', width: '120px', hiddenBelow: 'medium', render: ({ changedBy }) => changedBy },
    {
      ...{ title: 'Change', width: '230px' },
      render: (secret) => <Steering secret={secret} refresh={refresh} change={change} />,
    },
  ];
}

interface SteeringProps {
  readonly secret: SecretView;
  readonly refresh: () => void;
  readonly change: (secret: SecretView) => void;
}

function Steering({ secret, refresh, change }: SteeringProps) {
  if (!may('admin')) return null;
  const { name } = secret;
  return (
    <span class="actions">
      <button type="button" class="button button-small" onClick={() => change(secret)}>
        New value
      </button>
      <ActionButton
        isSmall
        action={{
          label: 'Delete',
          method: 'DELETE',
          path: `/v1/secrets/${encodeURIComponent(name)}`,
          cli: `punctual secret delete ${name}`,
          scope: 'admin',
          isDangerous: true,
          done: `${name} is deleted.`,
          question: {
            title: `Delete ${name}?`,
            text: 'Calls that refer to it fail from then on. This cannot be taken back.',
            verb: 'Delete',
            isDangerous: true,
          },
          onDone: refresh,
        }}
      />
    </span>
  );
}
