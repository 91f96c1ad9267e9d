import Type from 'typebox';
import { KEY_SCOPES } from '../access.js';
import { nullable, strict } from './object.js';
import { line } from './text.js';

/** What a session is begun with. */
export const SignIn = strict(
  { key: Type.Optional(line(200)), code: Type.Optional(line(200)) },
  {
    title: 'SignIn',
    description: 'A key, or a code of `POST /v1/session/codes`.',
    examples: [{ code: 'pc_…' }],
  },
);

const Time = Type.String({ format: 'date-time' });
const Names = nullable(Type.Array(Type.String()));

/** Who is signed in. */
export const Session = Type.Object(
  {
    cluster: Type.String(),
    node: Type.String(),
    version: Type.String(),
    tenant: nullable(Type.String()),
    operator: Type.Boolean(),
    scopes: Type.Array(Type.Enum([...KEY_SCOPES], { type: 'string' })),
    queues: Names,
    tasks: Names,
    name: Type.String(),
    keyId: nullable(Type.String()),
    expiresAt: nullable(Time),
  },
  { title: 'Session' },
);

/** A code that signs in once. */
export const SignInCode = Type.Object({ code: Type.String(), expiresAt: Time }, { title: 'SignInCode' });
