import { isUuid } from './uuid.js';

/** Artifacts of tenants: what was uploaded for jobs to run, and what jobs left behind. */

/** Bytes of one part of an upload, but for the last one. */
export const PART_BYTES = 16 * 1024 * 1024;
/** Larger artifacts are uploaded in parts. */
export const ONE_UPLOAD_BYTES = 64 * 1024 * 1024;

export const ARTIFACT_STATES = ['pending', 'ready'] as const;
/** `pending` until all bytes have arrived and were checked. */
export type ArtifactState = (typeof ARTIFACT_STATES)[number];

export const ARTIFACT_KINDS = ['elf', 'script', 'file'] as const;
/** What the bytes are: a static program, a script, or anything else. */
export type ArtifactKind = (typeof ARTIFACT_KINDS)[number];

const VERSION_PATTERN_TEXT = '[A-Za-z0-9._+-]{1,64}';
/** The form of a version. */
export const VERSION_PATTERN = new RegExp(`^${VERSION_PATTERN_TEXT}$`);
export const VERSION_FORM = '1 to 64 letters, digits, ".", "_", "+" or "-"';
/** A name that is no id, alone or with a version. */
const REFERENCE = new RegExp(`^([A-Za-z0-9._:-]{1,128})(?:@(${VERSION_PATTERN_TEXT}))?$`);

/** An artifact as it is shown. */
export interface ArtifactView {
  readonly id: string;
  /** Null for one without a name, which only its id finds. */
  readonly name: string | null;
  readonly version: string | null;
  /** 64 hexadecimal digits. */
  readonly sha256: string;
  readonly size: number;
  readonly state: ArtifactState;
  /** Whether the bytes must be something that a worker can run. */
  readonly runnable: boolean;
  /** Null until the bytes were checked. */
  readonly kind: ArtifactKind | null;
  /** The processor that a program is made for, in the words of Node: `x64`, `arm64`. */
  readonly machine: string | null;
  readonly createdAt: string;
  readonly createdBy: string;
  /** When all bytes had arrived. */
  readonly readyAt: string | null;
  /** Until when it may be uploaded; null once it is ready. */
  readonly expiresAt: string | null;
  /** The job that left it in its folder `output`, and under which name. */
  readonly job: string | null;
  readonly output: string | null;
}

/** How an artifact is uploaded in parts. */
export interface UploadParts {
  /** Bytes of each part but the last one. */
  readonly size: number;
  readonly count: number;
  /** The numbers of those that have arrived, from 1 on. */
  readonly arrived: readonly number[];
}

/** An artifact that was just announced, with what its upload needs. */
export interface AnnouncedArtifact extends ArtifactView {
  /** Whether this announcement made it: false if it had been announced before. */
  readonly isNew: boolean;
  /** Where the bytes go with PUT; null once they have arrived. For a part, `&part=N` is added. */
  readonly uploadUrl: string | null;
  /** Headers that the upload must have. */
  readonly uploadHeaders: Readonly<Record<string, string>>;
  /** Null where the bytes go in one piece. */
  readonly parts: UploadParts | null;
  /** Whether the upload has to be ended by `complete`. */
  readonly mustComplete: boolean;
}

/** Something that names an artifact, and so keeps it. */
export interface ArtifactUse {
  readonly kind: 'job' | 'schedule' | 'task' | 'definition';
  readonly name: string;
}

/** An artifact with what names it. */
export interface ArtifactWithUses extends ArtifactView {
  /** The first ones; jobs only as long as they have not ended. */
  readonly usedBy: readonly ArtifactUse[];
}

/** What is announced before an upload. */
export interface ArtifactInput {
  /** With a version; without both, only the id finds it. */
  readonly name?: string;
  readonly version?: string;
  readonly sha256: string;
  readonly size: number;
  /** False for bytes that no worker is to run; default true. */
  readonly runnable?: boolean;
  /** Whether the bytes may go straight to the store; the upload is then ended by `complete`. Default false. */
  readonly direct?: boolean;
}

/** An artifact whose bytes a job waits for, and until when. */
export interface AwaitedArtifact {
  readonly id: string;
  readonly by: number;
}

/** How a target names an artifact. */
export type ArtifactReference =
  | { readonly id: string }
  | { readonly name: string; readonly version: string | null };

/** Reads how a target names an artifact; null if it cannot be that. */
export function readReference(text: string): ArtifactReference | null {
  if (isUuid(text)) return { id: text };
  const found = REFERENCE.exec(text);
  return found && { name: found[1]!, version: found[2] ?? null };
}

/** The parts of an upload of so many bytes; null if it goes in one piece. */
export function partsOf(size: number): Omit<UploadParts, 'arrived'> | null {
  return size <= ONE_UPLOAD_BYTES ? null : { size: PART_BYTES, count: Math.ceil(size / PART_BYTES) };
}

/** How large a part of an upload is; the last one is what is left. */
export function partBytes(size: number, number: number): number {
  return Math.min(PART_BYTES, size - (number - 1) * PART_BYTES);
}

/** Whether the text of a target, or of something that has targets in it, may name an artifact. */
export function mayNameArtifact(text: string): boolean {
  return text.includes('"artifact"');
}

/** All values of fields called `artifact` in something that has targets in it. */
export function artifactNamesIn(value: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (typeof value !== 'object' || value === null) return found;
  for (const [name, child] of Object.entries(value)) {
    if (name === 'artifact' && typeof child === 'string') found.add(child);
    else artifactNamesIn(child, found);
  }
  return found;
}
