import { CopyText } from '../../parts/copied.js';

interface SameAsProps {
  /** Null while what stands in the form cannot be sent. */
  readonly curl: string | null;
  readonly cli: string | null;
  readonly body: string | null;
}

/** The submission without the page. */
export function SameAs({ curl, cli, body }: SameAsProps) {
  return (
    <aside class="card submit-same" aria-label="The same without this page">
      <header class="card-top">
        <h2>The same without this page</h2>
      </header>
      {cli === null || curl === null || body === null ? (
        <p class="soft">Shown when the JSON of the form can be read.</p>
      ) : (
        <>
          <Command title="Command line" text={cli} />
          <Command title="curl" text={curl} />
          <Command title="Body" text={body} />
        </>
      )}
    </aside>
  );
}

function Command({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <section aria-label={title}>
      <header>
        <h3>{title}</h3>
        <CopyText text={text} what={title} />
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre tabIndex={0}>{text}</pre>
    </section>
  );
}
