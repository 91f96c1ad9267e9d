import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { compileClient } from '../generated-client/generate.js';
import { nodeForTest } from '../node-for-tests.js';

it('a client that was generated from the OpenAPI document compiles strictly and works', async () => {
  const node = await nodeForTest();
  const document = await (await fetch(`${node.url}/openapi.json`)).text();
  const program = await compileClient(document);
  const args = [program, node.url, node.apiKey];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(JSON.parse(stdout)).toEqual({
    state: 'pending',
    listed: ['greet'],
    moments: 10,
    schedule: 'allow',
    bulk: 2,
    code: 'INVALID_REQUEST',
    pointers: ['/priority'],
    cancelled: 'cancelled',
  });
});
