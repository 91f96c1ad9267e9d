/** Moments in fields for date and time, which are in the zone of the viewer and have none. */

const pad = (count: number) => String(count).padStart(2, '0');

/** A moment as `datetime-local` fields write it. */
export function localText(moment: string | number): string {
  const at = new Date(moment);
  const day = `${String(at.getFullYear()).padStart(4, '0')}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  return `${day}T${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

/** The moment that such a field means; null if it is empty. */
export function momentOfLocal(text: string): string | null {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}
