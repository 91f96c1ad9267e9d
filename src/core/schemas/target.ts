import Type, { type Static } from 'typebox';
import { strict } from './object.js';
import { Duration, Json, line, Name, texts } from './text.js';

/**
 * The kinds of targets that exist. A submission with another one is refused, because it would wait for ever. This is
 * the only place that decides; the check in SQL is made from it (`npm run submission-check`).
 */
export const AVAILABLE_TARGETS: readonly ('handler' | 'http' | 'exec')[] = ['handler', 'http'];

/** Completes "/target/type …" in the error about a target that does not exist yet. */
export const UNAVAILABLE_TARGET = `is not available yet; there ${
  AVAILABLE_TARGETS.length === 1 ? 'is' : 'are'
} only ${AVAILABLE_TARGETS.map((type) => JSON.stringify(type)).join(', ')}`;

/** What the OpenAPI document says about a kind of target. */
function describe(type: (typeof AVAILABLE_TARGETS)[number]): string {
  const what = {
    handler: 'Code in a worker.',
    http: 'A call to a URL.',
    exec: 'An uploaded binary or a command.',
  };
  if (AVAILABLE_TARGETS.includes(type)) return what[type];
  return `${what[type]} Not available yet: refused with \`TARGET_UNAVAILABLE\`.`;
}

/** Code in a worker. */
export const HandlerTarget = strict(
  { type: Type.Literal('handler'), name: Name },
  { title: 'HandlerTarget', description: describe('handler') },
);

const HttpUrl = Type.Refine(
  Type.String({
    pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,8192}$',
    'x-expected': 'an http or https URL',
  }),
  (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
);

const HttpMethod = Type.Unsafe<string>({
  type: 'string',
  enum: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'],
  default: 'POST',
});

/** A reference to a secret of the tenant. */
export const SecretReference = strict(
  { $secret: Name, prefix: Type.Optional(line(128)) },
  {
    title: 'SecretReference',
    description: 'A secret of the tenant, which a worker fills in at the last moment.',
  },
);

const Headers = Type.Unsafe<Record<string, string | Static<typeof SecretReference>>>({
  type: 'object',
  maxProperties: 64,
  propertyNames: { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$", 'x-expected': 'the name of a header' },
  additionalProperties: Type.Union([line(8_192, 0), SecretReference]),
});

const Status = Type.Integer({ minimum: 200, maximum: 599 });
const Statuses = Type.Array(Status, { maxItems: 100 });

/** The most redirects that a call may follow. */
export const MAX_REDIRECTS = 5;

/** A call to a URL. */
export const HttpTarget = strict(
  {
    type: Type.Literal('http'),
    url: HttpUrl,
    method: Type.Optional(HttpMethod),
    headers: Type.Optional(Headers),
    body: Type.Optional(Json),
    expect: Type.Optional(Statuses),
    completion: Type.Optional(Type.Enum(['auto', 'response'], { type: 'string', default: 'auto' })),
    timeout: Type.Optional(Duration),
    redirects: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_REDIRECTS })),
    retryStatuses: Type.Optional(Statuses),
  },
  { title: 'HttpTarget', description: describe('http') },
);

/** An uploaded binary or a command. */
export const ExecTarget = strict(
  {
    type: Type.Literal('exec'),
    artifact: Type.Optional(line(256)),
    command: Type.Optional(line(4_096)),
    args: Type.Optional(
      Type.Array(Type.String({ pattern: '^[^\\u0000]*$', 'x-expected': 'text without NUL' }), {
        maxItems: 256,
      }),
    ),
    env: Type.Optional(texts(128, 32_768)),
  },
  { title: 'ExecTarget', description: describe('exec') },
);

/** Where the work of a job happens. */
export const Target = Type.Union([HandlerTarget, HttpTarget, ExecTarget], { title: 'Target' });

/** The kinds of targets a worker can serve. */
export const TargetType = Type.Enum(['handler', 'http', 'exec'], { type: 'string' });
