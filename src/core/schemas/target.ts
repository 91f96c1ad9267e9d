import Type, { type Static } from 'typebox';
import { ISOLATIONS } from '../job.js';
import { strict } from './object.js';
import { Duration, Json, line, Name, passage } from './text.js';

/** Code in a worker. */
export const HandlerTarget = strict(
  { type: Type.Literal('handler'), name: Name },
  { title: 'HandlerTarget', description: 'Code in a worker.' },
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
  propertyNames: {
    type: 'string',
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$",
    'x-expected': 'the name of a header',
  },
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
  { title: 'HttpTarget', description: 'A call to a URL.' },
);

/** Most of one petabyte: sizes of files and memories that nobody has are typing mistakes. */
const Bytes = (minimum: number) => Type.Integer({ minimum, maximum: 2 ** 50 });

/** What a program may use. */
const Limits = strict(
  {
    cpuTime: Type.Optional(Duration),
    cpus: Type.Optional(Type.Number({ minimum: 0.01, maximum: 1_024 })),
    memory: Type.Optional(Bytes(2 ** 20)),
    files: Type.Optional(Type.Integer({ minimum: 8, maximum: 1_048_576 })),
    processes: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_048_576 })),
    output: Type.Optional(Bytes(0)),
    disk: Type.Optional(Bytes(0)),
  },
  {
    title: 'ExecLimits',
    description:
      'What a program may use; sizes in bytes. Workers have bounds of their own; the lower one counts.',
  },
);

const Environment = Type.Unsafe<Record<string, string | Static<typeof SecretReference>>>({
  type: 'object',
  maxProperties: 128,
  propertyNames: {
    type: 'string',
    pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$',
    'x-expected': 'the name of a variable',
  },
  additionalProperties: Type.Union([passage(32_768), SecretReference]),
});

/** An uploaded binary or a command. */
export const ExecTarget = strict(
  {
    type: Type.Literal('exec'),
    artifact: Type.Optional(line(256)),
    artifactTimeout: Type.Optional(Duration),
    command: Type.Optional(line(4_096)),
    args: Type.Optional(Type.Array(passage(32_768), { maxItems: 256 })),
    env: Type.Optional(Environment),
    limits: Type.Optional(Limits),
    isolation: Type.Optional(Type.Enum([...ISOLATIONS], { type: 'string' })),
  },
  { title: 'ExecTarget', description: 'An uploaded binary, or a command where the operator allows it.' },
);

/** Where the work of a job happens. */
export const Target = Type.Union([HandlerTarget, HttpTarget, ExecTarget], { title: 'Target' });

/** The kinds of targets a worker can serve. */
export const TargetType = Type.Enum(['handler', 'http', 'exec'], { type: 'string' });
