import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { chromium, type Page } from 'playwright-core';
import { startChromium } from '../browser/chromium.js';
import { beginShown, openShop, type Shown, serveCustomers } from './shop.js';
import { type Demo, startDemo } from './start-demo.js';

/** `npm run screenshots`: takes the pictures of the docs, in both themes, from a demo that runs for a while. */

const HELP = `npm run screenshots -- [--minutes N] [--to FOLDER] [--only NAME[,NAME]] [--png]

Runs \`punctual up --demo\` with a small shop beside it, and takes pictures of the dashboard in a real browser.

  --minutes N    how long the shop is open before the pictures are taken (4)
  --to FOLDER    where they go (docs/images)
  --only NAME    some pictures only, or all, also those that the docs do not show
  --png          as PNG of any size, to look at instead of to keep`;

const THEMES = ['light', 'dark'] as const;
const SIZE = { width: 1_280, height: 800 };
/** Sharp also on screens with small pixels. */
const SCALE = 1.5;
const LARGEST_BYTES = 150_000;
/** From the best quality on, until the picture is small enough. */
const QUALITIES = [88, 80, 70, 60];

interface Picture {
  readonly name: string;
  readonly path: (shown: Shown) => string;
  /** What must be there before it is taken. */
  readonly shows: (page: Page) => Promise<unknown>;
  readonly size?: { readonly width: number; readonly height: number };
}

const has = (text: string) => (page: Page) => page.getByText(text).first().waitFor();

const hasLink = (name: string) => (page: Page) => page.getByRole('link', { name }).first().waitFor();

const PICTURES: readonly Picture[] = [
  { name: 'job', path: ({ job }) => `/jobs/${job}`, shows: has('wrote segment 12') },
  { name: 'workflow', path: ({ workflow }) => `/workflows/${workflow}`, shows: hasLink('publish') },
  {
    name: 'gantt',
    path: ({ workflow }) => `/workflows/${workflow}?tab=gantt`,
    shows: hasLink('publish'),
    size: { width: 1_280, height: 1_000 },
  },
  { name: 'jobs', path: () => '/jobs', shows: has('charge-card') },
  { name: 'errors', path: () => '/errors', shows: has('was declined') },
  { name: 'schedule', path: ({ schedule }) => `/schedules/${schedule}`, shows: has('ran') },
  { name: 'schedules', path: () => '/schedules', shows: has('newsletter') },
  { name: 'queues', path: () => '/queues', shows: has('payments') },
  { name: 'queue', path: () => '/queues/mail', shows: (page) => page.locator('canvas').first().waitFor() },
  { name: 'workers', path: () => '/workers', shows: has('alive') },
  { name: 'cluster', path: () => '/cluster', shows: has('Event loop') },
  { name: 'submit', path: () => '/submit', shows: has('Command line') },
  { name: 'edit', path: ({ schedule }) => `/schedules/${schedule}/edit`, shows: has('Next ten') },
  { name: 'workflows', path: () => '/workflows', shows: has('nightly-import') },
  { name: 'batches', path: () => '/batches', shows: has('succeeded') },
  { name: 'origins', path: () => '/origins', shows: has('HTTP targets') },
  { name: 'tenants', path: () => '/tenants', shows: has('Tenants') },
  { name: 'keys', path: () => '/keys', shows: has('Rotate') },
  { name: 'secrets', path: () => '/secrets', shows: has('Signing secrets') },
  { name: 'audit', path: () => '/audit', shows: has('schedule.create') },
  { name: 'phone', path: () => '/', shows: has('payments'), size: { width: 360, height: 740 } },
  { name: 'home', path: () => '/', shows: (page) => page.locator('canvas').nth(2).waitFor() },
];

/** Those that the docs show; the others are for whoever works on the pages. */
const OF_DOCS = ['home', 'jobs', 'job', 'gantt', 'errors', 'schedule'];

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '4' },
      to: { type: 'string', default: join('docs', 'images') },
      only: { type: 'string', default: OF_DOCS.join() },
      png: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return void process.stdout.write(`${HELP}\n`);
  const only = values.only === 'all' ? null : values.only.split(',');
  const pictures = PICTURES.filter(({ name }) => only === null || only.includes(name));
  const target = resolve(values.to);
  await mkdir(target, { recursive: true });
  // Folders of tests are removed by other tests after ten minutes.
  const folder = await mkdtemp(join(tmpdir(), 'punctual-pictures-'));
  await chmod(folder, 0o711);
  const demo = await startDemo(folder, resolve('test', 'screenshots', 'shop-tasks.mjs'));
  const closed = new AbortController();
  try {
    await openShop(demo.ask);
    const customers = serveCustomers(demo.ask, closed.signal);
    await Promise.race([sleep(Number(values.minutes) * 60_000), customers]);
    const shown = await beginShown(demo.ask);
    // What is begun last is to be under way.
    await sleep(BEGUN_MS);
    await takeAll(demo, shown, pictures, { target, isPng: values.png });
  } finally {
    closed.abort();
    await demo.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const BEGUN_MS = 24_000;

interface Output {
  readonly target: string;
  readonly isPng: boolean;
}

async function takeAll(
  { url, ask }: Demo,
  shown: Shown,
  pictures: readonly Picture[],
  { target, isPng }: Output,
): Promise<void> {
  const server = await startChromium();
  const browser = await chromium.connect(server.wsEndpoint());
  try {
    for (const picture of pictures) {
      for (const theme of THEMES) {
        const context = await browser.newContext({
          ...{ locale: 'en-US', timezoneId: 'Europe/Berlin', colorScheme: theme, reducedMotion: 'reduce' },
          ...{ viewport: picture.size ?? SIZE, deviceScaleFactor: SCALE },
        });
        const page = await context.newPage();
        const { code } = (await ask('POST', '/v1/session/codes')) as { code: string };
        await page.goto(`${url}${picture.path(shown)}#code=${code}`);
        await picture.shows(page);
        const file = join(target, `${picture.name}-${theme}.${isPng ? 'png' : 'webp'}`);
        await settle(page);
        await writeFile(file, isPng ? await page.screenshot() : await take(page));
        process.stderr.write(`${file}: ${Math.round((await stat(file)).size / 1_000)} kB\n`);
        await context.close();
      }
    }
  } finally {
    await browser.close();
    await server.close();
  }
}

/** A picture of what can be seen, as WebP, which the browser itself makes smaller than PNG. */
async function take(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  for (const quality of QUALITIES) {
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality });
    const picture = Buffer.from(data, 'base64');
    if (picture.length <= LARGEST_BYTES) return picture;
  }
  throw new Error(`The picture is larger than ${LARGEST_BYTES} bytes.`);
}

const SETTLED_MS = 1_000;

/** Charts are drawn in the frame after their data has come. */
async function settle(page: Page): Promise<void> {
  await page.evaluate('document.fonts.ready');
  await sleep(SETTLED_MS);
}

await main();
