import { expect, it } from 'vitest';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';
import { ScheduleTester, SECOND } from './schedule-tester.js';

it('a change that the database refuses leaves the jobs made ahead to start in time', async () => {
  const tester = await ScheduleTester.start();
  await tester.create({ every: '10s', payload: 'old' });
  tester.clock.advance(9 * SECOND);
  await until(async () => (await tester.jobs('pending')).length === 1);
  await withClient(tester.database.url, (db) =>
    db.query(`
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$;
      CREATE TRIGGER refuse BEFORE UPDATE OF definition ON punctual.schedules FOR EACH ROW
        WHEN (OLD.version <> NEW.version) EXECUTE FUNCTION refuse()`),
  );
  const answer = await tester.node.ask('PATCH', '/v1/schedules/tick', { body: { payload: 'new' } });
  expect(answer.status).toBe(500);
  tester.clock.advance(SECOND);
  const worker = await ProtocolWorker.register(tester.node);
  expect(await worker.claimOne()).toMatchObject({ payload: 'old' });
});

it('what takes too long together is fired in smaller parts', async () => {
  const tester = await ScheduleTester.start();
  // Stands for a database that is too slow for more than ten schedules in one transaction.
  await withClient(tester.database.url, (db) =>
    db.query(`
      CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM moved) > 10 THEN
          RAISE 'canceling statement due to statement timeout' USING ERRCODE = '57014';
        END IF;
        RETURN NULL;
      END $$;
      CREATE TRIGGER be_slow AFTER UPDATE ON punctual.schedules REFERENCING NEW TABLE AS moved
        FOR EACH STATEMENT EXECUTE FUNCTION be_slow()`),
  );
  const at = new Date(tester.clock.now() + 20 * SECOND).toISOString();
  for (let i = 0; i < 30; i++) await tester.create({ name: `tick-${i}`, at });
  tester.clock.advance(16 * SECOND);
  await until(async () => (await tester.stats()).jobsSubmitted === 30);
});
