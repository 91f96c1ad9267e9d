import { useState } from 'preact/hooks';
import type { KeyView, NewKeyView } from '../../../../src/core/access.js';
import { usePageList } from '../../api/page-list.js';
import { session } from '../../api/session.js';
import { ActionButton, CopyAs } from '../../parts/action.js';
import { EmptyState } from '../../parts/empty-state.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { type Column, Table } from '../../parts/table.js';
import { isOfAllTenants, TenantScope } from '../../parts/tenant-scope.js';
import { Words } from '../../parts/words.js';
import { NewKey } from './new-key.js';
import { ShownOnce } from './shown-once.js';

/** Keys: who may do what, until when, and when they were last used. */
export default function KeysScreen() {
  const allTenants = isOfAllTenants();
  const list = usePageList<KeyView>('/v1/keys', 100, allTenants);
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<NewKeyView | null>(null);
  const refresh = () => void list.restart();
  const show = (key: NewKeyView) => {
    setMade(key);
    refresh();
  };
  return (
    <>
      <ScreenTop title="Keys">
        <TenantScope />
        <button type="button" class="button button-main" onClick={() => setMaking(true)}>
          New key
        </button>
        <CopyAs method="GET" path="/v1/keys" cli="punctual key list" allTenants={allTenants} />
      </ScreenTop>
      <Table
        label="Keys"
        columns={columnsOf({ allTenants, refresh, show })}
        rows={list.rows.value}
        keyOf={({ id }) => id}
        list={list}
        hasKeys
        empty={<EmptyState title="No keys" command="punctual key create --name shop --scopes submit,read" />}
      />
      {isMaking && <NewKey onClose={() => setMaking(false)} onDone={show} />}
      {made && (
        <ShownOnce
          title={`The key ${made.name}`}
          what="key"
          secret={made.key}
          onClose={() => setMade(null)}
        />
      )}
    </>
  );
}

function rightsOf({ operator, scopes, queues, tasks }: KeyView): string[] {
  return [
    ...(operator ? ['operator'] : []),
    ...scopes,
    ...(queues ?? []).map((queue) => `queue ${queue}`),
    ...(tasks ?? []).map((task) => `task ${task}`),
  ];
}

interface Steered {
  readonly allTenants: boolean;
  readonly refresh: () => void;
  readonly show: (key: NewKeyView) => void;
}

function columnsOf(steered: Steered): readonly Column<KeyView>[] {
  return [
    { title: 'Name', render: ({ name }) => name },
    { title: 'May', render: (key) => <Words words={rightsOf(key)} most={6} /> },
    {
      ...{ title: 'Tenant', hiddenBelow: 'medium' },
      render: ({ tenant }) => (tenant === null ? 'all' : <span class="mono">{tenant}</span>),
    },
    {
      ...{ title: 'Expires', width: '110px', hiddenBelow: 'narrow' },
      render: ({ expiresAt }) => (expiresAt === null ? 'never' : <Moment at={expiresAt} />),
    },
    {
      ...{ title: 'Last used', width: '110px', hiddenBelow: 'narrow' },
      // Uses are noted by the hour, and none is older than the key.
      render: ({ lastUsedAt, createdAt }) =>
        lastUsedAt === null ? 'never' : <Moment at={lastUsedAt > createdAt ? lastUsedAt : createdAt} />,
    },
    {
      ...{ title: 'Made', width: '110px', hiddenBelow: 'medium' },
      render: ({ createdAt }) => <Moment at={createdAt} />,
    },
    {
      ...{ title: 'Change', width: '240px' },
      render: (key) => <Steering keyView={key} {...steered} />,
    },
  ];
}

interface SteeringProps extends Steered {
  readonly keyView: KeyView;
}

function Steering({ keyView: { id, name }, allTenants, refresh, show }: SteeringProps) {
  const path = `/v1/keys/${encodeURIComponent(id)}`;
  const isOwn = session.value?.keyId === id;
  return (
    <span class="actions">
      <ActionButton
        isSmall
        action={{
          label: 'Rotate',
          method: 'POST',
          path: `${path}/rotate`,
          allTenants,
          body: {},
          cli: `punctual key rotate ${id}`,
          scope: 'admin',
          done: `${name} has a successor; the old key is valid for another 24 hours.`,
          question: {
            title: `Rotate ${name}?`,
            text: 'The next key with the same rights is made and shown once. The old one ends in 24 hours.',
            verb: 'Rotate',
          },
          onDone: (answer) => show(answer as NewKeyView),
        }}
      />
      <ActionButton
        isSmall
        action={{
          label: 'Revoke',
          method: 'DELETE',
          path,
          allTenants,
          cli: `punctual key revoke ${id}`,
          scope: 'admin',
          isDangerous: true,
          done: `${name} is revoked.`,
          question: {
            title: `Revoke ${name}?`,
            text: isOwn
              ? 'It is the key that you are signed in with: you will be signed out at once, and so is everything that uses it.'
              : 'Everything that uses it is refused at once. This cannot be taken back.',
            verb: 'Revoke',
            isDangerous: true,
          },
          onDone: refresh,
        }}
      />
    </span>
  );
}
