import type { ScenarioResult, SystemResult } from '../result.js';

/** What a scenario came to, for people at a terminal. */
export function describe(result: ScenarioResult): string {
  const { scenario, seconds, systems, targets, problems, environment, what, ratioToBestPeer } = result;
  return [
    `── ${scenario}, ${seconds} s`,
    ...what.map((line) => `   ${line}`),
    '',
    ...table(
      COLUMNS.filter(({ of }) => systems.some((system) => of(system) !== '')).map(({ head, of }) => [
        head,
        ...systems.map(of),
      ]),
    ),
    ...perSecondLines(systems),
    ...(ratioToBestPeer === null ? [] : ['', `   ${ratioToBestPeer.toFixed(2)} × the best peer`]),
    ...(targets.length === 0 ? [] : ['', ...table(targetColumns(result))]),
    ...problems.map((problem) => `   WRONG: ${problem}`),
    '',
    ...systems.map((system) => `   ${system.name} ${system.version}: ${pairs(system.settings)}`),
    `   ${pairs(environment)}`,
    '',
  ].join('\n');
}

const count = (value: number | undefined) =>
  value === undefined ? '' : Math.round(value).toLocaleString('en');
const ms = (value: number | undefined) =>
  value === undefined ? '' : `${value.toFixed(value < 100 ? 2 : 0)} ms`;

const text = (value: unknown) => (value === undefined ? '' : String(value));

export const COLUMNS: readonly { readonly head: string; readonly of: (system: SystemResult) => string }[] = [
  { head: 'system', of: ({ name }) => name },
  { head: 'version', of: ({ version }) => version },
  { head: 'jobs', of: ({ jobs }) => count(jobs) },
  { head: 'jobs/s', of: ({ jobsPerSecond }) => count(jobsPerSecond) },
  { head: 'slices', of: ({ slices }) => slices?.map(count).join(' ') ?? '' },
  { head: 'samples', of: ({ samples }) => count(samples) },
  { head: 'p50', of: ({ p50Ms }) => ms(p50Ms) },
  { head: 'p99', of: ({ p99Ms }) => ms(p99Ms) },
  { head: 'worst', of: ({ worstMs }) => ms(worstMs) },
  { head: 'statements/s', of: ({ statementsPerSecond }) => text(statementsPerSecond) },
  { head: 'CPU %', of: ({ cpuPercent }) => text(cpuPercent) },
  { head: 'RSS MB', of: ({ rssMb }) => text(rssMb) },
];

function targetColumns({ targets }: ScenarioResult): string[][] {
  return [
    ['target', ...targets.map(({ text }) => text)],
    ['wanted', ...targets.map(({ wanted }) => wanted)],
    ['reached', ...targets.map(({ reached }) => reached)],
    ['', ...targets.map(({ ok }) => (ok ? 'yes' : 'NO'))],
  ];
}

/** Lays columns side by side. */
export function table(columns: readonly (readonly string[])[]): string[] {
  const widths = columns.map((column) => Math.max(...column.map((cell) => cell.length)));
  return columns[0]!.map((_, row) =>
    `   ${columns.map((column, i) => column[row]!.padEnd(widths[i]!)).join('  ')}`.trimEnd(),
  );
}

function perSecondLines(systems: readonly SystemResult[]): string[] {
  const lines = systems.flatMap(({ name, perSecond }) =>
    (perSecond ?? []).map(
      (rates, i) => `   ${name} ${i + 1}: ${rates.map((rate) => (rate / 1_000).toFixed(1)).join(' ')}`,
    ),
  );
  return lines.length === 0 ? [] : ['', '   thousand jobs in each second of each slice:', ...lines];
}

function pairs(facts: Readonly<Record<string, unknown>>): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
}
