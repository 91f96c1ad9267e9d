/** The tasks of a small shop, which run beside the demo while its pictures are taken. */

import { setTimeout as sleep } from 'node:timers/promises';
import { PermanentError, task } from '../../dist/index.js';

const between = (least, most) => least + Math.random() * (most - least);
const oneOf = (many) => many[Math.floor(Math.random() * many.length)];

export const sendMail = task(
  'send-mail',
  { retry: { maxAttempts: 3, backoff: { base: '4s' } } },
  async (input, ctx) => {
    ctx.log.info(`to ${input.to}`);
    await sleep(between(20, 400), undefined, { signal: ctx.signal });
    if (Math.random() < 0.03)
      throw new PermanentError(`The mailbox of customer ${input.customer} is full`, { code: 'MAILBOX_FULL' });
    if (Math.random() < 0.04)
      throw new Error('421 smtp-2.example.com: too many connections', { cause: new Error('socket hang up') });
    return { messageId: `${input.customer}-${Date.now()}` };
  },
);

export const chargeCard = task('charge-card', { retry: { maxAttempts: 1 } }, async (input, ctx) => {
  await sleep(between(80, 900), undefined, { signal: ctx.signal });
  if (Math.random() < 0.05)
    throw new PermanentError(`The card of order ${input.order} was declined`, { code: 'CARD_DECLINED' });
  return { receipt: `r-${input.order}`, amount: input.amount };
});

export const resizeImage = task('resize-image', async (input, ctx) => {
  const sizes = [320, 640, 1280];
  for (const [i, width] of sizes.entries()) {
    await sleep(between(60, 300), undefined, { signal: ctx.signal });
    ctx.log.info(`${input.image} at ${width} px`);
    await ctx.progress((i + 1) / sizes.length, `${width} px`);
  }
  return { image: input.image, sizes };
});

export const transcode = task('transcode', { timeout: '10m' }, async (input, ctx) => {
  ctx.log.info(`opened ${input.film}: 1920 × 1080, 25 frames a second`);
  for (let part = 1; part <= 40; part += 1) {
    await sleep(between(400, 900), undefined, { signal: ctx.signal });
    if (part % 4 === 0) ctx.log.info(`wrote segment ${part} of 40, ${Math.round(between(3, 6))} MB`);
    if (part === 14) ctx.log.warn('frame 8,412 is damaged; it repeats the one before');
    // The disk of the first attempt is full.
    if (part === 9 && ctx.attempt === 1) throw new Error('ENOSPC: no space left on device, write');
    await ctx.progress(part / 40, `segment ${part}`);
  }
  return { film: input.film, segments: 40 };
});

export const etl = task(
  'etl',
  { retry: { maxAttempts: 3, backoff: { base: '3s', jitter: 0 } } },
  async (input, ctx) => {
    await sleep(input.seconds * 1_000, undefined, { signal: ctx.signal });
    if (input.failsFirst && ctx.attempt === 1)
      throw new Error(`${oneOf(['orders', 'stock'])}: deadlock detected`);
    return { rows: Math.round(between(1_000, 90_000)) };
  },
);

export default [sendMail, chargeCard, resizeImage, transcode, etl];
