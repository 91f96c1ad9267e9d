/** Mistakes about TLS between a client and a node, and what to do about them. */

/** A mistake about TLS. */
export interface TlsMistake {
  readonly advice: string;
  /** Whether the handshake failed, so that certainly no request was sent. */
  readonly nothingSent: boolean;
}

/** Reasons why the certificate of a node is not accepted, as Node.js names them. */
const UNKNOWN_AUTHORITY = /SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)/;
const NOT_VALID = /^CERT_|^ERR_TLS_CERT_ALTNAME_INVALID$/;
/** What OpenSSL says when the other side answers with plain text. */
const PLAIN_ANSWER = /wrong version number|WRONG_VERSION_NUMBER|packet length too long/i;
/** What a client that speaks plain HTTP gets from a server that expects TLS: an alert, or the end of the connection. */
const NO_HTTP_ANSWER = new Set(['HPE_INVALID_CONSTANT', 'UND_ERR_SOCKET', 'ECONNRESET']);

/** What is probably wrong; null if it is not about TLS. */
export function tlsMistake(url: string, code: string, reason: string): TlsMistake | null {
  if (!url.startsWith('https:')) {
    if (!NO_HTTP_ANSWER.has(code)) return null;
    const advice =
      'If the node serves HTTPS, the address must begin with https://; otherwise it may just have stopped.';
    return { advice, nothingSent: false };
  }
  if (UNKNOWN_AUTHORITY.test(code)) {
    const advice =
      'Nothing was sent: the authority of its certificate is not known here. Name the file of that certificate in the environment variable NODE_EXTRA_CA_CERTS, before the program starts.';
    return { advice, nothingSent: true };
  }
  if (NOT_VALID.test(code)) {
    return { advice: 'Nothing was sent: its certificate is not accepted.', nothingSent: true };
  }
  if (PLAIN_ANSWER.test(code) || PLAIN_ANSWER.test(reason)) {
    const advice = 'Nothing was sent: it does not speak TLS. Should the address begin with http://?';
    return { advice, nothingSent: true };
  }
  return null;
}
