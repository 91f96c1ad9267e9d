import type { Readable } from 'node:stream';
import { PunctualError } from '../core/errors.js';
import { TenantRoom } from './tenant-room.js';

/** Up- and downloads that a node serves at a time: each holds a connection and a file. */
const MOST = 256;

/** The up- and downloads of artifacts through one node. */
export class Transfers {
  private readonly room = new TenantRoom(MOST);
  private readonly downloads = new Set<Readable>();
  private readonly arriving = new Set<string>();
  private readonly ending = new Map<string, Promise<unknown>>();

  /** Takes room for one transfer; answers with what gives it back. */
  begin(tenant: string): () => void {
    if (!this.room.tryTake(tenant)) {
      const detail =
        'This node serves as many up- and downloads as it can; ask another one, or try again shortly.';
      throw new PunctualError('TOO_BUSY', detail, { retryAfter: 1 });
    }
    let isOpen = true;
    return () => {
      if (isOpen) this.room.giveBack(tenant);
      isOpen = false;
    };
  }

  /**
   * The same for bytes that arrive, which take up room in the store by and by: what was announced once may arrive once at a time.
   */
  receive(tenant: string, what: string): () => void {
    if (this.arriving.has(what)) {
      const detail = 'The same bytes are being uploaded through this node at the moment.';
      throw new PunctualError('TOO_BUSY', detail, { retryAfter: 1 });
    }
    const end = this.begin(tenant);
    this.arriving.add(what);
    return () => {
      this.arriving.delete(what);
      end();
    };
  }

  /** Ends an upload; whoever asks again while that is under way, because the answer takes long, gets the same answer. */
  once<T>(upload: string, sha256: string, end: () => Promise<T>): Promise<T> {
    const key = `${upload} ${sha256}`;
    const underWay = this.ending.get(key) as Promise<T> | undefined;
    if (underWay !== undefined) return underWay;
    const ended = end().finally(() => this.ending.delete(key));
    this.ending.set(key, ended);
    return ended;
  }

  /** Takes note of bytes that are being sent; a node that stops breaks them off. */
  serve(bytes: Readable): void {
    this.downloads.add(bytes);
    bytes.once('close', () => this.downloads.delete(bytes));
  }

  /** Breaks all downloads off: their clients ask another node for the rest. */
  close(): void {
    for (const bytes of this.downloads) bytes.destroy();
  }
}
