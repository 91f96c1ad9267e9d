import { describe, expect, it } from 'vitest';
import { PunctualError } from '../core/errors.js';
import { type Claimed, ClaimLoop } from './claim-loop.js';

/** A scheduler that answers claims when told to, and a worker's slots. */
class Desk {
  free = 1_000;
  readonly events: string[] = [];
  readonly loop: ClaimLoop;
  #answer: (claimed: Claimed) => void = () => undefined;
  #refuse: (error: Error) => void = () => undefined;
  #asked: () => void = () => undefined;
  #next = this.#nextClaim();

  constructor() {
    this.loop = new ClaimLoop({
      triesAtOnce: 2,
      onFailure: ({ code }) => this.events.push(`warns of ${code}`),
      freeSlots: () => this.free,
      claim: (max, _, signal) => {
        this.events.push(`asks for ${max}`);
        const answered = new Promise<Claimed>((resolve, reject) => {
          this.#answer = resolve;
          this.#refuse = reject;
          signal.addEventListener('abort', () => reject(signal.reason));
        });
        this.#asked();
        return answered;
      },
    });
  }

  /** Resolves when the worker has asked; then its claim can be answered. */
  async asked(): Promise<void> {
    await this.#next;
    this.#next = this.#nextClaim();
  }

  answer(news: number, start: () => Promise<void> = () => Promise.resolve()): void {
    this.free -= news;
    this.#answer({
      ...{ news, isRepeated: false },
      start: () => {
        this.events.push(`starts ${news}`);
        return start();
      },
    });
  }

  /** Answers with what the worker knows already. */
  repeat(): void {
    this.#answer({ news: 0, isRepeated: true, start: () => Promise.resolve() });
  }

  refuse(error: Error): void {
    this.#refuse(error);
  }

  #nextClaim(): Promise<void> {
    return new Promise((resolve) => {
      this.#asked = resolve;
    });
  }
}

describe('a worker that asks for jobs', () => {
  it('starts few before it asks on, and asks on before it starts many', async () => {
    const desk = new Desk();
    desk.loop.start();
    await desk.asked();
    desk.answer(3);
    await desk.asked();
    desk.answer(500);
    await desk.asked();
    await desk.loop.stop();
    expect(desk.events).toEqual(['asks for 1000', 'starts 3', 'asks for 997', 'asks for 497', 'starts 500']);
  });

  it('does not ask on for the few slots that many jobs leave', async () => {
    const desk = new Desk();
    desk.loop.start();
    await desk.asked();
    desk.answer(999);
    await desk.asked();
    expect(desk.events).toEqual(['asks for 1000', 'starts 999', 'asks for 1']);
    await desk.loop.stop();
  });

  it('goes on asking when what came could not be started', async () => {
    const desk = new Desk();
    desk.loop.start();
    await desk.asked();
    desk.answer(1, () => Promise.reject(new Error('no')));
    await desk.asked();
    expect(desk.events).toEqual(['asks for 1000', 'starts 1', 'asks for 999']);
    await desk.loop.stop();
  });

  it('turns to the next node at once when one cannot serve, and pauses when none can', async () => {
    const desk = new Desk();
    desk.loop.start();
    await desk.asked();
    // Timers come in the order of their moments, however busy the machine is; the shortest pause is 25 ms.
    for (const [atOnce, refusals] of [
      [true, 2],
      [false, 1],
    ] as const) {
      for (let i = 0; i < refusals; i++) {
        let isLate = false;
        setTimeout(() => {
          isLate = true;
        }, 20);
        desk.refuse(new PunctualError('NO_LEADER', 'nobody leads'));
        await desk.asked();
        expect(isLate).toBe(!atOnce);
      }
    }
    // What the next node could make good is not worth a word.
    expect(desk.events.filter((event) => event.startsWith('warns'))).toEqual(['warns of NO_LEADER']);
    await desk.loop.stop();
  });

  it('claims again at once after an answer that only repeats what is known, and pauses if that goes on', async () => {
    const desk = new Desk();
    desk.loop.start();
    await desk.asked();
    for (const [atOnce, repeats] of [
      [true, 1],
      [false, 2],
    ] as const) {
      for (let i = 0; i < repeats; i++) {
        let isLate = false;
        setTimeout(() => {
          isLate = true;
        }, 20);
        desk.repeat();
        await desk.asked();
        expect(isLate).toBe(!atOnce);
      }
    }
    await desk.loop.stop();
  });

  it('starts what an open claim still brings when it is closed', async () => {
    const desk = new Desk();
    desk.loop.start();
    await desk.asked();
    const closed = desk.loop.close();
    desk.answer(2);
    await closed;
    expect(desk.events).toEqual(['asks for 1000', 'starts 2']);
  });
});
