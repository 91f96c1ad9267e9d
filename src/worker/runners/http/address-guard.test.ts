import { createSocket } from 'node:dgram';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AddressGuard } from './address-guard.js';
import { AddressResolver, askNameServers } from './address-resolver.js';
import { guardedConnector } from './connector.js';

/** The ranges of IPv4 that are not public, written out apart from the code: first address, bits. */
const CLOSED_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const;

const NEVER = new AbortController().signal;
const numberOf = (address: string) =>
  address.split('.').reduce((number, part) => number * 256 + Number(part), 0);
const textOf = (number: number) => [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');
const group = fc.integer({ min: 0, max: 0xffff }).map((part) => part.toString(16));

describe('the guard', () => {
  const guard = new AddressGuard();

  it('refuses every address of IPv4 that is not public', () => {
    const inside = fc
      .constantFrom(...CLOSED_IPV4)
      .chain(([first, bits]) =>
        fc.integer({ min: 0, max: 2 ** (32 - bits) - 1 }).map((offset) => textOf(numberOf(first) + offset)),
      );
    fc.assert(
      fc.property(inside, (address) => {
        expect(guard.allows(address)).toBe(false);
        expect(guard.allows(`::ffff:${address}`)).toBe(false);
        expect(guard.allows(`::${address}`)).toBe(false);
        expect(guard.allows(`64:ff9b::${address}`)).toBe(false);
        const [a, b, c, d] = address.split('.').map(Number);
        const hex = [a! * 256 + b!, c! * 256 + d!].map((part) => part.toString(16)).join(':');
        expect(guard.allows(`2002:${hex}::1`)).toBe(false);
        expect(guard.allows(`2001:0:${hex}::1`)).toBe(false);
      }),
    );
  });

  it('refuses every address of IPv6 outside of those that are given out', () => {
    const closed = fc
      .tuple(fc.integer({ min: 0, max: 0xffff }), fc.array(group, { minLength: 7, maxLength: 7 }))
      .filter(([first]) => first >>> 13 !== 1)
      .map(([first, rest]) => [first.toString(16), ...rest].join(':'));
    fc.assert(
      fc.property(closed, (address) => {
        expect(guard.allows(address)).toBe(false);
      }),
    );
  });

  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '93.184.216.34',
    '172.32.0.1',
    '100.128.0.1',
    '2606:4700::1111',
    '2a00:1450::1',
  ])('allows the public address %s', (address) => expect(guard.allows(address)).toBe(true));

  it.each([
    ...['168.63.129.16', '169.254.169.254', '100.100.100.200', '192.0.0.192', 'fd00:ec2::254'],
    ...[
      '4000::1',
      '100::1',
      '100:0:0:1::1',
      '3fff::1',
      '5f00::1',
      '2001:db8::1',
      '64:ff9b:1::1',
      'fe80::1%lo',
    ],
    ...['localhost', '0x7f.1', '0177.0.0.1', '127.1', '', 'example.com', '1.1.1.1.', '[::1]'],
  ])('refuses %s', (address) => expect(guard.allows(address)).toBe(false));

  it('opens what the operator opens, and nothing beside it', () => {
    const open = new AddressGuard(['10.1.0.0/16', '::1', '127.0.0.1']);
    expect(['10.1.2.3', '::1', '127.0.0.1', '1.1.1.1'].map((each) => open.allows(each))).toEqual(
      Array(4).fill(true),
    );
    for (const address of ['10.2.0.1', '127.0.0.2', '::2', '::ffff:10.1.2.3', '::ffff:127.0.0.1'])
      expect(open.allows(address)).toBe(false);
  });

  it.each(['', 'x', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/8/8', '::/129', 'localhost', '10/8', '0x7f.1'])(
    'does not start with the range %j',
    (range) => expect(() => new AddressGuard([range])).toThrow('allowAddresses'),
  );
});

/** Hosts that lead somewhere they must not, as URLs write them. */
const LITERALS = [
  ...[
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '017700000001',
    '127.0.0.1.',
  ],
  ...[
    '0',
    '0.0.0.0',
    '0x0',
    '00',
    '10.0.0.1',
    '10.1',
    '167772161',
    '0xa000001',
    '012.0.0.1',
    '172.16.0.1',
    '2886729729',
  ],
  ...[
    '192.168.0.1',
    '192.168.1',
    '3232235521',
    '0xc0a80001',
    '0300.0250.0.1',
    '169.254.169.254',
    '2852039166',
  ],
  ...[
    '0xa9fea9fe',
    '0251.0376.0251.0376',
    '169.254.43518',
    '100.64.0.1',
    '100.100.100.200',
    '192.0.0.192',
    '198.18.0.1',
  ],
  ...[
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '168.63.129.16',
    '203.0.113.1',
    '%31%32%37.0.0.1',
  ],
  ...[
    '１２７.0.0.1',
    '①②⑦.⓪.⓪.①',
    '127。0。0。1',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
  ],
  ...[
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:a9fe:a9fe]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b::169.254.169.254]',
    '[64:ff9b:1::1]',
  ],
  ...[
    '[2002:7f00:1::1]',
    '[2002:a9fe:a9fe::]',
    '[2001:0:7f00:1::1]',
    '[fe80::1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[ff02::1]',
  ],
  ...[
    '[4000::1]',
    '[100::1]',
    '[100:0:0:1::1]',
    '[2001:db8::1]',
    '[3fff::1]',
    '[fec0::1]',
    '[::ffff:0:127.0.0.1]',
  ],
];
/** Names, and what a hostile name server says about them. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'loopback.example': ['127.0.0.1'],
  'loopback6.example': ['::1'],
  'metadata.example': ['169.254.169.254'],
  'private.example': ['10.0.0.5'],
  'mapped.example': ['::ffff:10.0.0.5'],
  'one-of-two.example': ['93.184.216.34', '127.0.0.1'],
  'last-of-many.example': ['93.184.216.34', '1.1.1.1', '8.8.8.8', '9.9.9.9', '192.168.0.1'],
  'nat64.example': ['64:ff9b::7f00:1'],
  'six-to-four.example': ['2002:7f00:1::'],
  'no-address.example': ['metadata.internal'],
  'octal.example': ['0177.0.0.1'],
  'zone.example': ['fe80::1%eth0'],
};
const HOSTS = [
  ...LITERALS,
  ...Object.keys(NAMES),
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  'loopback.example.',
];
const WRAPPED = [
  (host: string) => `http://${host}/`,
  (host: string) => `https://${host}:8443/x?y#z`,
  (host: string) => `http:\\\\${host}\\@1.1.1.1/`,
  (host: string) => ` HTTP://1.1.1.1@${host}:80`,
];

describe('attack URLs', () => {
  // What is no URL cannot be submitted, and so is not called.
  const urls = HOSTS.flatMap((host) => WRAPPED.map((wrap) => wrap(host))).filter((url) => URL.canParse(url));

  it('are many', () => {
    expect(urls.length).toBeGreaterThanOrEqual(200);
  });

  it.each(urls)('%s connects to nothing', async (text) => {
    const { hostname, protocol, port } = new URL(text);
    const asked: string[] = [];
    const dialled: string[] = [];
    const connect = guardedConnector({
      resolver: new AddressResolver(async (name) => {
        asked.push(name);
        return NAMES[name] ?? [];
      }),
      guard: new AddressGuard(),
      // Records and never connects: a guard that fails must not send a packet either.
      dial: (options, callback) => {
        dialled.push(options.hostname);
        callback(new Error('not dialled'), null);
      },
    });
    const error = await new Promise<Error | null>((resolve) =>
      connect({ hostname, protocol, port }, (...[failure]) => resolve(failure), NEVER),
    );
    expect(dialled).toEqual([]);
    expect(error).toMatchObject({ code: expect.stringMatching(/^(ADDRESS_REFUSED|HTTP_DNS)$/) });
    expect(asked.length).toBeLessThanOrEqual(1);
  });
});

describe('the connection', () => {
  const dialler = (names: Readonly<Record<string, readonly string[]>>, good: readonly string[] = []) => {
    const dialled: { readonly hostname: string; readonly servername?: string | undefined }[] = [];
    const connect = guardedConnector({
      resolver: new AddressResolver(async (name) => names[name] ?? []),
      guard: new AddressGuard(),
      dial: ({ hostname, servername }, callback) => {
        dialled.push({ hostname, servername });
        if (good.includes(hostname)) callback(null, {} as never);
        else callback(new Error('refused'), null);
      },
    });
    const open = (hostname: string) =>
      new Promise((resolve) =>
        connect(
          { hostname, protocol: 'https:', port: '443' },
          (error, socket) => resolve(error ?? socket),
          NEVER,
        ),
      );
    return { dialled, open };
  };

  it('goes to the address that was checked, under the name that was asked for', async () => {
    const { dialled, open } = dialler({ 'a.example': ['93.184.216.34'] }, ['93.184.216.34']);
    await open('a.example');
    expect(dialled).toEqual([{ hostname: '93.184.216.34', servername: 'a.example' }]);
  });

  it('to a literal asks nobody and sends no name', async () => {
    const { dialled, open } = dialler({}, ['2606:4700::1111']);
    await open('[2606:4700::1111]');
    expect(dialled).toEqual([{ hostname: '2606:4700::1111', servername: undefined }]);
  });

  it('tries the next address where one does not connect, but not all of many', async () => {
    const many = ['1.1.1.1', '1.0.0.1', '8.8.8.8', '8.8.4.4'];
    const first = dialler({ 'a.example': many }, ['1.0.0.1']);
    await first.open('a.example');
    expect(first.dialled.map(({ hostname }) => hostname)).toEqual(['1.1.1.1', '1.0.0.1']);
    const none = dialler({ 'a.example': many });
    expect(await none.open('a.example')).toMatchObject({ message: 'refused' });
    expect(none.dialled).toHaveLength(3);
  });
});

describe('the resolver', () => {
  it('asks once for a name that many want, and again for the next', async () => {
    let asked = 0;
    let answer: (addresses: string[]) => void = () => undefined;
    const resolver = new AddressResolver(() => {
      asked += 1;
      return new Promise((resolve) => {
        answer = resolve;
      });
    });
    const many = Promise.all(['a.example', 'A.example', 'a.example.'].map((name) => resolver.resolve(name)));
    answer(['1.1.1.1']);
    expect(await many).toEqual([['1.1.1.1'], ['1.1.1.1'], ['1.1.1.1']]);
    const next = resolver.resolve('a.example');
    answer(['8.8.8.8']);
    expect(await next).toEqual(['8.8.8.8']);
    expect(asked).toBe(2);
  });

  it('does not let names that no server answers hold up another', async () => {
    const server = await nameServer((name, type) =>
      name !== 'fast.example' ? null : type === 1 ? [127, 0, 0, 9] : [],
    );
    const resolver = new AddressResolver(askNameServers([`127.0.0.1:${server}`]));
    const slow = Array.from({ length: 50 }, (_, i) =>
      resolver.resolve(`slow-${i}.example`).catch(() => null),
    );
    const began = performance.now();
    expect(await resolver.resolve('fast.example')).toEqual(['127.0.0.9']);
    // Four of them would hold up `dns.lookup` until they have failed, after many seconds.
    expect(performance.now() - began).toBeLessThan(1_500);
    expect(await Promise.race([Promise.all(slow), 'nobody'])).toBe('nobody');
  });
});

/** A name server on loopback: the address of a name, none, or silence. */
async function nameServer(
  addressOf: (name: string, type: number) => readonly number[] | null,
): Promise<number> {
  const socket = createSocket('udp4');
  socket.on('message', (question, { port }) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = question[at]!; length > 0; length = question[at]!) {
      labels.push(question.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
    const address = addressOf(labels.join('.').toLowerCase(), question.readUInt16BE(at + 1));
    if (address === null) return;
    const header = Buffer.from([
      question[0]!,
      question[1]!,
      0x81,
      0x80,
      0,
      1,
      0,
      address.length / 4,
      0,
      0,
      0,
      0,
    ]);
    const record = address.length === 0 ? [] : [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address];
    socket.send(
      Buffer.concat([header, question.subarray(12, at + 5), Buffer.from(record)]),
      port,
      '127.0.0.1',
    );
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  onTestFinished(() => void socket.close());
  return socket.address().port;
}
