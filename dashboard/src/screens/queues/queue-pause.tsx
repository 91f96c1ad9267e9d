import type { QueueView } from '../../../../src/core/wire.js';
import { type Action, ActionButton } from '../../parts/action.js';

interface QueuePauseProps {
  readonly queue: Pick<QueueView, 'name' | 'paused'>;
  readonly isSmall?: boolean;
  readonly onDone: () => void;
}

/** Stops the starts of a queue, or lets them go on; the one takes the other back. */
export function QueuePause({ queue: { name, paused }, isSmall = false, onDone }: QueuePauseProps) {
  const change = (verb: 'pause' | 'resume'): Action => ({
    label: verb === 'pause' ? 'Pause' : 'Resume',
    method: 'POST',
    path: `/v1/queues/${encodeURIComponent(name)}/${verb}`,
    cli: `punctual queue ${verb} ${name}`,
    scope: 'admin',
    done: verb === 'pause' ? `${name} is paused. What runs goes on.` : `${name} goes on.`,
    onDone,
  });
  const action = change(paused ? 'resume' : 'pause');
  return <ActionButton action={{ ...action, undo: change(paused ? 'pause' : 'resume') }} isSmall={isSmall} />;
}
