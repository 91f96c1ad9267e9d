import type { Target } from '../../../../src/core/job.js';
import { linesOf, nested, objectOf, part } from './json-parts.js';

/** A program that jobs run: what stands in a form, as text, and the target that is sent of it. */
export interface ProgramDraft {
  readonly artifact: string;
  /** One in each line. */
  readonly args: string;
  /** Lines of `NAME=value`. */
  readonly env: string;
  readonly isolation: string;
}

export const NO_PROGRAM: ProgramDraft = { artifact: '', args: '', env: '', isolation: '' };

const text = JSON.stringify;

/** The target, as JSON. */
export function programOf({ artifact, args, env, isolation }: ProgramDraft): string {
  const given = args.split('\n').filter((line) => line !== '');
  return objectOf([
    ['type', text('exec')],
    ...part('artifact', artifact.trim()),
    ...(given.length > 0 ? ([['args', text(given)]] as const) : []),
    ...nested('env', linesOf(env, '=')),
    ...part('isolation', isolation),
  ]);
}

/** A target as the form shows it; null if it is no program, or says what the form cannot. */
export function programDraftOf(target: Target): ProgramDraft | null {
  if (target.type !== 'exec') return null;
  const { type, artifact = '', args = [], env = {}, isolation = '', ...rest } = target;
  const draft = {
    ...{ artifact, isolation, args: args.join('\n') },
    env: Object.entries(env)
      .map(([name, value]) => `${name}=${typeof value === 'string' ? value : text(value)}`)
      .join('\n'),
  };
  // Some things come out of the form as something else, such as an argument of two lines as two arguments.
  const shown = { args: [], env: {}, isolation: '', ...JSON.parse(programOf(draft)) };
  const isWhole =
    text(Object.entries(shown).sort()) ===
    text(Object.entries({ type, artifact, args, env, isolation }).sort());
  return isWhole && Object.keys(rest).length === 0 ? draft : null;
}
