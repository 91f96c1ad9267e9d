import Type from 'typebox';
import { type Duration, parseDuration } from '../duration.js';
import { MAX_QUOTA, maxOfQuota } from '../quotas.js';
import { MAX_PER_MS, MAX_RATE_COUNT } from '../rate.js';
import { nullable, page, strict } from './object.js';
import { line, Name } from './text.js';

const Per = Type.Refine(
  Type.Unsafe<Duration>(
    Type.String({
      pattern: '^[0-9]{1,15}(\\.[0-9]{1,6})?(ms|s|m|h|d)$',
      examples: ['1s'],
      'x-expected': 'a duration from 1ms to 30d, such as 1s',
    }),
  ),
  (text) => {
    const ms = parseDuration(text);
    return ms !== null && ms >= 1 && ms <= MAX_PER_MS;
  },
);

const Count = Type.Integer({ minimum: 1, maximum: MAX_RATE_COUNT });

/** At most `limit` starts in `per` on average; `burst` of them at once. */
export const Rate = strict({ limit: Count, per: Per, burst: Type.Optional(Count) }, { title: 'Rate' });

const Weight = Type.Integer({ minimum: 1, maximum: 1_000 });

/** What a queue may use; what is left out stays as it is, null takes a limit away. */
export const QueueChange = strict(
  {
    weight: Type.Optional(Weight),
    concurrency: Type.Optional(nullable(Count)),
    keyConcurrency: Type.Optional(Count),
    rate: Type.Optional(nullable(Rate)),
  },
  {
    title: 'QueueChange',
    examples: [{ concurrency: 20, keyConcurrency: 1, rate: { limit: 100, per: '1s' }, weight: 2 }],
  },
);

const Quota = Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: MAX_QUOTA })));

/** Quotas of a tenant; what is left out stays as it is, null takes a quota away. */
export const QuotaChange = strict(
  {
    liveJobs: Quota,
    laterJobs: Quota,
    schedules: Quota,
    queues: Quota,
    submissionsPerSecond: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: MAX_QUOTA }))),
    payloadBytes: Quota,
    artifactBytes: Type.Optional(
      nullable(Type.Integer({ minimum: 0, maximum: maxOfQuota('artifactBytes') })),
    ),
  },
  { title: 'QuotaChange', examples: [{ liveJobs: 10_000, submissionsPerSecond: 500 }] },
);

/** A new tenant. */
export const NewTenant = strict(
  {
    id: Name,
    name: Type.Optional(line(128)),
    weight: Type.Optional(Weight),
    rate: Type.Optional(nullable(Rate)),
    quotas: Type.Optional(QuotaChange),
  },
  { title: 'NewTenant', examples: [{ id: 'acme', name: 'Acme Inc.', weight: 2 }] },
);

/** What changes about a tenant; what is left out stays as it is, null takes a limit away. */
export const TenantChange = strict(
  {
    name: Type.Optional(line(128)),
    weight: Type.Optional(Weight),
    rate: Type.Optional(nullable(Rate)),
    quotas: Type.Optional(QuotaChange),
  },
  { title: 'TenantChange', examples: [{ weight: 3, rate: { limit: 1000, per: '1s' } }] },
);

/** A rate in an answer. */
export const RateView = Type.Object(
  { limit: Type.Integer(), per: Type.Unsafe<Duration>(Type.String()), burst: Type.Optional(Type.Integer()) },
  { title: 'RateView' },
);

const QuotaView = (description: string) => nullable(Type.Integer({ description }));

/** The quotas of a tenant; null is none. */
export const Quotas = Type.Object(
  {
    liveJobs: QuotaView('Jobs that are due within minutes, or run.'),
    laterJobs: QuotaView('Jobs that are due later, or on hold.'),
    schedules: QuotaView('Schedules.'),
    queues: QuotaView('Queues; without it the setting `maxQueues` of the nodes holds.'),
    submissionsPerSecond: QuotaView('Jobs submitted in a second, over all nodes.'),
    payloadBytes: QuotaView('The largest payload, in bytes of JSON.'),
    artifactBytes: QuotaView('The bytes of all artifacts together.'),
  },
  { title: 'Quotas' },
);

/** A tenant with its share and limits. */
export const TenantView = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    shard: Type.Integer(),
    weight: Type.Integer({ description: 'Its share of shared workers beside other tenants.' }),
    rate: nullable(RateView),
    quotas: Quotas,
    createdAt: Type.String({ format: 'date-time' }),
  },
  { title: 'Tenant' },
);

/** The tenants. */
export const TenantPage = page('TenantPage', TenantView);
