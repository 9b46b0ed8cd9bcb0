// The search page: results by how often a page says the words, each with the place where it does.
// SEARCH_TEXTS is {page: [whether it comes last, text]}, from docs/search_texts.py.
"use strict";

(() => {
  const query = (new URLSearchParams(location.search).get("q") || "").trim().toLowerCase();
  const words = query.split(/\s+/).filter((word) => word.length > 1);

  const count = (text, word) => (word ? text.split(word).length - 1 : 0);

  // More often is better, ever less so; so are the words in that order, and the name itself.
  const score = ([page, title, anchor, , found]) => {
    const [last, text] = SEARCH_TEXTS[page] || [false, ""];
    const lower = anchor ? "" : text.toLowerCase();
    const each = words.map((word) => Math.log2(1 + count(lower, word)));
    const often = Math.min(...each, 4) + Math.min(Math.log2(1 + count(lower, query)), 4);
    const depth = page.split(".").length - 1; // the package's own names before those of its modules
    const named = title.toLowerCase().split(".").pop() === query ? 6 / Math.max(depth, 1) : 0;
    return found + named + (Number.isFinite(often) ? often : 0) - (last ? 12 : 0);
  };

  // The text around the first place, with the words marked.
  const context = (text) => {
    const lower = text.toLowerCase();
    const at = [query, ...words].map((word) => lower.indexOf(word)).find((place) => place >= 0);
    const from = at > 60 ? text.indexOf(" ", at - 60) + 1 : 0;
    const shown = text.slice(from, from + 220);
    const line = document.createElement("p");
    line.className = "search-context";
    if (from) line.append("… ");
    const marked = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
    for (const part of marked ? shown.split(new RegExp(`(${marked})`, "i")) : [shown]) {
      if (words.includes(part.toLowerCase())) {
        line.appendChild(document.createElement("mark")).textContent = part;
      } else {
        line.append(part);
      }
    }
    if (from + 220 < text.length) line.append(" …");
    return line;
  };

  const explain = (item) => {
    const link = item.querySelector("a");
    const [file, anchor] = link.getAttribute("href").split("#");
    const known = SEARCH_TEXTS[file.replace(/\.html$/, "")];
    if (known && known[1] && !anchor && !item.querySelector("p")) item.append(context(known[1]));
  };

  // Where no page has all the words: pages that have some, the rarer the better.
  const partly = () => {
    const { docnames, titles } = Search._index;
    const pages = Object.entries(SEARCH_TEXTS).map(([page, [last, text]]) => {
      const title = titles[docnames.indexOf(page)].replace(/<[^>]*>/g, "");
      return { page, title, last, lower: `${title} ${text}`.toLowerCase() };
    });
    const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);
    const rarity = words.map((word) =>
      Math.log2(pages.length / (1 + pages.filter((one) => one.lower.includes(word)).length)));
    const value = (one) => (one.last ? -2 : 0)
      + sum(words.map((word, at) => rarity[at] * Math.log2(1 + Math.min(count(one.lower, word), 7))));
    return pages.map((one) => [value(one), one]).filter(([found]) => found > 0)
      .sort(([one], [other]) => other - one).slice(0, 10).map(([, one]) => one);
  };

  const showPartly = (results) => {
    const found = partly();
    if (!found.length) return;
    results.querySelector(".search-summary").textContent = "No page has all of these words. These have some:";
    for (const { page, title } of found) {
      const link = document.createElement("a");
      link.href = `${page}.html`;
      link.textContent = title;
      const item = document.createElement("li");
      item.append(link);
      results.querySelector("ul.search").append(item);
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    if (!query) return;
    Scorer.score = score;
    const results = document.getElementById("search-results");
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) {
        for (const node of addedNodes) if (node.nodeName === "LI") explain(node);
      }
      const none = /did not match/.test(results.querySelector(".search-summary")?.textContent);
      if (none && !results.querySelector("li")) showPartly(results);
    }).observe(results, { childList: true, subtree: true });
  });
})();
