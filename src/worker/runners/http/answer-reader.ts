import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

/** What was read of an answer's body. */
export interface ReadBody {
  readonly bytes: Buffer;
  /** Whether there was more. */
  readonly isCut: boolean;
}

/** An answer, as far as it was wanted. */
export interface CallAnswer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: ReadBody;
}

/** What of an answer is wanted. */
interface AnswerLimit {
  /** The most bytes of the body that are wanted; null if the answer is complete without it. */
  limitOf(statusCode: number, headers: IncomingHttpHeaders): number | null;
}

export interface AnswerListener {
  onAnswer(answer: CallAnswer): void;
  onFailure(error: unknown): void;
  /** The call was given up before it was sent. */
  onUnsent(): void;
  /** The connection has nothing to do with the call any more. */
  onOver(): void;
}

const EMPTY = Buffer.alloc(0);
const NOTHING: ReadBody = { bytes: EMPTY, isCut: false };
const UNWANTED = new Error('The rest of the answer is not wanted.');

/**
 * Reads the answer to one request up to a number of bytes. What comes after them is not waited for, and its connection is given
 * up. It is a handler of undici and not a stream, which would cost several times as much for a small answer.
 */
export class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #limit: AnswerLimit;
  readonly #listener: AnswerListener;
  /** What has come of the body, and how many bytes of it count. */
  #bytes: Buffer = EMPTY;
  #controller: Dispatcher.DispatchController | undefined;
  #givenUp: { readonly reason: unknown } | undefined;
  #statusCode = 0;
  #headers: IncomingHttpHeaders = {};
  #length = 0;
  #maxBytes = 0;

  constructor(limit: AnswerLimit, listener: AnswerListener) {
    this.#limit = limit;
    this.#listener = listener;
  }

  /** Tells of a failure at once, and lets go of the connection as soon as that is possible. */
  giveUp(reason: unknown): void {
    this.#givenUp ??= { reason };
    this.#listener.onFailure(reason);
    if (this.#controller) this.#controller.abort(UNWANTED);
    else this.#listener.onUnsent();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // undici does not let go of a request that waits for its connection.
    if (this.#givenUp) controller.abort(UNWANTED);
    else this.#controller = controller;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    this.#statusCode = statusCode;
    this.#headers = headers;
    const maxBytes = this.#limit.limitOf(statusCode, headers);
    this.#maxBytes = maxBytes ?? 0;
    if (maxBytes !== null) return;
    this.#listener.onAnswer({ statusCode, headers, body: NOTHING });
    if (headers['content-length'] !== '0') controller.abort(UNWANTED);
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#add(piece);
    if (this.#length <= this.#maxBytes) return;
    this.#answer(true);
    controller.abort(UNWANTED);
  }

  onResponseEnd(): void {
    this.#answer(false);
    this.#listener.onOver();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#listener.onFailure(error);
    this.#listener.onOver();
  }

  /**
   * Most bodies come in one piece, which is kept as it is. Others are copied: a receiver may send a million pieces of one byte, and
   * each as an object of its own would take a hundred times as much memory.
   */
  #add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (this.#length === 0) this.#bytes = piece;
    else {
      if (length > this.#bytes.length) {
        const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#length));
        this.#bytes.copy(larger, 0, 0, this.#length);
        this.#bytes = larger;
      }
      piece.copy(this.#bytes, this.#length);
    }
    this.#length = length;
  }

  #answer(isCut: boolean): void {
    const body = { bytes: this.#bytes.subarray(0, isCut ? this.#maxBytes : this.#length), isCut };
    this.#listener.onAnswer({ statusCode: this.#statusCode, headers: this.#headers, body });
  }
}
