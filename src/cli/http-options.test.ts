import { describe, expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { httpTargetOf } from './http-options.js';

const { cli } = cliUnderTest();
const targetWith = (...header: string[]) => httpTargetOf(cli, { http: ['https://a.example'], header });

describe('a header on the command line', () => {
  it('is a text, or a secret with the text before it', async () => {
    const target = await targetWith(
      'x-team: blue: {"a": 1}',
      'authorization: Bearer {"$secret": "stripe"}',
      'x-key:{ "$secret":"key" }',
    );
    expect(target?.headers).toEqual({
      'x-team': 'blue: {"a": 1}',
      authorization: { $secret: 'stripe', prefix: 'Bearer ' },
      'x-key': { $secret: 'key' },
    });
  });

  it.each(['{"$secret": "a"} b', '{"$secret": a}', '{"$secret": "a", "prefix": "b"}', '{"$secret": "a b"}'])(
    'is refused if a secret would be sent as its reference: %s',
    async (value) => {
      await expect(targetWith(`x-key: ${value}`)).rejects.toMatchObject({
        code: 'USAGE',
        message: expect.stringContaining('would be sent as it is'),
      });
    },
  );
});
