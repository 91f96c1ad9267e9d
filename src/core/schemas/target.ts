import Type from 'typebox';
import { strict } from './object.js';
import { Json, line, Name, texts } from './text.js';

/** Code in a worker. */
export const HandlerTarget = strict(
  { type: Type.Literal('handler'), name: Name },
  { title: 'HandlerTarget' },
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

/** A call to a URL. */
export const HttpTarget = strict(
  {
    type: Type.Literal('http'),
    url: HttpUrl,
    method: Type.Optional(HttpMethod),
    headers: Type.Optional(texts(64, 8_192)),
    body: Type.Optional(Json),
  },
  { title: 'HttpTarget' },
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
  { title: 'ExecTarget' },
);

/** Where the work of a job happens. */
export const Target = Type.Union([HandlerTarget, HttpTarget, ExecTarget], { title: 'Target' });

/** The kinds of targets a worker can serve. */
export const TargetType = Type.Enum(['handler', 'http', 'exec'], { type: 'string' });
