/**
 * A JSON value as the text in which it came. It was checked when it was read, and it is never turned into a value: so
 * no digit of a number is lost, and a small text that stands for a million values costs no more than its bytes.
 */
export class JsonText {
  constructor(
    readonly text: string,
    /** The length of the text in UTF-8. */
    readonly bytes: number,
  ) {}
}
