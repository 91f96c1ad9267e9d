import type { Workflow } from '../../../../src/core/workflow.js';
import { type Action, ActionButton } from '../../parts/action.js';
import { goTo } from '../../routing/location.js';

interface WorkflowActionsProps {
  readonly workflow: Workflow;
  readonly onDone: () => void;
}

/** What can be done to a workflow as it stands. */
export function WorkflowActions({ workflow, onDone }: WorkflowActionsProps) {
  const { id, state, held, name } = workflow;
  const change = (verb: string, more: Pick<Action, 'label' | 'done'> & Partial<Action>): Action => ({
    method: 'POST',
    path: `/v1/workflows/${id}/${verb}`,
    cli: `punctual workflow ${verb} ${id}`,
    scope: 'submit',
    onDone,
    ...more,
  });
  const hold = change('hold', { label: 'Hold', done: 'On hold: no step starts until it is released.' });
  const release = change('release', { label: 'Release', done: 'Released.' });
  const isOver = state !== 'running';
  return (
    <>
      {!isOver &&
        (held ? (
          <ActionButton action={{ ...release, undo: hold }} isMain />
        ) : (
          <ActionButton action={{ ...hold, undo: release }} />
        ))}
      {!isOver && (
        <ActionButton
          action={change('cancel', {
            label: 'Cancel',
            done: 'What has not started never does; what runs is told to stop.',
            isDangerous: true,
            question: {
              title: `Cancel ${name}?`,
              text: 'What has not started never does, and what runs is told to stop. A retry can set it going again.',
              verb: 'Cancel it',
              isDangerous: true,
            },
          })}
        />
      )}
      {isOver && state !== 'succeeded' && (
        <ActionButton
          isMain
          action={change('retry', {
            label: 'Retry from failed',
            body: {},
            done: 'What failed runs again, and what was skipped because of it.',
          })}
        />
      )}
      <ActionButton
        action={change('rerun', {
          label: 'Run again',
          body: {},
          done: 'Submitted again as a new workflow.',
          question: {
            title: `Run ${name} again?`,
            text: 'All of its steps run again as a new workflow; this one stays as it is.',
            verb: 'Run again',
          },
          onDone: (answer) => goTo(`/workflows/${(answer as Workflow).id}`),
        })}
      />
    </>
  );
}
