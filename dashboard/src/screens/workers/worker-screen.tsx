import type { WorkerView } from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { session } from '../../api/session.js';
import { CopyAs } from '../../parts/action.js';
import { countText } from '../../parts/duration-text.js';
import { Facts } from '../../parts/facts.js';
import { rateText } from '../../parts/limit-text.js';
import { Moment } from '../../parts/moment.js';
import { Panel, ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { Words } from '../../parts/words.js';
import { addressOf } from '../../routing/root.js';
import type { ScreenProps } from '../../routing/routes.js';
import { Drain } from './drain.js';

/** One worker: what it can run, what it runs, and whether it is alive. */
export default function WorkerScreen({ params: { id = '' } }: ScreenProps) {
  const path = `/v1/workers/${encodeURIComponent(id)}`;
  // Its link may come from a list of all tenants, and its id is that of no other worker.
  const allTenants = session.value?.operator === true;
  const worker = useResource<WorkerView>(path, { everyMs: 3_000, events: ['worker.*'], allTenants });
  const view = worker.data.value;
  return (
    <>
      <ScreenTop title={view?.name ?? 'Worker'}>
        {view && <Drain worker={view} allTenants={allTenants} onDone={() => void worker.refresh()} />}
        <a class="button" href={addressOf(`/jobs?worker=${encodeURIComponent(id)}`)}>
          Its jobs
        </a>
        <CopyAs method="GET" path={path} cli="punctual worker list --json" allTenants={allTenants} />
      </ScreenTop>
      <div class="grid">
        <Panel title="State" resource={worker}>
          {(now) => <State worker={now} />}
        </Panel>
        <Panel title="What it can run" resource={worker}>
          {(now) => <Abilities worker={now} />}
        </Panel>
      </div>
    </>
  );
}

function State({ worker }: { readonly worker: WorkerView }) {
  const { state, lastSeen, running, slots, registeredAt, rate, shared, tenant, id, version } = worker;
  return (
    <Facts
      facts={[
        ['State', <StateBadge key="state" state={state} />],
        ['Last sign of life', <Moment key="seen" at={lastSeen} />],
        ['Running', `${countText(running)} of ${countText(slots)} slots`],
        ['Registered', <Moment key="at" at={registeredAt} />],
        ['Version', version],
        ['Rate of starts', rate === null ? null : rateText(rate)],
        ['Serves', shared ? 'all tenants' : `the tenant ${tenant}`],
        [
          'Session',
          <span key="id" class="mono">
            {id}
          </span>,
        ],
      ]}
    />
  );
}

function Abilities({ worker: { queues, targets, tasks, labels } }: { readonly worker: WorkerView }) {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return (
    <Facts
      facts={[
        ['Queues', <Words key="queues" words={queues.map((queue) => (queue === '*' ? '* (all)' : queue))} />],
        ['Targets', <Words key="targets" words={targets} />],
        ['Handlers', <Words key="tasks" words={tasks} none="none" />],
        ['Labels', <Words key="labels" words={pairs} none="none" />],
      ]}
    />
  );
}
