// Times, sizes and counts for people, in their own locale.

import { t } from "./en";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const short = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat();

/** What took less was immediate to a person. */
const WORTH_TELLING_MS = 100;

/** Nothing for what is no time: agents and machines may say anything. */
function read(at: string | null | undefined): Date | null {
  const date = new Date(at ?? "");
  return Number.isNaN(date.getTime()) ? null : date;
}

export function time(at: string | null | undefined): string {
  const date = read(at);
  return date ? clock.format(date) : "";
}

export function exactly(at: string | null | undefined): string {
  const date = read(at);
  return date ? full.format(date) : "";
}

export function dayOf(at: string | null | undefined): string | null {
  const date = read(at);
  return date ? date.toDateString() : null;
}

export function dayName(at: string): string {
  const date = read(at);
  return date ? day.format(date) : "";
}

/** As short as a list needs: minutes, then the clock, then the day. */
export function ago(at: string | null | undefined, now_ms: number): string {
  const date = read(at);
  if (!date) return "";
  const minutes = Math.floor((now_ms - date.getTime()) / 60_000);
  if (minutes < 1) return t.units.now;
  if (minutes < 60) return t.units.minutes(minutes);
  if (new Date(now_ms).toDateString() === date.toDateString()) return clock.format(date);
  return short.format(date);
}

export function duration(ms: number): string {
  const { units } = t;
  if (ms < 1_000) return units.milliseconds(Math.max(0, Math.round(ms)));
  if (ms < 10_000) return units.seconds((ms / 1_000).toFixed(1));
  // Rounded first, so that 59.7 s is a minute and never "60 s".
  const all = Math.round(ms / 1_000);
  if (all < 60) return units.seconds(all);
  const [hours, minutes, seconds] = [Math.floor(all / 3_600), Math.floor(all / 60) % 60, all % 60];
  if (hours > 0) return joined(units.hours(hours), minutes > 0 && units.minutes(minutes));
  return joined(units.minutes(minutes), seconds > 0 && units.seconds(seconds));
}

function joined(first: string, second: string | false): string {
  return second ? `${first} ${second}` : first;
}

export function between(from: string | null, to: string | null): string {
  const [start, end] = [read(from), read(to)];
  return lasted(start && end ? end.getTime() - start.getTime() : 0);
}

/** A length that is worth telling, or nothing. */
export function lasted(ms: number): string {
  return ms >= WORTH_TELLING_MS ? duration(ms) : "";
}

export function count(number: number): string {
  return number < 10_000 ? whole.format(number) : compact.format(number);
}

export function bytes(number: number): string {
  if (number < 1_024) return `${number} B`;
  if (number < 1_048_576) return `${(number / 1_024).toFixed(0)} KiB`;
  return `${(number / 1_048_576).toFixed(1)} MiB`;
}

export function cost(dollars: number): string {
  return `$${dollars < 0.1 ? dollars.toFixed(4) : dollars.toFixed(2)}`;
}

/** The last name of a path. */
export function leaf(path: string): string {
  return (
    path
      .replace(/[/\\]+$/, "")
      .split(/[/\\]/)
      .at(-1) || path
  );
}
