import { useState } from 'preact/hooks';
import type { NewKeyView } from '../../../../src/core/access.js';
import { tenant } from '../../api/client.js';
import { may } from '../../api/session.js';
import { Choices, FormDialog, TextField } from '../../parts/form.js';
import { momentOfLocal } from '../jobs/local-time.js';

const SCOPES = ['read', 'submit', 'work', 'admin'];

interface NewKeyProps {
  readonly onClose: () => void;
  readonly onDone: (key: NewKeyView) => void;
}

/** Makes a key of the tenant, or of an operator. */
export function NewKey({ onClose, onDone }: NewKeyProps) {
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<readonly string[]>(['read']);
  const [queues, setQueues] = useState('');
  const [tasks, setTasks] = useState('');
  const [expires, setExpires] = useState('');
  const [isOperator, setOperator] = useState(false);
  const body = {
    name,
    ...(isOperator ? { operator: true } : { scopes }),
    ...(!isOperator && queues.trim() !== '' && { queues: namesOf(queues) }),
    ...(!isOperator && tasks.trim() !== '' && { tasks: namesOf(tasks) }),
    ...(expires !== '' && { expiresAt: momentOfLocal(expires) ?? expires }),
  };
  return (
    <FormDialog
      title="New key"
      onClose={onClose}
      action={
        name === '' || (!isOperator && scopes.length === 0)
          ? null
          : {
              label: 'Create',
              method: 'POST',
              path: '/v1/keys',
              allTenants: isOperator,
              body,
              cli: `punctual key create ${wordsOf(body)}`,
              scope: 'admin',
              done: `The key ${name} is made.`,
              onDone: (answer) => onDone(answer as NewKeyView),
            }
      }
    >
      {(problem) => (
        <>
          <TextField
            label="Name"
            hint="Stands beside everything that is done with it"
            isRequired
            {...{ value: name, onChange: setName, problem, pointer: '/name' }}
          />
          {may('operator') && (
            <label class="field-check">
              <input type="checkbox" checked={isOperator} onChange={() => setOperator(!isOperator)} /> for
              operators: every tenant, and everything
            </label>
          )}
          {!isOperator && (
            <>
              {tenant.value !== null && (
                <p class="soft">
                  It is for the tenant <span class="mono">{tenant.value}</span>; another is chosen at the top
                  of the page.
                </p>
              )}
              <Choices legend="It may" all={SCOPES} chosen={scopes} onChange={setScopes} />
              <div class="field-pair">
                <TextField
                  label="Only these queues"
                  hint="Names with commas; empty for all"
                  {...{ value: queues, onChange: setQueues, problem, pointer: '/queues' }}
                />
                <TextField
                  label="Only these tasks"
                  hint="Names with commas; empty for all"
                  {...{ value: tasks, onChange: setTasks, problem, pointer: '/tasks' }}
                />
              </div>
            </>
          )}
          <TextField
            label="Expires"
            hint="In your time zone; empty for never"
            type="datetime-local"
            {...{ value: expires, onChange: setExpires, problem, pointer: '/expiresAt' }}
          />
        </>
      )}
    </FormDialog>
  );
}

function namesOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((name) => name !== '');
}

interface KeyBody {
  readonly name: string;
  readonly operator?: boolean;
  readonly scopes?: readonly string[];
  readonly queues?: readonly string[];
  readonly tasks?: readonly string[];
  readonly expiresAt?: string;
}

function wordsOf({ name, operator, scopes, queues, tasks, expiresAt }: KeyBody): string {
  const words = [
    `--name '${name.replaceAll("'", `'\\''`)}'`,
    operator && '--operator',
    scopes && `--scopes ${scopes.join()}`,
    queues && `--queues ${queues.join()}`,
    tasks && `--tasks ${tasks.join()}`,
    expiresAt && `--expires ${expiresAt}`,
  ];
  return words.filter(Boolean).join(' ');
}
