import { useState } from 'preact/hooks';
import type { SecretView } from '../../../../src/core/secret.js';
import { FormDialog, TextField } from '../../parts/form.js';

interface SecretFormProps {
  /** The one that is given another value; missing for a new one. */
  readonly secret?: SecretView;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Sets a secret. What it was before is not shown, because nobody can read it. */
export function SecretForm({ secret, onClose, onDone }: SecretFormProps) {
  const [name, setName] = useState(secret?.name ?? '');
  const [value, setValue] = useState('');
  const [origins, setOrigins] = useState(secret?.origins.join(' ') ?? '');
  const list = origins.split(/[\s,]+/).filter((each) => each !== '');
  const options = list.map((each) => `--origin ${each}`).join(' ');
  const isComplete = name !== '' && value !== '' && list.length > 0;
  return (
    <FormDialog
      title={secret ? `Change ${secret.name}` : 'New secret'}
      onClose={onClose}
      copiedBody={{ value: 'VALUE', origins: list }}
      action={
        isComplete
          ? {
              label: 'Set',
              method: 'PUT',
              path: `/v1/secrets/${encodeURIComponent(name)}`,
              body: { value, origins: list },
              cli: `punctual secret set ${name} ${options}`,
              scope: 'admin',
              done: `The secret ${name} is set.`,
              onDone,
            }
          : null
      }
    >
      {(problem) => (
        <>
          {!secret && (
            <TextField
              label="Name"
              hint='Targets refer to it: {"$secret": "name"}'
              isRequired
              {...{ value: name, onChange: setName, problem, pointer: '/name' }}
            />
          )}
          <TextField
            label="Value"
            hint="It is encrypted, and never shown again"
            type="password"
            isRequired
            {...{ value, onChange: setValue, problem, pointer: '/value' }}
          />
          <TextField
            label="Origins that it may go to"
            hint="Such as https://api.example.com; several with spaces"
            isRequired
            {...{ value: origins, onChange: setOrigins, problem, pointer: '/origins' }}
          />
        </>
      )}
    </FormDialog>
  );
}
