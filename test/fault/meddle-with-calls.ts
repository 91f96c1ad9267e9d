import { setTimeout as sleep } from 'node:timers/promises';
import type { Injected } from './fault.js';
import type { Random } from './random.js';
import type { SinkMode } from './rig/sink-slot.js';
import type { Scene } from './scene.js';

/** Lets the sink treat all calls in a certain way for a while. */
export async function meddleWithCalls(scene: Scene, random: Random, mode: SinkMode): Promise<Injected> {
  const sink = scene.rig.sink!;
  await sink.become(mode);
  await sleep(random.between(500, 2_000));
  await scene.until(async () => (await sink.state()).meddled > 0, 5_000);
  const { meddled } = await sink.state();
  await sink.become(null);
  const detail = `${meddled} calls met with ${mode}`;
  // The calls themselves say what became of them, so that this excuses none: no target is named.
  return { targets: [], effective: meddled > 0, detail };
}
