import type { Command } from 'commander';
import type { Why } from '../core/wire.js';
import type { Workflow, WorkflowStepView } from '../core/workflow.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { STATE_STYLES } from './job-text.js';
import type { Cell, Column } from './output.js';
import { workflowPath } from './workflow-follow.js';
import { workflowLine } from './workflow-text.js';

/** Steps that are asked about. */
const MOST_STEPS = 20;

/** Why one step does not go on. */
interface StepReason extends Why {
  readonly step: string;
}

const COLUMNS: readonly Column[] = [
  { header: 'STEP', shrink: 'name' },
  { header: 'STATE' },
  { header: 'GATE', drop: 1 },
  { header: 'WHY', shrink: true },
];

/** `punctual workflow why`: what the steps that could be next wait for. */
export function addWhyCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('why')
    .description(
      'say what a workflow waits for: why each step that could be next does not run, or has not ended',
    )
    .argument('<id>', 'the id of the workflow');
  callsServer(cli, command, async ({ api, output, args }) => {
    const ask = { signal: cli.interrupted };
    const shown = await api.request<Workflow>('GET', workflowPath(args[0]!), ask);
    const next = nextSteps(shown);
    const steps: StepReason[] = [];
    for (const [step, { id }] of next.slice(0, MOST_STEPS))
      steps.push({ step, ...(await api.request<Why>('GET', `/v1/jobs/${id}/why`, ask)) });
    const { id, state, progress } = shown;
    output.document({ id, state, progress, steps, more: next.length - steps.length }, () => {
      const rows = steps.map(({ step, gate, detail }): Cell[] => [
        step,
        stateOf(shown.jobs[step]!),
        gate,
        detail,
      ]);
      const more = next.length > steps.length ? `… and ${next.length - steps.length} more steps\n` : '';
      const table = rows.length > 0 ? `\n${output.table(COLUMNS, rows)}` : '';
      return `${workflowLine(shown)}\n${table}${more}`;
    });
  });
}

function stateOf({ state }: WorkflowStepView): Cell {
  return { text: state, style: STATE_STYLES[state] };
}

/** The steps that have not ended and wait for no other step. */
function nextSteps({ jobs }: Workflow): [string, WorkflowStepView][] {
  const isOpen = (name: string) => jobs[name]?.finishedAt === null;
  return Object.entries(jobs).filter(([name, { after }]) => isOpen(name) && !after.some(isOpen));
}
