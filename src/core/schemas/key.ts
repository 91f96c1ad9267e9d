import Type from 'typebox';
import { KEY_SCOPES } from '../access.js';
import { nullable, page, strict } from './object.js';
import { Duration, line, Moment, Name } from './text.js';

const KeyScope = Type.Enum([...KEY_SCOPES], { type: 'string' });

/** Bounded, because a node sends them along with every request that it forwards. */
const Names = Type.Array(Name, { minItems: 1, maxItems: 20, uniqueItems: true });

/** A new key. */
export const KeyInput = strict(
  {
    name: line(128),
    scopes: Type.Optional(
      Type.Array(KeyScope, { minItems: 1, maxItems: KEY_SCOPES.length, uniqueItems: true }),
    ),
    expiresAt: Type.Optional(Moment),
    queues: Type.Optional(Names),
    tasks: Type.Optional(Names),
    tenant: Type.Optional(Name),
    operator: Type.Optional(Type.Boolean()),
  },
  {
    title: 'KeyInput',
    description:
      'A key of a tenant needs `scopes`; `queues` and `tasks` restrict it. With `operator` it may do everything, for every tenant; with `operator` and the scope `read` it may only read.',
    examples: [{ name: 'shop', scopes: ['submit', 'read'], expiresAt: '2027-01-01T00:00:00Z' }],
  },
);

/** How a key is replaced. */
export const KeyRotation = strict(
  {
    oldExpiresIn: Type.Optional(Duration),
    expiresAt: Type.Optional(Moment),
  },
  {
    title: 'KeyRotation',
    description: 'The old key stays valid for `oldExpiresIn`, 24h by default. May be left out.',
    examples: [{ oldExpiresIn: '2h' }],
  },
);

const Time = Type.String({ format: 'date-time' });

const VIEW = {
  id: Type.String(),
  name: Type.String(),
  tenant: nullable(Type.String()),
  operator: Type.Boolean(),
  scopes: Type.Array(KeyScope),
  queues: nullable(Type.Array(Type.String())),
  tasks: nullable(Type.Array(Type.String())),
  expiresAt: nullable(Time),
  createdAt: Time,
  createdBy: nullable(Type.String()),
  lastUsedAt: nullable(
    Type.String({
      format: 'date-time',
      description:
        'When it was last used, to the hour: the beginning of that hour, which may be before the key was made.',
    }),
  ),
};

/** A key as it is shown later on. */
export const KeyView = Type.Object(VIEW, { title: 'Key' });

/** A key as it is shown once. */
export const NewKeyView = Type.Object(
  { ...VIEW, key: Type.String({ description: 'The key itself; it is shown this once.' }) },
  { title: 'NewKey' },
);

/** The keys. */
export const KeyPage = page('KeyPage', KeyView);
