/* The interactive matrix: filters, a grid of source by target, and the cases of a pair.
   Its data is window.MATRIX of matrix_data.js; the state is in the hash of the address. */
(() => {
  "use strict";
  const data = window.MATRIX;
  const root = document.getElementById("matrix");
  if (!data || !root) return;

  const KINDS = { // letter, word, plural
    view: ["v", "view", "views"], copy: ["c", "copy", "copies"], transfer: ["t", "transfer", "transfers"],
    refused: ["r", "refused", "refused"], failure: ["!", "failure", "failures"],
    none: ["–", "no such array", "that the source does not have"],
  };
  const OWN = { right: "right", error: "needless error", wrong: "wrong or unsafe", crash: "crash" };
  const ROUTE = { view: "a view", kernel: "a copy", transfer: "a transfer" };
  const DID = {
    view: "a view", copy: "a copy", right: "the right values",
    "taken, though illegal": "accepted: the gradient, the mask or the nulls are lost",
    "view that makes read-only memory writable": "a view through which read-only memory can be written",
  };
  const SHOW = { route: "arraybridge", own: "the target's own function", time: "latency" };
  const EXAMPLES = {
    "float16 with negative strides, NumPy to JAX": "from=numpy&to=jax&dtype=float16&layout=negative",
    "read-only memory to PyTorch": "to=torch&layout=read-only",
    "Arrow to PyTorch, also with nulls": "from=pyarrow&to=torch&layout=Arrow+array",
    "all refusals": "outcome=refused",
    "crashes of the target's own function": "own=crash&show=own",
  };
  const FIELDS = {
    from: ["From", data.libraries], to: ["To", data.libraries],
    dtype: ["Data type", [...new Set(data.cases.map((c) => c[2]))]],
    layout: ["Layout or state", [...new Set(data.cases.map((c) => c[3]))]],
    outcome: ["Outcome", Object.keys(KINDS)],
    own: ["The target's own function", Object.keys(OWN)],
  };
  const FACETS = Object.keys(FIELDS);
  // Whose arrays are read-only without exception: there is no case of that for them.
  const IMMUTABLE = ["jax", "tensorflow", "mlx"];
  const always = (from, layout) => layout === "read-only" && IMMUTABLE.includes(from);
  const lacking = (key, value) => always(key === "from" ? value : state.from, key === "layout" ? value : state.layout)
    ? " (every array is)" : " (no such array)";
  const told = (key, value) =>
    key === "outcome" ? KINDS[value][1] : key === "own" ? OWN[value] : value;

  // Outcomes by name, and each pair's outcome of every case.
  const outcomes = data.outcomes.map((o) => {
    const [verdict, , native, code, gives, instead] = o.slice(0, 6).map((at) => data.texts[at]);
    const kind = verdict === "n/a" ? "none" : verdict in KINDS ? verdict : "failure";
    const why = data.texts[o[1]];
    return { kind, verdict, why, native, code, gives, instead, nbytes: o[6], own: data.texts[o[7]] };
  });
  const pairs = new Map(data.pairs.map(([from, to, ns, ownNs, ends]) => {
    const row = [];
    for (let i = 0; i < ends.length; i += 2) row.push(...Array(ends[i + 1]).fill(ends[i]));
    return [`${from}.${to}`, { from, to, ns, ownNs, row }];
  }));

  const state = {};

  function readHash() {
    const given = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    for (const key of FACETS) {
      const value = given.get(key);
      state[key] = FIELDS[key][1].includes(value) ? value : "";
    }
    if (state.from && state.from === state.to) state.to = ""; // no pair
    state.at = pairs.has(given.get("at")) ? given.get("at") : "";
    state.show = Object.hasOwn(SHOW, given.get("show")) ? given.get("show") : "route";
  }

  function writeHash() {
    const kept = new URLSearchParams();
    for (const key of [...FACETS, "at"]) if (state[key]) kept.set(key, state[key]);
    if (state.show !== "route") kept.set("show", state.show);
    const hash = kept.toString();
    if (hash || location.hash.includes("=")) {
      history.replaceState(null, "", location.pathname + location.search + (hash ? `#${hash}` : ""));
    }
  }

  /** An element; a child that is no node is text. */
  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== ""));
    return made;
  }
  const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
  const broken = (name) => name.split(/(?<=_)/).map((part, at) => [at ? el("wbr") : "", part]);
  const micro = (ns) => (ns === null ? "–" : ns < 10000 ? (ns / 1000).toFixed(2) : (ns / 1000).toFixed(0));
  const chip = (kind, words) => el("span", { class: `mx-chip mx-${kind}` }, words);

  /** One pass over all cells: what is left, by pair, and what each option of a filter would leave. */
  function count() {
    const left = new Map();
    const options = Object.fromEntries(FACETS.map((key) => [key, new Map()]));
    for (const [name, pair] of pairs) {
      const found = [];
      pair.row.forEach((at, n) => {
        if (at < 0) return;
        const { kind, own } = outcomes[at];
        const [, , dtype, layout] = data.cases[n];
        const is = { from: pair.from, to: pair.to, dtype, layout, outcome: kind, own };
        const against = FACETS.filter((key) => state[key] && state[key] !== is[key]);
        if (!against.length) found.push(n);
        for (const key of against.length ? against.slice(0, against.length === 1 ? 1 : 0) : FACETS) {
          const of = options[key].get(is[key]) ?? [0, 0];
          of[kind === "none" ? 1 : 0] += 1;
          options[key].set(is[key], of);
        }
      });
      left.set(name, found);
    }
    return { left, options };
  }

  /** How many of the cases of a pair have each kind, or each outcome of the target's own function. */
  function tally(pair, cases, by) {
    const counts = {};
    for (const n of cases) {
      const key = outcomes[pair.row[n]][by];
      if (key) counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  }

  /** Chips with counts; the word only if one case is left, letters if there is little room. */
  function chips(pair, cases, show, short) {
    if (show === "time") {
      if (pair.ns === null) return ["–"];
      return [el("span", { class: "mx-time" }, `${micro(pair.ns)} µs`),
        el("span", { class: "mx-time mx-muted" }, `own ${micro(pair.ownNs)}`)];
    }
    const words = show === "own" ? OWN : KINDS;
    const counts = tally(pair, cases, show === "own" ? "own" : "kind");
    const live = Object.keys(words).filter((key) => counts[key] && key !== "none");
    if (!live.length) return [counts.none ? chip("none", short ? "none" : KINDS.none[1]) : "–"];
    const only = live.length === 1 && counts[live[0]] === 1;
    return live.map((key) => {
      const word = show === "own" ? OWN[key] : KINDS[key][short && !only ? 0 : 1];
      return chip(key, only ? word : short ? `${show === "own" ? word[0] : word} ${counts[key]}`
        : `${counts[key]} ${word}`);
    });
  }

  function spoken(pair, cases) {
    const counts = tally(pair, cases, "kind");
    const live = Object.keys(KINDS).filter((key) => counts[key]);
    return live.map((key) => `${counts[key].toLocaleString("en")} ${KINDS[key][counts[key] === 1 ? 1 : 2]}`).join(", ") || "no cases";
  }

  const opened = () => (state.from && state.to ? `${state.from}.${state.to}` : state.at);

  function open(name) {
    state.at = name;
    render();
    panel.querySelector("h2").focus();
  }

  function button(name, cases, content, first) {
    const pair = pairs.get(name);
    return el("button", {
      type: "button", "data-pair": name, tabindex: first ? 0 : -1, "aria-pressed": String(opened() === name),
      "aria-label": `${pair.from} to ${pair.to}: ${spoken(pair, cases)}`, onclick: () => open(name),
    }, content);
  }

  /** Source by target; one tab stop, arrow keys within. */
  function grid(left) {
    let first = true;
    const row = (from) => data.libraries.map((to) => {
      const name = `${from}.${to}`;
      if (from === to) return el("td", { class: "mx-same" }, "");
      const made = button(name, left.get(name), chips(pairs.get(name), left.get(name), state.show, true), first);
      first = false;
      return el("td", {}, made);
    });
    return el("table", {},
      el("caption", {}, "Rows: from. Columns: to."),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "from \\ to"),
        data.libraries.map((to) => el("th", { scope: "col" }, broken(to))))),
      el("tbody", {}, data.libraries.map((from) =>
        el("tr", {}, el("th", { scope: "row" }, broken(from)), row(from)))));
  }

  /** The pairs of one library, a row each. */
  function list(left) {
    const names = [...pairs.values()].filter((p) =>
      (!state.from || p.from === state.from) && (!state.to || p.to === state.to));
    const side = state.from ? "to" : "from";
    return el("table", { class: "mx-list" },
      el("caption", {}, state.from ? `From ${state.from}` : `To ${state.to}`),
      el("thead", {}, el("tr", {}, [side, SHOW.route, state.from ? "its own function" : "own function",
        "µs"].map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, names.map((pair, at) => {
        const name = `${pair.from}.${pair.to}`;
        const cases = left.get(name);
        return el("tr", {}, el("th", { scope: "row" }, button(name, cases, broken(pair[side]), at === 0)),
          el("td", {}, chips(pair, cases, "route")), el("td", {}, chips(pair, cases, "own")),
          el("td", {}, pair.ns === null ? "–" : micro(pair.ns)));
      })));
  }

  function move(event) {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    const from = event.target.closest("button[data-pair]");
    if (!step || !from) return;
    event.preventDefault();
    const rows = [...scroll.querySelectorAll("tbody tr")].map((tr) => [...tr.children]);
    let y = rows.findIndex((cells) => cells.includes(from.parentElement));
    let x = rows[y].indexOf(from.parentElement);
    for (;;) {
      [y, x] = [y + step[0], x + step[1]];
      const cell = rows[y]?.[x];
      if (!cell) return;
      const to = cell.querySelector("button");
      if (to) {
        from.tabIndex = -1;
        to.tabIndex = 0;
        to.focus();
        return;
      }
    }
  }

  /** Fill in what a text of the data leaves open. */
  function filled(words, pair, dtype) {
    return words.replaceAll("{to}", pair.to).replaceAll("{from}", pair.from).replaceAll("{dtype}", dtype);
  }

  async function copy(event) {
    const code = event.target.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    event.target.textContent = "Copied";
    setTimeout(() => { event.target.textContent = "Copy"; }, 1500);
  }

  const line = (label, code) => el("div", { class: "mx-line" }, el("p", {}, label),
    el("pre", {}, el("code", {}, code)), el("button", { type: "button", onclick: copy, "aria-label": `Copy ${code}` }, "Copy"));

  /** The cases of a pair that came out alike, as one card. */
  function card(pair, cases) {
    const of = outcomes[pair.row[cases[0]]];
    const dtypes = new Set(cases.map((n) => data.cases[n][2]));
    const first = data.cases[cases[0]][2];
    const dtype = dtypes.size === 1 ? first : "this data type";
    const bytes = cases.map((n) => outcomes[pair.row[n]].nbytes);
    const [least, most] = [Math.min(...bytes), Math.max(...bytes)];
    const moved = least === most ? plural(most, "byte") : `${least} to ${plural(most, "byte")}`;
    const head = el("h3", {}, chip(of.kind, of.kind === "failure" ? of.verdict : KINDS[of.kind][1]), " ",
      ["none", "refused"].includes(of.kind) ? "" : `${moved} moved, `, plural(cases.length, "case"));
    const item = (n) => el("li", {}, el("span", {}, data.cases[n][0]), " ", el("code", {}, data.cases[n][4]));
    const some = cases.length > 6 ? 4 : cases.length;
    const names = [el("ul", {}, cases.slice(0, some).map(item)), cases.length > some
      ? el("details", {}, el("summary", {}, `${cases.length - some} more`), el("ul", {}, cases.slice(some).map(item))) : ""];
    const why = filled(of.why, pair, dtype);
    if (of.kind === "none") {
      const all = cases.every((n) => always(pair.from, data.cases[n][3]));
      const lone = all ? `every array of ${pair.from} is read-only, so all its other cases cover this one` : why;
      return el("li", { class: "mx-card mx-lone" }, head, el("p", {}, el("strong", {}, "Why: "), lone), names);
    }
    const lines = of.kind !== "refused" ? line("Write", filled(of.code, pair, first))
      : of.code ? line(`Write instead, for ${ROUTE[of.gives]}`, filled(of.code, pair, first))
        : el("p", {}, "No single line does it: follow the reason.");
    const instead = of.instead ? line("For a view instead", filled(of.instead, pair, first)) : "";
    const own = [...new Set(cases.map((n) => filled(outcomes[pair.row[n]].native, pair, data.cases[n][2])))];
    return el("li", { class: "mx-card" },
      el("div", {}, head, el("p", { class: "mx-why" }, el("strong", {}, "Why: "), why), lines, instead, names),
      el("div", { class: "mx-own" }, el("h4", {}, `${pair.to}'s own function`),
        el("p", {}, el("code", {}, data.functions[pair.to] ?? "")),
        el("p", {}, of.own ? chip(of.own, OWN[of.own]) : "not asked"),
        el("ul", {}, own.slice(0, 3).map((words) => el("li", {}, DID[words] ?? words)),
          own.length > 3 ? el("li", {}, `and ${own.length - 3} more like these`) : "")));
  }

  function show(left) {
    const name = opened();
    panel.hidden = !name;
    if (!name) return panel.replaceChildren();
    const pair = pairs.get(name);
    const alike = new Map();
    for (const n of left.get(name) ?? []) {
      const of = outcomes[pair.row[n]];
      const key = [of.verdict, of.why, of.code, of.gives, of.instead, of.own].join("\n");
      alike.set(key, [...(alike.get(key) ?? []), n]);
    }
    const groups = [...alike.values()].sort((a, b) =>
      (outcomes[pair.row[a[0]]].kind === "none") - (outcomes[pair.row[b[0]]].kind === "none"));
    const timed = pair.ns === null ? "" : `A small contiguous array takes ${micro(pair.ns)} µs${
      pair.ownNs === null ? `; ${pair.to}'s own function gives no right result` : `, and ${micro(pair.ownNs)} µs by ${pair.to}'s own function`}.`;
    panel.replaceChildren(
      el("h2", { tabindex: -1 }, `${pair.from} → ${pair.to}`),
      el("p", {}, chips(pair, left.get(name), "route"), " ", timed, " ",
        el("button", { type: "button", class: "mx-plain", onclick: close }, "Close")),
      groups.length ? el("ul", { class: "mx-cards" }, groups.map((cases) => card(pair, cases)))
        : el("p", {}, "The filters leave no case of this pair."));
  }

  function close() {
    const name = opened();
    if (state.from && state.to) state.to = "";
    state.at = "";
    render();
    scroll.querySelector(`button[data-pair="${name}"]`)?.focus();
  }

  function render() {
    writeHash();
    const { left, options } = count();
    for (const key of FACETS) {
      for (const option of selects[key].options) {
        if (!option.value) continue;
        const [live, none] = options[key].get(option.value) ?? [0, 0];
        option.disabled = !live && !none && state[key] !== option.value;
        option.textContent = told(key, option.value) + (!live && none && key !== "outcome" ? lacking(key, option.value) : "");
      }
      selects[key].value = state[key];
    }
    for (const radio of form.elements.show) radio.checked = radio.value === state.show;
    const one = state.from && state.to;
    modes.hidden = Boolean(state.from || state.to);
    scroll.replaceChildren(one ? "" : state.from || state.to ? list(left) : grid(left));
    show(left);
    const all = { row: [] };
    const cases = [];
    for (const [name, found] of left) {
      for (const n of found) cases.push(all.row.push(pairs.get(name).row[n]) - 1);
    }
    const pair = pairs.get(opened());
    const open = pair ? ` ${pair.from} to ${pair.to}: ${spoken(pair, left.get(opened()))}.` : "";
    status.textContent = `${plural(cases.length, "case")}: ${spoken(all, cases)}.${one ? "" : open}`;
  }

  const selects = Object.fromEntries(FACETS.map((key) => [key, el("select", { name: key, id: `mx-${key}` },
    el("option", { value: "" }, "any"), FIELDS[key][1].map((value) => el("option", { value }, told(key, value))))]));
  const modes = el("fieldset", {}, el("legend", {}, "Cells show"), Object.entries(SHOW).map(([value, words]) =>
    el("label", {}, el("input", { type: "radio", name: "show", value }), " ", words)));
  const form = el("form", { "aria-label": "Filters" },
    FACETS.map((key) => el("label", { for: `mx-${key}` }, FIELDS[key][0], selects[key])), modes,
    el("button", { type: "reset" }, "Clear filters"));
  form.addEventListener("change", (event) => {
    state[event.target.name] = event.target.value;
    render();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    for (const key of [...FACETS, "at"]) state[key] = "";
    render();
  });
  const status = el("p", { class: "mx-status", role: "status", "aria-live": "polite" });
  const key = el("p", { class: "mx-key" }, Object.entries(KINDS).filter(([kind]) => kind !== "failure").map(([kind, [letter, word]]) =>
    [chip(kind, kind === "none" ? word : `${letter} ${word}`), " "]));
  const scroll = el("div", { class: "mx-scroll", role: "region", "aria-label": "Matrix", onkeydown: move });
  const panel = el("section", { class: "mx-panel", "aria-label": "Cases of a pair" });
  const examples = el("p", { class: "mx-examples" }, "Try: ", Object.entries(EXAMPLES).map(([words, hash], at) =>
    [at ? " · " : "", el("a", { href: `#${hash}` }, words)]));
  root.replaceChildren(examples, form, status, key, scroll, panel);
  window.addEventListener("hashchange", () => { readHash(); render(); });
  readHash();
  render();
})();
