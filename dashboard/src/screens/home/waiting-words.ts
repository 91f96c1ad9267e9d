import type { Gate } from '../../../../src/core/wire.js';

/** What a gate means, for people. */
export const WAITING_WORDS: Readonly<Record<Gate, string>> = {
  parents: 'Wait for other steps',
  event: 'Wait for an event',
  workflow: 'Their workflow is on hold',
  artifact: 'Wait for an artifact',
  'due-time': 'Not due yet',
  hold: 'On hold',
  'cluster-paused': 'Dispatch is paused',
  'queue-paused': 'Their queue is paused',
  'no-fitting-worker': 'No worker can run them',
  'no-free-slot': 'All slots are busy',
  limit: 'A limit of their queue is reached',
  rate: 'The rate of their queue is used up',
  origin: 'Their origin is slow, paused or down',
  share: 'Others have their share first',
  'behind-others': 'Behind others of their queue',
  'not-admitted': 'Not read by the leader yet',
  'being-claimed': 'About to start',
  batch: 'Their batch is not complete',
  'not-waiting': 'Do not wait',
};
