import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem, type } from 'node:os';

/** The machine that everything ran on. */
export function machineFacts(): Readonly<Record<string, string>> {
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: String(processors.length),
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${type()} ${release()}`,
    node: process.versions.node,
    'load before': loadavg()[0]!.toFixed(1),
  };
}

/** The time of all processors so far, in the system's own unit. */
interface ProcessorTime {
  readonly all: number;
  /** Taken by other guests of the same host while this machine had work to do. */
  readonly stolen: number;
}

const STOLEN = 7;

/** The line of all processors in Linux's `/proc/stat`. */
export function parseProcessorTime(stat: string): ProcessorTime | null {
  const line = /^cpu +(.*)$/m.exec(stat)?.[1];
  if (line === undefined) return null;
  // What guests of this machine use is counted among its own use as well.
  const times = line
    .split(' ')
    .slice(0, STOLEN + 1)
    .map(Number);
  return { all: times.reduce((sum, time) => sum + time, 0), stolen: times[STOLEN] ?? 0 };
}

function lookAtProcessors(): ProcessorTime | null {
  try {
    return parseProcessorTime(readFileSync('/proc/stat', 'utf8'));
  } catch {
    return null;
  }
}

/** Looks now; the function it gives looks again and gives the share of the time that was stolen meanwhile. */
export function watchStolenTime(): () => number | null {
  const before = lookAtProcessors();
  return () => {
    const after = lookAtProcessors();
    if (!before || !after || after.all === before.all) return null;
    return (after.stolen - before.stolen) / (after.all - before.all);
  };
}

export function percentText(share: number | null): string {
  return share === null ? 'unknown' : `${(100 * share).toFixed(1)} %`;
}
