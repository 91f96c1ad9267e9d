import type { ForecastView } from '../../../../src/core/wire.js';
import { Chart } from '../../parts/chart.js';
import { clockText, countText, plural, shortCountText } from '../../parts/duration-text.js';
import { Panel } from '../../parts/panel.js';
import { useForecast } from './figures.js';

interface LoadAheadProps {
  /** Whether it is about all tenants. */
  readonly isOfAll?: boolean;
}

/** How much becomes due in the next hour, and the minutes in which too much does. */
export function LoadAhead({ isOfAll = false }: LoadAheadProps) {
  const forecast = useForecast(isOfAll);
  return (
    <Panel
      title={isOfAll ? 'Load ahead, of all tenants' : 'Load ahead'}
      aside={<span class="soft">next hour</span>}
      resource={forecast}
      class="home-half"
    >
      {(data) => <Ahead forecast={data} />}
    </Panel>
  );
}

function Ahead({ forecast }: { readonly forecast: ForecastView }) {
  const { data, slots, slotsWanted, complete } = forecast;
  const totals = data.map(({ jobs, occurrences }) => jobs + occurrences);
  const herds = data.filter(({ herd }) => herd);
  const total = totals.reduce((sum, each) => sum + each, 0);
  return (
    <>
      <Chart
        label="Jobs and occurrences that become due, by the minute"
        times={data.map(({ at }) => Date.parse(at) / 1_000)}
        format={(value) => shortCountText(Math.round(value))}
        heightPx={150}
        areBars
        series={[
          { name: 'Due', colour: '--chart-1', values: data.map(({ herd }, i) => (herd ? null : totals[i]!)) },
          {
            name: 'Herd',
            colour: '--chart-3',
            values: data.map(({ herd }, i) => (herd ? totals[i]! : null)),
          },
        ]}
      />
      <p class="soft">
        {total === 0 ? 'Nothing is due' : `${countText(total)}${complete ? '' : ' or more'} due`} in the next
        hour
        {slotsWanted !== null && slots !== null && total > 0 && (
          <>
            {' '}
            · the busiest minute wants {plural(slotsWanted, 'slot')} of {countText(slots)}
          </>
        )}
      </p>
      {herds.length > 0 && (
        <p class="notice notice-warn">
          {plural(herds.length, 'herd')}:{' '}
          {herds
            .slice(0, 4)
            .map(({ at, jobs, occurrences }) => `${clockText(at)} (${countText(jobs + occurrences)})`)
            .join(', ')}
          {herds.length > 4 && ' …'}. A little jitter in the schedules would spread them.
        </p>
      )}
    </>
  );
}
