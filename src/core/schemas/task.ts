import Type from 'typebox';
import { nullable, page, strict } from './object.js';
import { Delivery, Priority, Retry } from './submission.js';
import { Target } from './target.js';
import { Duration, Json, Labels, line, Name } from './text.js';

const Time = Type.String({ format: 'date-time' });

const STEP = '[^.\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,128}';

const KeyPath = strict(
  {
    path: Type.String({
      pattern: `^${STEP}(\\.${STEP}){0,15}$`,
      examples: ['customer.id'],
      'x-expected': 'up to 16 steps into the payload with dots between them, such as customer.id',
    }),
  },
  {
    title: 'KeyPath',
    description: 'Where the concurrency key stands in the payload; nothing there: no key.',
  },
);

const DEFINITION = {
  description: Type.Optional(line(1_024)),
  target: Type.Optional(Target),
  queue: Type.Optional(Name),
  priority: Type.Optional(Priority),
  retry: Type.Optional(Retry),
  timeout: Type.Optional(Duration),
  delivery: Type.Optional(Delivery),
  requires: Type.Optional(Labels),
  concurrencyKey: Type.Optional(
    Type.Union([line(512), KeyPath], {
      'x-expected': 'text of 1 to 512 characters without control characters, or {"path": "customer.id"}',
    }),
  ),
  payloadSchema: Type.Optional(
    Type.Unsafe<unknown>({
      ...Json,
      description:
        'A JSON Schema (draft 2020-12) that the payload of every job must fit. References lead into its own `$defs`; keywords that nodes do not check, and regular expressions with groups or alternatives, are refused.',
    }),
  ),
};

/** A definition as people write it, apart from its name. */
export const TaskDefinition = strict(DEFINITION);

/** What a client sends to define a task. */
export const TaskInput = strict(
  {
    name: Name,
    ...DEFINITION,
    publishedBy: Type.Optional(
      Type.Unsafe<string>({
        ...line(256),
        description:
          'The worker that publishes what its code says. It does not replace what people have defined: 409.',
      }),
    ),
    overwrite: Type.Optional(
      Type.Boolean({ description: 'Whether a publication replaces what people have defined, too.' }),
    ),
  },
  {
    title: 'TaskInput',
    examples: [{ name: 'send-mail', queue: 'mail', retry: { maxAttempts: 6 }, timeout: '30s' }],
  },
);

/** What can be changed about a task; null takes a field back to its default. */
export const TaskChange = strict(
  {
    description: Type.Optional(nullable(line(1_024))),
    target: Type.Optional(nullable(Target)),
    queue: Type.Optional(nullable(Name)),
    priority: Type.Optional(nullable(Priority)),
    retry: Type.Optional(nullable(Retry)),
    timeout: Type.Optional(nullable(Duration)),
    delivery: Type.Optional(nullable(Delivery)),
    requires: Type.Optional(nullable(Labels)),
    concurrencyKey: Type.Optional(nullable(Type.Union([line(512), KeyPath]))),
    payloadSchema: Type.Optional(Json),
  },
  { title: 'TaskChange', minProperties: 1 },
);

/** A task as the API shows it. */
export const TaskView = Type.Object(
  {
    tenant: Type.String(),
    name: Type.String(),
    ...DEFINITION,
    publishedBy: nullable(
      Type.String({ description: 'The worker that published it; null when a person defined it.' }),
    ),
    createdAt: Time,
    createdBy: Type.String(),
    changedAt: Time,
    changedBy: Type.String(),
    version: Type.Integer(),
  },
  { title: 'Task' },
);

/** One page of tasks, by name. */
export const TaskPage = page('TaskPage', TaskView);
