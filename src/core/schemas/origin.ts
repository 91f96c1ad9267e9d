import Type from 'typebox';
import { isOriginName } from '../origin.js';
import { Rate, RateView } from './limits.js';
import { nullable, page, strict } from './object.js';

/** An origin, or a bucket that origins share, as it is kept. */
const OriginName = Type.Refine(
  Type.String({
    pattern: '^[!-~]{1,8192}$',
    examples: ['https://example.com'],
    'x-expected': 'an origin such as https://example.com, without a path, or a bucket such as bucket:17',
  }),
  isOriginName,
);

/** The limits of an origin; what is left out is as usual, null is no limit. */
export const OriginLimit = strict(
  {
    origin: OriginName,
    concurrency: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 }))),
    rate: Type.Optional(nullable(Rate)),
  },
  {
    title: 'OriginLimit',
    examples: [{ origin: 'https://example.com', concurrency: 10, rate: { limit: 100, per: '1s' } }],
  },
);

/** Which origin is meant. */
export const OriginQuery = strict({ origin: OriginName });

/** Which origin is meant, in a body. */
export const OriginReset = strict(
  { origin: OriginName },
  { title: 'OriginReset', examples: [{ origin: 'https://example.com' }] },
);

/** An origin that a tenant calls, as the leader knows it. */
export const OriginView = Type.Object(
  {
    origin: Type.String(),
    state: Type.Enum(['closed', 'open', 'probing', 'paused'], {
      type: 'string',
      description:
        '`closed`: calls go out. `open`: it is taken to be down. `probing`: one call is out, or is the next to go out, to see whether ' +
        'it is up again. `paused`: it has asked for a pause.',
    }),
    until: nullable(
      Type.String({ format: 'date-time', description: 'Until when no call starts, if that is known.' }),
    ),
    consecutiveFailures: Type.Integer(),
    running: Type.Integer({ description: 'Calls that are out.' }),
    waiting: Type.Integer({ description: "Due jobs that wait for it in the leader's memory." }),
    concurrency: nullable(Type.Integer({ description: 'Calls that run at the same time at most.' })),
    rate: nullable(RateView),
    latency: nullable(
      Type.Object(
        { calls: Type.Integer(), p50Ms: Type.Integer(), p99Ms: Type.Integer() },
        {
          title: 'OriginLatency',
          description:
            'How long the newest calls took, answered or not, at most a hundred; null if the leader has seen none end.',
        },
      ),
    ),
  },
  { title: 'Origin' },
);

/** The origins of a tenant. */
export const OriginPage = page('OriginPage', OriginView);
