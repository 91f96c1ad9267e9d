import { provenByRemoval } from './removal.js';

/** A database with the statements of leaders, loaded anew. */
async function freshShard() {
  const { TestShard } = await import('../store/test-shard.js');
  return TestShard.forTest();
}

provenByRemoval('holder', 'a leader writes under an epoch that another node has now', async () => {
  const shard = await freshShard();
  const term = await shard.lead({ holder: 'node-a' });
  const id = await shard.submit();
  // What a replica looks like that was promoted before it had the newest term: the same epoch, given to another.
  await shard.pool.query(`UPDATE punctual.leases SET holder = 'node-b'`);
  await shard.claim(term, [id]).catch(() => undefined);
  return (await shard.count('claims')) > 0;
});

provenByRemoval('takeover', 'a standby that was late takes the term from a healthy leader', async () => {
  const shard = await freshShard();
  await shard.lead({ holder: 'node-a' });
  await shard.expireLease();
  // Both standbys have seen that the term is over; the first takes it, and the second comes to its turn after that.
  await shard.lead({ holder: 'node-b' });
  const second = await shard.lead({ holder: 'node-c' }).catch(() => null);
  return second !== null;
});

provenByRemoval('claimed-fence', 'the result of an old attempt ends the one that runs', async () => {
  const shard = await freshShard();
  const term = await shard.lead();
  const id = await shard.submit();
  await shard.claim(term, [id]);
  await shard.retry(term, id);
  await shard.claim(term, [id], 2);
  return (await shard.finish(term, [{ id, fence: 1 }])).length > 0;
});

provenByRemoval('adding-fence', 'an attempt that was replaced adds steps to its workflow', async () => {
  const shard = await freshShard();
  const { addSteps } = await import('../../../src/store/add-steps.js');
  const term = await shard.lead();
  const id = await shard.submit();
  await shard.claim(term, [id]);
  await shard.retry(term, id);
  await shard.claim(term, [id], 2);
  const { row } = await shard.newJob({});
  const counts = { place: 1, parents: 0, parentsLeft: 0, ok: 0, bad: 0, released: true };
  const rest = {
    delayMs: 0,
    wait: null,
    inner: null,
    innerSteps: 0,
    wakeAt: null,
    refers: false,
    held: false,
    blocked: false,
  };
  const addition = {
    ...{
      workflow: id,
      tenant: row.definition.tenant,
      job: id,
      fence: 1,
      joiners: [],
      queues: [],
      tasks: [],
      edgesInAll: 0,
      lastPlace: 1,
    },
    steps: [{ row, name: 'new', runIf: 'all-succeeded' as const, ...counts, ...rest, admitAt: null }],
    edges: { parents: [], children: [] },
  };
  await addSteps(shard.hot, term, addition, shard.made().names, Date.now()).catch(() => undefined);
  return (await shard.count('steps')) > 0;
});

provenByRemoval('unedited', 'a job starts with the payload that it had before it was changed', async () => {
  const shard = await freshShard();
  const { claimKnownJobs } = await import('../../../src/store/claim-jobs.js');
  const { changeLive } = await import('../../../src/store/place-jobs.js');
  const { WORKER } = await import('../store/test-shard.js');
  const term = await shard.lead();
  const id = await shard.submit({ payload: 'as submitted' });
  await changeLive(shard.hot, term, { id, runAt: null, rank: null, payload: '"changed"' });
  // What the node that stored the job does when its hint reaches the leader after the change.
  const refused = await claimKnownJobs(
    shard.hot,
    term,
    [{ id, fence: 1, worker: WORKER }],
    Date.now(),
    new Map(),
    [],
  );
  return !refused.has(id);
});
