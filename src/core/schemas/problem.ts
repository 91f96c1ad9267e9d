import Type from 'typebox';
import { ERROR_CODES } from '../errors.js';

/** An error answer (RFC 9457). */
export const Problem = Type.Object(
  {
    type: Type.String({ format: 'uri' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.Enum(Object.keys(ERROR_CODES), {
      type: 'string',
      description: 'Stable; made for programs.',
    }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          pointer: Type.String({ description: 'JSON pointer to what is wrong.' }),
          detail: Type.String(),
        }),
      ),
    ),
    quota: Type.Optional(Type.String({ description: 'The quota that the request went beyond.' })),
    limit: Type.Optional(Type.Integer({ description: 'The limit of that quota.' })),
    requestId: Type.String({ description: 'Also in the `request-id` header and in the logs of the node.' }),
  },
  { title: 'Problem' },
);
