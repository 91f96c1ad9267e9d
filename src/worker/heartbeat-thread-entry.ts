import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { asPunctualError } from '../core/errors.js';
import { HttpTransport, UnreachableError } from '../transport/http-transport.js';
import type { FromThread, ThreadData, ToThread } from './heartbeat-thread.js';
import type { HeartbeatRound } from './heartbeats.js';
import { HeartbeatLoop, sendRound } from './heartbeats.js';
import { HttpWorkerGateway } from './http-gateway.js';

/** How long the main thread may take to give a round before the last one is repeated. */
const PATIENCE_MS = 200;

/** The program of the heartbeat thread: sends heartbeats even while the main thread is blocked. */
class ThreadProgram {
  readonly #port: MessagePort;
  readonly #gateway: HttpWorkerGateway;
  readonly #loop: HeartbeatLoop;
  #round: HeartbeatRound;
  /** Whether the round has not been sent yet. */
  #isNew = true;
  /** Whether a round was requested and has not arrived. */
  #asking = false;
  #onRound: () => void = () => undefined;
  /**
   * The message for the main thread while it is blocked. Only the last one is kept: the leader repeats its orders
   * while they hold, and a main thread that was blocked for days must not find thousands of messages.
   */
  #withheld: FromThread | null = null;

  constructor(port: MessagePort, { nodes, round }: ThreadData) {
    this.#port = port;
    this.#round = round;
    this.#gateway = new HttpWorkerGateway(new HttpTransport(nodes));
    this.#loop = new HeartbeatLoop({
      beat: (signal) => this.#beat(signal),
      pace: () => this.#round.pace,
    });
  }

  start(): void {
    this.#port.on('message', (message: ToThread) => this.#hear(message));
    this.#loop.start();
  }

  #hear({ round, sendNow }: ToThread): void {
    this.#round = round;
    this.#isNew = true;
    if (sendNow) this.#loop.wake();
    else this.#asking = false;
    this.#onRound();
    if (this.#withheld && !this.#asking) {
      this.#port.postMessage(this.#withheld);
      this.#withheld = null;
    }
  }

  async #beat(signal: AbortSignal): Promise<void> {
    if (!this.#isNew) await this.#askForRound();
    const round = this.#round;
    this.#isNew = false;
    try {
      this.#tell({ type: 'answered', ...(await sendRound(this.#gateway, round, signal)) });
    } catch (thrown) {
      const { code, message } = asPunctualError(thrown);
      const silentNode = thrown instanceof UnreachableError && thrown.timedOut ? thrown.url : null;
      this.#tell({ type: 'failed', workerId: round.session.workerId, code, detail: message, silentNode });
      throw thrown;
    }
  }

  async #askForRound(): Promise<void> {
    if (!this.#asking) this.#port.postMessage({ type: 'round-wanted' } satisfies FromThread);
    this.#asking = true;
    const patience = Math.min(PATIENCE_MS, this.#round.pace.intervalMs / 4);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, patience);
      this.#onRound = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #tell(message: FromThread): void {
    if (this.#asking) this.#withheld = message;
    else this.#port.postMessage(message);
  }
}

if (parentPort) new ThreadProgram(parentPort, workerData as ThreadData).start();
