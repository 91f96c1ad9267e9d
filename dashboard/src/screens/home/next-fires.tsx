import { Copied } from '../../parts/copied.js';
import { clockText } from '../../parts/duration-text.js';
import { Moment } from '../../parts/moment.js';
import { Panel } from '../../parts/panel.js';
import { addressOf } from '../../routing/root.js';
import { useForecast } from './figures.js';

/** The schedules that are due next. */
export function NextFires() {
  const forecast = useForecast();
  return (
    <Panel
      title="Next fires"
      aside={<a href={addressOf('/schedules')}>All schedules</a>}
      resource={forecast}
      class="home-half"
    >
      {({ soonest, complete }) =>
        soonest.length === 0 && !complete ? (
          <p class="soft">There are too many schedules to tell here which fire next.</p>
        ) : soonest.length === 0 ? (
          <>
            <p class="soft">No schedule is waiting to fire. This makes one:</p>
            <Copied text={`punctual schedule create nightly --cron '0 3 * * *' --task NAME`} />
          </>
        ) : (
          <table class="small-table">
            <tbody>
              {soonest.map(({ schedule, at }) => (
                <tr key={schedule}>
                  <th scope="row">
                    <a href={addressOf(`/schedules/${encodeURIComponent(schedule)}`)}>{schedule}</a>
                  </th>
                  <td class="cell-number">
                    <Moment at={at} />
                  </td>
                  <td class="cell-number soft">{clockText(at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )
      }
    </Panel>
  );
}
