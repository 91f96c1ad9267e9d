import { createHmac } from 'node:crypto';

/**
 * The cookie of a session. Browsers keep cookies by host, whatever the port, so its name tells clusters apart. With the prefix
 * `__Host-` browsers take it from this very host only, over a secure connection or from this machine.
 */

const SECURE_PREFIX = '__Host-';
const NAME = 'punctual-';
/** Larger than any session; what is longer is not looked at. */
const MOST_COOKIE_BYTES = 8_192;

/** A short name of the cluster, which tells nothing about its secret. */
export function clusterId(secret: Buffer): string {
  return createHmac('sha256', secret).update('id of the cluster').digest('hex').slice(0, 8);
}

export class SessionCookie {
  readonly cluster: string;
  private readonly secureName: string;
  private readonly plainName: string;

  constructor(
    secret: Buffer,
    /** Whether sessions are kept over connections that others may read, because the operator has said that it is safe. */
    readonly isPlainAllowed: boolean,
  ) {
    this.cluster = clusterId(secret);
    this.plainName = NAME + this.cluster;
    this.secureName = SECURE_PREFIX + this.plainName;
  }

  /** The session in the header `cookie`. */
  read(header: string | undefined): string | null {
    if (header === undefined || header.length > MOST_COOKIE_BYTES) return null;
    const cookies = header.split(';').map((each) => each.trim());
    const names = this.isPlainAllowed ? [this.secureName, this.plainName] : [this.secureName];
    for (const name of names) {
      const found = cookies.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
      if (found) return found;
    }
    return null;
  }

  /** The header that has a browser keep a session. */
  keep(session: string, isSecure: boolean, seconds: number): string {
    return this.write(session, isSecure, seconds);
  }

  /** The header that has a browser forget the session. */
  forget(isSecure: boolean): string {
    return this.write('', isSecure, 0);
  }

  private write(value: string, isSecure: boolean, seconds: number): string {
    const name = isSecure ? this.secureName : this.plainName;
    const secure = isSecure ? '; Secure' : '';
    return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
  }
}
