import type { Problem } from '../../api/problem.js';
import { Field, TextField } from '../../parts/form.js';
import type { ProgramDraft } from './program-draft.js';

interface ProgramFieldsProps {
  readonly draft: ProgramDraft;
  readonly onChange: (change: Partial<ProgramDraft>) => void;
  readonly problem: Problem | null;
}

/** An uploaded program, and how it is run. */
export function ProgramFields({ draft, onChange, problem }: ProgramFieldsProps) {
  return (
    <>
      <TextField
        label="Artifact"
        hint="Such as packer@1.4.0, packer for its newest version, or an id"
        isRequired
        value={draft.artifact}
        onChange={(artifact) => onChange({ artifact })}
        {...{ problem, pointer: '/target/artifact' }}
      />
      <Lines {...{ draft, onChange, problem }} name="args" label="Arguments" hint="One in each line" />
      <Lines
        {...{ draft, onChange, problem }}
        name="env"
        label="Environment"
        hint={'One in each line, such as REGION=eu; a secret as KEY={"$secret": "name"}'}
      />
      <Field label="Isolation" pointer="/target/isolation" problem={problem}>
        {(attributes) => (
          <select
            {...attributes}
            value={draft.isolation}
            onChange={({ currentTarget }) => onChange({ isolation: currentTarget.value })}
          >
            <option value="">as the worker has it</option>
            <option value="none">none</option>
            <option value="auto">auto: as far as the machine can</option>
            <option value="required">required: runs only isolated</option>
          </select>
        )}
      </Field>
    </>
  );
}

interface LinesProps extends ProgramFieldsProps {
  readonly name: 'args' | 'env';
  readonly label: string;
  readonly hint: string;
}

function Lines({ draft, onChange, problem, name, label, hint }: LinesProps) {
  return (
    <Field {...{ label, hint, problem }} pointer={`/target/${name}`}>
      {(attributes) => (
        <textarea
          {...attributes}
          class="mono"
          rows={2}
          spellcheck={false}
          value={draft[name]}
          onInput={({ currentTarget }) => onChange({ [name]: currentTarget.value })}
        />
      )}
    </Field>
  );
}
