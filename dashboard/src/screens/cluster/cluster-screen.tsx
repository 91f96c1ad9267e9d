import { useMemo, useRef } from 'preact/hooks';
import type { ClusterView, StatsView } from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { may, session } from '../../api/session.js';
import { type Action, ActionButton, perform } from '../../parts/action.js';
import { countText, durationText, plural } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { Facts } from '../../parts/facts.js';
import { Moment } from '../../parts/moment.js';
import { Panel, ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Command, useCommands } from '../../shell/screen-commands.js';
import { useCluster } from '../home/figures.js';
import { LoadAhead } from '../home/load-ahead.js';

const PAUSE: Action = {
  label: 'Pause dispatch',
  method: 'POST',
  path: '/v1/cluster/pause',
  cli: 'punctual cluster pause',
  allTenants: true,
  scope: 'operator',
  question: {
    title: 'Pause dispatch everywhere?',
    text: 'No job of any tenant starts until dispatch is resumed. Running jobs go on.',
    verb: 'Pause',
  },
  done: 'Dispatch is paused.',
};
const RESUME: Action = {
  label: 'Resume dispatch',
  method: 'POST',
  path: '/v1/cluster/resume',
  cli: 'punctual cluster resume',
  allTenants: true,
  scope: 'operator',
  done: 'Dispatch goes on.',
};

/** Who leads, which nodes there are, and whether jobs are handed out. */
export default function ClusterScreen() {
  const cluster = useCluster();
  const refresh = { onDone: () => void cluster.refresh() };
  const pause: Action = { ...PAUSE, ...refresh, undo: { ...RESUME, ...refresh } };
  const resume: Action = { ...RESUME, ...refresh, undo: { ...PAUSE, ...refresh } };
  const isPaused = cluster.data.value?.paused;
  usePauseCommand(isPaused, isPaused ? resume : pause);
  return (
    <>
      <ScreenTop title="Cluster">
        {isPaused === true && <ActionButton action={resume} isMain />}
        {isPaused === false && <ActionButton action={pause} />}
      </ScreenTop>
      {isPaused === true && (
        <p class="notice notice-warn" role="status">
          Dispatch is paused: no job of any tenant starts.
        </p>
      )}
      {session.value?.operator ? <Machinery /> : <OfTenant />}
    </>
  );
}

/** Puts into the palette what the button does. */
function usePauseCommand(isPaused: boolean | undefined, action: Action): void {
  const newest = useRef(action);
  newest.current = action;
  const commands = useMemo((): readonly Command[] => {
    if (isPaused === undefined || !may(action.scope)) return [];
    return [{ title: newest.current.label, kind: 'do', run: () => void perform(newest.current) }];
  }, [isPaused, action.scope]);
  useCommands(commands);
}

/** A tenant is told only whether all is well. */
function OfTenant() {
  const { data } = useCluster();
  if (!data.value) return null;
  return (
    <EmptyState title={data.value.ok ? 'The cluster is well' : 'The cluster has no leader at this moment'}>
      <p>Nodes and terms are shown to operators.</p>
    </EmptyState>
  );
}

function Machinery() {
  const cluster = useCluster();
  return (
    <div class="grid">
      <Panel title="Leaders" resource={cluster}>
        {(data) => data.shards.map((shard) => <Leader key={shard.id} shard={shard} />)}
      </Panel>
      <NodeFigures />
      <Panel title="Nodes" resource={cluster} class="card-wide">
        {(data) => <Nodes nodes={data.nodes} />}
      </Panel>
      <div class="card-wide">
        <LoadAhead isOfAll />
      </div>
    </div>
  );
}

function Leader({ shard }: { readonly shard: ClusterView['shards'][number] }) {
  return (
    <Facts
      facts={[
        ['Shard', shard.id],
        ['Leader', shard.leader ?? <StateBadge state="dead" text="none" />],
        ['Epoch', <span class="figure">{countText(shard.epoch)}</span>],
        ['Terms', <span class="figure">{countText(shard.terms)}</span>],
      ]}
    />
  );
}

function Nodes({ nodes }: { readonly nodes: ClusterView['nodes'] }) {
  return (
    <table class="small-table">
      <thead>
        <tr>
          <th scope="col">Node</th>
          <th scope="col">State</th>
          <th scope="col">Leads</th>
          <th scope="col">Seen</th>
          <th scope="col" class="wide-only">
            Version
          </th>
          <th scope="col" class="wide-only">
            Address
          </th>
        </tr>
      </thead>
      <tbody>
        {nodes.map(({ id, state, leads, lastSeen, version, url }) => (
          <tr key={id}>
            <th scope="row">{id}</th>
            <td>
              <StateBadge state={state} />
            </td>
            <td>{leads.length > 0 ? leads.map((shard) => `shard ${shard}`).join(', ') : '–'}</td>
            <td>
              <Moment at={lastSeen} />
            </td>
            <td class="wide-only">{version}</td>
            <td class="wide-only mono">{url}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What only the node knows that this page talks to, and what survives all of them. */
function NodeFigures() {
  const stats = useResource<StatsView>('/v1/stats', { everyMs: 30_000, allTenants: true });
  return (
    <Panel title="Since the beginning, of all tenants" resource={stats}>
      {(data) => (
        <Facts
          facts={[
            [
              'Jobs',
              `${countText(data.jobsSubmitted)} submitted, ${countText(data.jobsCompleted)} succeeded`,
            ],
            ['Failed', `${plural(data.jobsFailed, 'job')}, ${plural(data.jobsRetried, 'retry', 'retries')}`],
            ['Fenced off', `${plural(data.staleCompletions + data.staleFailures, 'late report')}`],
            ['Start delay', percentiles(data.lateness)],
            ['Event loop', data.node && `${percentiles(data.node.loopDelay)} at ${data.node.id}`],
          ]}
        />
      )}
    </Panel>
  );
}

function percentiles({ p50Ms, p99Ms }: StatsView['lateness']): string {
  if (p50Ms === null || p99Ms === null) return 'not measured yet';
  return `p50 ${durationText(p50Ms)}, p99 ${durationText(p99Ms)}`;
}
