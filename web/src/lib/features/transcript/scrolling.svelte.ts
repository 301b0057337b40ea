// Where a person is in a conversation that grows at both ends.
//
// It follows what comes while they are at its end, and keeps what they read in its place while
// they read back. Only the rows in sight are drawn and measured, so every target is reached in
// several frames. Not here: what the rows are (rows.ts, tail.ts), how they look.
import { tick } from "svelte";
import type { VListHandle } from "virtua/svelte";

/** This close to the end counts as at the end. */
const NEAR_PX = 48;
/** A scroll this soon after a wheel, a finger or a key is a person's. */
const TOUCHED_MS = 1_500;
/** This close to the beginning of what is loaded, the page before it is requested. */
const OLDER_WITHIN_PX = 1_200;
/** A target is reached when it stays in place for this many frames. */
const STEADY_FRAMES = 3;

/** A row, and how far below the upper edge it stands. */
interface Anchor {
  key: string;
  top: number;
}

export class Scrolling {
  list = $state<VListHandle>();
  frame = $state<HTMLElement | null>(null);
  isAtEnd = $state(true);
  /** Something came below while the person reads back. */
  hasNews = $state(false);

  private lastOffset = 0;
  private touched_ms = -Infinity;
  private isHeld = false;
  private isFollowing = false;
  private anchor: Anchor | null = null;
  /** While older rows are put in, the list moves by itself. That says nothing about where the
   * person wants to be. */
  private isAnchoring = false;

  constructor(
    private readonly keys: () => string[],
    /** The person comes near the beginning of what is loaded. */
    private readonly onnearbeginning: () => void,
  ) {}

  readonly touched = (): void => {
    this.touched_ms = performance.now();
  };
  readonly pressed = (): void => {
    this.isHeld = true;
  };
  readonly released = (): void => {
    this.isHeld = false;
  };
  readonly resized = (): void => {
    if (this.isAtEnd) this.follow();
  };

  readonly toEnd = (): void => {
    this.isAtEnd = true;
    this.hasNews = false;
    this.follow();
  };

  /** Rows changed. Older ones are no news. */
  changed(areOlder: boolean): void {
    if (this.isAtEnd) this.follow();
    else if (!areOlder) this.hasNews = true;
  }

  /** What a person opens stays under their finger, also at the end. */
  opened(): void {
    this.isAtEnd = false;
    requestAnimationFrame(() => requestAnimationFrame(this.measure));
  }

  show(key: string): void {
    const index = this.keys().indexOf(key);
    if (!this.list || index < 0) return;
    this.isAtEnd = false;
    this.list.scrollToIndex(index, { align: "center" });
  }

  /** Before older rows are drawn: notes what is seen, so that it can stay there. */
  beforeOlder(): void {
    this.anchor = this.isAtEnd ? null : this.firstSeen();
    this.isAnchoring = this.anchor !== null;
  }

  /** After older rows were handed to the list. */
  afterOlder(): void {
    const anchor = this.anchor;
    // The list draws what it was given first.
    if (anchor) void tick().then(() => this.keep(anchor));
  }

  readonly measure = (): void => {
    if (!this.list || this.isAnchoring) return;
    const offset = this.list.getScrollOffset();
    const rest = this.list.getScrollSize() - offset - this.list.getViewportSize();
    // Only a person goes back; rows that turn out larger than estimated move the end as well.
    const byPerson = this.isHeld || performance.now() - this.touched_ms < TOUCHED_MS;
    if (rest < NEAR_PX) this.isAtEnd = true;
    else if (offset < this.lastOffset - 1 && byPerson) this.isAtEnd = false;
    this.lastOffset = offset;
    if (this.isAtEnd) this.hasNews = false;
    if (offset < OLDER_WITHIN_PX && !this.isAtEnd) this.onnearbeginning();
  };

  private follow(): void {
    if (this.isFollowing) return;
    this.isFollowing = true;
    let left = STEADY_FRAMES;
    let reached = -1;
    const step = (): void => {
      const scroller = this.scroller();
      if (!scroller || !this.isAtEnd || left === 0) {
        this.isFollowing = false;
        return;
      }
      const height = scroller.scrollHeight;
      left = height === reached ? left - 1 : STEADY_FRAMES;
      if (height !== reached) scroller.scrollTop = height;
      reached = height;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  /** Puts the row back where it was seen, until it stays there or the person scrolls on. */
  private keep({ key, top }: Anchor): void {
    const since_ms = performance.now();
    let left = STEADY_FRAMES;
    let isPlaced = false;
    const step = (): void => {
      const scroller = this.scroller();
      const index = this.keys().indexOf(key);
      const isLeft = left === 0 || (isPlaced && this.touched_ms > since_ms);
      if (!this.frame || !scroller || !this.list || index < 0 || isLeft) {
        this.isAnchoring = false;
        this.measure();
        return;
      }
      const row = this.drawn().find((it) => it.dataset.key === key);
      const edge = this.frame.getBoundingClientRect().top;
      const off = row
        ? row.getBoundingClientRect().top - edge - top
        : this.list.getItemOffset(index) - top - scroller.scrollTop;
      if (Math.abs(off) < 1) {
        isPlaced ||= row !== undefined;
        left -= 1;
      } else {
        left = STEADY_FRAMES;
        scroller.scrollTop += off;
      }
      requestAnimationFrame(step);
    };
    step();
  }

  private firstSeen(): Anchor | null {
    const edge = this.frame?.getBoundingClientRect().top ?? 0;
    const found = this.drawn().find((row) => {
      const isMark = row.dataset.key?.startsWith("older") ?? true;
      return !isMark && row.getBoundingClientRect().bottom > edge;
    });
    const key = found?.dataset.key;
    return found && key ? { key, top: found.getBoundingClientRect().top - edge } : null;
  }

  private scroller(): Element | null | undefined {
    return this.frame?.querySelector(".scroller");
  }

  private drawn(): HTMLElement[] {
    return [...(this.frame?.querySelectorAll<HTMLElement>(".row[data-key]") ?? [])];
  }
}
