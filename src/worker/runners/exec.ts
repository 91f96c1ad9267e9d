import { homedir } from 'node:os';
import { join } from 'node:path';
import { environmentName } from '../../core/config.js';
import { asPunctualError, PunctualError } from '../../core/errors.js';
import { secretsOfProgram } from '../../core/exec-target.js';
import { withinBounds } from '../../core/execution.js';
import type { ExecTarget } from '../../core/job.js';
import { EXEC_ORIGIN } from '../../core/secret.js';
import { type JobContext, PermanentError } from '../../core/task.js';
import type { Assignment, SecretsAnswer } from '../../core/wire.js';
import { monotonic } from '../worker-clock.js';
import { ArtifactCache, type CachedArtifact } from './exec/artifact-cache.js';
import { ArtifactSource } from './exec/artifact-source.js';
import { AttemptUsers } from './exec/attempt-users.js';
import { commandFile } from './exec/command-file.js';
import { closeControlGroups, openControlGroups } from './exec/control-groups.js';
import { ExecError } from './exec/exec-error.js';
import type { ProgramListener } from './exec/exec-host-process.js';
import { ExecHosts } from './exec/exec-hosts.js';
import type { GroupParts } from './exec/host/control-group.js';
import { type FolderParts, OUTPUT_FOLDER } from './exec/host/job-folder.js';
import { launcherProgram } from './exec/host/launcher-program.js';
import type { EndedMessage, StartRequest } from './exec/host/messages.js';
import { sendOutputs } from './exec/job-outputs.js';
import { type Launched, launch, lowerLimits, stricter } from './exec/launch.js';
import { lookAtMachine, type Machine } from './exec/machine.js';
import { PrintedLines, redactedEnd, tailBytesFor } from './exec/printed-text.js';
import { environmentOf, redactionOf } from './exec/program-environment.js';
import { executionOf, resultOfProgram } from './exec/program-result.js';
import { removeFolder } from './exec/remove-folder.js';
import { seccompFilter } from './exec/seccomp.js';
import { WorkFolder } from './exec/work-folder.js';
import { GatewaySecrets } from './http/call-secrets.js';
import type { Redaction } from './http/redaction.js';
import { type Runner, type RunnerHost, type Stop, stopOf } from './runner.js';

/** Of the worker's grace, the part that a program gets to end by itself; in the rest it is ended and the news arrives. */
const GRACE_PART = 0.7;
/** The host ends a program by itself so long after its timeout, if the worker did not. */
const HOST_SLACK_MS = 2_000;

/** What the runner has once it may run programs. */
interface Ready {
  readonly host: RunnerHost;
  readonly machine: Machine;
  readonly users: AttemptUsers;
  readonly folder: WorkFolder;
  readonly hosts: ExecHosts;
  readonly secrets: GatewaySecrets;
  readonly artifacts: ArtifactSource;
  /** The file with the filter of calls to the kernel; null if there is none for this processor. */
  readonly filter: string | null;
}

/** A program that runs. */
interface Run {
  readonly session: string;
  /** Ends it without grace. */
  end(): void;
  /** Resolves when it is gone. */
  readonly gone: Promise<void>;
}

/** Runs the programs of exec targets. */
export class ExecRunner implements Runner {
  readonly target = 'exec';
  readonly runsUserCode = false;
  readonly tasks: readonly string[] = [];
  readonly queues: readonly string[] = [];
  readonly #runs = new Set<Run>();
  #host: RunnerHost | undefined;
  #ready: Ready | undefined;

  open(host: RunnerHost): void {
    this.#host = host;
  }

  async prepare(): Promise<void> {
    const host = this.#host;
    if (!host) throw new PunctualError('INTERNAL', 'The runner of exec targets is not part of a worker.');
    const { gateway, session, options } = host;
    const looked = await lookAtMachine();
    const users = 'use' in looked.users ? looked.users.use : null;
    if ('why' in looked.users && process.getuid?.() === 0) {
      const detail = `Programs run as root, because attempts cannot have users of their own: ${looked.users.why}.`;
      host.onWarning(new PunctualError('CONFIGURATION', detail));
    }
    const folder = await WorkFolder.open(options.exec.folder, users);
    const launcher = await folder.keepProgram('launcher', launcherProgram(looked.architecture));
    const groups = await openControlGroups(options.exec.controlGroup, folder.name);
    if ('why' in groups && options.exec.controlGroup.startsWith('/')) {
      host.onWarning(new PunctualError('CONFIGURATION', `No control groups are used: ${groups.why}.`));
    }
    const machine = { ...looked, launcher, groups };
    const hosts = new ExecHosts(machine, folder.path, () => {
      host.onWarning(new PunctualError('INTERNAL', 'The exec host ended, and is started again.'));
    });
    const now = () => monotonic.now();
    const secrets = new GatewaySecrets({ gateway, session, now });
    const { cacheBytes: maxBytes, allowScripts } = options.exec;
    const cache = new ArtifactCache({
      folder: folder.cache,
      maxBytes,
      architecture: machine.architecture,
      allowScripts,
    });
    const artifacts = new ArtifactSource({ gateway, session, cache, now });
    const filter = await folder.keep('seccomp', seccompFilter(machine.architecture));
    this.#ready = {
      host,
      machine,
      users: new AttemptUsers(users),
      folder,
      hosts,
      secrets,
      artifacts,
      filter,
    };
    await cache.open();
    // The worker may have other targets; each program tries again.
    await hosts.open().catch((error) => host.onWarning(asPunctualError(error)));
  }

  async close(): Promise<void> {
    await this.#ready?.hosts.close();
    const groups = this.#ready?.machine.groups;
    if (groups && 'use' in groups) await closeControlGroups(groups.use);
    await this.#ready?.folder.close();
  }

  async run(
    assignment: Assignment,
    context: JobContext,
    stop: Stop = stopOf(context.signal),
  ): Promise<unknown> {
    const { target } = assignment;
    if (target.type !== 'exec') {
      throw new PermanentError(`A ${target.type} target was given to the runner of exec targets.`);
    }
    const ready = this.#ready;
    if (!ready) throw new PunctualError('INTERNAL', 'The runner of exec targets was not prepared.');
    await this.#endStale(ready.host.session().workerId);
    return new ProgramRun(ready, assignment, target, context, stop).run((run) => this.#follow(run));
  }

  /**
   * Programs of an earlier session of this worker: whoever registers again was declared dead, and they may run elsewhere by now.
   * They end before anything else begins.
   */
  async #endStale(session: string): Promise<void> {
    const stale = [...this.#runs].filter((run) => run.session !== session);
    for (const run of stale) run.end();
    await Promise.all(stale.map(({ gone }) => gone));
  }

  #follow(run: Run): void {
    this.#runs.add(run);
    void run.gone.then(() => this.#runs.delete(run));
  }
}

/** One attempt of an exec target. */
class ProgramRun {
  readonly #user: number | null;

  constructor(
    private readonly ready: Ready,
    private readonly assignment: Assignment,
    private readonly target: ExecTarget,
    private readonly context: JobContext,
    private readonly stop: Stop,
  ) {
    this.#user = ready.users.take();
  }

  async run(follow: (run: Run) => void): Promise<unknown> {
    try {
      const program = await this.#program();
      try {
        return await this.#runProgram(program.path, follow);
      } finally {
        program.giveBack();
      }
    } finally {
      this.ready.users.giveBack(this.#user);
    }
  }

  async #runProgram(file: string, follow: (run: Run) => void): Promise<unknown> {
    const { assignment, ready } = this;
    const { receiverToken: token, payloadText, payload } = assignment;
    const secrets = await this.#secrets();
    this.#throwIfStopped();
    const folder = {
      path: ready.folder.pathOfJob(`${assignment.jobId}-${assignment.fence}`),
      payload: payloadText ?? JSON.stringify(payload) ?? 'null',
      token,
    };
    let hasFolder = true;
    try {
      const launched = this.#launched(file, folder);
      this.stop.execution = launched.execution;
      const redaction = redactionOf(secrets, assignment);
      const end = redactedEnd(
        await this.#ended(this.#request(launched, folder, secrets, redaction), redaction, follow),
        redaction,
      );
      hasFolder = end.hasFolder;
      this.stop.execution = withinBounds(executionOf(launched.execution, end));
      if (end.isCut) this.context.log.warn('More was printed than is kept; further lines are left out.');
      if (!end.isWhole && launched.tree.kind !== 'group')
        this.context.log.warn('Some of its processes could not be ended.');
      this.#throwIfStopped();
      if (hasFolder) await this.#sendOutputs(join(folder.path, OUTPUT_FOLDER));
      return redaction.json(resultOfProgram(end));
    } finally {
      if (hasFolder) await removeFolder(folder.path).catch(() => undefined);
    }
  }

  #sendOutputs(folder: string): Promise<void> {
    const { gateway } = this.ready.host;
    const { log } = this.context;
    const { assignment } = this;
    const user = this.#user;
    return this.#withSignal((signal) => sendOutputs({ gateway, assignment, folder, user, log, signal }));
  }

  /** The file of the program. */
  async #program(): Promise<CachedArtifact> {
    const { assignment, target, ready } = this;
    if (target.command === undefined) {
      return this.#withSignal((signal) => ready.artifacts.take(assignment, signal));
    }
    if (ready.host.options.exec.allowCommands) {
      return { path: await commandFile(target.command), giveBack: () => undefined };
    }
    const detail = `This worker runs no commands; its operator allows them with ${environmentName('allowCommands')}.`;
    throw new ExecError('TARGET_UNAVAILABLE', detail, { retryable: false });
  }

  /** Does something that ends when the attempt is told to stop. */
  async #withSignal<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { stop } = this;
    const told = new AbortController();
    if (stop.isTold) told.abort(stop.reason);
    else stop.listen((reason) => told.abort(reason));
    try {
      return await work(told.signal);
    } finally {
      stop.listen(null);
    }
  }

  async #secrets(): Promise<SecretsAnswer['values']> {
    const { assignment, target, ready, stop } = this;
    const names = secretsOfProgram(target);
    if (names.length === 0) return {};
    const deadline = {
      get isEnded() {
        return stop.isTold;
      },
    };
    return (await ready.secrets.resolve(assignment, names, EXEC_ORIGIN, deadline)).values;
  }

  #launched(file: string, folder: FolderParts): Launched {
    const { target, ready } = this;
    const { isolation, limits } = ready.host.options.exec;
    return launch(
      {
        ...{ file, args: target.args ?? [], folder: folder.path, user: this.#user, filter: ready.filter },
        needsMachine: target.command !== undefined,
        hidden: this.#hidden(),
        isolation: stricter(isolation, target.isolation ?? 'none'),
        limits: lowerLimits(limits, target.limits ?? {}),
      },
      ready.machine,
    );
  }

  /** What a command must not see: other jobs, and where there is no user for the attempt, what its own user has there. */
  #hidden(): string[] {
    const own = this.#user === null ? [homedir(), process.cwd()].filter((path) => path !== '/') : [];
    return [...own, this.ready.folder.path];
  }

  #request(
    launched: Launched,
    folder: FolderParts,
    secrets: SecretsAnswer['values'],
    redaction: Redaction,
  ): StartRequest {
    const { assignment, target, ready, context } = this;
    const { options, session, urls, workerTimeoutMs } = ready.host;
    const limits = launched.execution.limits;
    const bound = (name: 'memory' | 'disk' | 'output') => (limits[name]?.value as number | undefined) ?? null;
    return {
      ...{ type: 'start', id: `${assignment.jobId}/${assignment.fence}`, argv: launched.argv },
      ...{
        folder,
        tree: launched.tree,
        bounds: launched.bounds,
        prlimit: ready.machine.prlimit,
        group: this.#group(launched),
        isWrapped: launched.isWrapped,
        filter: launched.filter,
      },
      env: environmentOf({
        ...{ assignment, target, secrets, folder: launched.folder, workerId: session().workerId },
        url: options.publicUrl ?? urls[0],
        traceparent: context.traceparent ?? assignment.traceparent,
      }),
      timeoutMs: assignment.timeoutMs + HOST_SLACK_MS,
      graceMs: Math.floor(options.stopGraceMs * GRACE_PART),
      resultBytes: options.maxResultBytes,
      outputBytes: Math.min(options.maxLogBytes, bound('output') ?? Number.POSITIVE_INFINITY),
      tailBytes: tailBytesFor(redaction),
      // What the kernel keeps does not need to be measured.
      memory: limits.memory?.how === 'enforced' ? null : bound('memory'),
      disk: bound('disk'),
      leaseMs: workerTimeoutMs(),
    };
  }

  #group({ group: settings }: Launched): GroupParts | null {
    const { assignment, ready } = this;
    const { groups } = ready.machine;
    if (settings === null || 'why' in groups) return null;
    return { path: join(groups.use.path, `${assignment.jobId}-${assignment.fence}`), settings };
  }

  /** Runs the program; resolves when it and everything that it started are gone. */
  async #ended(
    request: StartRequest,
    redaction: Redaction,
    follow: (run: Run) => void,
  ): Promise<EndedMessage> {
    const { ready, stop, context } = this;
    let settle: Pick<ProgramListener, 'onEnded' | 'onFailed'>;
    const ended = new Promise<EndedMessage>((resolve, reject) => {
      settle = { onEnded: resolve, onFailed: reject };
    });
    const host = await ready.hosts.open();
    // A program whose attempt was stopped while its host started never begins.
    this.#throwIfStopped();
    const printed = { stdout: new PrintedLines(redaction), stderr: new PrintedLines(redaction) };
    const print = (stream: keyof typeof printed, lines: readonly string[]) => {
      for (const line of lines) context.log[stream === 'stdout' ? 'info' : 'warn'](line);
    };
    host.start(request, {
      ...settle!,
      onLines: (stream, lines, continues) => {
        for (const [index, line] of lines.entries())
          print(stream, printed[stream].add(line, continues.includes(index)));
      },
      onEnded: (end) => {
        if (!end.isCut)
          for (const stream of ['stdout', 'stderr'] as const) print(stream, printed[stream].end());
        settle.onEnded(end);
      },
    });
    const end = (graceMs: number) => host.stop(request.id, graceMs);
    const settled = () => {
      stop.gone = undefined;
    };
    const gone = ended.then(settled, settled);
    stop.gone = gone;
    follow({ session: ready.host.session().workerId, end: () => end(0), gone });
    if (stop.isTold) end(request.graceMs);
    else stop.listen(() => end(request.graceMs));
    return ended;
  }

  #throwIfStopped(): void {
    if (this.stop.isTold) throw this.stop.reason;
  }
}
