// Search, in the dialog while you type and on the page of results. SEARCH_TEXTS is
// [page, title, anchor, heading, text, weight], a row for each section, written by
// docs/search_texts.py; it is loaded when a search field gets the focus.
"use strict";

(() => {
  const SHOWN = 10;
  const COMMON = /^(an?|and|are|as|by|do|does|for|from|how|i|in|into|is|it|of|on|or|the|to|what|with)$/;
  const root = document.documentElement.dataset.content_root;
  let loading;

  const load = () => (loading ||= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = `${root}_static/search_texts.js`;
    script.onload = resolve;
    document.head.append(script);
  }));

  const folded = (text) => text.toLowerCase().replaceAll("pytorch", "torch");
  const split = (text) => folded(text).match(/[\p{L}\p{N}_]+/gu) || [];

  // How well a word of the query matches a name: as a word, or as its beginning.
  const named = (text, word) => {
    const words = split(text);
    if (words.includes(word)) return 1;
    return words.some((one) => one.startsWith(word) || (one.length > 3 && word.startsWith(one))) ? 0.7 : 0;
  };

  const rank = (query) => {
    const all = split(query).filter((word) => word.length > 1);
    const rare = all.filter((word) => !COMMON.test(word));
    const words = rare.length ? rare : all;
    const phrase = folded(query.trim());
    const best = new Map();
    for (const [page, title, anchor, heading, text, weight] of SEARCH_TEXTS) {
      const lower = folded(text);
      const first = lower.slice(0, lower.search(/[.:?]( |$)/) + 1 || 200);
      let score = 0;
      let matched = 0;
      for (const word of words) {
        const begins = new RegExp(`(?<![\\p{L}\\p{N}])${word}`, "gu");
        const times = lower.match(begins)?.length || 0;
        const found = 8 * named(title, word) + 6 * named(heading, word)
          + (first.search(begins) >= 0 ? 3 : 0) + Math.min(Math.log2(1 + times), 3);
        score += found;
        matched += found > 0;
      }
      if (!matched) continue;
      if (words.length > 1) score += first.includes(phrase) ? 12 : lower.includes(phrase) ? 4 : 0;
      if ([title, heading].some((name) => folded(name) === phrase)) score += 12;
      if (page.startsWith("api/generated") && title.toLowerCase() === words.join(".")) score += 30;
      score *= weight * (matched / words.length) ** 2;
      const known = best.get(page);
      if (!known || known.score < score) {
        best.set(page, { page, title, anchor, heading, text, score, all: matched === words.length });
      }
    }
    const found = [...best.values()].sort((one, other) => other.score - one.score).slice(0, SHOWN);
    return { words, found };
  };

  // The text around the first match, with the words marked.
  const context = (text, words) => {
    const lower = text.toLowerCase();
    const at = Math.min(...words.map((word) => lower.indexOf(word)).filter((place) => place >= 0));
    const from = at > 60 && at < Infinity ? text.indexOf(" ", at - 60) + 1 : 0;
    const shown = text.slice(from, from + 160);
    const line = document.createElement("p");
    line.className = "search-context";
    if (from) line.append("… ");
    for (const part of shown.split(new RegExp(`(${words.join("|")})`, "i"))) {
      if (words.includes(part.toLowerCase())) {
        line.appendChild(document.createElement("mark")).textContent = part;
      } else {
        line.append(part);
      }
    }
    if (from + 160 < text.length) line.append(" …");
    return line;
  };

  const show = (results, query) => {
    results.replaceChildren();
    if (!query.trim()) return;
    const { words, found } = rank(query);
    const summary = document.createElement("p");
    summary.className = "search-summary";
    const partly = "No page has all of these words. These have some:";
    summary.textContent = !found.length ? "Nothing found." : found[0].all ? "" : partly;
    const list = document.createElement("ul");
    list.className = "search";
    for (const { page, title, anchor, heading, text } of found) {
      const link = document.createElement("a");
      link.href = `${root}${page}.html${anchor && `#${anchor}`}`;
      link.textContent = heading && heading !== title ? `${title} › ${heading}` : title;
      const item = document.createElement("li");
      item.append(link, context(text, words));
      list.append(item);
    }
    results.append(summary, list);
  };

  const attach = (input, results) => {
    results.setAttribute("aria-live", "polite");
    const update = () => load().then(() => show(results, input.value));
    input.addEventListener("focus", load);
    input.addEventListener("input", update);
    return update;
  };

  document.addEventListener("DOMContentLoaded", () => {
    const dialog = document.getElementById("pst-search-dialog");
    const results = dialog?.appendChild(document.createElement("div"));
    if (results) {
      results.className = "search-results";
      attach(dialog.querySelector("input[name=q]"), results);
    }
    const page = document.getElementById("search-results");
    if (!page) return;
    const input = document.querySelector(".bd-search-container input[name=q]");
    input.value = new URLSearchParams(location.search).get("q") || "";
    attach(input, page)();
  });
})();
