import type { Execution, LimitReport } from '../../../../src/core/execution.js';
import { Facts } from '../../parts/facts.js';
import { limitValue } from './limit-value.js';

interface ExecutionViewProps {
  readonly execution: Execution;
  /** The number of its attempt. */
  readonly attempt: number;
}

/** How an attempt ran a program: how it ended, what kept it apart, which limits held, and the end of what it printed. */
export function ExecutionView({ execution, attempt }: ExecutionViewProps) {
  const { isolation, notIsolated, limits, stdout, stderr, cut } = execution;
  const given = Object.entries(limits) as [name: string, report: LimitReport][];
  return (
    <section class="execution" aria-label={`How attempt ${attempt} ran`}>
      <Facts
        facts={[
          ['Program ended', endOf(execution)],
          [
            'Isolation',
            isolation === 'none'
              ? `none${notIsolated === undefined ? '' : `: ${notIsolated}`}`
              : `by ${isolation}`,
          ],
        ]}
      />
      {given.length > 0 && <Limits limits={given} />}
      {stdout !== undefined && <Printed name="stdout" text={stdout} />}
      {stderr !== undefined && <Printed name="stderr" text={stderr} />}
      {cut && (
        <p class="soft">It printed more than the log of the job takes; lines in between were left out.</p>
      )}
    </section>
  );
}

/** The same in a few words. */
export function executionText({ exitCode, signal, outOfMemory, isolation }: Execution): string {
  const end = signal ?? (exitCode === undefined ? null : `exit ${exitCode}`);
  const apart = isolation === 'none' ? 'not isolated' : `isolated by ${isolation}`;
  return [end, outOfMemory ? 'out of memory' : null, apart].filter((part) => part !== null).join(', ');
}

function endOf({ exitCode, signal, outOfMemory }: Execution): string {
  const memory = outOfMemory ? ', because it used more memory than it may' : '';
  if (signal !== undefined) return `by the signal ${signal}${memory}`;
  if (exitCode !== undefined) return `with exit code ${exitCode}${memory}`;
  return outOfMemory ? 'because it used more memory than it may' : 'in a way that nobody knows';
}

/** What the worker could do about a limit. */
const HOW: Readonly<Record<LimitReport['how'], string>> = {
  enforced: 'kept by the kernel',
  approximated: 'measured now and then',
  absent: 'not kept: this worker cannot',
};

const NAMES: Readonly<Record<string, string>> = {
  cpuTime: 'Processor time',
  cpus: 'Processors',
  memory: 'Memory',
  files: 'Open files',
  processes: 'Processes',
  output: 'Output',
  disk: 'Disk',
};

function Limits({ limits }: { readonly limits: readonly (readonly [name: string, report: LimitReport])[] }) {
  return (
    <table class="small-table">
      <thead>
        <tr>
          <th scope="col">Limit</th>
          <th scope="col" class="cell-number">
            Value
          </th>
          <th scope="col">How</th>
        </tr>
      </thead>
      <tbody>
        {limits.map(([name, { value, how }]) => (
          <tr key={name}>
            <th scope="row">{NAMES[name] ?? name}</th>
            <td class="cell-number">{limitValue(name, value)}</td>
            <td class={how === 'absent' ? 'execution-absent' : ''}>{HOW[how]}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Printed({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <section aria-label={`The end of ${name}`}>
      <h3>The end of {name}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre class="execution-printed" tabIndex={0}>
        {text}
      </pre>
    </section>
  );
}
