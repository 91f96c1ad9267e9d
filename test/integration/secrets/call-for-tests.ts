import type { HttpTarget } from '../../../src/core/job.js';
import type { Assignment, SecretsAnswer } from '../../../src/core/wire.js';
import type { Answer, ApiUser, Ask, TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';

/** The origin of the calls of these tests; nothing is ever sent there. */
export const ORIGIN = 'https://api.example.com';

/** A call whose target refers to these secrets. */
export function callWith(...names: readonly string[]): HttpTarget {
  const headers = Object.fromEntries(names.map((name, i) => [`x-secret-${i}`, { $secret: name }]));
  return { type: 'http', url: `${ORIGIN}/v1/charges`, headers };
}

/** An answer to a worker that asks for secrets; an error has a code. */
export type SecretsOrError = Partial<SecretsAnswer> & { readonly code?: string; readonly detail?: string };

/** An attempt of a call that a worker by hand holds. */
export class HeldCall {
  private constructor(
    readonly user: ApiUser,
    readonly worker: ProtocolWorker,
    readonly assignment: Assignment,
  ) {}

  /**
   * Has a worker claim a job that makes a call. The job is submitted with a handler, and gets its target in the table, so that
   * these tests depend on no part of what makes calls.
   */
  static async claim(
    node: TestNode,
    user: ApiUser,
    target: HttpTarget,
    worker?: ProtocolWorker,
  ): Promise<HeldCall> {
    const by = worker ?? (await ProtocolWorker.register(user, { targets: ['handler', 'http'] }));
    const { id } = await user.submit({ task: 'work' });
    const assignment = await by.claimOne();
    if (assignment.jobId !== id) throw new Error('another job came');
    await withClient(node.database.url, (client) =>
      client.query('UPDATE punctual.jobs SET target = $2 WHERE id = $1', [id, JSON.stringify(target)]),
    );
    return new HeldCall(user, by, assignment);
  }

  /** Asks for secrets as its worker does, with whatever is to be different. */
  ask(
    names: readonly string[],
    { body = {}, at = this.user, worker = this.worker.id, ...ask }: HowToAsk = {},
  ): Promise<Answer<SecretsOrError>> {
    const { jobId, fence, token } = this.assignment;
    return at.ask<SecretsOrError>('POST', `/v1/workers/${worker}/secrets`, {
      ...ask,
      body: { jobId, fence, token, names, ...body },
    });
  }
}

interface HowToAsk extends Omit<Ask, 'body'> {
  /** Fields of the body that differ. */
  readonly body?: object;
  /** Whom to ask instead of the tenant's own node. */
  readonly at?: ApiUser;
  /** The id of another worker. */
  readonly worker?: string;
}

/** Every row of every table as text. */
export function dump(node: TestNode): Promise<string> {
  return withClient(node.database.url, async (client) => {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT c.oid::regclass::text AS name FROM pg_class c
       WHERE c.relnamespace = 'punctual'::regnamespace AND c.relkind IN ('r', 'p')`,
    );
    const texts: string[] = [];
    for (const { name } of tables) {
      const { rows } = await client.query<{ text: string }>(`SELECT t::text AS text FROM ${name} t`);
      texts.push(name, ...rows.map(({ text }) => text));
    }
    return texts.join('\n');
  });
}

/** The forms in which a value could stand somewhere. */
export function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  return [
    value,
    bytes.toString('hex'),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
  ];
}
