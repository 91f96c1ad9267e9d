import Type from 'typebox';
import { ARTIFACT_KINDS, ARTIFACT_STATES, VERSION_FORM, VERSION_PATTERN } from '../artifact.js';
import { NAME_FORM, NAME_PATTERN } from '../job.js';
import { isUuid } from '../uuid.js';
import { defaulted, nullable, page, strict } from './object.js';
import { Fence, Id, Name } from './text.js';

const Time = Type.String({ format: 'date-time' });

/** An id would be taken for the artifact that has it. */
const ArtifactName = Type.Refine(
  Type.String({ pattern: NAME_PATTERN.source, 'x-expected': `${NAME_FORM}, and no UUID` }),
  (text) => !isUuid(text),
);

const Version = Type.String({ pattern: VERSION_PATTERN.source, 'x-expected': VERSION_FORM });

const Sha256 = Type.String({
  pattern: '^[0-9a-f]{64}$',
  'x-expected': 'a SHA-256 as 64 hexadecimal digits in lower case',
});

/** What is announced before an upload. */
export const ArtifactInput = strict(
  {
    name: Type.Optional(ArtifactName),
    version: Type.Optional(Version),
    sha256: Sha256,
    size: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    runnable: Type.Optional(
      Type.Boolean({ default: true, description: 'False for bytes that no worker is to run.' }),
    ),
    direct: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Whether the bytes may go straight to the store, if it takes them.',
      }),
    ),
  },
  {
    title: 'ArtifactInput',
    examples: [
      {
        ...{ name: 'packer', version: '1.4.0', size: 812_344 },
        sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      },
    ],
  },
);

const SHOWN = {
  id: Type.String(),
  name: nullable(Type.String()),
  version: nullable(Type.String()),
  sha256: Type.String(),
  size: Type.Integer(),
  state: Type.Enum([...ARTIFACT_STATES], { type: 'string' }),
  runnable: Type.Boolean(),
  kind: nullable(Type.Enum([...ARTIFACT_KINDS], { type: 'string' })),
  machine: nullable(Type.String({ description: 'The processor that a program is made for.' })),
  createdAt: Time,
  createdBy: Type.String(),
  readyAt: nullable(Time),
  expiresAt: nullable(Type.String({ format: 'date-time', description: 'Until when it may be uploaded.' })),
  job: nullable(Type.String({ description: 'The job that left it in its folder `output`.' })),
  output: nullable(Type.String()),
};

/** An artifact as it is shown. */
export const ArtifactView = Type.Object(SHOWN, { title: 'Artifact' });

/** One that was just announced. */
export const AnnouncedArtifact = Type.Object(
  {
    ...SHOWN,
    isNew: Type.Boolean({
      description: 'Whether this announcement made it: false if it had been announced before.',
    }),
    uploadUrl: nullable(
      Type.String({ description: 'Where the bytes go with PUT, without a key; for a part, add `&part=N`.' }),
    ),
    uploadHeaders: Type.Record(Type.String(), Type.String()),
    parts: nullable(
      Type.Object(
        {
          size: Type.Integer(),
          count: Type.Integer(),
          arrived: Type.Array(Type.Integer()),
        },
        { title: 'UploadParts' },
      ),
    ),
    mustComplete: Type.Boolean({ description: 'Whether the upload has to be ended by `complete`.' }),
  },
  { title: 'AnnouncedArtifact' },
);

/** One artifact with what names it. */
export const ArtifactWithUses = Type.Object(
  {
    ...SHOWN,
    usedBy: Type.Array(
      Type.Object(
        {
          kind: Type.Enum(['job', 'schedule', 'task', 'definition'], { type: 'string' }),
          name: Type.String(),
        },
        { title: 'ArtifactUse' },
      ),
      { description: 'What names it, the first ones; jobs only as long as they have not ended.' },
    ),
  },
  { title: 'ArtifactWithUses' },
);

export const ArtifactPage = page('ArtifactPage', ArtifactView);

/** Which artifacts to list. */
export const ArtifactQuery = strict({
  name: Type.Optional(Name),
  version: Type.Optional(Version),
  job: Type.Optional(Id),
  state: Type.Optional(Type.Enum([...ARTIFACT_STATES], { type: 'string' })),
  limit: defaulted(Type.Integer({ minimum: 1, maximum: 1_000, default: 100 })),
  after: Type.Optional(Id),
});

/** What a job left, by its name: a path below the folder `output`. */
export const OutputPath = strict({
  id: Id,
  name: Type.Refine(
    Type.String({
      pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,255}$',
      'x-expected': 'a path below the folder `output`, of at most 255 characters',
    }),
    (text) => text.split('/').every((part) => part !== '' && part !== '.' && part !== '..'),
  ),
});

/** The attempt that leaves something, where no token says it. */
export const OutputQuery = strict({ fence: Type.Optional(Fence) });

/** Whose artifact it is, for what cannot send a header, such as a link in a page. */
export const ContentQuery = strict({
  tenant: Type.Optional(
    Type.String({
      ...Name,
      description: 'For an operator, in place of the header `punctual-tenant`.',
    }),
  ),
});

/** The signature of an address. */
export const SignedQuery = strict({
  token: Type.String({ minLength: 1, maxLength: 4_096 }),
  part: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
});
