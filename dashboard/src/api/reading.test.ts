import { afterAll, beforeAll, expect, it, vi } from 'vitest';

/** Reading lists and resources, without the components that show them and without a browser. */

let answerTo: (url: URL) => unknown;
let lists: typeof import('./page-list.js');
let resources: typeof import('./resource.js');

/** The little of a page that these parts look at while they are loaded. */
const PAGE = {
  ...{ baseURI: 'http://node/', visibilityState: 'visible' },
  ...{ querySelector: () => null, addEventListener: () => undefined },
};

async function fetchStub(url: URL, { signal }: RequestInit): Promise<Response> {
  const broken = new Promise<never>((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason));
  });
  return Response.json(await Promise.race([answerTo(url), broken]));
}

beforeAll(async () => {
  vi.stubGlobal('document', PAGE);
  vi.stubGlobal('window', globalThis);
  vi.stubGlobal('fetch', fetchStub);
  lists = await import('./page-list.js');
  resources = await import('./resource.js');
});
afterAll(() => {
  vi.unstubAllGlobals();
});

interface Row {
  readonly id: number;
  readonly state: string;
}

const keyOf = ({ id }: Row) => String(id);
const idsOf = (rows: readonly Row[]) => rows.map(({ id }) => id);

/** Rows from the newest id down to 1, of which the API finds at most so many before it stops to look. */
function pages(newest: number, mostFound = Number.POSITIVE_INFINITY, state = 'new'): (url: URL) => unknown {
  return ({ searchParams }) => {
    const from = Number(searchParams.get('after') ?? newest + 1) - 1;
    const count = Math.min(from, mostFound, Number(searchParams.get('limit')));
    const data = Array.from({ length: count }, (_, i): Row => ({ id: from - i, state }));
    const next = from - count > 0 ? String(from - count + 1) : null;
    return { data, next, complete: mostFound === Number.POSITIVE_INFINITY || next === null };
  };
}

it('the way back through pages that ended early leaves out no row', async () => {
  answerTo = pages(2_000, 3);
  const list = new lists.KeysetList<Row>('/v1/rows', 10, false);
  await list.restart();
  while (list.before.value < 30) await (list.isPaused.value ? list.goOn() : list.readMore());
  while (list.before.value > 0) await list.readBack();
  const ids = idsOf(list.rows.value);
  expect(ids[0]).toBe(2_000);
  expect(ids).toEqual(ids.map((_, i) => 2_000 - i));
});

it('news about a list take the place of its only page, and change no more than the rows of several', async () => {
  answerTo = pages(30);
  const list = new lists.KeysetList<Row>('/v1/rows', 10, false);
  await list.restart();
  answerTo = pages(33, undefined, 'changed');
  await list.renew(keyOf);
  expect(idsOf(list.rows.value)).toEqual([33, 32, 31, 30, 29, 28, 27, 26, 25, 24]);
  await list.readMore();
  answerTo = pages(35, undefined, 'changed again');
  await list.renew(keyOf);
  expect(idsOf(list.rows.value)).toEqual(Array.from({ length: 20 }, (_, i) => 33 - i));
  expect(list.rows.value.filter(({ state }) => state === 'changed again')).toHaveLength(8);
});

it('who asks anew gets what is so after the question, and not what was being read before', async () => {
  let asked = 0;
  let goOn!: (answer: string) => void;
  const held = new Promise<string>((resolve) => {
    goOn = resolve;
  });
  answerTo = () => {
    asked += 1;
    return asked > 1 ? 'after' : held;
  };
  const { get } = await import('./client.js');
  const resource = new resources.SharedResource<string>('/v1/thing', false, get);
  const leave = resource.use({});
  await expect.poll(() => asked).toBe(1);
  const again = [resource.refresh(), resource.refresh()];
  goOn('before');
  await Promise.all(again);
  expect([resource.data.value, asked]).toEqual(['after', 2]);
  leave();
});

it('what was broken off is read when somebody comes back at once', async () => {
  let asked = 0;
  answerTo = () => {
    asked += 1;
    return asked === 2 ? new Promise(() => undefined) : asked;
  };
  const { get } = await import('./client.js');
  const resource = new resources.SharedResource<number>('/v1/other', false, get);
  const leave = resource.use({});
  await expect.poll(() => resource.data.value).toBe(1);
  void resource.refresh();
  await expect.poll(() => asked).toBe(2);
  leave();
  expect(resource.isLoading.value).toBe(false);
  const leaveAgain = resource.use({});
  await expect.poll(() => resource.data.value).toBe(3);
  leaveAgain();
});
