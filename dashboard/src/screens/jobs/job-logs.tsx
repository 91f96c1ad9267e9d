import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { LogLevel, Page, StoredLogLine } from '../../../../src/core/wire.js';
import { get } from '../../api/client.js';
import { asProblem, type Problem } from '../../api/problem.js';
import { isVisible, whenVisible } from '../../api/visibility.js';
import { CopyAs } from '../../parts/action.js';
import { clockText, countText, exactText } from '../../parts/duration-text.js';
import { ProblemNote } from '../../parts/problem-note.js';

/** The log of a job, which is read on for as long as the job runs. There are no events for lines; their number has no bound. */

const PAGE = 200;
/** The newest lines are kept; a log of millions would fill the browser. */
const MOST_LINES = 2_000;
const EVERY_MS = 1_000;

interface NumberedLine extends StoredLogLine {
  readonly number: number;
}

class LogReader {
  readonly lines = signal<readonly NumberedLine[]>([]);
  readonly problem = signal<Problem | null>(null);
  readonly isRead = signal(false);
  /** The cursor of the last page, and how many of its lines are known. */
  private after: string | null = null;
  private known = 0;
  private count = 0;

  constructor(private readonly path: string) {}

  /** How many lines there were before those that are kept. */
  get left(): number {
    return this.count - this.lines.value.length;
  }

  /** Reads the lines that are new. */
  async readNew(over: AbortSignal): Promise<void> {
    try {
      for (;;) {
        const query = { limit: PAGE, after: this.after };
        const page = await get<Page<StoredLogLine>>(this.path, { query, signal: over });
        this.add(page.data.slice(this.known));
        this.known = page.next === null ? page.data.length : 0;
        if (page.next === null) break;
        this.after = page.next;
      }
      this.problem.value = null;
      this.isRead.value = true;
    } catch (error) {
      const problem = asProblem(error);
      if (problem) this.problem.value = problem;
    }
  }

  private add(fresh: readonly StoredLogLine[]): void {
    if (fresh.length === 0) return;
    const numbered = fresh.map((line, i) => ({ ...line, number: this.count + i + 1 }));
    this.count += fresh.length;
    this.lines.value = [...this.lines.value, ...numbered].slice(-MOST_LINES);
  }
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

interface JobLogsProps {
  readonly id: string;
  /** Whether lines may still come. */
  readonly isLive: boolean;
}

export function JobLogs({ id, isLive }: JobLogsProps) {
  const reader = useMemo(() => new LogReader(`/v1/jobs/${id}/logs`), [id]);
  const [isPaused, setPaused] = useState(false);
  const [level, setLevel] = useState<LogLevel>('debug');
  useEffect(() => {
    if (isPaused) return;
    const over = new AbortController();
    void follow(reader, isLive, over.signal);
    return () => over.abort();
  }, [reader, isLive, isPaused]);
  const least = LEVELS.indexOf(level);
  const all = reader.lines.value;
  const lines = least === 0 ? all : all.filter((line) => LEVELS.indexOf(line.level) >= least);
  return (
    <section class="card" aria-labelledby="logs-title">
      <header class="card-top">
        <h2 id="logs-title">
          Log {all.length > 0 && <span class="soft figure">{countText(all.length + reader.left)}</span>}
        </h2>
        <span class="job-log-tools">
          <label class="job-log-level">
            From{' '}
            <select value={level} onChange={({ currentTarget }) => setLevel(currentTarget.value as LogLevel)}>
              {LEVELS.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          {isLive && (
            <button
              type="button"
              class="button button-small"
              aria-pressed={isPaused}
              onClick={() => setPaused(!isPaused)}
            >
              {isPaused ? 'Follow' : 'Pause'}
            </button>
          )}
          <CopyAs
            method="GET"
            path={`/v1/jobs/${id}/logs`}
            cli={`punctual job logs ${id}${isLive ? ' --follow' : ''}`}
          />
        </span>
      </header>
      <ProblemNote
        problem={reader.problem.value}
        onRetry={() => void reader.readNew(new AbortController().signal)}
      />
      {lines.length > 0 ? (
        <Lines lines={lines} left={reader.left} />
      ) : (
        <p class="soft">
          {!reader.isRead.value
            ? 'Reading …'
            : all.length > 0
              ? `No line is ${level} or worse.`
              : isLive
                ? 'No lines yet. What the handler logs appears here as it runs.'
                : 'The job has logged nothing.'}
        </p>
      )}
    </section>
  );
}

/** Reads what is new until nobody wants it any more; of a job that has ended, once. */
async function follow(reader: LogReader, isLive: boolean, over: AbortSignal): Promise<void> {
  do {
    if (!isVisible.value) await whenVisible();
    await reader.readNew(over);
    if (isLive && !over.aborted) await pause(over);
  } while (isLive && !over.aborted);
}

function pause(over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      over.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, EVERY_MS);
    over.addEventListener('abort', end);
  });
}

/** The last lines are in sight, unless somebody has scrolled up. */
function Lines({ lines, left }: { readonly lines: readonly NumberedLine[]; readonly left: number }) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (isAtEnd.current) box.current!.scrollTop = box.current!.scrollHeight;
  }, [lines]);
  const look = () => {
    const { scrollTop, clientHeight, scrollHeight } = box.current!;
    isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 8;
  };
  const attempts = new Set(lines.map(({ fence }) => fence));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <div ref={box} class="job-log" role="log" aria-label="Lines of the log" tabIndex={0} onScroll={look}>
      {left > 0 && <p class="soft">{countText(left)} earlier lines are not shown here.</p>}
      {lines.map((line) => (
        <div key={line.number} class={`job-log-line job-log-${line.level}`}>
          <time dateTime={line.at} title={exactText(line.at)}>
            {secondsText(line.at)}
          </time>
          <span class="job-log-word">{line.level}</span>
          {attempts.size > 1 && (
            <span class="soft" title={`attempt ${line.fence}`}>
              #{line.fence}
            </span>
          )}
          <span class="job-log-message">{line.message}</span>
        </div>
      ))}
    </div>
  );
}

function secondsText(at: string): string {
  return `${clockText(at)}${at.slice(16, 23)}`;
}
