import { useEffect, useState } from 'preact/hooks';
import type { ScheduleTimes } from '../../../../src/core/schedule.js';
import type { PreviewAnswer } from '../../../../src/core/wire.js';
import { call } from '../../api/client.js';
import { asProblem, type Problem } from '../../api/problem.js';

/** Times as somebody types them, which may be wrong. */
export interface TypedTimes {
  readonly cron?: string;
  readonly every?: string;
  readonly at?: string;
  readonly timezone?: string;
  readonly startAt?: string;
  readonly endAt?: string;
  readonly dst?: ScheduleTimes['dst'];
  /** Occurrences after this moment; default now. */
  readonly from?: string;
}

/** What a schedule would come to. */
export interface Preview {
  readonly occurrences: PreviewAnswer['data'];
  /** The zone that they were asked for with: what is being typed may be none. */
  readonly timezone?: string | undefined;
  readonly problem: Problem | null;
}

/** How long after the last key the node is asked. */
const TYPING_PAUSE_MS = 250;
const SHOWN = 10;

/** The next occurrences of times as they are typed; those before stay until others are known. */
export function usePreview(times: TypedTimes | null): Preview {
  const [preview, setPreview] = useState<Preview>({ occurrences: [], problem: null });
  const body = times && JSON.stringify({ ...times, count: SHOWN });
  useEffect(() => {
    if (body === null) return setPreview({ occurrences: [], problem: null });
    const over = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const answer = await call<PreviewAnswer>('POST', '/v1/schedules/preview', {
          body,
          signal: over.signal,
        });
        setPreview({ occurrences: answer.data, timezone: times?.timezone, problem: null });
      } catch (error) {
        const problem = asProblem(error);
        if (problem) setPreview((before) => ({ ...before, problem }));
      }
    }, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      over.abort();
    };
  }, [body]);
  return preview;
}
