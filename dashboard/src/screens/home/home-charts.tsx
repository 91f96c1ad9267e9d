import type { StatsView } from '../../../../src/core/wire.js';
import { nodeTime } from '../../api/client.js';
import { Chart } from '../../parts/chart.js';
import { Choice } from '../../parts/choice.js';
import { countText, durationText, shortCountText } from '../../parts/duration-text.js';
import { Panel } from '../../parts/panel.js';
import { query, setQuery } from '../../routing/location.js';
import { useStats } from './figures.js';

const RANGES = [
  ['1h', '1 hour'],
  ['6h', '6 hours'],
  ['24h', '24 hours'],
] as const;
type Range = (typeof RANGES)[number][0];
const HOURS: Readonly<Record<Range, number>> = { '1h': 1, '6h': 6, '24h': 24 };
const MINUTE_MS = 60_000;

/** How much was done, and how late it started, by the minute. */
export function HomeCharts() {
  const asked = query.value.get('range');
  const range = RANGES.find(([value]) => value === asked)?.[0] ?? '1h';
  const stats = useStats(range);
  const choose = (value: Range) => setQuery({ range: value === '1h' ? null : value });
  const choice = <Choice label="Time" options={RANGES} chosen={range} onChoose={choose} />;
  return (
    <>
      <Panel title="Throughput" aside={choice} resource={stats} class="home-half">
        {(data) => <Throughput stats={data} range={range} />}
      </Panel>
      <Panel
        title="Start delay"
        aside={<span class="soft">due → started</span>}
        resource={stats}
        class="home-half"
      >
        {(data) => <StartDelay stats={data} range={range} />}
      </Panel>
    </>
  );
}

interface RangeProps {
  readonly stats: StatsView;
  readonly range: Range;
}

type Minute = NonNullable<StatsView['history']>[number];

/** Every minute of the time, with what was counted in it; the API leaves out those in which nothing was. */
function minutesOf(
  { history = [] }: StatsView,
  range: Range,
): { times: number[]; minutes: (Minute | undefined)[] } {
  const known = new Map(history.map((each) => [Date.parse(each.minute), each]));
  const last = Math.floor(nodeTime() / MINUTE_MS) * MINUTE_MS;
  const moments = Array.from(
    { length: HOURS[range] * 60 },
    (_, i, count = HOURS[range] * 60) => last - (count - 1 - i) * MINUTE_MS,
  );
  return { times: moments.map((at) => at / 1_000), minutes: moments.map((at) => known.get(at)) };
}

const perMinute = (value: number) => shortCountText(Math.round(value));

function Throughput({ stats, range }: RangeProps) {
  const { times, minutes } = minutesOf(stats, range);
  const of = (counter: 'jobsSubmitted' | 'jobsCompleted' | 'jobsFailed') =>
    minutes.map((each) => each?.[counter] ?? 0);
  return (
    <Chart
      label="Jobs per minute"
      times={times}
      format={perMinute}
      series={[
        { name: 'Succeeded', colour: '--chart-2', values: of('jobsCompleted'), isFilled: true },
        { name: 'Submitted', colour: '--chart-1', values: of('jobsSubmitted') },
        { name: 'Failed', colour: '--chart-4', values: of('jobsFailed') },
      ]}
    />
  );
}

/** Powers of ten, which are round in seconds and in milliseconds, and in no larger unit. */
function tenfoldText(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${countText(ms / 1_000)} s`;
}

function StartDelay({ stats, range }: RangeProps) {
  const { times, minutes } = minutesOf(stats, range);
  // A logarithmic scale has no zero.
  const of = (percentile: 'p50Ms' | 'p99Ms') =>
    minutes.map((each) => {
      const value = each?.lateness[percentile] ?? null;
      return value === null ? null : Math.max(1, value);
    });
  return (
    <Chart
      label="Milliseconds between due time and start"
      times={times}
      format={durationText}
      axisFormat={tenfoldText}
      isLogarithmic
      series={[
        { name: 'p50', colour: '--chart-1', values: of('p50Ms'), hasPoints: true },
        { name: 'p99', colour: '--chart-3', values: of('p99Ms'), hasPoints: true },
      ]}
    />
  );
}
