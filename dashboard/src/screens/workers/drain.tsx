import type { WorkerView } from '../../../../src/core/wire.js';
import { ActionButton } from '../../parts/action.js';

interface DrainProps {
  readonly worker: Pick<WorkerView, 'id' | 'name' | 'state'>;
  /** Whether an operator found it among those of all tenants. */
  readonly allTenants: boolean;
  readonly isSmall?: boolean;
  readonly onDone: () => void;
}

/** Has a worker finish what it runs and leave; nothing where it has left or is about to. */
export function Drain({ worker: { id, name, state }, allTenants, isSmall = false, onDone }: DrainProps) {
  if (state !== 'alive') return null;
  return (
    <ActionButton
      isSmall={isSmall}
      action={{
        label: 'Drain',
        method: 'POST',
        path: `/v1/workers/${encodeURIComponent(id)}/drain`,
        cli: `punctual worker drain ${id}`,
        allTenants,
        scope: 'admin',
        done: `${name} takes no more work and leaves when it has finished.`,
        question: {
          title: `Drain ${name}?`,
          text: 'It finishes what it runs, takes no more, and leaves. To have it back, its process must be started again.',
          verb: 'Drain',
        },
        onDone,
      }}
    />
  );
}
