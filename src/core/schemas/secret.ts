import Type from 'typebox';
import { MAX_ORIGINS, MAX_SECRET_BYTES, readOrigin } from '../secret.js';
import { nullable, page, strict } from './object.js';
import { durationUpTo } from './text.js';

const Time = Type.String({ format: 'date-time' });

/** No text of its own in errors: a value that is nearly right is a secret, too. */
const SecretValue = Type.Refine(
  Type.String({
    minLength: 1,
    'x-expected': `text of 1 to ${MAX_SECRET_BYTES} bytes`,
    description: `At most ${MAX_SECRET_BYTES} bytes of UTF-8. It is never shown again.`,
  }),
  (text) => {
    const bytes = Buffer.from(text, 'utf8');
    // What is no Unicode (half of a pair of surrogates) could not be given back as it came.
    return bytes.length > 0 && bytes.length <= MAX_SECRET_BYTES && bytes.toString('utf8') === text;
  },
);

const Origin = Type.Refine(
  Type.String({
    maxLength: 512,
    examples: ['https://api.example.com'],
    'x-expected': 'an origin such as https://api.example.com, without path, user or *, or "exec"',
  }),
  (text) => readOrigin(text) !== null,
);

/** What a secret is set to. */
export const SecretInput = strict(
  {
    value: SecretValue,
    origins: Type.Array(Origin, {
      minItems: 1,
      maxItems: MAX_ORIGINS,
      description: 'The origins that the value may be sent to; `exec` for the environment of programs.',
    }),
  },
  { title: 'SecretInput', examples: [{ value: 'sk_live_…', origins: ['https://api.example.com'] }] },
);

/** A secret as it is shown. */
export const SecretView = Type.Object(
  {
    name: Type.String(),
    origins: Type.Array(Type.String()),
    version: Type.Integer(),
    createdAt: Time,
    createdBy: Type.String(),
    changedAt: Time,
    changedBy: Type.String(),
  },
  { title: 'Secret' },
);

/** The secrets of a tenant, without their values. */
export const SecretPage = page('SecretPage', SecretView);

/** The longest that other signing secrets stay valid beside a new one. */
const MAX_KEPT_MS = 90 * 86_400_000;

/** How a signing secret is made. */
export const SigningSecretInput = strict(
  { keepOthersFor: Type.Optional(durationUpTo(MAX_KEPT_MS, '1d')) },
  {
    title: 'SigningSecretInput',
    description: 'The others stay valid for `keepOthersFor`, 1d by default, 1m at least. May be left out.',
  },
);

const SIGNING = { id: Type.String(), createdAt: Time, expiresAt: nullable(Time) };

/** A signing secret as it is shown later on. */
export const SigningSecretView = Type.Object(SIGNING, { title: 'SigningSecret' });

/** A signing secret as it is shown once. */
export const NewSigningSecret = Type.Object(
  {
    ...SIGNING,
    secret: Type.String({ description: '`whsec_` and 32 bytes in base64; shown this once.' }),
  },
  { title: 'NewSigningSecret' },
);

/** The valid signing secrets of a tenant; there are so few that one page holds them. */
export const SigningSecretPage = page('SigningSecretPage', SigningSecretView);

const KEYS = {
  current: nullable(
    Type.String({ description: 'The master key with which the node that answers encrypts; null without.' }),
  ),
  known: Type.Array(Type.String({ description: 'A master key of the node, by its id.' })),
  stored: Type.Array(
    Type.Object({
      keyId: Type.String(),
      isKnown: Type.Boolean({ description: 'Whether the node that answers has it.' }),
      values: Type.Integer({ description: 'Secrets and signing secrets under it, counted up to a bound.' }),
    }),
  ),
};

/** How the master keys of a node fit what is stored. */
export const SecretKeysView = Type.Object(KEYS, { title: 'SecretKeys' });

/** What a part of a change of the master key has done. */
export const RekeyAnswer = Type.Object(
  {
    ...KEYS,
    rekeyed: Type.Integer({ description: 'Values that this call has encrypted anew.' }),
    remaining: Type.Integer({
      description: 'Values that are not under the current key, counted up to a bound.',
    }),
    done: Type.Boolean({ description: 'Whether nothing is left that this node could encrypt anew.' }),
    detail: Type.String({ description: 'What to do now.' }),
  },
  { title: 'RekeyAnswer' },
);
