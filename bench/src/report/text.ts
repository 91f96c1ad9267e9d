import type { ScenarioResult, SystemResult, Target } from '../result.js';

/** What a scenario came to, for people at a terminal. */
export function describe(result: ScenarioResult): string {
  const { scenario, seconds, systems, targets, problems, environment, what, ratioToBestPeer } = result;
  return [
    `── ${scenario}, ${seconds} s`,
    ...what.map((line) => `   ${line}`),
    ...(systems.length === 0 ? [] : ['', ...layOut(systemColumns(systems))]),
    ...perSecondLines(systems),
    ...(ratioToBestPeer === null ? [] : ['', `   ${ratioToBestPeer.toFixed(2)} × the best peer`]),
    ...(targets.length === 0 ? [] : ['', ...layOut(targetColumns(targets))]),
    ...(problems.length === 0 ? [] : ['', ...problems.map((problem) => `   WRONG: ${problem}`)]),
    '',
    ...systems.map((system) => `   ${system.name} ${system.version}: ${pairs(system.settings)}`),
    `   ${pairs(environment)}`,
    '',
  ].join('\n');
}

export function wholeNumber(value: number): string {
  return Math.round(value).toLocaleString('en');
}

export function milliseconds(value: number): string {
  return `${value.toFixed(value < 100 ? 2 : 0)} ms`;
}

function showing<Value>(show: (value: Value) => string): (value: Value | undefined) => string {
  return (value) => (value === undefined ? '' : show(value));
}

const count = showing(wholeNumber);
const ms = showing(milliseconds);
const plain = showing(String);

const COLUMNS: readonly { readonly head: string; readonly of: (system: SystemResult) => string }[] = [
  { head: 'system', of: ({ name }) => name },
  { head: 'version', of: ({ version }) => version },
  { head: 'jobs', of: ({ jobs }) => count(jobs) },
  { head: 'jobs/s', of: ({ jobsPerSecond }) => count(jobsPerSecond) },
  { head: 'slices', of: ({ slices }) => slices?.map(wholeNumber).join(' · ') ?? '' },
  { head: 'samples', of: ({ samples }) => count(samples) },
  { head: 'p50', of: ({ p50Ms }) => ms(p50Ms) },
  { head: 'p99', of: ({ p99Ms }) => ms(p99Ms) },
  { head: 'worst', of: ({ worstMs }) => ms(worstMs) },
  { head: 'statements/s', of: ({ statementsPerSecond }) => plain(statementsPerSecond) },
  { head: 'node µs/job', of: ({ nodeMicrosPerJob }) => plain(nodeMicrosPerJob) },
  { head: 'heard/s', of: ({ heardPerSecond }) => count(heardPerSecond as number | undefined) },
  { head: 'listeners CPU %', of: ({ listenersCpu }) => plain(listenersCpu) },
  { head: 'CPU %', of: ({ cpuPercent }) => plain(cpuPercent) },
  { head: 'RSS MB', of: ({ rssMb }) => plain(rssMb) },
];

/** The figures of the systems, as far as there are any, as columns with their heads. */
export function systemColumns(systems: readonly SystemResult[]): readonly (readonly string[])[] {
  return COLUMNS.filter(({ of }) => systems.some((system) => of(system) !== '')).map(({ head, of }) => [
    head,
    ...systems.map(of),
  ]);
}

/** The targets as columns with their heads. */
export function targetColumns(targets: readonly Target[]): readonly (readonly string[])[] {
  return [
    ['target', ...targets.map(({ text }) => text)],
    ['wanted', ...targets.map(({ wanted }) => wanted)],
    ['reached', ...targets.map(({ reached }) => reached)],
    ['met', ...targets.map(({ ok }) => (ok ? 'yes' : 'NO'))],
  ];
}

/** Lays columns side by side. */
export function layOut(columns: readonly (readonly string[])[]): string[] {
  const widths = columns.map((column) => Math.max(...column.map((cell) => cell.length)));
  return columns[0]!.map((_, row) =>
    `   ${columns.map((column, i) => column[row]!.padEnd(widths[i]!)).join('  ')}`.trimEnd(),
  );
}

function perSecondLines(systems: readonly SystemResult[]): string[] {
  const lines = systems.flatMap(({ name, perSecond }) =>
    (perSecond ?? []).map((rates, i) => {
      const thousands = rates.map((rate) => (rate / 1_000).toFixed(1)).join(' ');
      return `   ${name} ${i + 1}: ${thousands}`;
    }),
  );
  return lines.length === 0 ? [] : ['', '   thousand jobs in each second of each slice:', ...lines];
}

export function pairs(facts: Readonly<Record<string, unknown>>): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
}
