import { connect } from 'node:net';
import { monotonic } from '../../fault/monotonic.js';
import type { Attack } from '../attack.js';
import { parsed, type Received, type Target } from '../sender.js';

const MAX_ROUNDS = 20;
const PATIENCE_MS = 20_000;
const LONG_HEADER = 20_000;

/** Bytes that no proper client sends, and whether they must be answered by a problem or may also be hung up on. */
type Case = readonly [about: string, bytes: string, answer: 'problem' | 'any'];

/** Requests on a bare socket that are hardly HTTP. */
export const attack: Attack = {
  kind: 'raw-http',
  summary: 'requests on a bare socket that are hardly HTTP',
  mayBeRefusedForLoad: false,
  async run(scene, random) {
    const cases = casesFor(scene.apiKey);
    await scene.inLanes(4, MAX_ROUNDS * cases.length, async (n) => {
      const given = cases[n % cases.length]!;
      const answer = await sendRaw(scene.someNode(random), given, scene.abandoned);
      const hungUp = answer.status === null && given[2] === 'any';
      if (!hungUp && !scene.abandoned.aborted) scene.note(answer);
    });
  },
};

function casesFor(apiKey: string): readonly Case[] {
  const host = 'Host: a\r\n';
  const key = `Authorization: Bearer ${apiKey}\r\nPunctual-Tenant: attacker\r\n`;
  const json = 'Content-Type: application/json\r\n';
  const close = 'Connection: close\r\n';
  const post = `POST /v1/jobs HTTP/1.1\r\n${host}${key}${json}${close}`;
  return [
    ['without a host', `GET /livez HTTP/1.1\r\n${close}\r\n`, 'problem'],
    ['two hosts', `GET /livez HTTP/1.1\r\n${host}${host}${close}\r\n`, 'any'],
    ['large headers', `GET /livez HTTP/1.1\r\n${host}X: ${'x'.repeat(LONG_HEADER)}\r\n\r\n`, 'problem'],
    ['many headers', `GET /livez HTTP/1.1\r\n${host}${'A: b\r\n'.repeat(3_000)}\r\n`, 'problem'],
    ['a long target', `GET /${'x'.repeat(LONG_HEADER)} HTTP/1.1\r\n${host}\r\n`, 'problem'],
    ['no method', `\0\0\0\0\r\n\r\n`, 'problem'],
    ['an unknown method', `FETCH /livez HTTP/1.1\r\n${host}\r\n`, 'problem'],
    ['an old version', `GET /livez HTTP/0.9\r\n\r\n`, 'any'],
    ['a later version', `GET /livez HTTP/3.0\r\n${host}\r\n`, 'any'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 'any'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'any'],
    [
      'a target with a host',
      `GET http://evil.example/v1/jobs HTTP/1.1\r\n${host}${key}${close}\r\n`,
      'problem',
    ],
    [
      'a target of two slashes',
      `GET //evil.example/v1/jobs HTTP/1.1\r\n${host}${key}${close}\r\n`,
      'problem',
    ],
    ['a target of a star', `OPTIONS * HTTP/1.1\r\n${host}${close}\r\n`, 'problem'],
    ['a target without a slash', `GET livez HTTP/1.1\r\n${host}${close}\r\n`, 'problem'],
    ['CONNECT', `CONNECT a:80 HTTP/1.1\r\n${host}\r\n`, 'any'],
    ['an upgrade', `GET /livez HTTP/1.1\r\n${host}Connection: upgrade\r\nUpgrade: websocket\r\n\r\n`, 'any'],
    ['two lengths', `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 'problem'],
    [
      'a length and chunks',
      `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      'problem',
    ],
    ['a negative length', `${post}Content-Length: -1\r\n\r\n`, 'problem'],
    ['a length that is no number', `${post}Content-Length: 0x2\r\n\r\n{}`, 'problem'],
    ['a huge length', `${post}Content-Length: 99999999999\r\n\r\n{`, 'problem'],
    ['broken chunks', `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`, 'problem'],
    [
      'chunks with odd extensions',
      `${post}Transfer-Encoding: chunked\r\n\r\n2;a="\\";\r\n{}\r\n0\r\n\r\n`,
      'any',
    ],
    ['chunked twice', `${post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`, 'problem'],
    ['an unknown transfer', `${post}Transfer-Encoding: x\r\n\r\n`, 'problem'],
    ['a header without a colon', `GET /livez HTTP/1.1\r\n${host}nonsense\r\n\r\n`, 'problem'],
    ['a blank before the colon', `GET /livez HTTP/1.1\r\nHost : a\r\n\r\n`, 'problem'],
    ['a folded header', `GET /livez HTTP/1.1\r\n${host}X: a\r\n b\r\n${close}\r\n`, 'any'],
    ['a NUL in a header', `GET /livez HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`, 'problem'],
    ['bare line feeds', `GET /livez HTTP/1.1\n${host.trim()}\n\n`, 'any'],
    [
      'two requests at once',
      `GET /livez HTTP/1.1\r\n${host}\r\nGET /nowhere HTTP/1.1\r\n${host}${close}\r\n`,
      'any',
    ],
    ['an expectation', `${post}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`, 'any'],
    ['an unknown expectation', `${post}Expect: miracles\r\nContent-Length: 2\r\n\r\n{}`, 'problem'],
  ];
}

/** Sends the bytes and reads what comes until the connection is closed, or one answer is there. */
function sendRaw(target: Target, [about, bytes]: Case, abandoned: AbortSignal): Promise<Received> {
  const from = monotonic();
  const { hostname, port } = new URL(target.url);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let failure: string | null = null;
    const socket = connect({ host: hostname, port: Number(port), signal: abandoned } as never);
    const end = () => {
      socket.destroy();
      resolve(
        toReceived(Buffer.concat(chunks).toString('latin1'), about, target, monotonic() - from, failure),
      );
    };
    socket.setTimeout(PATIENCE_MS, () => {
      failure = `nothing for ${PATIENCE_MS} ms`;
      end();
    });
    socket.on('error', (error) => {
      failure = error.message;
    });
    socket.on('close', end);
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (isWhole(Buffer.concat(chunks).toString('latin1'))) end();
    });
    socket.on('connect', () => socket.write(Buffer.from(bytes, 'latin1')));
  });
}

/** Whether a text holds a whole answer with a length; an interim answer is none. */
function isWhole(text: string): boolean {
  const { head, body, status } = apart(text);
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  return status !== null && length !== undefined && body.length >= Number(length);
}

function apart(text: string): { head: string; body: string; status: number | null } {
  const final = text.replace(/^HTTP\/1\.1 1\d\d [\s\S]*?\r\n\r\n/, '');
  const end = final.indexOf('\r\n\r\n');
  const head = end < 0 ? final : final.slice(0, end);
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
  return { head, body: end < 0 ? '' : final.slice(end + 4), status: status ? Number(status) : null };
}

function toReceived(text: string, about: string, target: Target, ms: number, why: string | null): Received {
  const { head, body, status } = apart(text);
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim() ?? '';
  return {
    ...{ request: `raw HTTP [${about}]`, method: 'raw', node: target.name, status, ms, body },
    ...{ bytes: text.length, contentType: header('content-type'), requestId: header('request-id') },
    problem: status !== null && status >= 400 ? parsed(body) : null,
    failure: status === null ? (why ?? 'the connection was closed') : null,
  };
}
