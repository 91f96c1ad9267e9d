import { useState } from 'preact/hooks';
import type { NewSigningSecret, SigningSecretView } from '../../../../src/core/secret.js';
import { useResource } from '../../api/resource.js';
import { ActionButton } from '../../parts/action.js';
import { Moment } from '../../parts/moment.js';
import { Panel } from '../../parts/panel.js';
import { ShownOnce } from '../keys/shown-once.js';

/** The secrets with which calls are signed. */
export function SigningSecrets() {
  const secrets = useResource<{ readonly data: readonly SigningSecretView[] }>('/v1/signing-secrets');
  const [made, setMade] = useState<NewSigningSecret | null>(null);
  const refresh = () => void secrets.refresh();
  const create = (
    <ActionButton
      isSmall
      action={{
        label: 'Rotate',
        method: 'POST',
        path: '/v1/signing-secrets',
        cli: 'punctual signing-secret create',
        scope: 'admin',
        done: 'Calls are signed with the next secret, and with the old ones as long as they are valid.',
        question: {
          title: 'Make the next signing secret?',
          text: 'Calls are signed with all that are valid. The others end in a day: give the next one to your receivers before.',
          verb: 'Rotate',
        },
        onDone: (answer) => {
          setMade(answer as NewSigningSecret);
          refresh();
        },
      }}
    />
  );
  return (
    <Panel title="Signing secrets" aside={create} resource={secrets}>
      {({ data }) => (
        <>
          {data.length === 0 && <p class="soft">The first one is made with the first call that is signed.</p>}
          <ul class="stack">
            {data.map((each) => (
              <li key={each.id} class="row-between">
                <span>
                  made <Moment at={each.createdAt} />,{' '}
                  {each.expiresAt === null ? (
                    'the newest'
                  ) : (
                    <>
                      ends <Moment at={each.expiresAt} />
                    </>
                  )}
                </span>
                <End id={each.id} onDone={refresh} />
              </li>
            ))}
          </ul>
          {made && (
            <ShownOnce
              title="The next signing secret"
              what="signing secret"
              secret={made.secret}
              onClose={() => setMade(null)}
            />
          )}
        </>
      )}
    </Panel>
  );
}

function End({ id, onDone }: { readonly id: string; readonly onDone: () => void }) {
  return (
    <ActionButton
      isSmall
      action={{
        label: 'End',
        method: 'DELETE',
        path: `/v1/signing-secrets/${encodeURIComponent(id)}`,
        cli: `punctual signing-secret delete ${id}`,
        scope: 'admin',
        isDangerous: true,
        done: 'Calls are not signed with it any more.',
        question: {
          title: 'End this signing secret?',
          text: 'Receivers that know no other one refuse the calls from then on.',
          verb: 'End it',
          isDangerous: true,
        },
        onDone,
      }}
    />
  );
}
