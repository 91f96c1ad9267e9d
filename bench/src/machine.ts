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
