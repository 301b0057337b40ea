// Tells what a panel shows. It only reads: it never focuses, scrolls, clicks or changes anything.
//
// One function expression, called as (it)(profile, bindingName, epoch) in a world of its own,
// where the page cannot see it. Each push is one JSON text through the binding.
(profileGiven, bindingName, epochGiven) => {
  "use strict";
  const profile = typeof profileGiven === "string" ? JSON.parse(profileGiven) : profileGiven;

  // A document that was loaded anew has a time of origin of its own.
  const epoch = `${epochGiven}.${Math.round(performance.timeOrigin).toString(36)}`;
  const earlier = globalThis.__farhelm;
  if (earlier && earlier.epoch === epoch && earlier.revision === profile.revision) return earlier;
  if (earlier) earlier.stop();

  const COALESCE_MS = 80;
  const WAIT_MS_MAX = 400;
  const LATE_MS = 100;
  const BEAT_MS = 5000;
  // Nobody asked for the whole view for so long: whoever was told is gone.
  const LEASE_MS = 300000;
  const TEXT_MAX = 400000;
  const ROWS_MAX = 2000;
  const DIALOG_TEXT_MAX = 8000;
  const LABEL_MAX = 200;
  const APPEARANCES_MAX = 256;

  let n = 0;
  let isStopped = false;
  let leaseUntil = performance.now() + LEASE_MS;
  let scheduled = null;
  // Timers tick once a second in windows that nobody sees and in frames out of sight, and of these
  // two only the first say so. Taken to be so until our own clock is right.
  let isSlowed = true;
  let scope = null;
  let watched = null;
  let lastSmall = "";
  let lastError = null;
  let typedAt = null;
  let told = new Map(); // key -> hash of the row that was pushed last
  let longest = 0;
  let newChats = 0; // how often the person asked for one
  const cache = new WeakMap(); // row element -> what was read of it
  const appearances = earlier?.appearances ?? new Map(); // dialog -> when it came

  // ---- small things ----

  const pattern = (text, flags) => {
    const isLoose = text.startsWith("(?i)");
    return new RegExp(isLoose ? text.slice(4) : text, isLoose ? `i${flags}` : flags);
  };
  const compiled = new Map();
  const patternOf = (text) => {
    if (!compiled.has(text)) {
      let made;
      try {
        made = pattern(text, "u");
      } catch {
        // It escapes more than it must.
        made = pattern(text, "");
      }
      compiled.set(text, made);
    }
    return compiled.get(text);
  };

  // Two 32-bit halves over UTF-16 units; for telling apart, not for secrets.
  const hash = (text) => {
    let a = 0xdeadbeef ^ text.length;
    let b = 0x41c6ce57 ^ text.length;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      a = Math.imul(a ^ unit, 2654435761);
      b = Math.imul(b ^ unit, 1597334677);
    }
    a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
    b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
    const hex = (word) => (word >>> 0).toString(16).padStart(8, "0");
    return hex(b) + hex(a);
  };

  const squeezed = (text) => text.replace(/\s+/g, " ").trim();

  const isInSight = (element) => {
    if (!element.isConnected) return false;
    if (!element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: false })) return false;
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  };

  const labelOf = (element) => {
    const said = element.getAttribute("aria-label") || squeezed(element.textContent ?? "");
    const label = said || element.getAttribute("title") || element.getAttribute("value") || "";
    return squeezed(label).slice(0, LABEL_MAX);
  };

  // A button says what is written on it; only one without words is known by its hidden label.
  const buttonLabel = (element) => {
    const words = squeezed(plain(element, "[aria-hidden='true'], style, script, svg"));
    return (words || labelOf(element)).slice(0, LABEL_MAX);
  };

  // The first of the alternatives that is in sight: { element, alternative } or null.
  const find = (alternatives, within, accepts) => {
    for (let alternative = 0; alternative < alternatives.length; alternative++) {
      for (const element of within.querySelectorAll(alternatives[alternative])) {
        if (isInSight(element) && (!accepts || accepts(element))) return { element, alternative };
      }
    }
    return null;
  };

  const findControl = (rule) => {
    if (!rule || !scope) return null;
    const label = rule.label == null ? null : patternOf(rule.label);
    return find(rule.any ?? [], scope, (element) => !label || label.test(labelOf(element)));
  };

  // ---- words ----

  const INLINE = new Set(["inline", "inline-block", "inline-flex", "inline-grid", "contents", "table-cell"]);
  const SPACED = new Set(["P", "PRE", "UL", "OL", "TABLE", "BLOCKQUOTE", "H1", "H2", "H3", "H4", "H5", "H6"]);

  // The words below an element, in lines. `isMarkdown` keeps what is structure: lists, code, heads.
  const read = (root, exclude, isMarkdown, inner) => {
    let out = "";
    let gap = 0; // lines that must be ended before the next word
    const say = (text) => {
      if (!text) return;
      if (gap && out) out = out.replace(/[ \t]+$/, "") + "\n".repeat(gap);
      else if (gap) text = text.replace(/^\s+/, "");
      gap = 0;
      out += text;
    };
    const breakTo = (lines) => {
      if (!out) gap = Math.max(gap, 0);
      else gap = Math.max(gap, lines);
    };
    const walk = (node, isPre, depth) => {
      if (out.length > TEXT_MAX) return;
      if (node.nodeType === Node.TEXT_NODE) {
        if (isPre) return say(node.data);
        let text = node.data.replace(/[ \t\r\n\f]+/g, " ");
        if (!out || gap || /[\s]$/.test(out)) text = text.replace(/^ /, "");
        return say(text);
      }
      if (node.nodeType !== Node.ELEMENT_NODE) return;
      const element = node;
      const style = getComputedStyle(element);
      if (element !== root) {
        if (exclude && element.matches(exclude)) return;
        if (inner && element.matches(inner)) return;
        // Not by its box: an element without one may have words all the same.
        if (style.display === "none") return;
      }
      const tag = element.tagName;
      if (tag === "BR") {
        if (gap || !out) gap = out ? gap + 1 : 0;
        else out += "\n";
        return;
      }
      if (tag === "TEXTAREA" || tag === "INPUT") return;
      const keeps = isPre || tag === "PRE" || keepsSpace(style);
      const isBlock = !INLINE.has(style.display);
      if (isMarkdown && tag === "PRE" && !isPre) return fence(element, depth);
      // Within a list nothing is set apart.
      const lines = SPACED.has(tag) && isMarkdown && depth === 0 ? 2 : 1;
      if (isBlock) breakTo(lines);
      if (isMarkdown && tag === "CODE" && !keeps) {
        const words = squeezed(element.textContent ?? "");
        if (words) say(`\`${words}\``);
        return;
      }
      const mark = isMarkdown && !keeps ? MARKS[tag] : null;
      if (mark && element.textContent.trim()) {
        const words = read(element, exclude, false, inner).trim();
        return say(`${mark}${words}${mark}`);
      }
      if (isMarkdown && /^H[1-6]$/.test(tag)) say(`${"#".repeat(Number(tag[1]))} `);
      if (isMarkdown && tag === "HR") say("---");
      if (tag === "LI") listItem(element, depth);
      if (isMarkdown && (tag === "TD" || tag === "TH") && element.cellIndex > 0) say(" | ");
      const deeper = tag === "UL" || tag === "OL" ? depth + 1 : depth;
      for (const child of element.childNodes) walk(child, keeps, deeper);
      if (isBlock) breakTo(lines);
    };
    const listItem = (element, depth) => {
      const list = element.parentElement;
      const indent = "  ".repeat(Math.max(0, depth - 1));
      if (list?.tagName === "OL") {
        const before = [...list.children].filter((child) => child.tagName === "LI").indexOf(element);
        say(`${indent}${(list.start || 1) + before}. `);
      } else if (isMarkdown) say(`${indent}- `);
    };
    const fence = (element, depth) => {
      const code = element.querySelector("code");
      const language = /(?:language|lang)-([\w+#.-]+)/.exec(`${code?.className ?? ""} ${element.className}`);
      const words = plain(element, exclude, true).replace(/\n+$/, "");
      breakTo(2);
      const ticks = words.includes("```") ? "````" : "```";
      say(`${ticks}${language ? language[1] : ""}\n${words}\n${ticks}`);
      breakTo(2);
    };
    walk(root, root.tagName === "PRE" || keepsSpace(getComputedStyle(root)), 0);
    return out.slice(0, TEXT_MAX).replace(/[ \t]+$/, "");
  };
  const MARKS = { STRONG: "**", B: "**", EM: "*" };
  const keepsSpace = (style) => {
    const value = style.whiteSpaceCollapse ?? style.whiteSpace;
    return value.startsWith("pre") && value !== "pre-line" && value !== "preserve-breaks";
  };
  function plain(element, exclude) {
    return read(element, exclude || null, false, null);
  }

  // ---- rows ----

  const excluded = (profile.transcript.exclude ?? []).join(", ") || null;
  const rowSelector = profile.transcript.row;

  const roleOf = (row) => {
    for (const rule of profile.transcript.roles) {
      if (row.matches(rule.matches) || row.querySelector(rule.matches)) return rule.role;
    }
    return null;
  };

  // The row's own name, on it, around it or in it.
  const nameOf = (row, root) => {
    const name = profile.transcript.id_attribute;
    if (!name) return null;
    const own = row.getAttribute(name);
    if (own) return own;
    const around = row.closest(`[${name}]`);
    if (around && root.contains(around) && around !== root) return around.getAttribute(name);
    return row.querySelector(`[${name}]`)?.getAttribute(name) || null;
  };

  // The panel's own number for the place of a row, where it has one.
  const placeOf = (row, root, name) => {
    const isNumber = (text) => text != null && /^\d{1,9}$/.test(text);
    if (isNumber(name)) return Number(name);
    if (!profile.transcript.is_virtual) return null;
    for (const attribute of ["data-index", "data-item-index", "aria-posinset"]) {
      const around = row.closest(`[${attribute}]`);
      const value = around && root.contains(around) ? around.getAttribute(attribute) : null;
      if (isNumber(value)) return Number(value);
    }
    return null;
  };

  const wordsOf = (row, role) => {
    let parts = [];
    for (const selector of profile.transcript.text ?? []) {
      const isPart = (part) => part.closest(rowSelector) === row && !(excluded && part.closest(excluded));
      parts = [...row.querySelectorAll(selector)].filter(isPart);
      parts = parts.filter((part) => !parts.some((other) => other !== part && other.contains(part)));
      if (parts.length) break;
    }
    if (!parts.length) parts = [row];
    const isMarkdown = role !== "user";
    return parts
      .map((part) => read(part, excluded, isMarkdown, rowSelector))
      .filter((text) => text.trim())
      .join("\n\n")
      .trim();
  };

  const toolOf = (row) => {
    const status =
      row.getAttribute("data-tool-status") ??
      row.querySelector("[data-tool-status]")?.getAttribute("data-tool-status") ??
      row.getAttribute("data-status") ??
      null;
    return status ? { status } : {};
  };

  const readRows = (root, isBusy) => {
    const all = [...root.querySelectorAll(rowSelector)];
    const elements = all.slice(-ROWS_MAX).filter((row) => row.checkVisibility());
    const rows = [];
    const counts = new Map();
    const copies = new Set();
    let ordinal = Math.max(0, all.length - ROWS_MAX);
    for (const row of elements) {
      let known = cache.get(row);
      if (!known || known.isStale) {
        const role = roleOf(row);
        if (role == null) {
          cache.set(row, { isStale: false, role: null });
          continue;
        }
        const text = wordsOf(row, role);
        known = { isStale: false, role, text, hash: hash(text), tool: role === "tool" ? toolOf(row) : null };
        cache.set(row, known);
      }
      if (known.role == null || !known.text) continue;
      const name = nameOf(row, root);
      const base = name == null ? known.role : `${name}/${known.role}`;
      // A list may show a copy of a row, such as one that sticks to its top.
      const copy = name == null ? null : `${base}/${known.hash}`;
      if (copy && copies.has(copy)) continue;
      copies.add(copy);
      const count = counts.get(base) ?? 0;
      counts.set(base, count + 1);
      const key = name == null ? `${known.role}#${count}` : count ? `${base}/${count}` : base;
      const place = placeOf(row, root, name);
      const told = { key, ordinal: place ?? ordinal, role: known.role, text: known.text };
      if (place != null) told.is_placed = true;
      told.hash = known.hash;
      if (known.tool) told.tool = known.tool;
      rows.push(told);
      ordinal++;
    }
    // In a virtual list the document's order says nothing.
    if (rows.every((row) => row.is_placed)) rows.sort((one, other) => one.ordinal - other.ordinal);
    const last = rows.at(-1);
    if (isBusy && last && last.role !== "user") {
      last.is_streaming = true;
      // The end of a code block in the making is not its end.
      last.text = last.text.replace(/\n`{3,4}$/, "");
      last.hash = hash(last.text);
    }
    longest = rows.reduce((most, row) => Math.max(most, row.text.length), 0);
    return rows;
  };

  // ---- the composer ----

  const composerText = (element) => {
    const rule = profile.composer;
    if (rule.read?.length) {
      const place = find(rule.read, element) ?? find(rule.read, scope ?? document);
      if (!place) return "";
      if (rule.editor === "monaco") {
        const lines = [...place.element.querySelectorAll(".view-line")];
        const top = (line) => Number.parseFloat(line.style.top) || 0;
        lines.sort((a, b) => top(a) - top(b));
        return lines.map((line) => line.textContent.replace(/\u00a0/g, " ")).join("\n");
      }
      return place.element.innerText;
    }
    return "value" in element ? element.value : element.innerText;
  };

  const readComposer = () => {
    const found = scope ? find(profile.composer.any, scope) : null;
    if (!found) return null;
    let text = composerText(found.element).replace(/[\u200b\ufeff]/g, "");
    if (profile.composer.sticky) text = text.replace(patternOf(profile.composer.sticky), "");
    const active = document.activeElement;
    return {
      alternative: found.alternative,
      is_empty: text.trim() === "",
      is_focused: document.hasFocus() && active != null && (found.element === active || found.element.contains(active)),
      typed_ms_ago: typedAt == null ? null : Math.round(performance.now() - typedAt),
    };
  };

  // ---- dialogs ----

  // The dialogs in sight: { element, base, text, buttons: [{ element, label, is_default }] }.
  const dialogsInSight = () => {
    const rule = profile.prompt;
    if (!rule || !scope) return [];
    const found = [];
    for (const selector of rule.root) {
      for (const element of scope.querySelectorAll(selector)) {
        if (!isInSight(element)) continue;
        if (found.some((other) => other.element.contains(element) || element.contains(other.element))) continue;
        if (rule.requires && !element.querySelector(rule.requires)) continue;
        const buttons = [];
        for (const button of element.querySelectorAll(rule.buttons)) {
          if (!isInSight(button) || (rule.submit && button.matches(rule.submit))) continue;
          const label = buttonLabel(button);
          if (!label || buttons.some((other) => other.label === label)) continue;
          const isDefault = button.hasAttribute("autofocus") || button.getAttribute("data-default") === "true";
          buttons.push({ element: button, label, is_default: isDefault });
        }
        if (!buttons.length) continue;
        let parts = [];
        for (const asking of rule.text ?? []) {
          parts = [...element.querySelectorAll(asking)].filter(isInSight);
          if (parts.length) break;
        }
        const without = `${rule.buttons}, style, script, [aria-hidden='true']`;
        if (!parts.length) parts = [element];
        const words = parts.map((part) => read(part, without, true, null)).join("\n");
        const text = words.trim().slice(0, DIALOG_TEXT_MAX);
        const labels = buttons.map((button) => button.label);
        const name = rule.id_attribute
          ? (element.getAttribute(rule.id_attribute) ??
            element.querySelector(`[${rule.id_attribute}]`)?.getAttribute(rule.id_attribute) ??
            "")
          : "";
        const base = hash(JSON.stringify([name, text, labels]));
        // The same dialog may be in the document twice.
        if (!found.some((other) => other.base === base)) found.push({ element, base, text, buttons });
      }
    }
    return found;
  };

  const appear = (found) => {
    const now = new Set(found.map((dialog) => dialog.base));
    for (const [base, seen] of appearances) if (!now.has(base)) seen.isOpen = false;
    for (const base of now) {
      const seen = appearances.get(base) ?? { at: 0, isOpen: false };
      appearances.delete(base);
      // By its time: no number is used again when the document is another one.
      if (!seen.isOpen) seen.at = Math.max(seen.at + 1, Math.round(performance.timeOrigin + performance.now()));
      seen.isOpen = true;
      appearances.set(base, seen);
      if (appearances.size > APPEARANCES_MAX) appearances.delete(appearances.keys().next().value);
    }
  };
  const idOf = (dialog) => `${dialog.base}.${(appearances.get(dialog.base)?.at ?? 0).toString(36)}`;

  // The live dialog of this id, if it is still as it was told; else null.
  const liveDialog = (id) => {
    if (!refreshScope()) return null;
    const isIt = (dialog) => appearances.get(dialog.base)?.isOpen && idOf(dialog) === id;
    return dialogsInSight().find(isIt) ?? null;
  };

  // ---- the whole view ----

  const refreshScope = () => {
    const alternatives = profile.target.scope ?? [];
    if (!alternatives.length) {
      scope = document.body ?? document.documentElement;
      return { alternative: 0 };
    }
    const found = find(alternatives, document);
    // Of two that are alike, the one that was chosen stays while it is in sight.
    const stays = scope?.isConnected && found && found.element !== scope && isInSight(scope);
    if (stays && scope.matches(alternatives[found.alternative])) return { ...found, element: scope };
    scope = found?.element ?? null;
    return found;
  };

  const conversation = () => {
    for (const key of profile.identity?.conversation ?? []) {
      let value = null;
      if (key.attribute) {
        const own = scope?.getAttribute(key.attribute);
        value = own || scope?.querySelector(`[${key.attribute}]`)?.getAttribute(key.attribute);
      } else if (key.url_parameter) {
        value = new URL(location.href).searchParams.get(key.url_parameter);
      } else if (key.url_pattern) {
        value = patternOf(key.url_pattern).exec(location.href)?.[1];
      }
      if (value) return value;
    }
    return null;
  };

  const model = () => {
    const found = profile.model && scope ? find(profile.model.read, scope) : null;
    if (!found) return { found, name: null };
    const wanted = profile.model.pattern ? patternOf(profile.model.pattern) : null;
    for (const text of [squeezed(found.element.textContent ?? ""), labelOf(found.element)]) {
      const name = wanted ? wanted.exec(text)?.[1] : text;
      if (name) return { found, name: squeezed(name) };
    }
    return { found, name: null };
  };

  const activity = () => {
    for (const rule of profile.activity ?? []) {
      const wanted = rule.text == null ? null : patternOf(rule.text);
      const said = (element) => squeezed(element.textContent ?? "") || labelOf(element);
      const accepts = (element) => !wanted || wanted.test(said(element)) || wanted.test(labelOf(element));
      const found = scope && find([rule.matches], scope, accepts);
      if (!found) continue;
      const label = rule.label ?? said(found.element).slice(0, LABEL_MAX);
      return { kind: rule.kind, label, isBusy: rule.is_busy !== false && rule.kind !== "idle" };
    }
    return null;
  };

  const waiting = (foundScope) => {
    if (innerWidth === 0 || innerHeight === 0) return "The panel is not visible in its window";
    for (const rule of profile.waiting ?? []) {
      if (find([rule.matches], document)) return rule.reason;
    }
    return foundScope ? null : "The panel is not visible in its window";
  };

  const view = () => {
    const foundScope = refreshScope();
    watch();
    const composer = readComposer();
    const send = findControl(profile.send);
    const stop = findControl(profile.stop);
    const doing = activity();
    const busy = stop != null || (doing != null && doing.isBusy);
    const isOurs = (element) => scope.contains(element);
    const root = scope ? find(profile.transcript.root, scope.parentElement ?? scope, isOurs) : null;
    const rows = root ? readRows(root.element, busy) : [];
    const asked = dialogsInSight();
    appear(asked);
    const named = model();
    const isUsable = (element) => !element.disabled && element.getAttribute("aria-disabled") !== "true";
    const dialogs = asked.map((dialog) => ({
      id: idOf(dialog),
      text: dialog.text,
      buttons: dialog.buttons.map(({ label, is_default }) => ({ label, is_default })),
    }));
    const small = {
      composer,
      send: send && { alternative: send.alternative, is_enabled: isUsable(send.element) },
      stop: stop && { alternative: stop.alternative },
      busy,
      activity: doing && { kind: doing.kind, label: doing.label },
      dialogs,
      model: named.name,
      waiting: waiting(foundScope),
      conversation: conversation(),
      new_chats: newChats,
      title: document.title,
      url: location.href,
      ready: document.readyState === "complete",
      landmarks: {
        scope: foundScope?.alternative ?? null,
        composer: composer?.alternative ?? null,
        send: send?.alternative ?? null,
        stop: stop?.alternative ?? null,
        root: root?.alternative ?? null,
        model: named.found?.alternative ?? null,
      },
    };
    return { rows, small };
  };

  // ---- pushing ----

  const push = (kind, parts) => JSON.stringify({ epoch, n: ++n, kind, ...parts });
  const post = (text) => {
    try {
      globalThis[bindingName]?.(text);
    } catch {
      stop();
    }
  };

  const scan = (isBeat) => {
    if (isStopped) return;
    clearTimeout(scheduled);
    scheduled = null;
    let seen;
    try {
      takeRecords();
      seen = view();
      lastError = null;
    } catch (error) {
      const words = String(error?.message ?? error).slice(0, 500);
      if (words !== lastError || isBeat) {
        lastError = words;
        post(push("change", { rows: [], error: words, url: location.href, title: document.title }));
      }
      return;
    }
    const rows = seen.rows.filter((row) => told.get(row.key) !== hash(JSON.stringify(row)));
    const keys = new Set(seen.rows.map((row) => row.key));
    const gone = profile.transcript.is_virtual ? [] : [...told.keys()].filter((key) => !keys.has(key));
    remember(seen.rows, keys);
    const { composer, ...others } = seen.small;
    const { typed_ms_ago: _, ...steady } = composer ?? {};
    const small = JSON.stringify([others, steady]);
    const hasNews = rows.length > 0 || gone.length > 0 || small !== lastSmall;
    lastSmall = small;
    if (hasNews) post(push("change", { rows, gone, ...list(seen.rows), ...seen.small }));
    else if (isBeat) post(push("beat", { rows: [], ...list(seen.rows), ...seen.small }));
  };

  // How many rows there are; of a virtual list also which, in their order.
  const list = (rows) =>
    profile.transcript.is_virtual
      ? { count: rows.length, order: rows.map((row) => row.key) }
      : { count: rows.length };

  const remember = (rows, keys) => {
    const next = new Map();
    // What a virtual list took out of the document is still known. After an empty one the same
    // words in the same place may be another chat's.
    if (profile.transcript.is_virtual && rows.length) for (const [key, known] of told) if (!keys.has(key)) next.set(key, known);
    for (const row of rows) next.set(row.key, hash(JSON.stringify(row)));
    while (next.size > ROWS_MAX * 2) next.delete(next.keys().next().value);
    told = next;
  };

  const snapshot = () => {
    leaseUntil = performance.now() + LEASE_MS;
    if (isStopped) begin();
    try {
      takeRecords();
      const seen = view();
      remember(seen.rows, new Set(seen.rows.map((row) => row.key)));
      const { composer, ...others } = seen.small;
      const { typed_ms_ago: _, ...steady } = composer ?? {};
      lastSmall = JSON.stringify([others, steady]);
      return push("whole", { rows: seen.rows, gone: [], ...list(seen.rows), ...seen.small });
    } catch (error) {
      const words = String(error?.message ?? error).slice(0, 500);
      return push("whole", { rows: [], error: words, url: location.href, title: document.title });
    }
  };

  const schedule = () => {
    if (isStopped || scheduled != null) return;
    // Long words take longer to read and to carry.
    const pause = Math.min(WAIT_MS_MAX, Math.round(COALESCE_MS + longest / 400));
    const dueAt = performance.now() + pause;
    scheduled = setTimeout(() => {
      isSlowed = performance.now() - dueAt > LATE_MS;
      scan(false);
    }, pause);
    // Whoever listens is asked to wake us. Where our own clock is right, it comes first, and this
    // is not asked again.
    if (isSlowed || document.hidden) post(JSON.stringify({ epoch, due_ms: pause }));
  };
  const due = () => {
    if (scheduled != null) scan(false);
  };

  const stale = (records) => {
    for (const record of records) {
      const element = record.target.nodeType === Node.ELEMENT_NODE ? record.target : record.target.parentElement;
      for (let row = element?.closest(rowSelector); row; row = row.parentElement?.closest(rowSelector)) {
        const known = cache.get(row);
        if (known) known.isStale = true;
      }
    }
  };

  const inside = new MutationObserver((records) => {
    stale(records);
    schedule();
  });
  // Notices only that the panel came or went, wherever in the window it is.
  const around = new MutationObserver(() => {
    if (!scope || !scope.isConnected) schedule();
  });
  const takeRecords = () => stale(inside.takeRecords());

  const watch = () => {
    if (watched === scope) return;
    inside.disconnect();
    watched = scope;
    if (!scope) return;
    const place = profile.target.scope?.length ? scope : document.documentElement;
    inside.observe(place, { subtree: true, childList: true, characterData: true, attributes: true });
  };

  const onTyped = (event) => {
    // Those who act type as well.
    if (!event.isTrusted || !scope || globalThis.__farhelmHand?.isActing?.()) return;
    const target = event.composedPath()[0];
    const composer = find(profile.composer.any, scope)?.element;
    if (composer && target instanceof Node && (composer === target || composer.contains(target))) {
      typedAt = performance.now();
      schedule();
    }
  };
  const TYPED = ["beforeinput", "input", "keydown"];
  // The person asked for a new chat: what is shown next may have no name of its own.
  const newChat = profile.new_chat?.find((step) => step.click)?.click.join(", ");
  const onClick = (event) => {
    if (!event.isTrusted || !newChat || !scope) return;
    const pressed = event.composedPath()[0];
    if (!(pressed instanceof Element) || !pressed.closest(newChat)) return;
    newChats++;
    schedule();
  };
  const onFocus = () => schedule();
  const onLoad = () => schedule();

  let beat = null;
  const begin = () => {
    isStopped = false;
    watched = null;
    around.observe(document, { subtree: true, childList: true });
    // Some editors tell no input; a key is a sign of somebody as well.
    for (const type of TYPED) document.addEventListener(type, onTyped, { capture: true, passive: true });
    document.addEventListener("click", onClick, { capture: true, passive: true });
    document.addEventListener("focusin", onFocus, { capture: true, passive: true });
    document.addEventListener("focusout", onFocus, { capture: true, passive: true });
    addEventListener("load", onLoad, { passive: true });
    addEventListener("resize", onLoad, { passive: true });
    addEventListener("popstate", onLoad, { passive: true });
    beat = setInterval(() => {
      if (performance.now() > leaseUntil) stop();
      else scan(true);
    }, BEAT_MS);
  };
  const stop = () => {
    isStopped = true;
    inside.disconnect();
    around.disconnect();
    clearTimeout(scheduled);
    clearInterval(beat);
    scheduled = null;
    for (const type of TYPED) document.removeEventListener(type, onTyped, { capture: true });
    document.removeEventListener("click", onClick, { capture: true });
    document.removeEventListener("focusin", onFocus, { capture: true });
    document.removeEventListener("focusout", onFocus, { capture: true });
    removeEventListener("load", onLoad);
    removeEventListener("resize", onLoad);
    removeEventListener("popstate", onLoad);
  };

  // ---- what the panel is made of, without its words ----

  const SKELETON_NODES_MAX = 3000;
  const CONTROLS = "button, a, input, textarea, select, [role='button'], [role='textbox'], [role='combobox'], [contenteditable]";
  const skeleton = () => {
    let nodes = 0;
    const isWord = (value) => /^[A-Za-z][A-Za-z0-9_-]{0,40}$/.test(value);
    const bare = (text) => squeezed(text).replace(/\d+/g, "0").slice(0, 40);
    const describe = (element, depth) => {
      if (++nodes > SKELETON_NODES_MAX || depth > 60) return null;
      const node = { tag: element.tagName.toLowerCase() };
      const role = element.getAttribute("role");
      if (role && isWord(role)) node.role = role;
      if (element.hasAttribute("contenteditable")) node.editable = element.getAttribute("contenteditable") || "true";
      if (element.matches(CONTROLS) && element.getAttribute("aria-label")) {
        node.label = bare(element.getAttribute("aria-label"));
      }
      const classes = [...element.classList].slice(0, 8).map((name) => name.slice(0, 60));
      if (classes.length) node.classes = classes;
      const data = {};
      for (const { name, value } of element.attributes) {
        if (name.startsWith("data-")) data[name] = isWord(value) ? value : "";
      }
      if (Object.keys(data).length) node.data = data;
      if (!isInSight(element)) node.is_hidden = true;
      const children = [...element.children]
        .filter((child) => !/^(script|style|svg|path|link|meta)$/i.test(child.tagName))
        .map((child) => describe(child, depth + 1))
        .filter(Boolean);
      if (children.length) node.children = children;
      return node;
    };
    refreshScope();
    return JSON.stringify(describe(scope ?? document.body ?? document.documentElement, 0));
  };

  const observer = {
    epoch,
    id: profile.id,
    revision: profile.revision,
    appearances,
    snapshot,
    due,
    stop,
    skeleton,
    // For those who act: the live elements as this script sees them.
    scope: () => (refreshScope(), scope),
    dialog: (id) => liveDialog(id)?.element ?? null,
    button: (id, label) => liveDialog(id)?.buttons.find((button) => button.label === label)?.element ?? null,
    composer: () => (refreshScope(), (scope && find(profile.composer.any, scope)?.element) ?? null),
    composerText: () => {
      refreshScope();
      const found = scope && find(profile.composer.any, scope);
      return found ? composerText(found.element) : null;
    },
    control: (name) => (refreshScope(), findControl(profile[name])?.element ?? null),
    isInSight,
    labelOf: buttonLabel,
  };
  Object.defineProperty(globalThis, "__farhelm", { value: observer, configurable: true });
  begin();
  scan(false);
  return observer;
}
