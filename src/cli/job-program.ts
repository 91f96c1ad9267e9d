import type { ArtifactView } from '../core/artifact.js';
import { type ErrorCode, PunctualError } from '../core/errors.js';
import type { Execution } from '../core/execution.js';
import type { ExecLimits, ExecTarget, Job } from '../core/job.js';
import type { Page } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import { bytesText } from './output.js';

/** What a job runs where it runs a program, as text: the artifact by its name, how the program ran, and the files that it left. */

/** The files of a job that its details name. */
const MOST_FILES = 10;
/** Limits that are numbers of bytes. */
const SIZES: readonly string[] = ['memory', 'disk', 'output'] satisfies (keyof ExecLimits)[];
/** The artifact is gone, or the key may not see it: the details are shown all the same. */
const NOT_SHOWN: readonly ErrorCode[] = ['ARTIFACT_NOT_FOUND', 'NOT_FOUND', 'FORBIDDEN'];

/** What the nodes know about the program of a job besides the job. */
export interface ProgramFacts {
  /** Null for a command, and for an artifact that is gone. */
  readonly artifact: ArtifactView | null;
  readonly files: readonly ArtifactView[];
  /** Whether there are more files than these. */
  readonly more: boolean;
}

/** Reads them; null for a job that runs no program. */
export async function readProgram(
  api: Transport,
  { id, target, attempts }: Job,
  signal: AbortSignal,
): Promise<ProgramFacts | null> {
  if (target.type !== 'exec') return null;
  const read = <T>(path: string): Promise<T | null> =>
    api.request<T>('GET', path, { signal }).catch((error) => {
      if (error instanceof PunctualError && NOT_SHOWN.includes(error.code)) return null;
      throw error;
    });
  const [artifact, files] = await Promise.all([
    target.artifact === undefined
      ? null
      : read<ArtifactView>(`/v1/artifacts/${encodeURIComponent(target.artifact)}`),
    attempts.length === 0
      ? null
      : read<Page<ArtifactView>>(`/v1/jobs/${encodeURIComponent(id)}/outputs?limit=${MOST_FILES}`),
  ]);
  return { artifact, files: files?.data ?? [], more: (files?.next ?? null) !== null };
}

/** What a target runs: an artifact with its name, if it is known, or a command. */
export function programName({ artifact: id, command }: ExecTarget, facts: ProgramFacts | null): string {
  const { name = null, version = null } = facts?.artifact ?? {};
  if (id === undefined) return command ?? '-';
  return name === null ? id : `${name}@${version} (${id})`;
}

/** The details of a program: what it was given, how it ran last, and what it left. */
export function programDetails(job: Job, facts: ProgramFacts | null): [string, string | null][] {
  const execution = job.attempts.at(-1)?.execution;
  const given = job.target.type === 'exec' ? givenDetails(job.target, execution) : [];
  return [...given, ...(execution ? executionDetails(execution) : []), ['left', filesText(job, facts)]];
}

function givenDetails(
  { args = [], env = {}, limits = {}, isolation }: ExecTarget,
  execution: Execution | undefined,
): [string, string | null][] {
  const asked = Object.entries(limits).map(([name, value]) => `${name} ${limitText(name, value)}`);
  return [
    ['args', args.length > 0 ? JSON.stringify(args) : null],
    ['env', Object.keys(env).join(', ') || null],
    ['isolation', execution ? null : (isolation ?? null)],
    ['limits', execution ? null : asked.join(', ') || null],
  ];
}

function executionDetails(execution: Execution): [string, string | null][] {
  const { exitCode, signal, outOfMemory, isolation, notIsolated, limits, cut } = execution;
  const end = [
    exitCode === undefined ? null : `exit code ${exitCode}`,
    signal === undefined ? null : `ended by ${signal}`,
    outOfMemory ? 'out of memory' : null,
    cut ? 'more was printed than is kept' : null,
  ];
  const bounds = Object.entries(limits).map(
    ([name, { value, how }]) => `${name} ${limitText(name, value)} (${how})`,
  );
  return [
    ['program', end.filter((part) => part !== null).join(', ') || null],
    ['isolation', notIsolated === undefined ? isolation : `${isolation}. ${notIsolated}`],
    ['limits', bounds.join(', ') || null],
  ];
}

function limitText(name: string, value: number | string): string {
  return typeof value === 'number' && SIZES.includes(name) ? bytesText(value) : String(value);
}

function filesText({ id }: Job, facts: ProgramFacts | null): string | null {
  if (!facts || facts.files.length === 0) return null;
  const files = facts.files.map(({ output, size }) => `${output} (${bytesText(size)})`);
  const list = [...files, ...(facts.more ? ['…'] : [])].join(', ');
  return `${list}; \`punctual artifact pull --job ${id}\` downloads them`;
}
