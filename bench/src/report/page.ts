import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { benchFolder, repository } from '../repository.js';
import type { ScenarioResult } from '../result.js';
import { chartsOf } from './charts.js';
import { pairs, systemColumns, targetColumns } from './text.js';

/** Writes docs/benchmarks.md and its charts. */
export async function writePage(results: readonly ScenarioResult[], writtenOn: string): Promise<string> {
  const charts = new Map(results.flatMap((result) => [...chartsOf(result)]));
  const folder = join(repository, 'docs', 'benchmarks');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [name, chart] of charts) await writeFile(join(folder, name), chart);
  const notes = await readFile(join(benchFolder, 'notes.md'), 'utf8');
  const path = join(repository, 'docs', 'benchmarks.md');
  await writeFile(path, pageText(results, notes, writtenOn));
  return path;
}

/** The page as Markdown. */
export function pageText(results: readonly ScenarioResult[], notes: string, writtenOn: string): string {
  const { 'load before': _load, 'cpu stolen': _stolen, ...machine } = results[0]?.environment ?? {};
  const parts = [
    '# Benchmarks',
    `Written by a full run of \`npm run bench\` on ${writtenOn}; what stands here is what was measured. One machine: ${pairs(machine)}.`,
    'Figures vary from machine to machine and from run to run; the ratios within one run hold better. `npm run bench -- --help` tells how to repeat any of it.',
    '## Targets',
    markdownTable(allTargets(results)),
    ...results.map(section),
    notes.trim(),
  ];
  return `${parts.join('\n\n')}\n`;
}

function allTargets(results: readonly ScenarioResult[]): string[][] {
  const rows = results.flatMap(({ scenario, targets }) =>
    targets.map(({ text, wanted, reached, ok }) => [scenario, text, wanted, reached, ok ? 'yes' : '**no**']),
  );
  const heads = ['scenario', 'target', 'wanted', 'reached', 'met'];
  return heads.map((head, i) => [head, ...rows.map((row) => row[i]!)]);
}

function section(result: ScenarioResult): string {
  const { scenario, seconds, what, systems, problems, ratioToBestPeer, environment, targets } = result;
  const charts = [...chartsOf(result).keys()].map((name) => `![${scenario}](benchmarks/${name})`);
  return [
    `## \`${scenario}\``,
    what.join('\n\n'),
    ...charts,
    ...(systems.length === 0 ? [] : [markdownTable(systemColumns(systems))]),
    ...(targets.length === 0 ? [] : [markdownTable(targetColumns(targets))]),
    ...(ratioToBestPeer === null ? [] : [`${ratioToBestPeer.toFixed(2)} × the best peer.`]),
    ...(problems.length === 0 ? [] : [`**Went wrong:** ${problems.join('; ')}.`]),
    [
      `${seconds} s; load of the machine before: ${environment['load before'] ?? 'unknown'}; processor time that other machines of its host took meanwhile: ${environment['cpu stolen'] ?? 'unknown'}. Settings:`,
      ...systems.map(({ name, version, settings }) => `- ${name} ${version}: ${pairs(settings)}`),
    ].join('\n'),
  ].join('\n\n');
}

/** A table out of columns whose first cells are the heads. */
export function markdownTable(columns: readonly (readonly string[])[]): string {
  const rows = columns[0]!.map((_, row) => `| ${columns.map((column) => column[row]!).join(' | ')} |`);
  return [rows[0], `|${' --- |'.repeat(columns.length)}`, ...rows.slice(1)].join('\n');
}
