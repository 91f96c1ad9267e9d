interface WordsProps {
  readonly words: readonly string[];
  /** What stands there if there are none. */
  readonly none?: string;
  /** The rest is counted. */
  readonly most?: number;
}

/** Names side by side. */
export function Words({ words, none = '–', most = 200 }: WordsProps) {
  if (words.length === 0) return <span class="soft">{none}</span>;
  return (
    <span class="words">
      {words.slice(0, most).map((word) => (
        <span key={word} class="word">
          {word}
        </span>
      ))}
      {words.length > most && <span class="soft">and {words.length - most} more</span>}
    </span>
  );
}
