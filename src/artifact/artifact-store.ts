import type { Readable } from 'node:stream';

/**
 * Where the bytes of artifacts are kept: a folder, or a bucket. A store knows bytes by their SHA-256 and nothing else: neither
 * tenants nor names. Who may read what, and what is still needed, is decided by the tables of the database.
 *
 * All nodes of a cluster use the same store. Whatever breaks off leaves nothing that could be taken for bytes that arrived: they
 * are found under their hash only when all of them are there and were checked.
 */

/** Bytes by what they must be. */
export interface Blob {
  /** 64 hexadecimal digits, in lower case. */
  readonly sha256: string;
  readonly size: number;
}

/** A part of the bytes, never an empty one; `end` is the first byte that is not read any more. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** A part of an upload that has arrived. */
export interface StoredPart {
  /** From 1 on. */
  readonly number: number;
  readonly size: number;
}

/** A request that a client may make to the store itself. */
export interface DirectRequest {
  readonly url: string;
  readonly method: 'GET' | 'PUT';
  /** To be sent exactly so, because they are signed. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Which of these uploads have not ended yet. */
export type AreNeeded = (uploads: readonly string[]) => Promise<ReadonlySet<string>>;

export interface ArtifactStore {
  /** What people are told about where it is; no secrets. */
  readonly place: string;

  /** Tries whether it can be read and written; throws ARTIFACT_STORE_UNAVAILABLE. */
  probe(): Promise<void>;

  /**
   * Stores bytes as they arrive, never all of them in memory. Throws ARTIFACT_SIZE or ARTIFACT_HASH if they are others than was
   * said, and leaves nothing. Storing what is there already is no error.
   */
  put(blob: Blob, pieces: AsyncIterable<Buffer>): Promise<void>;
  /** How many bytes are there under a hash; null if none are. */
  size(sha256: string, signal?: AbortSignal): Promise<number | null>;
  /** Reads them, all or a range of them; null if they are not there. */
  open(sha256: string, range?: ByteRange): Promise<Readable | null>;
  /** Forgets them; no error if they are not there. After the signal, nothing is asked for any more. */
  remove(sha256: string, signal?: AbortSignal): Promise<void>;

  /** Stores one part of an upload, by the id of its artifact; the same number again replaces it. Throws ARTIFACT_SIZE. */
  putPart(upload: string, part: StoredPart, pieces: AsyncIterable<Buffer>): Promise<void>;
  /** The parts that have arrived, by their numbers. */
  parts(upload: string): Promise<StoredPart[]>;
  /**
   * Makes bytes of all the parts of an upload in their order, or of what was uploaded directly. Throws ARTIFACT_SIZE or
   * ARTIFACT_HASH if they are others than was said. Afterwards, also if it throws one of these, nothing of the upload is left.
   */
  complete(upload: string, blob: Blob): Promise<void>;
  /** Forgets an upload and its parts; no error if there are none. */
  abandon(upload: string): Promise<void>;
  /**
   * Removes what broken uploads left and nobody has written to since the moment: halves of pieces, and the parts of uploads that are
   * not needed any more, as those are that a crash has kept from being abandoned.
   */
  sweep(before: number, areNeeded: AreNeeded): Promise<void>;

  /** Ends all connections; what is under way fails. */
  close(): Promise<void>;

  /**
   * How a client may upload the bytes to the store itself, without a node in between; the upload is ended by `complete`. Null
   * where it cannot.
   */
  directUpload(upload: string, blob: Blob, validForMs: number): Promise<DirectRequest | null>;
  /** How a client may read the bytes from the store itself; null where it cannot. */
  directDownload(sha256: string, validForMs: number): Promise<DirectRequest | null>;
}
