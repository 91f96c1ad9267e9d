import type { PreviewAnswer } from '../../../../src/core/wire.js';
import { exactText } from '../../parts/duration-text.js';

interface OccurrenceListProps {
  readonly occurrences: PreviewAnswer['data'];
  /** The zone of the schedule. */
  readonly timezone: string;
}

/** Moments in the zone of the schedule and in that of the viewer, with what changes of the clocks do to them. */
export function OccurrenceList({ occurrences, timezone }: OccurrenceListProps) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const isOwn = own === timezone;
  return (
    <ol class="occurrences" aria-label="Next occurrences">
      {occurrences.map(({ at, note }) => (
        <li key={at}>
          <time dateTime={at}>{zoneText(at, timezone)}</time>
          {!isOwn && <span class="soft">{exactText(at)}</span>}
          {note && <span class="badge badge-warn">{note}</span>}
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
