import type { Fault } from '../fault.js';

/** The database server dies without a farewell and recovers from its log. */
export const fault: Fault = {
  kind: 'postgres-crash',
  scenario: 'postgres-crash',
  lane: 'database',
  async inject(scene, random) {
    const how = random.pick(['SIGKILL', 'SIGQUIT'] as const);
    const awayMs = await scene.rig.postgres.crash(how);
    // The observer's own next answer proves that the server is back.
    await scene.database.lease();
    return { targets: ['postgres'], effective: true, detail: `${how}, away for ${Math.round(awayMs)} ms` };
  },
};
