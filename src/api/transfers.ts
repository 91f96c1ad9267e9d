import { PunctualError } from '../core/errors.js';
import { TenantRoom } from './tenant-room.js';

/** Up- and downloads that a node serves at a time: each holds a connection and a file. */
const MOST = 256;

/** The up- and downloads of artifacts through one node. */
export class Transfers {
  private readonly room = new TenantRoom(MOST);

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
}
