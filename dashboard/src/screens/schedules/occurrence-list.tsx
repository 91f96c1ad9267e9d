import type { PreviewAnswer } from '../../../../src/core/wire.js';
import { exactText } from '../../parts/duration-text.js';
import { Moment } from '../../parts/moment.js';

interface OccurrenceListProps {
  readonly occurrences: PreviewAnswer['data'];
  /** The zone of the schedule; missing where it has none. */
  readonly timezone?: string;
}

/** Moments in the zone of the schedule and in that of the viewer, with what changes of the clocks do to them. */
export function OccurrenceList({ occurrences, timezone }: OccurrenceListProps) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const isOwn = timezone === undefined || own === timezone;
  return (
    <ol class="occurrences" aria-label="Next occurrences">
      {occurrences.map(({ at, note }) => (
        <li key={at}>
          <time dateTime={at} title={exactText(at)}>
            {zoneText(at, timezone ?? own)}
          </time>{' '}
          {!isOwn && <span class="soft">{zoneText(at, own)}</span>}{' '}
          {note ? (
            <span class="badge badge-warn">{note}</span>
          ) : (
            <span class="soft">
              <Moment at={at} />
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}

function zoneText(at: string, timeZone: string): string {
  const format = new Intl.DateTimeFormat('en-GB', {
    ...{ weekday: 'short', day: '2-digit', month: 'short', year: 'numeric' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short', timeZone },
  });
  return format.format(new Date(at));
}
