import { generateKeyPairSync, sign } from 'node:crypto';
import type { Certificate } from '../src/host/certificate.js';

/** A self-signed certificate for the loopback; made here, because no tool of the machine can be relied on. */
export function testCertificate(name: string, days = 365): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const algorithm = der(0x30, oid('2a8648ce3d040302'));
  const commonName = der(
    0x30,
    der(0x31, der(0x30, Buffer.concat([oid('550403'), der(0x0c, Buffer.from(name))]))),
  );
  const alternatives = der(
    0x30,
    Buffer.concat([der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1]))]),
  );
  const extensions = der(0xa3, der(0x30, der(0x30, Buffer.concat([oid('551d11'), der(0x04, alternatives)]))));
  const body = der(
    0x30,
    Buffer.concat([
      der(0xa0, der(0x02, Buffer.from([2]))),
      der(0x02, Buffer.from([1])),
      algorithm,
      commonName,
      der(0x30, Buffer.concat([utc(-1), utc(days)])),
      commonName,
      publicKey.export({ type: 'spki', format: 'der' }),
      extensions,
    ]),
  );
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]));
  const whole = der(0x30, Buffer.concat([body, algorithm, signature]));
  const lines = whole.toString('base64').match(/.{1,64}/g)!;
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

/** A moment so many days from now. */
function utc(days: number): Buffer {
  const text = new Date(Date.now() + days * 86_400_000).toISOString();
  return der(0x17, Buffer.from(`${text.slice(2, 19).replace(/[-:T]/g, '')}Z`));
}
