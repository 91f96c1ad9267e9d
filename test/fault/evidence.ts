import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { storyOf, type Violation } from './checker.js';
import type { History } from './history.js';

const MAX_STORIES = 20;

/** Keeps what is needed to understand a violation and to run it again; answers with what to look at first. */
export async function keepEvidence(
  folder: string,
  history: History,
  violations: readonly Violation[],
): Promise<string> {
  const evidence = join(folder, 'evidence');
  mkdirSync(evidence, { recursive: true });
  const { submissions, effects, faults, audit, jobs, answers, probes, leases, deaths, ...others } = history;
  const { workflows, batches, callReports, ...rest } = others;
  writeFileSync(join(evidence, 'run.json'), JSON.stringify({ ...rest, violations }, null, 2));
  const streams = {
    submissions,
    effects,
    faults,
    audit,
    jobs,
    answers,
    probes,
    leases,
    deaths,
    workflows,
    batches,
    callReports,
  };
  for (const [name, rows] of Object.entries(streams)) {
    const file = createWriteStream(join(evidence, `${name}.jsonl`));
    for (const row of rows) file.write(`${JSON.stringify(row)}\n`);
    file.end();
    await finished(file);
  }
  const stories = violations.slice(0, MAX_STORIES).map(({ invariant, detail, job }) => {
    const story = job === null ? [] : storyOf(history, job);
    return [`${invariant}: ${job ?? ''} ${detail}`, ...story.map((line) => `  ${line}`)].join('\n');
  });
  const path = join(evidence, 'stories.txt');
  writeFileSync(path, `${stories.join('\n\n')}\n`);
  return path;
}
