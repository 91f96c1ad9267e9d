import type { Random } from '../fault/random.js';
import type { Scene } from './scene.js';

/** One kind of attack. A file in `attacks/` that exports one as `attack` joins `npm run attack` by itself. */
export interface Attack {
  readonly kind: string;
  /** What it does, in a few words for `--help`. */
  readonly summary: string;
  /** Whether the cluster may answer that it has too much to do; what is small is always to be answered. */
  readonly mayBeRefusedForLoad: boolean;
  /** Attacks until `scene.isOver`, or until it has sent as much as it is to send. */
  run(scene: Scene, random: Random): Promise<void>;
}
