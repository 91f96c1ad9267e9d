import { useState } from 'preact/hooks';
import type { EndError } from '../../../../src/core/job.js';
import { countText } from '../../parts/duration-text.js';
import { addressOf } from '../../routing/root.js';

/** More of a message or a stack than this is shown when somebody asks for it. */
const MOST_CHARACTERS = 6_000;

/** An error with its stack, and the stacks of its causes. */
export function ErrorText({ error }: { readonly error: EndError }) {
  const [first, ...causes] = error.stack === undefined ? [] : error.stack.split(/\n(?=Caused by: )/);
  return (
    <div class="error-text">
      <p class="error-message">
        {error.code !== undefined && <span class="error-code">{error.code}</span>}{' '}
        <Cut text={error.message} />
      </p>
      {error.job !== undefined && (
        <p>
          The key belongs to job <a href={addressOf(`/jobs/${encodeURIComponent(error.job)}`)}>{error.job}</a>
          .
        </p>
      )}
      {first !== undefined && <Stack text={withoutMessage(first, error.message)} title="Stack" />}
      {causes.map((cause, i) => (
        <Stack key={i} text={cause.replace('Caused by: ', '')} title="Caused by" />
      ))}
    </div>
  );
}

function Stack({ text, title }: { readonly text: string; readonly title: string }) {
  if (text === '') return null;
  return (
    <details open>
      <summary>{title}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre tabIndex={0}>
        <Cut text={text} />
      </pre>
    </details>
  );
}

function Cut({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  if (isWhole || text.length <= MOST_CHARACTERS) return <>{text}</>;
  return (
    <>
      {text.slice(0, MOST_CHARACTERS)}{' '}
      <button type="button" class="link" onClick={() => setWhole(true)}>
        … show all {countText(text.length)} characters
      </button>
    </>
  );
}

/** A stack begins with the message, which stands above it already. */
function withoutMessage(stack: string, message: string): string {
  const at = stack.indexOf(message);
  const end = at >= 0 && at < 80 ? at + message.length : 0;
  return stack.slice(end).replace(/^\n/, '');
}
