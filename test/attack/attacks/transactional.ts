import { setTimeout as sleep } from 'node:timers/promises';
import type { Attack } from '../attack.js';
import { LONG_STRING } from '../payloads.js';
import { ATTACKER } from '../scene.js';

const MAX_JOBS = 1_000;
const PER_STATEMENT = 20;

const SUBMIT = 'SELECT punctual.submit_job($1, $2) FROM generate_series(1, $3)';

/** Large jobs submitted inside one transaction of the attacker's own, which commits all of them at once. */
export const attack: Attack = {
  kind: 'transactional',
  summary: 'a thousand large jobs submitted inside one transaction',
  mayBeRefusedForLoad: true,
  async run(scene) {
    const client = await scene.postgres.connect();
    try {
      const job = `{"task":"work","queue":"transactional","payload":${LONG_STRING}}`;
      await client.query('BEGIN');
      for (let n = 0; n < MAX_JOBS && !scene.isHalfOver; n += PER_STATEMENT) {
        await client.query(SUBMIT, [ATTACKER, job, PER_STATEMENT]);
      }
      await client.query('COMMIT');
    } finally {
      await client.end();
    }
    // Their admission is the attack; the calm client's jobs go on beside it.
    while (!scene.isOver) await sleep(100);
  },
};
