import { PunctualError } from '../core/errors.js';
import { MissingMasterKey, type Sealed, type SealedSubject, type SecretBox } from '../core/secret-box.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { forbidden, limitsOf } from './restrictions.js';

/** What the routes about secrets have in common. */

/** The master keys of this node; throws where it has none. */
export function mustHaveKey({ secretBox }: Pick<NodeContext, 'secretBox'>): SecretBox {
  if (secretBox) return secretBox;
  const detail =
    'This node has no master key for secrets: set PUNCTUAL_SECRET_KEY or PUNCTUAL_SECRET_KEY_FILE.';
  throw new PunctualError('SECRETS_UNAVAILABLE', detail);
}

/** Decrypts a value that a caller may have; what is wrong with it is said without a word of it. */
export function openSealed(box: SecretBox, sealed: Sealed, subject: SealedSubject): string {
  try {
    return box.open(sealed, subject);
  } catch (error) {
    const what = `${subject.kind === 'secret' ? 'The secret' : 'The signing secret'} ${subject.name}`;
    const detail =
      error instanceof MissingMasterKey
        ? `${what} needs the master key ${error.keyId}, which this node does not have.`
        : `${what} cannot be decrypted: what is stored was changed. Set it again.`;
    throw new PunctualError('SECRETS_UNAVAILABLE', detail);
  }
}

/** Secrets are in no queue and of no task: for a key that is restricted to some, they do not exist. */
export function reachesSecrets(caller: Caller): boolean {
  return limitsOf(caller) === undefined;
}

/** Refuses to make what a restricted key does not reach. */
export function mustReachSecrets(caller: Caller): void {
  if (!reachesSecrets(caller))
    throw forbidden('The key is restricted to queues or tasks; secrets belong to the whole tenant.');
}
