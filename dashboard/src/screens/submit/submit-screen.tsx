import './submit.css';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Job, SubmittedJob } from '../../../../src/core/job.js';
import type { Page, QueueView, TaskView, WorkerView } from '../../../../src/core/wire.js';
import { call, getExactly } from '../../api/client.js';
import { parseExactly } from '../../api/exact-json.js';
import { asProblem, type Problem } from '../../api/problem.js';
import { useResource } from '../../api/resource.js';
import { may } from '../../api/session.js';
import { curlText } from '../../parts/action.js';
import { ScreenTop } from '../../parts/panel.js';
import { toast } from '../../parts/toasts.js';
import { goTo, query } from '../../routing/location.js';
import { addressOf } from '../../routing/root.js';
import { jsonText } from '../jobs/json-text.js';
import { bodyOf, cliOf, type Draft, draftOfJob, draftOfQuery, mistakesOf } from './draft.js';
import type { FieldsProps } from './fields.js';
import { MoreFields } from './more-fields.js';
import { PayloadField } from './payload-field.js';
import { SameAs } from './same-as.js';
import { WhenFields } from './when-fields.js';
import { WorkFields } from './work-fields.js';

/** A form for a job. */
export default function SubmitScreen() {
  const from = query.value.get('from');
  const [draft, setDraft] = useState<Draft | null>(from === null ? draftOfQuery(query.peek()) : null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    setProblem(null);
    setDraft(from === null ? draftOfQuery(query.peek()) : null);
    if (from === null) return;
    let isOver = false;
    getExactly<Job>(`/v1/jobs/${encodeURIComponent(from)}`).then(
      (job) => isOver || setDraft(draftOfJob(job)),
      (error: unknown) => {
        if (isOver) return;
        setProblem(asProblem(error));
        setDraft(draftOfQuery(new URLSearchParams()));
      },
    );
    return () => {
      isOver = true;
    };
  }, [from]);
  return (
    <>
      <ScreenTop title={from === null ? 'Submit a job' : 'Edit and run again'}>
        {draft && may('admin') && (
          <a class="button" href={addressOf(schedulePath(draft))}>
            Schedule it instead
          </a>
        )}
      </ScreenTop>
      {draft ? <Form key={from ?? ''} first={draft} firstProblem={problem} /> : <div class="placeholder" />}
    </>
  );
}

/** The form for schedules, with what is known of the job. */
function schedulePath({ task, queue, payload }: Draft): string {
  const known = new URLSearchParams(
    Object.entries({ task, queue, payload }).filter(([, value]) => value !== ''),
  );
  return `/schedules/new${known.size === 0 ? '' : `?${known}`}`;
}

const FRESH = { everyMs: 60_000 };

function Form({ first, firstProblem }: { readonly first: Draft; readonly firstProblem: Problem | null }) {
  const [draft, setDraft] = useState(first);
  const [problem, setProblem] = useState(firstProblem);
  const [isBusy, setBusy] = useState(false);
  const sent = useRef<{ readonly body: string; readonly key: string } | null>(null);
  const tasks = useResource<Page<TaskView>>('/v1/tasks?limit=500', FRESH).data.value?.data ?? [];
  const workers = useResource<Page<WorkerView>>('/v1/workers?limit=200', FRESH).data.value?.data ?? [];
  const queues = useResource<Page<QueueView>>('/v1/queues?limit=500', FRESH).data.value?.data ?? [];
  const task = draft.kind === 'task' ? tasks.find(({ name }) => name === draft.task) : undefined;
  const mistakes = mistakesOf(draft);
  const isSendable = Object.keys(mistakes).length === 0;
  const change = (part: Partial<Draft>) => setDraft((now) => ({ ...now, ...part }));
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!isSendable || isBusy) return;
    setBusy(true);
    try {
      const body = bodyOf(draft);
      // Whether a submission whose answer was lost has been stored is not known; the same one again stores it once.
      if (sent.current?.body !== body) sent.current = { body, key: newKey() };
      const headers = { 'idempotency-key': sent.current.key };
      const job = await call<SubmittedJob>('POST', '/v1/jobs', { body, headers });
      toast({ kind: job.repeated ? 'plain' : 'good', text: doneText(job) });
      goTo(`/jobs/${job.id}`);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const props: FieldsProps = { draft, onChange: change, problem };
  const request = isSendable ? { method: 'POST' as const, path: '/v1/jobs', body: bodyOf(draft) } : null;
  return (
    <div class="submit">
      <form class="fields card" aria-label="The job" onSubmit={(event) => void submit(event)}>
        <WorkFields
          {...props}
          tasks={[
            ...new Set([...tasks.map(({ name }) => name), ...workers.flatMap((worker) => worker.tasks)]),
          ]}
          description={task?.description}
        />
        <PayloadField
          label={
            draft.kind === 'http' ? 'Payload, which is the body of the call unless it has one' : 'Payload'
          }
          text={draft.payload}
          onChange={(payload) => change({ payload })}
          schema={task?.payloadSchema}
          problem={problem}
        />
        <WhenFields {...props} queues={queues.map(({ name }) => name)} task={task} />
        <MoreFields {...props} task={task} isOpen={first.delivery !== '' || first.key !== ''} />
        <OtherProblems problem={problem} />
        <div class="submit-buttons">
          <button type="submit" class="button button-main" disabled={isBusy || !isSendable}>
            Submit the job
          </button>
        </div>
      </form>
      <SameAs
        curl={request && curlText(request)}
        cli={request && cliOf(draft)}
        body={request && jsonText(parseExactly(request.body))}
      />
    </div>
  );
}

/** Also where pages are not served securely, and have no `randomUUID`. */
function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join('-');
}

function doneText({ repeated, replaced, differs }: SubmittedJob): string {
  if (!repeated) return 'The job is submitted.';
  if (replaced) return 'The job of this key took what you submitted.';
  const difference = differs.length === 0 ? '' : ` It differs in ${differs.join(', ')}.`;
  return `The key has this job already; nothing new was submitted.${difference}`;
}

/** Fields of the form; what is wrong with them is told beside them. */
const SHOWN =
  /^\/(task|target|payload|queue|priority|delay|runAt|key|keyMode|keyWindow|delivery|retry|timeout|concurrencyKey|requires|startBefore)\b/;

/** What is wrong with the whole, or with what has no field. */
function OtherProblems({ problem }: { readonly problem: Problem | null }) {
  if (!problem || problem.status === 401) return null;
  const others = problem.fields.filter(({ pointer }) => !SHOWN.test(pointer));
  const isTold = problem.fields.length > 0 && others.length === 0;
  return (
    <div class="notice notice-bad" role="alert">
      <p>{isTold ? 'Something is wrong with the fields that are marked.' : problem.message}</p>
      {others.map(({ pointer, detail }) => (
        <p key={pointer}>
          {pointer} {detail}
        </p>
      ))}
    </div>
  );
}
