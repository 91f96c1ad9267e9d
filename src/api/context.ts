import type { ArtifactStore } from '../artifact/artifact-store.js';
import type { Config } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import type { SecretBox } from '../core/secret-box.js';
import type { LoopDelay } from '../host/loop-delay.js';
import type { Authentication } from './authentication.js';
import type { Refusals } from './refusals.js';
import type { SessionCookie } from './session-cookie.js';
import type { Shard } from './shard.js';
import type { Transfers } from './transfers.js';

/** What a node has beside its shards. */
interface NodeParts {
  readonly nodeId: string;
  readonly config: Config;
  readonly loopDelay: LoopDelay;
  readonly authentication: Authentication;
  /** What this node has refused because of quotas. */
  readonly refusals: Refusals;
  readonly sessionCookie: SessionCookie;
  /** The secret that all nodes share: it keys the hashes of keys. */
  readonly secret: Buffer;
  /** Encrypts and decrypts the secrets of tenants; null without a master key. */
  readonly secretBox: SecretBox | null;
  /** Where the bytes of artifacts are. */
  readonly artifacts: ArtifactStore;
  /** The up- and downloads of artifacts through this node. */
  readonly transfers: Transfers;
  /** All shards, by id. The first also holds what concerns the cluster: its nodes, its keys, its secret, its tenants. */
  readonly shards: readonly [Shard, ...Shard[]];
  /** Where this node can be reached. */
  ownUrl(): string;
  /** Has all nodes look at the keys of those who wait, because some were changed. */
  tellOfKeys(): void;
  /** Looks at the list of nodes at once, because one has joined. */
  lookAtNodes(): void;
}

/** What the routes of a node work with. */
export interface NodeContext extends NodeParts {
  /** The shard that has everything of a tenant. */
  shardOf(tenant: string): Shard;
  /** The shard of this id, as workers and other nodes name it; throws SHARD_NOT_FOUND. */
  shard(id: number): Shard;
}

/** A node over its parts. */
export function nodeContext(parts: NodeParts): NodeContext {
  const { shards } = parts;
  return {
    ...parts,
    // There is one shard so far; where there are more, the catalog in the first one says which.
    shardOf: () => shards[0],
    shard: (id) => {
      const shard = shards.find((each) => each.id === id);
      if (!shard) throw new PunctualError('SHARD_NOT_FOUND', `This node has no shard ${id}.`);
      return shard;
    },
  };
}
