import { expect, it } from 'vitest';
import { makeMasterKey } from '../../../src/core/secret-box.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { task } from '../../../src/index.js';
import { HttpReceiver } from '../../http-receiver.js';
import { nodeForTest } from '../../node-for-tests.js';
import { submitWorkflow, workflowEnd } from '../workflows/workflow-tester.js';

it('a step calls with results in its body beside secrets, again when its workflow is submitted again', async () => {
  const node = await nodeForTest({ settings: { secretKey: makeMasterKey() } });
  const user = node.newTenant();
  const receiver = await HttpReceiver.start();
  const { origin } = new URL(receiver.url);
  await user.get('PUT', '/v1/secrets/key', { body: { value: 'the-secret', origins: [origin] } });
  // What a step returns is sent as it is, whatever it looks like.
  const make = task('make', async () => ({ $secret: 'key' }));
  await user.work([make], { targets: ['handler', 'http'], allowAddresses: ['127.0.0.1'] });
  const body = { key: { $secret: 'key' }, made: { $from: 'make.result' }, to: { $from: 'input.to' } };
  const target = { type: 'http', url: receiver.url, body };
  const jobs = { make: { task: 'make' }, call: { target, after: ['make'] } };
  const { id } = await submitWorkflow(user, { jobs, input: { to: 'me' } } as never);
  const { jobs: made } = await workflowEnd(user, { id });
  const again = await user.get<Workflow>('POST', `/v1/workflows/${id}/rerun`, { body: {} });
  expect(await workflowEnd(user, again)).toMatchObject({ state: 'succeeded' });
  const sent = '{"key":"the-secret","made":{"$secret":"key"},"to":"me"}';
  expect(receiver.calls.all.map((call) => call.body)).toEqual([sent, sent]);
  const shown = await user.job(made.call!.id);
  expect(shown).toMatchObject({ target: { body }, payload: { made: { $secret: 'key' }, to: 'me' } });
  expect(JSON.stringify(shown)).not.toContain('the-secret');
});
