import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ManyVerb } from '../../../../src/core/wire.js';
import { CopyAs } from '../../parts/action.js';
import { Dialog } from '../../parts/dialog.js';
import { countText, plural } from '../../parts/duration-text.js';
import { ProblemNote } from '../../parts/problem-note.js';
import { ProgressBar } from '../../parts/progress-bar.js';
import { toast } from '../../parts/toasts.js';
import { addressOf } from '../../routing/root.js';
import { type Choice, ManyWork } from './many-work.js';
import './many-dialog.css';

/** What can be done to many jobs, in words. */
export const MANY_WORDS: Readonly<Record<ManyVerb, VerbWords>> = {
  cancel: {
    ...{ does: 'Cancel', will: 'cancelled', during: 'Cancelling', isDangerous: true },
    note: 'Waiting jobs end at once; the workers of running ones are told to stop.',
  },
  redrive: {
    ...{ does: 'Retry', will: 'run again', during: 'Sending round again' },
    note: 'They become due now, with all their attempts before them.',
  },
  hold: {
    ...{ does: 'Hold', will: 'kept from starting', during: 'Holding' },
    note: 'They wait until they are released. Running jobs go on.',
  },
  release: {
    ...{ does: 'Release', will: 'released', during: 'Releasing' },
    note: 'Those that are due start as soon as there is room.',
  },
  delete: {
    ...{ does: 'Delete', will: 'deleted', during: 'Deleting', isDangerous: true },
    note: 'Their keys and logs go with them. There is no way back.',
  },
};

interface VerbWords {
  readonly does: string;
  /** Completes "5 jobs will be …". */
  readonly will: string;
  readonly during: string;
  readonly note: string;
  readonly isDangerous?: boolean;
}

interface ManyDialogProps {
  readonly verb: ManyVerb;
  readonly choice: Choice;
  /** Which jobs, in words: completes "Retry …". */
  readonly which: ComponentChildren;
  /** The same on the command line. */
  readonly cli: string;
  readonly onClose: () => void;
  /** Called when jobs have been changed. */
  readonly onChanged: () => void;
}

/** Counts jobs, asks, changes them, and shows how far that is; it can be stopped at any time. */
export function ManyDialog({ verb, choice, which, cli, onClose, onChanged }: ManyDialogProps) {
  const [work] = useState(() => new ManyWork(verb, choice));
  const words = MANY_WORDS[verb];
  useEffect(() => {
    void work.count();
    return () => work.stop();
  }, [work]);
  const begin = async () => {
    await work.carryOut();
    if (work.changed.value > 0) onChanged();
  };
  const undo = async (back: ManyWork) => {
    await back.carryOut();
    onChanged();
    onClose();
    const problem = back.problem.value;
    toast(
      problem
        ? { kind: 'bad', text: `${MANY_WORDS[back.verb].does}: ${problem.message}` }
        : { kind: 'good', text: `Taken back: ${plural(back.changed.value, 'job')}.` },
    );
  };
  return (
    <Dialog title={`${words.does} jobs`} onClose={onClose}>
      <p class="many-which">{which}</p>
      <Progress work={work} />
      <ProblemNote problem={work.problem.value} />
      <Refused work={work} />
      <div class="dialog-buttons">
        <CopyAs method="POST" {...work.request} cli={cli} />
        <Buttons
          work={work}
          onClose={onClose}
          onBegin={() => void begin()}
          onUndo={(back) => void undo(back)}
        />
      </div>
    </Dialog>
  );
}

function Progress({ work }: { readonly work: ManyWork }) {
  const { does, will, during, note } = MANY_WORDS[work.verb];
  const [matched, isCounted] = [work.matched.value, work.isCounted.value];
  const total = isCounted ? Math.max(matched, work.tried.value) : null;
  const changed = work.changed.value;
  switch (work.phase.value) {
    case 'counting':
      return <ProgressBar label="Counting" done={matched} total={null} />;
    case 'counted':
      return (
        <div class="dialog-text">
          <p class="many-count" role="status">
            {matched === 0 ? (
              `No job can be ${will === 'run again' ? will : will}.`
            ) : (
              <>
                <b class="figure">
                  {isCounted ? '' : 'More than '}
                  {plural(matched, 'job')}
                </b>{' '}
                {work.verb === 'redrive' ? 'will run again.' : `will be ${will}.`}
              </>
            )}
          </p>
          {matched > 0 && <p>{note}</p>}
        </div>
      );
    case 'working':
      return <ProgressBar label={during} done={changed} total={total} />;
    case 'done':
      return (
        <p role="status">
          <b>Done.</b> {does}: {plural(changed, 'job')}.
        </p>
      );
    default:
      return changed === 0 && work.tried.value === 0 ? null : (
        <>
          <ProgressBar
            label={work.phase.value === 'stopped' ? 'Stopped' : 'Broken off'}
            done={changed}
            total={total}
          />
          <p role="status">What was done stays; the rest is as it was.</p>
        </>
      );
  }
}

interface ButtonsProps {
  readonly work: ManyWork;
  readonly onClose: () => void;
  readonly onBegin: () => void;
  readonly onUndo: (back: ManyWork) => void;
}

function Buttons({ work, onClose, onBegin, onUndo }: ButtonsProps) {
  const { does, isDangerous = false } = MANY_WORDS[work.verb];
  const phase = work.phase.value;
  const matched = work.matched.value;
  const close = (words: string) => (
    <button type="button" class="button" onClick={onClose}>
      {words}
    </button>
  );
  if (phase === 'working')
    return (
      <button type="button" class="button" onClick={() => work.stop()}>
        Stop
      </button>
    );
  const { undo } = work;
  if (phase === 'done')
    return (
      <>
        {undo && (
          <button type="button" class="button" onClick={() => onUndo(undo)}>
            Undo
          </button>
        )}
        {close('Close')}
      </>
    );
  const isBegun = phase === 'stopped' || (phase === 'broken' && work.tried.value > 0);
  return (
    <>
      {close(isBegun ? 'Close' : 'Keep as they are')}
      {(isBegun || (phase === 'counted' && matched > 0)) && (
        <button
          type="button"
          class={`button ${isDangerous ? 'button-bad' : 'button-main'}`}
          onClick={onBegin}
        >
          {isBegun ? 'Go on' : `${does} ${work.isCounted.value ? plural(matched, 'job') : 'all of them'}`}
        </button>
      )}
    </>
  );
}

const MOST_SHOWN = 10;

/** Jobs that cannot be changed, and why. */
function Refused({ work }: { readonly work: ManyWork }) {
  const count = work.refusedCount.value;
  if (count === 0) return null;
  return (
    <details class="many-refused">
      <summary>{plural(count, 'job')} cannot be changed</summary>
      <ul>
        {work.refused.value.slice(0, MOST_SHOWN).map(({ id, detail }) => (
          <li key={id}>
            <a href={addressOf(`/jobs/${id}`)}>{id.slice(0, 13)}</a> {detail}
          </li>
        ))}
      </ul>
      {count > MOST_SHOWN && <p class="soft">… and {countText(count - MOST_SHOWN)} more</p>}
    </details>
  );
}
