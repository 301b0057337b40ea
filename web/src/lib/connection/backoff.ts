// How long to wait before the next try.

export const FIRST_WAIT_MS = 1_000;
export const LONGEST_WAIT_MS = 30_000;

/** Doubles from 1 s to 30 s; of that, between half and all, so that pages do not come back at once. */
export function waitMs(attempt: number, random: () => number): number {
  const whole = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt, 10));
  return Math.round(whole * (0.5 + random() / 2));
}
