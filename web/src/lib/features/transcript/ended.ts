// The line at the end of a run.
import type { RunItem } from "../../session/state";
import { t } from "../../text/en";
import { between, cost, count, lasted } from "../../text/format";
import { oneLine } from "../../text/plain";

/** The word that stands out, if one does, and what follows it. */
export function endOf(run: RunItem): { word: string; rest: string } {
  // With a reason, nobody pressed stop.
  const isCutOff = run.outcome === "interrupted" && run.reason !== null;
  const { usage } = run;
  const tokens = (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0);
  const figures = [
    durationOf(run, isCutOff),
    tokens > 0 ? t.run.tokens(count(tokens)) : "",
    usage?.cost_usd ? cost(usage.cost_usd) : "",
  ];
  const reason = run.reason !== null && run.reason !== "" ? `: ${oneLine(run.reason, 300)}` : "";
  const words = figures.filter(Boolean).join(" · ");
  if (run.outcome === "completed") return { word: "", rest: words };
  return {
    word: t.run[isCutOff ? "cut" : run.outcome],
    rest: reason + (words ? ` · ${words}` : ""),
  };
}

/** The end of a run that was cut off is told much later than it came: the time between is no length. */
function durationOf(run: RunItem, isCutOff: boolean): string {
  if (run.lasted_ms !== null) return lasted(run.lasted_ms);
  return isCutOff ? "" : between(run.began_at, run.ended_at);
}
