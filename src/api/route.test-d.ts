import Type from 'typebox';
import { defaulted, strict } from '../core/schemas/object.js';
import type { AttemptCredential, Caller } from './caller.js';
import { json, route } from './route.js';

/** Compiles only while a route must name its scope, and its `run` gets what the declaration says. */

const common = { id: 'a', method: 'GET', path: '/a', tag: 'jobs', summary: 'A.', answers: {} } as const;

/** Proves that a value has a type. */
function is<T>(_value: T): void {}

// @ts-expect-error: the scope is missing.
route({ ...common, run: () => undefined });

route({
  ...common,
  scope: 'read',
  params: strict({ id: Type.String() }),
  query: strict({ limit: defaulted(Type.Integer({ default: 1 })), after: Type.Optional(Type.String()) }),
  body: json(strict({ weight: Type.Number() })),
  run: ({ caller, params, query, body }) => {
    is<Caller>(caller);
    is<string>(params.id);
    is<number>(query.limit);
    is<string | undefined>(query.after);
    is<number>(body.weight);
    // @ts-expect-error: it may be left out.
    is<string>(query.after);
    // @ts-expect-error: nobody declared it.
    is<unknown>(params.name);
  },
});

route({
  ...common,
  scope: 'attempt',
  run: ({ caller, body }) => {
    is<Caller | AttemptCredential>(caller);
    is<undefined>(body);
    // @ts-expect-error: it may be the token of an attempt.
    is<Caller>(caller);
  },
});

route({
  ...common,
  scope: 'public',
  run: ({ caller }) => is<null>(caller),
});
