import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import pg from 'pg';

/**
 * Stand-ins for PgBouncer, as far as clients can tell: settings at the start of a connection are refused in its words,
 * and the process id that a client is told is none of a server's.
 */
export interface Pooler {
  /** The URL of the database through the pooler. */
  readonly url: string;
  /** The names of the statements that clients prepared; in session mode only. */
  readonly prepared: readonly string[];
  close(): Promise<void>;
}

const REFUSED = 'unsupported startup parameter: options';

/** `pool_mode = session`: each client has a connection of its own to the server. */
export async function startSessionPooler(databaseUrl: string): Promise<Pooler> {
  const prepared: string[] = [];
  const pooler = await listen(databaseUrl, (client, startup) => {
    const { hostname, port } = new URL(databaseUrl);
    const server = connect(Number(port), hostname);
    for (const [one, other] of [[client, server] as const, [server, client] as const]) {
      one.on('close', () => other.destroy());
    }
    server.write(startup);
    let sent: Buffer = Buffer.alloc(0);
    client.on('data', (chunk) => {
      server.write(chunk);
      const [whole, rest] = wholeMessages(Buffer.concat([sent, chunk]));
      sent = rest;
      for (const { type, bytes } of whole) {
        const name = bytes.toString('utf8', 5, bytes.indexOf(0, 5));
        if (type === 'P' && name !== '') prepared.push(name);
      }
    });
    let start: Buffer | null = Buffer.alloc(0);
    server.on('data', (chunk) => {
      if (start === null) {
        client.write(chunk);
        return;
      }
      start = Buffer.concat([start, chunk]);
      const [whole, rest] = wholeMessages(start);
      start = rest;
      for (const message of whole) {
        if (message.type === 'K') message.bytes.writeInt32BE(-7, 5);
        client.write(message.bytes);
        if (message.type !== 'Z' || start === null) continue;
        start = null;
      }
      if (start === null && rest.length > 0) client.write(rest);
    });
  });
  return { ...pooler, prepared };
}

/**
 * `pool_mode = transaction`: all clients share the sessions, which take turns (`server_round_robin = 1`). It knows
 * statements without parameters only.
 */
export async function startTransactionPooler(databaseUrl: string, sessions = 1): Promise<Pooler> {
  const shared = Array.from({ length: sessions }, () => new pg.Client({ connectionString: databaseUrl }));
  await Promise.all(shared.map((each) => each.connect()));
  let served = 0;
  const pooler = await listen(databaseUrl, (client) => {
    const ready = message('Z', Buffer.from('I'));
    const key = Buffer.alloc(8);
    key.writeInt32BE(-7, 0);
    client.write(Buffer.concat([message('R', Buffer.alloc(4)), message('K', key), ready]));
    let received: Buffer = Buffer.alloc(0);
    client.on('data', async (chunk) => {
      const [whole, rest] = wholeMessages(Buffer.concat([received, chunk]));
      received = rest;
      for (const { type, bytes } of whole) {
        if (type !== 'Q') continue;
        const answer = await shared[served++ % sessions]!.query({
          text: bytes.toString('utf8', 5, bytes.length - 1),
          rowMode: 'array',
        });
        client.write(Buffer.concat([...encode(answer), message('C', text('SELECT')), ready]));
      }
    });
  });
  return {
    url: pooler.url,
    prepared: [],
    close: async () => {
      await pooler.close();
      await Promise.all(shared.map((each) => each.end()));
    },
  };
}

async function listen(
  databaseUrl: string,
  serve: (client: Socket, startup: Buffer) => void,
): Promise<Pooler> {
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.on('error', () => undefined).on('close', () => clients.delete(client));
    client.once('data', (startup) => {
      if (startup.includes('\0options\0')) client.end(message('E', text(`SFATAL\0C08P01\0M${REFUSED}\0`)));
      else serve(client, startup);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    prepared: [],
    close: async () => {
      for (const client of clients) client.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5, type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const text = (content: string) => Buffer.from(`${content}\0`);

interface Message {
  readonly type: string;
  readonly bytes: Buffer;
}

function wholeMessages(received: Buffer): [whole: Message[], rest: Buffer] {
  const whole: Message[] = [];
  let from = 0;
  while (received.length - from >= 5) {
    const end = from + 1 + received.readInt32BE(from + 1);
    if (end > received.length) break;
    whole.push({ type: String.fromCharCode(received[from]!), bytes: received.subarray(from, end) });
    from = end;
  }
  return [whole, received.subarray(from)];
}

/** The rows of an answer, all columns as text. */
function encode({ fields, rows }: pg.QueryResult): Buffer[] {
  const number = (value: number, bytes: number) => {
    const buffer = Buffer.alloc(bytes);
    buffer.writeIntBE(value, 0, bytes);
    return buffer;
  };
  const columns = fields.map(({ name, dataTypeID }) =>
    Buffer.concat([
      text(name),
      number(0, 6),
      number(dataTypeID, 4),
      number(-1, 2),
      number(-1, 4),
      number(0, 2),
    ]),
  );
  const values = (rows as unknown as unknown[][]).map((row) =>
    row.map((value) => {
      if (value === null) return number(-1, 4);
      const bytes = Buffer.from(typeof value === 'boolean' ? (value ? 't' : 'f') : String(value));
      return Buffer.concat([number(bytes.length, 4), bytes]);
    }),
  );
  const described = message('T', Buffer.concat([number(fields.length, 2), ...columns]));
  return [described, ...values.map((row) => message('D', Buffer.concat([number(row.length, 2), ...row])))];
}
