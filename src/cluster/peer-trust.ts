import { X509Certificate } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { buildConnector } from 'undici';
import type { Certificate } from '../host/certificate.js';

/** Connects to a node. */
export type Connect = buildConnector.connector;

/**
 * Which certificates of other nodes are trusted. By default those of Node's own list, which `NODE_EXTRA_CA_CERTS`
 * extends. Nodes that share one self-signed certificate trust it, and for a while its predecessor: not all of them read
 * a new one in the same moment.
 */
export class PeerTrust {
  private own: readonly string[] = [];

  constructor(
    /** The certificates that `NODE_EXTRA_CA_CERTS` names; an explicit list of trusted ones would leave them out. */
    private readonly extra: string,
  ) {}

  /** Notes the certificate that this node serves with. */
  serve({ cert }: Certificate): void {
    const certificate = new X509Certificate(cert);
    if (certificate.checkIssued(certificate)) this.own = [cert, ...this.own.slice(0, 1)];
  }

  /** Makes connections that are given up after this time. */
  connect(timeoutMs: number): Connect {
    let own = this.own;
    let connector = this.connector(timeoutMs);
    return (options, callback) => {
      if (own !== this.own) {
        own = this.own;
        connector = this.connector(timeoutMs);
      }
      connector(options, callback);
    };
  }

  private connector(timeoutMs: number): Connect {
    const { own, extra } = this;
    if (own.length === 0) return buildConnector({ timeout: timeoutMs });
    return buildConnector({ timeout: timeoutMs, ca: [...rootCertificates, extra, ...own] });
  }
}
