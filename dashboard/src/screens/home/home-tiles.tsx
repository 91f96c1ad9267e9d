import type { ComponentChildren } from 'preact';
import type { StatsView, WaitingView } from '../../../../src/core/wire.js';
import { tenant } from '../../api/client.js';
import { session } from '../../api/session.js';
import { countText, durationText, shortCountText } from '../../parts/duration-text.js';
import { ResourceProblem } from '../../parts/problem-note.js';
import { addressOf } from '../../routing/root.js';
import { useCluster, useLater, useStats, useWaiting, useWorkers } from './figures.js';

/** The counts that somebody looks at first. */
export function HomeTiles() {
  const waiting = useWaiting();
  const later = useLater();
  const stats = useStats('1h');
  return (
    <section class="home-wide" aria-label="Counts">
      <ResourceProblem resource={waiting} />
      <div class="tiles">
        <LiveTiles waiting={waiting.data.value} later={later.data.value?.later} />
        <EndTiles stats={stats.data.value} />
        <WorkersTile />
        <LeaderTile />
      </div>
    </section>
  );
}

interface TileProps {
  readonly name: string;
  /** Where it leads to. */
  readonly path?: string;
  /** Undefined while it is not known. */
  readonly value: ComponentChildren;
  readonly more?: ComponentChildren;
  readonly tone?: 'bad' | 'warn' | undefined;
}

function Tile({ name, path, value, more, tone }: TileProps) {
  const content = (
    <>
      <span class="tile-name">{name}</span>
      <span class={`tile-value${tone ? ` tile-${tone}` : ''}`}>{value ?? '–'}</span>
      <span class="tile-more">{more}</span>
    </>
  );
  if (path === undefined) return <div class="tile">{content}</div>;
  return (
    <a class="tile" href={addressOf(path)}>
      {content}
    </a>
  );
}

interface LiveTilesProps {
  readonly waiting: WaitingView | undefined;
  /** Jobs that are not live. */
  readonly later: WaitingView['later'];
}

function LiveTiles({ waiting, later: far }: LiveTilesProps) {
  const more = waiting && !waiting.complete ? '+' : '';
  const later = waiting?.data.find(({ reason }) => reason === 'due-time')?.jobs ?? 0;
  const all = waiting?.data.reduce((sum, { jobs }) => sum + jobs, 0) ?? 0;
  const oldest = waiting?.data.reduce((most, { oldestReadyMs }) => Math.max(most, oldestReadyMs), 0) ?? 0;
  const count = (number: number) =>
    waiting && <span title={countText(number)}>{shortCountText(number) + more}</span>;
  return (
    <>
      <Tile
        name="Running"
        path="/jobs?state=running"
        value={waiting && <span title={countText(waiting.running)}>{shortCountText(waiting.running)}</span>}
        more="now"
      />
      <Tile name="Ready" path="/jobs?state=pending" value={count(all - later)} more="due, not started" />
      <Tile
        name="Due later"
        path="/jobs?state=pending"
        value={
          waiting && (
            <span title={countText(later + (far?.notDue ?? 0))}>
              {shortCountText(later + (far?.notDue ?? 0)) + (far && !far.complete ? '+' : more)}
            </span>
          )
        }
        more={`${countText(later)}${more} within minutes`}
      />
      <Tile
        name="Oldest ready"
        value={waiting && (all > later ? durationText(oldest) : 'none')}
        more={all > later ? 'since it was due' : 'everything due has started'}
        tone={oldest > 60_000 ? 'warn' : undefined}
      />
    </>
  );
}

function EndTiles({ stats }: { readonly stats: StatsView | undefined }) {
  const sum = (counter: 'jobsCompleted' | 'jobsFailed' | 'jobsRetried') =>
    stats?.history?.reduce((total, minute) => total + minute[counter], 0) ?? 0;
  const [done, failed, retried] = [sum('jobsCompleted'), sum('jobsFailed'), sum('jobsRetried')];
  const inAll = (total: number | undefined) => (total === undefined ? '' : `${shortCountText(total)} in all`);
  return (
    <>
      <Tile
        name="Succeeded"
        path="/jobs?state=succeeded"
        value={stats && <span title={countText(done)}>{shortCountText(done)}</span>}
        more={`last hour · ${inAll(stats?.jobsCompleted)}`}
      />
      <Tile
        name="Failed"
        path="/errors"
        value={stats && <span title={countText(failed)}>{shortCountText(failed)}</span>}
        more={`last hour · ${shortCountText(retried)} ${retried === 1 ? 'retry' : 'retries'}`}
        tone={failed > 0 ? 'bad' : undefined}
      />
    </>
  );
}

/** Those that serve the tenant. A tenant is not told which shared ones there are, so none of its own is no reason to worry. */
function WorkersTile() {
  const { data } = useWorkers();
  const isOperator = session.value?.operator === true;
  const all = data.value?.data ?? [];
  const alive = all.filter(
    (worker) => worker.state !== 'dead' && (!isOperator || worker.shared || worker.tenant === tenant.value),
  );
  const slots = alive.reduce((sum, worker) => sum + worker.slots, 0);
  const busy = alive.reduce((sum, worker) => sum + worker.running, 0);
  const more = data.value?.next ? '+' : '';
  return (
    <Tile
      name={isOperator ? 'Workers alive' : 'Own workers alive'}
      path="/workers"
      value={data.value && countText(alive.length) + more}
      more={
        alive.length === 0
          ? isOperator
            ? 'punctual worker run'
            : 'beside those that all share'
          : `${countText(busy)} of ${countText(slots)}${more} slots busy`
      }
      tone={isOperator && data.value && alive.length === 0 ? 'warn' : undefined}
    />
  );
}

/** A tenant is told only whether all is well. */
function LeaderTile() {
  const { data } = useCluster();
  const cluster = data.value;
  const isWell = cluster?.ok ?? true;
  const tone = cluster?.paused ? 'warn' : isWell ? undefined : 'bad';
  if (!session.value?.operator) {
    const words = cluster?.paused ? 'paused' : isWell ? 'well' : 'no leader';
    return <Tile name="Cluster" path="/cluster" value={cluster && words} more="dispatch" tone={tone} />;
  }
  const shard = cluster?.shards[0];
  const alive = cluster?.nodes.filter(({ state }) => state === 'alive').length ?? 0;
  return (
    <Tile
      name={cluster?.paused ? 'Leader · paused' : 'Leader'}
      path="/cluster"
      value={cluster && <span class="tile-node">{shard?.leader ?? 'none'}</span>}
      more={shard && `epoch ${shard.epoch} · ${alive} ${alive === 1 ? 'node' : 'nodes'} alive`}
      tone={tone}
    />
  );
}
