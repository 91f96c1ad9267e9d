import type { Assignment, ClaimAnswer, WorkerRegistration, WorkerWelcome } from '../../src/core/wire.js';
import type { Scene } from './scene.js';
import type { Received, Target } from './sender.js';

/** A worker of the attacker: says what the attack wants said, and nothing by itself. */
export class WorkerByHand {
  private constructor(
    private readonly scene: Scene,
    private readonly node: Target,
    readonly id: string,
    private readonly epoch: number,
  ) {}

  /** Null when the cluster does not take it. */
  static async register(
    scene: Scene,
    node: Target,
    registration: Partial<WorkerRegistration>,
  ): Promise<WorkerByHand | null> {
    const welcome = await scene.call<WorkerWelcome>(node, 'POST', '/v1/workers', {
      ...{ name: 'attacker', queues: ['*'], slots: 10_000, targets: ['handler'], tasks: ['work'] },
      ...{ labels: {}, tokens: false, ...registration },
    });
    return welcome && new WorkerByHand(scene, node, welcome.workerId, welcome.epoch);
  }

  /**
   * The ids and fences that an answer to a claim names; what is larger than the sender keeps is read from its
   * beginning only.
   */
  async claim(max: number, wait: string): Promise<Pick<Assignment, 'jobId' | 'fence'>[]> {
    const answer = await this.scene.send(this.node, {
      ...{ about: `a claim of ${max}`, method: 'POST', path: `/v1/workers/${this.id}/claim` },
      body: JSON.stringify({ max, wait }),
    });
    if (answer.status !== 200) return [];
    if (answer.body.length === answer.bytes) {
      return (JSON.parse(answer.body) as ClaimAnswer).jobs.map(({ jobId, fence }) => ({ jobId, fence }));
    }
    return [...answer.body.matchAll(/"jobId":"([^"]+)"/g)].map((match) => ({ jobId: match[1]!, fence: 1 }));
  }

  heartbeat(running: readonly Pick<Assignment, 'jobId' | 'fence'>[]): Promise<Received> {
    return this.call('heartbeat', JSON.stringify({ epoch: this.epoch, running }), 'a heartbeat');
  }

  /** Sends a body as it is to one of the worker's routes. */
  call(verb: 'heartbeat' | 'report', body: string, about: string): Promise<Received> {
    return this.scene.send(this.node, {
      ...{ about, method: 'POST', path: `/v1/workers/${this.id}/${verb}`, body },
    });
  }

  async leave(): Promise<void> {
    await this.scene.call(this.node, 'DELETE', `/v1/workers/${this.id}`);
  }
}
