// What acting needs to know and do inside of a panel. One function expression, called as
// (it)(profile) in our own world; kept there as __farhelmHand.
//
// It finds, reads, focuses and presses only what it is told to, and leaves focus as it was.
(profile) => {
  "use strict";
  if (globalThis.__farhelmHand?.revision === `${profile.id}/${profile.revision}`) return;
  globalThis.__farhelmHand?.end();

  const GUARD_MS = 4000;
  const LABEL_MAX = 200;

  const squeezed = (text) => text.replace(/\s+/g, " ").trim();

  const patternOf = (text) => {
    const isLoose = text.startsWith("(?i)");
    const bare = isLoose ? text.slice(4) : text;
    try {
      return new RegExp(bare, isLoose ? "iu" : "u");
    } catch {
      return new RegExp(bare, isLoose ? "i" : "");
    }
  };

  const isInSight = (element) => {
    if (!element.isConnected) return false;
    if (!element.checkVisibility({ visibilityProperty: true })) return false;
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  };

  const labelOf = (element) => {
    const said = element.getAttribute("aria-label") || squeezed(element.textContent ?? "");
    const label = said || element.getAttribute("title") || element.getAttribute("value") || "";
    return squeezed(label).slice(0, LABEL_MAX);
  };

  const find = (alternatives, within, accepts) => {
    for (const selector of alternatives) {
      for (const element of within.querySelectorAll(selector)) {
        if (isInSight(element) && (!accepts || accepts(element))) return element;
      }
    }
    return null;
  };

  const scope = () => {
    const alternatives = profile.target.scope ?? [];
    // Of two alike, the one that is observed.
    if (globalThis.__farhelm?.id === profile.id) return globalThis.__farhelm.scope() ?? null;
    return alternatives.length ? find(alternatives, document) : document.documentElement;
  };

  const control = (rule) => {
    const around = scope();
    if (!rule || !around) return null;
    const wanted = rule.label == null ? null : patternOf(rule.label);
    return find(rule.any ?? [], around, (element) => !wanted || wanted.test(labelOf(element)));
  };

  const isDisabled = (element) =>
    element.disabled === true ||
    element.getAttribute("aria-disabled") === "true" ||
    element.classList.contains("disabled");

  // ---- the composer ----

  const composer = () => {
    const around = scope();
    return around && find(profile.composer.any, around);
  };

  // What takes the keys: the composer itself, or the one editable thing in it.
  const EDITABLE = "textarea, input, [contenteditable]:not([contenteditable='false']), .native-edit-context";
  const field = (element) => {
    if (element.matches(EDITABLE)) return element;
    return element.querySelector(EDITABLE) ?? element;
  };

  const escaped = (words) =>
    words.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/ {2}/g, " \u00a0");

  const isFocusWithin = (element) => {
    const active = document.activeElement;
    return active != null && active !== document.body && (element === active || element.contains(active));
  };

  // By script; whether the focus is there now.
  const focused = (element) => {
    if (!isFocusWithin(element)) field(element).focus({ preventScroll: true });
    return isFocusWithin(element);
  };

  const BLOCKS = new Set(["P", "DIV", "LI", "PRE", "BLOCKQUOTE", "UL", "OL", "H1", "H2", "H3"]);

  // The lines of an editable element, as its editor would send them.
  const linesOf = (root) => {
    let out = "";
    let isFresh = true; // nothing was said since the last line began
    const isLast = (node) => {
      for (let at = node; at !== root; at = at.parentNode) {
        if (at.nextSibling) return false;
        if (BLOCKS.has(at.parentNode.tagName)) return true;
      }
      return true;
    };
    const walk = (node) => {
      if (node.nodeType === Node.TEXT_NODE) {
        if (node.data) isFresh = false;
        out += node.data;
        return;
      }
      if (node.nodeType !== Node.ELEMENT_NODE) return;
      if (node.tagName === "BR") {
        // The last of a block only keeps the block open.
        if (isLast(node)) return void (isFresh = false);
        out += "\n";
        isFresh = true;
        return;
      }
      const isBlock = node !== root && BLOCKS.has(node.tagName);
      if (isBlock && (out !== "" || !isFresh) && !(isFresh && out.endsWith("\n"))) out += "\n";
      if (isBlock) isFresh = true;
      for (const child of node.childNodes) walk(child);
      if (isBlock) isFresh = false;
    };
    walk(root);
    return out;
  };

  const clean = (text) =>
    text.replace(/\u00a0/g, " ").replace(/\r\n?/g, "\n").replace(/[\u200b\ufeff]/g, "");

  // Whether a monaco shows only its placeholder or nothing at all.
  const monacoLines = (element) => {
    const around = element.closest(".monaco-editor") ?? scope();
    const lines = [...around.querySelectorAll(".view-lines .view-line")];
    const top = (line) => Number.parseFloat(line.style.top) || 0;
    return lines.sort((a, b) => top(a) - top(b)).map((line) => line.textContent).join("\n");
  };

  const text = (element) => {
    if (profile.composer.editor === "monaco") return clean(monacoLines(element));
    const own = field(element);
    if (typeof own.value === "string") return clean(own.value);
    return clean(linesOf(own));
  };

  const stickyOf = (words) => {
    if (!profile.composer.sticky) return "";
    const found = patternOf(profile.composer.sticky).exec(words);
    return found && found.index === 0 ? found[0] : "";
  };
  const withoutSticky = (words) => words.slice(stickyOf(words).length);

  // What an editor that shows only some of its lines would copy, when everything is selected.
  const copied = (element) => {
    const data = new DataTransfer();
    const event = new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true });
    field(element).dispatchEvent(event);
    const words = data.getData("text/plain");
    return words === "" ? null : clean(words);
  };

  const chips = (element) => {
    const own = field(element);
    if (typeof own.value === "string" || profile.composer.editor === "monaco") return false;
    return own.querySelector("[contenteditable='false'], img, [data-lexical-decorator='true']") != null;
  };

  // ---- rows and dialogs ----

  const userRows = () => {
    const rules = profile.transcript;
    const around = scope();
    const root = around && (find(rules.root, around.parentElement ?? around, (e) => around.contains(e)) ?? around);
    if (!root) return [];
    const roleOf = (row) => {
      const fits = (rule) => row.matches(rule.matches) || row.querySelector(rule.matches);
      return rules.roles.find(fits)?.role;
    };
    return [...root.querySelectorAll(rules.row)].filter((row) => roleOf(row) === "user");
  };

  const isAsking = () => {
    const rule = profile.prompt;
    const around = scope();
    if (!rule || !around) return false;
    const fits = (element) => !rule.requires || element.matches(rule.requires) || element.querySelector(rule.requires);
    return find(rule.root, around, (e) => fits(e) && [...e.querySelectorAll(rule.buttons)].some(isInSight)) != null;
  };

  const isBusy = () => {
    if (control(profile.stop)) return true;
    const around = scope();
    if (!around) return false;
    for (const rule of profile.activity ?? []) {
      const wanted = rule.text == null ? null : patternOf(rule.text);
      const accepts = (e) => !wanted || wanted.test(squeezed(e.textContent ?? "")) || wanted.test(labelOf(e));
      if (find([rule.matches], around, accepts)) return rule.is_busy !== false && rule.kind !== "idle";
    }
    return false;
  };

  const reasonToWait = () => {
    for (const rule of profile.waiting ?? []) {
      if (find([rule.matches], document)) return rule.reason;
    }
    return null;
  };

  // ---- typing by the person ----

  // Editors that write for themselves let no `input` come after `beforeinput`.
  const TYPING = ["beforeinput", "input", "keydown", "compositionupdate"];
  let typedAt = null; // into the composer
  let typedBesideAt = null; // anywhere else: the focus would be taken from them
  let isOurs = false; // our own keys are trusted, too
  let typedMeanwhile = false; // by the person, while we type
  let ourKey = null; // what we press just now: { key, sends, landed, missed }
  let isInserting = false;
  let isAstray = false; // our text would have gone somewhere else

  const isWithin = (event) => {
    const here = composer();
    const target = event.composedPath()[0];
    return here != null && target instanceof Node && here.contains(target);
  };
  const stopped = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
  };

  // Before the page hears of it: a key or a text of ours is for the composer, or for nobody.
  const onKeyGuard = (event) => {
    if (!event.isTrusted || event.key !== ourKey?.key) return;
    const isRight = isWithin(event) && (!ourKey.sends || mayGive());
    if (isRight) return void (ourKey.landed = true);
    ourKey.missed = true;
    stopped(event);
  };
  const onTextGuard = (event) => {
    // A single letter may be the person's.
    if (!event.isTrusted || !isInserting || (event.data?.length ?? 0) < 2 || isWithin(event)) return;
    isAstray = true;
    stopped(event);
  };
  const onTyped = (event) => {
    if (!event.isTrusted) return;
    if (isOurs && (event.type !== "keydown" || event.key === ourKey?.key)) return;
    if (!isWithin(event)) return void (typedBesideAt = performance.now());
    typedAt = performance.now();
    if (isOurs) typedMeanwhile = true;
  };
  window.addEventListener("keydown", onKeyGuard, { capture: true });
  window.addEventListener("beforeinput", onTextGuard, { capture: true });
  for (const type of TYPING) {
    document.addEventListener(type, onTyped, { capture: true, passive: true });
  }

  const msSince = (at) => (at == null ? null : performance.now() - at);

  // ---- what is to be sent ----

  let held = null; // the composer's text as it was found to be right
  let refusedBefore = []; // what said so already when it was
  // Whether the very text is still there, and nothing is asked.
  const mayGive = () => {
    const here = composer();
    return here != null && withoutSticky(text(here)) === held && !isAsking();
  };

  const refusals = () => {
    const rule = profile.send.refusal;
    if (!rule) return [];
    const wanted = patternOf(rule.text);
    const says = (element) => isInSight(element) && wanted.test(squeezed(element.textContent ?? ""));
    return [...document.querySelectorAll(rule.matches)].filter(says);
  };
  // Why the panel did not take what it still holds.
  const refusal = () => {
    const fresh = refusals().find((element) => !refusedBefore.includes(element));
    return fresh && mayGive() ? squeezed(fresh.textContent).slice(0, LABEL_MAX) : null;
  };

  // ---- aiming ----

  // Finds what is to be pressed. Every kind is looked for only where it belongs.
  const locate = (wanted) => {
    switch (wanted.kind) {
      case "control":
        return wanted.gives && !mayGive() ? null : control(profile[wanted.name]);
      case "composer":
        return composer();
      case "button":
        return globalThis.__farhelm?.button(wanted.dialog, wanted.label) ?? null;
      case "submit": {
        const dialog = globalThis.__farhelm?.dialog(wanted.dialog);
        return dialog ? find([profile.prompt.submit], dialog) : null;
      }
      case "any": {
        const around = scope();
        return (around && find(wanted.any, around)) ?? find(wanted.any, document);
      }
      case "scoped": {
        const around = scope();
        return around && find(wanted.any, around);
      }
      case "option": {
        const fits = options().filter((option) => option.name === wanted.name);
        return fits.length === 1 ? fits[0].element : null;
      }
      default:
        throw new Error(`unknown kind of element: ${wanted.kind}`);
    }
  };

  const options = () => {
    const rule = profile.model;
    if (!rule?.option) return [];
    const more = (rule.more ?? []).join(", ");
    return [...document.querySelectorAll(rule.option)]
      .filter((element) => isInSight(element) && !(more && element.matches(more)))
      .map((element) => {
        const part = rule.option_text ? element.querySelector(rule.option_text) : null;
        return { element, name: squeezed((part ?? element).textContent ?? "") || labelOf(element) };
      })
      .filter((option) => option.name);
  };

  const middle = (element) => {
    const box = element.getClientRects()[0] ?? element.getBoundingClientRect();
    return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
  };

  const isOf = (element, hit) => hit instanceof Node && (hit === element || element.contains(hit));

  // What somebody needs to find it; none of its words.
  const describe = (element) => {
    if (!(element instanceof Element)) return "something";
    return [element.localName, ...element.classList].join(".").slice(0, LABEL_MAX);
  };

  // Why a press at a point of an element would come to another.
  const hindrance = (element, point) => {
    const hit = document.elementFromPoint(point.x, point.y);
    if (isOf(element, hit)) return null;
    return hit ? `${describe(hit)} covers it` : "it is outside the window";
  };

  let aim = null; // what is being pressed: { wanted, element, point, until, landed, missed, late, hit }
  let pressed = null; // what was

  const onPress = (event) => {
    if (!aim || !event.isTrusted) return;
    // Another place is the person's own mouse.
    if (Math.abs(event.clientX - aim.point.x) > 2 || Math.abs(event.clientY - aim.point.y) > 2) return;
    // After so long a time it may be anybody's.
    if (!aim.landed && !aim.missed && performance.now() > aim.until) return void (aim.late = true);
    const target = event.composedPath()[0];
    const isRight = isOf(aim.element, target);
    const isSame = aim.landed || locate(aim.wanted) === aim.element;
    if (isRight && isSame && !aim.missed) {
      aim.landed = true;
      pressed = aim.element;
      return;
    }
    // Its release belongs to it, wherever the panel moved meanwhile.
    if (aim.landed) return;
    aim.missed = true;
    aim.hit ??= describe(target);
    stopped(event);
  };
  const PRESSES = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
  for (const type of PRESSES) window.addEventListener(type, onPress, { capture: true });

  // ---- what Rust calls ----

  let remembered = null;

  const hand = {
    revision: `${profile.id}/${profile.revision}`,

    end() {
      for (const type of PRESSES) window.removeEventListener(type, onPress, { capture: true });
      window.removeEventListener("keydown", onKeyGuard, { capture: true });
      window.removeEventListener("beforeinput", onTextGuard, { capture: true });
      for (const type of TYPING) {
        document.removeEventListener(type, onTyped, { capture: true });
      }
    },

    // How things stand before and after typing.
    state() {
      const element = composer();
      const words = element ? withoutSticky(text(element)) : null;
      return {
        has_scope: scope() != null,
        has_composer: element != null,
        text: words,
        sticky: element ? stickyOf(text(element)) : "",
        has_chips: element ? chips(element) : false,
        is_focused: element ? isFocusWithin(element) : false,
        typed_ms_ago: msSince(typedAt),
        typed_beside_ms_ago: msSince(typedBesideAt),
        typed_meanwhile: typedMeanwhile,
        is_asking: isAsking(),
        is_busy: isBusy(),
        waiting: reasonToWait(),
        user_rows: userRows().length,
        is_mac: /mac/i.test(navigator.platform),
      };
    },

    // What a text itself names where the panel has its habit.
    stickyIn(words) {
      return stickyOf(words);
    },

    // From here on what is typed is ours. How things stand in this very moment.
    begin() {
      const seen = hand.state();
      isOurs = true;
      typedMeanwhile = false;
      return { ...seen, typed_meanwhile: false };
    },
    finish() {
      isOurs = false;
      isInserting = false;
      ourKey = null;
      held = null;
    },
    isActing: () => isOurs,

    // A key of ours comes next; after it, whether it came to the composer.
    beforeKey(key, sends) {
      ourKey = { key, sends, landed: false, missed: false };
    },
    afterKey() {
      const landed = ourKey?.landed ?? false;
      ourKey = null;
      return landed;
    },
    // A text of ours comes next, if the focus is where it belongs.
    beforeText() {
      const element = composer();
      isAstray = false;
      isInserting = element != null && isFocusWithin(element);
      return isInserting;
    },
    afterText() {
      isInserting = false;
      return !isAstray;
    },
    // What the composer holds now is what is to be sent.
    hold() {
      const seen = hand.state();
      held = seen.text;
      refusedBefore = refusals();
      return seen;
    },

    remember() {
      remembered = document.activeElement;
    },
    // Only what we took: whoever went elsewhere meanwhile stays there. What had the focus and is gone
    // (an answered dialog) leaves it to whatever the panel gave it to.
    restore() {
      const element = composer();
      const active = document.activeElement;
      const isOurPress = pressed != null && pressed.contains(active);
      const isTaken = active == null || active === document.body || isOurPress || (element && isFocusWithin(element));
      const wasNowhere = remembered == null || remembered === document.body;
      if (isTaken && wasNowhere) active?.blur();
      else if (isTaken && remembered.isConnected && active !== remembered) remembered.focus({ preventScroll: true });
      remembered = null;
    },

    focusComposer() {
      const element = composer();
      return element != null && focused(element);
    },
    // What a step puts the cursor into; whether it is there.
    focus(wanted) {
      const element = locate(wanted);
      return element != null && focused(element);
    },

    // A selection of everything in the composer, by script; keys do it again, trusted.
    selectAll() {
      const element = composer();
      const own = element && field(element);
      if (!own) return false;
      if (typeof own.select === "function") own.select();
      else if (own.isContentEditable) getSelection()?.selectAllChildren(own);
      return true;
    },

    // The whole text; for editors that show only some lines it has to be selected before.
    whole() {
      const element = composer();
      if (!element) return null;
      // Of nothing, some copy a line's end.
      const shown = text(element);
      const isPart = profile.composer.editor === "monaco" && withoutSticky(shown) !== "";
      return withoutSticky(isPart ? (copied(element) ?? shown) : shown);
    },

    // By an event that says that it was pasted; as paragraphs, for editors that would else lose
    // empty lines.
    paste(words, hasParagraphs) {
      const element = composer();
      if (!element) return false;
      const data = new DataTransfer();
      data.setData("text/plain", words);
      if (hasParagraphs) data.setData("text/html", words.split("\n").map((line) => `<p>${escaped(line)}</p>`).join(""));
      const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
      field(element).dispatchEvent(event);
      return event.defaultPrevented;
    },

    // The value of a text field, told as if it were typed.
    setValue(words) {
      const own = composer() && field(composer());
      if (!own || typeof own.value !== "string") return false;
      own.value = words;
      own.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertText", data: words }));
      return true;
    },

    // Into an editable element, in one piece.
    insertHtml(words) {
      const own = composer() && field(composer());
      if (!own?.isContentEditable) return false;
      const style = getComputedStyle(own);
      const keeps = (style.whiteSpaceCollapse ?? style.whiteSpace).startsWith("pre");
      const html = escaped(words);
      return document.execCommand("insertHTML", false, keeps ? html : html.replace(/\n/g, "<br>"));
    },

    // Whether somebody took the picture: the event was used up.
    pasteImage(mediaType, base64, number) {
      const element = composer();
      if (!element) return false;
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const ending = mediaType.split("/")[1]?.replace("+xml", "") ?? "png";
      const data = new DataTransfer();
      data.items.add(new File([bytes], `image-${number}.${ending}`, { type: mediaType }));
      const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
      field(element).dispatchEvent(event);
      return event.defaultPrevented;
    },

    // Everything beside the conversation, to see a picture's sign come.
    signs() {
      const around = scope();
      const root = around && find(profile.transcript.root, around, (element) => !element.contains(composer()));
      return around ? around.querySelectorAll("*").length - (root?.querySelectorAll("*").length ?? 0) : 0;
    },

    aim(wanted) {
      aim = null;
      const element = locate(wanted);
      if (!element) return { found: false };
      if (isDisabled(element)) return { found: true, is_disabled: true };
      let point = middle(element);
      if (hindrance(element, point)) {
        element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
        point = middle(element);
      }
      const until = performance.now() + GUARD_MS;
      aim = { wanted, element, point, until, landed: false, missed: false, late: false, hit: null };
      pressed = null;
      return { found: true, is_disabled: false, x: point.x, y: point.y };
    },
    aimed: () => aim?.element ?? null,
    // Right before the button goes down: why it should not.
    hindrance() {
      if (!aim || locate(aim.wanted) !== aim.element) return "it is being replaced";
      aim.until = performance.now() + GUARD_MS;
      const point = middle(aim.element);
      const isThere = Math.abs(point.x - aim.point.x) < 1 && Math.abs(point.y - aim.point.y) < 1;
      return isThere ? hindrance(aim.element, point) : "it is moving";
    },
    verdict() {
      const { landed = false, missed = false, late = false, hit = null } = aim ?? {};
      aim = null;
      return { landed, missed, late, hit };
    },

    // By script, found and pressed in one go.
    pressByScript(wanted, how) {
      const element = locate(wanted);
      if (!element || isDisabled(element)) return false;
      pressed = element;
      if (how === "dom") {
        element.click();
        return true;
      }
      const point = middle(element);
      const about = { bubbles: true, cancelable: true, composed: true, view: window, button: 0, clientX: point.x, clientY: point.y };
      const pointer = { ...about, pointerId: 1, pointerType: "mouse", isPrimary: true };
      element.dispatchEvent(new PointerEvent("pointerdown", { ...pointer, buttons: 1 }));
      element.dispatchEvent(new MouseEvent("mousedown", { ...about, buttons: 1 }));
      element.dispatchEvent(new PointerEvent("pointerup", pointer));
      element.dispatchEvent(new MouseEvent("mouseup", about));
      element.dispatchEvent(new MouseEvent("click", about));
      return true;
    },

    isThere: (wanted) => locate(wanted) != null,
    options: () => options().map((option) => option.name),
    model() {
      const around = scope();
      const found = profile.model && around ? find(profile.model.read, around) : null;
      if (!found) return null;
      const wanted = profile.model.pattern ? patternOf(profile.model.pattern) : null;
      for (const words of [squeezed(found.textContent ?? ""), labelOf(found)]) {
        const name = wanted ? wanted.exec(words)?.[1] : words;
        if (name) return squeezed(name);
      }
      return null;
    },

    // Waits for a change of the document that makes `check` true; `false` after the time.
    until(check, rest, ms) {
      const holds = () => {
        try {
          return hand.checks[check](rest);
        } catch {
          return false;
        }
      };
      return new Promise((resolve) => {
        if (holds()) return resolve(true);
        const end = (outcome) => {
          observer.disconnect();
          clearTimeout(timer);
          clearInterval(slow);
          resolve(outcome);
        };
        const look = () => holds() && end(true);
        const observer = new MutationObserver(look);
        observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
        // The value of a text field changes without the document changing.
        const slow = setInterval(look, 100);
        const timer = setTimeout(() => end(holds()), ms);
      });
    },
    // What came of a press that sends.
    async given(rest, ms) {
      await hand.until("sentOrRefused", rest, ms);
      return { is_sent: hand.checks.sent(rest), refusal: refusal() };
    },
    checks: {
      // The text left the composer; or the composer itself went and the words stand among the rows.
      sent({ rows, words }) {
        const element = composer();
        if (element) return withoutSticky(text(element)).trim() === "";
        const last = userRows();
        const wanted = squeezed(words).slice(0, 200);
        return last.length > rows && wanted !== "" && squeezed(last.at(-1).textContent ?? "").includes(wanted);
      },
      // Or the panel says that it does not take it.
      sentOrRefused: (rest) => hand.checks.sent(rest) || refusal() != null,
      enabled({ wanted }) {
        const element = locate(wanted);
        return element != null && !isDisabled(element);
      },
      there: ({ wanted }) => locate(wanted) != null,
      gone: ({ wanted }) => locate(wanted) == null,
      // One that has other buttons now may ask something else in the same words.
      dialogGone: ({ dialog }) =>
        globalThis.__farhelm?.dialog(dialog) == null || (pressed != null && !pressed.isConnected),
      listed: () => options().length > 0,
      // The menu shows other entries than it did, or no way to more of them.
      unfolded({ wanted, shown }) {
        return locate(wanted) == null || String(hand.options()) !== String(shown);
      },
      model: ({ name }) => hand.model() === name,
      grown: ({ signs }) => hand.signs() !== signs,
    },
  };
  Object.defineProperty(globalThis, "__farhelmHand", { value: hand, configurable: true });
}
