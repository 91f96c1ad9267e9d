import type { Fence } from '../src/host/test-switches.js';

/** Where each fence is taken out and what breaks without it is observed. */
export const FENCE_PROOFS = {
  term: 'test/fault/fences.test.ts',
  attempt: 'test/fault/fences.test.ts',
  'in-doubt': 'test/fault/fences.test.ts',
  'lost-by-death': 'test/fault/fences.test.ts',
  holder: 'test/integration/fences/term-fences.test.ts',
  takeover: 'test/integration/fences/term-fences.test.ts',
  'claimed-fence': 'test/integration/fences/term-fences.test.ts',
  'adding-fence': 'test/integration/fences/term-fences.test.ts',
  unedited: 'test/integration/fences/term-fences.test.ts',
  trust: 'test/integration/fences/leader-fences.test.ts',
  'claim-join': 'test/integration/fences/leader-fences.test.ts',
  'held-workflow': 'test/integration/fences/leader-fences.test.ts',
  'commit-first': 'test/integration/fences/leader-fences.test.ts',
  'revoke-confirmed': 'test/integration/fences/leader-fences.test.ts',
  'full-timeout': 'test/integration/fences/leader-fences.test.ts',
  'heartbeat-epoch': 'test/integration/fences/leader-fences.test.ts',
  'answer-epoch': 'test/integration/fences/worker-fences.test.ts',
  'answer-session': 'test/integration/fences/worker-fences.test.ts',
  'start-once': 'test/integration/fences/worker-fences.test.ts',
  'stop-fence': 'test/integration/fences/worker-fences.test.ts',
} as const satisfies Readonly<Record<Fence, string>>;
