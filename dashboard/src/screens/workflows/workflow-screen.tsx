import { useEffect, useState } from 'preact/hooks';
import type { Workflow, WorkflowStepView } from '../../../../src/core/workflow.js';
import { type Freshness, useResource } from '../../api/resource.js';
import { ActionButton, CopyAs } from '../../parts/action.js';
import { Facts } from '../../parts/facts.js';
import { Moment } from '../../parts/moment.js';
import { Panel, ScreenTop } from '../../parts/panel.js';
import { ResourceProblem } from '../../parts/problem-note.js';
import { ProgressBar } from '../../parts/progress-bar.js';
import { quoted } from '../../parts/quoted.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { Tabs } from '../../parts/tabs.js';
import { addressOf } from '../../routing/root.js';
import type { ScreenProps } from '../../routing/routes.js';
import { CriticalPathBars } from './critical-path.js';
import { GanttView } from './gantt-view.js';
import { GraphView } from './graph-view.js';
import { WorkflowActions } from './workflow-actions.js';

/** One workflow: its graph, its critical path, and its steps. */
export default function WorkflowScreen({ params: { id = '' } }: ScreenProps) {
  const path = `/v1/workflows/${encodeURIComponent(id)}`;
  const [steps, setSteps] = useState(0);
  const freshness = freshnessOf(id, steps);
  const workflow = useResource<Workflow>(path, freshness);
  const view = workflow.data.value;
  useEffect(() => setSteps(view?.progress.steps ?? 0), [view]);
  const refresh = () => void workflow.refresh();
  return (
    <>
      <ScreenTop title={view?.name ?? 'Workflow'}>
        {view && <WorkflowActions workflow={view} onDone={refresh} />}
        <CopyAs method="GET" path={path} cli={`punctual workflow get ${quoted(id)}`} />
      </ScreenTop>
      <div class="stack">
        <Panel title="Progress" resource={workflow}>
          {(now) => <Progress workflow={now} />}
        </Panel>
        <Panel title="Steps" resource={workflow}>
          {(now) => (
            <Tabs
              label="Ways to look at the steps"
              tabs={[
                {
                  name: 'graph',
                  title: 'Graph',
                  render: () => <GraphView jobs={now.jobs} critical={criticalOf(now)} />,
                },
                {
                  name: 'gantt',
                  title: 'Gantt',
                  render: () => <TimedSteps path={path} freshness={freshness} workflow={now} />,
                },
                { name: 'list', title: 'List', render: () => <Steps workflow={now} onDone={refresh} /> },
                {
                  name: 'path',
                  title: 'Critical path',
                  render: () => <CriticalPathBars path={now.criticalPath} />,
                },
              ]}
            />
          )}
        </Panel>
      </div>
    </>
  );
}

/** From so many steps on, a workflow is read less often: something happens all the time, and each read is much. */
const MANY_STEPS = 1_000;

function freshnessOf(id: string, steps: number): Freshness {
  const atMostEveryMs = steps > MANY_STEPS ? 10_000 : 2_000;
  return { events: ['workflow.*', 'job.*'], about: id, atMostEveryMs };
}

interface TimedStepsProps {
  readonly path: string;
  readonly freshness: Freshness;
  readonly workflow: Workflow;
}

/** Attempts are read only where they are shown: of ten thousand steps, they are much. */
function TimedSteps({ path, freshness, workflow }: TimedStepsProps) {
  const timed = useResource<Workflow>(`${path}?include=attempts`, freshness);
  const view = timed.data.value;
  return (
    <>
      <ResourceProblem resource={timed} />
      {view && <GanttView workflow={view} critical={criticalOf(workflow)} />}
      {!view && timed.problem.value === null && <div class="placeholder" />}
    </>
  );
}

function criticalOf({ criticalPath }: Workflow): ReadonlySet<string> {
  return new Set(criticalPath.steps.map(({ name }) => name));
}

function Progress({ workflow }: { readonly workflow: Workflow }) {
  const { state, held, progress, createdAt, createdBy, endedAt, schedule, definition, parent } = workflow;
  const { steps, ended, failed } = progress;
  return (
    <div class="stack">
      <ProgressBar
        done={ended}
        total={steps}
        label={failed > 0 ? `Steps that have ended, ${failed} of them failed` : 'Steps that have ended'}
      />
      <Facts
        facts={[
          ['State', <StateBadge key="state" state={held ? 'held' : state} />],
          [
            'Submitted',
            <span key="at">
              <Moment at={createdAt} /> by {createdBy}
            </span>,
          ],
          ['Ended', endedAt && <Moment key="ended" at={endedAt} />],
          [
            'Schedule',
            schedule && (
              <a key="schedule" href={addressOf(`/schedules/${encodeURIComponent(schedule)}`)}>
                {schedule}
              </a>
            ),
          ],
          ['Definition', definition && `${definition.name}, version ${definition.version}`],
          [
            'Inside of',
            parent && (
              <a key="parent" href={addressOf(`/workflows/${parent.workflow}`)}>
                another workflow
              </a>
            ),
          ],
          ['On failure', workflow.onFailure === 'stop' ? 'the rest is skipped' : 'the rest goes on'],
        ]}
      />
    </div>
  );
}

interface StepRow extends WorkflowStepView {
  readonly name: string;
}

interface StepsProps {
  readonly workflow: Workflow;
  readonly onDone: () => void;
}

/** The steps as a list; what failed stands first. */
function Steps({ workflow, onDone }: StepsProps) {
  const rows = Object.entries(workflow.jobs).map(([name, step]) => ({ name, ...step }));
  const rank = ({ state }: StepRow) => (state === 'failed' ? 0 : state === 'running' ? 1 : 2);
  rows.sort((a, b) => rank(a) - rank(b));
  const columns: readonly Column<StepRow>[] = [
    { title: 'Step', render: ({ name }) => name },
    { title: 'State', width: '110px', render: ({ state }) => <StateBadge state={state} /> },
    { title: 'After', hiddenBelow: 'narrow', render: ({ after }) => after.join(', ') || '–' },
    { title: 'Runs if', width: '130px', hiddenBelow: 'medium', render: ({ runIf }) => runIf },
    {
      ...{ title: 'Ended', width: '110px', hiddenBelow: 'medium' },
      render: ({ finishedAt }) => (finishedAt === null ? '–' : <Moment at={finishedAt} />),
    },
    {
      ...{ title: 'Again', width: '150px', hiddenBelow: 'narrow' },
      render: ({ name }) => workflow.state !== 'running' && <RerunFrom {...{ workflow, name, onDone }} />,
    },
  ];
  return (
    <Table
      label="Steps"
      columns={columns}
      rows={rows}
      keyOf={({ name }) => name}
      pathOf={({ id }) => `/jobs/${id}`}
      empty={<p class="soft">It has no steps.</p>}
      hasKeys
    />
  );
}

function RerunFrom({ workflow: { id }, name, onDone }: StepsProps & { readonly name: string }) {
  return (
    <ActionButton
      isSmall
      action={{
        label: 'From here',
        method: 'POST',
        path: `/v1/workflows/${id}/retry`,
        body: { from: name },
        cli: `punctual workflow retry ${id} --from ${quoted(name)}`,
        scope: 'submit',
        done: `${name} runs again, and everything behind it.`,
        question: {
          title: `Run again from ${name}?`,
          text: 'This step and everything behind it run again. What they returned before stays in history.',
          verb: 'Run again',
        },
        onDone,
      }}
    />
  );
}
