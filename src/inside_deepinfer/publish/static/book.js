// Small helpers of the book's pages: where popovers stand, the dashboard's frame, the audit table's filters.
// Everything is readable without this script.
"use strict";
(() => {
  // a popover opens below the number that was pressed, inside the window, and gives the focus back to it
  let pressed = null;
  document.addEventListener("click", event => { pressed = event.target.closest("[popovertarget]") ?? pressed; }, true);
  const openers = new WeakMap();
  // not with "toggle": of a card that is closed at once, the browser tells only the closing
  document.addEventListener("beforetoggle", event => {
    if (event.newState === "open" && pressed) openers.set(event.target, pressed);
  }, true);
  document.addEventListener("toggle", event => {
    const card = event.target;
    if (!card.matches?.(".chain")) return;
    if (event.newState !== "open") {
      const at = document.activeElement; // the closed card itself, until the browser notices
      if (at === document.body || card.contains(at)) openers.get(card)?.focus({preventScroll: true});
      return;
    }
    for (const input of card.querySelectorAll(".chain-inputs .num")) {
      input.setAttribute("aria-haspopup", "dialog");
      input.setAttribute("aria-describedby", `about-${/kind-(\w+)/.exec(input.className)[1]}`);
    }
    if (window.innerWidth < 600) return;
    const anchor = pressed?.closest(".chain") ?? pressed;
    if (!anchor) return;
    const at = anchor.getBoundingClientRect(), size = card.getBoundingClientRect(), gap = 6, edge = 12;
    const left = Math.max(edge, Math.min(at.left, window.innerWidth - size.width - edge));
    const below = at.bottom + gap, above = at.top - gap - size.height;
    const nested = anchor.matches(".chain");
    const top = nested ? at.top + 24 : below + size.height < window.innerHeight || above < edge ? below : above;
    Object.assign(card.style, {margin: 0, inset: "auto", left: `${nested ? Math.min(left + 24, window.innerWidth - size.width - edge) : left}px`,
      top: `${Math.max(edge, Math.min(top, window.innerHeight - size.height - edge))}px`});
  }, true);

  // Sphinx swallows the Escape key wherever no button has the focus; an open popover needs it
  window.addEventListener("keydown", event => {
    if (event.key === "Escape" && document.querySelector(".chain:popover-open")) event.stopImmediatePropagation();
  }, true);

  // the dashboard: a link always; a frame when its server answers; a sentence where there is no server
  for (const box of document.querySelectorAll(".live")) {
    const link = box.querySelector(".live-link"), fold = box.querySelector(".live-embed"), sorry = box.querySelector(".live-offline");
    if (location.protocol === "file:") {
      sorry.hidden = false;
      continue;
    }
    fold.hidden = false;
    const frame = fold.querySelector(".live-frame");
    const theme = () => document.documentElement.dataset.theme === "dark" ? "dark" : "light";
    const address = () => { const url = new URL(link.href); url.searchParams.set("theme", theme());
      url.searchParams.set("view", "embed"); return url.href; };
    const open = async () => {
      if (!fold.open || frame.childElementCount) return;
      const health = new URL("/health", link.href);
      const answer = await fetch(health, {signal: AbortSignal.timeout(5000)}).catch(() => null);
      const known = answer?.ok ? (await answer.json().catch(() => ({}))).pages ?? [] : [];
      if (!known.includes(box.dataset.page)) {
        fold.hidden = true;
        sorry.hidden = false;
        return;
      }
      const inner = document.createElement("iframe");
      inner.title = link.textContent;
      inner.src = address();
      frame.append(inner);
    };
    fold.addEventListener("toggle", open);
    // the page in the frame keeps what the reader has changed there
    new MutationObserver(() => {
      const inside = frame.querySelector("iframe")?.contentDocument?.documentElement;
      if (inside) inside.dataset.theme = theme();
    }).observe(document.documentElement, {attributeFilter: ["data-theme"]});
  }
  window.addEventListener("message", ({origin, source, data}) => {
    if (origin !== location.origin || data?.type !== "deepinfer-size" || !(data.height > 0)) return;
    for (const inner of document.querySelectorAll(".live-frame iframe")) {
      if (inner.contentWindow === source) inner.style.height = `${Math.ceil(data.height) + 4}px`;
    }
  });

  // a formula that is wider than the page scrolls; then the keyboard must reach it
  const formulas = [...document.querySelectorAll("div.math")];
  if (formulas.length) {
    const reachable = new ResizeObserver(entries => entries.forEach(({target}) => {
      const part = target.closest("div.math");
      if (part.scrollWidth > part.clientWidth + 1) part.tabIndex = 0;
      else part.removeAttribute("tabindex");
    }));
    const watch = () => formulas.forEach(part => { reachable.observe(part); if (part.firstElementChild) reachable.observe(part.firstElementChild); });
    window.addEventListener("load", () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(watch));
  }

  // the audit table: search and filters; the address may preset them (?verdict=conflict&article=004)
  const form = document.querySelector(".audit-controls");
  if (!form) return;
  const rows = [...document.querySelectorAll("table.audit tbody tr")];
  const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
  const fields = [...form.querySelectorAll("[data-filter]")], count = form.querySelector(".audit-count");
  const apply = () => {
    const wanted = Object.fromEntries(fields.map(field => [field.dataset.filter, field.value.trim()]));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits = (!wanted.verdict || row.dataset.verdict === wanted.verdict) && (!wanted.kind || row.dataset.kind === wanted.kind)
        && (!wanted.article || row.dataset.article.split(" ").includes(wanted.article)) && words.every(word => texts.get(row).includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} claims`;
  };
  const go = () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!row?.matches("table.audit tr")) return;
    if (row.hidden) { form.reset(); apply(); }
    const fold = row.querySelector("details");
    if (fold) fold.open = true;
    row.scrollIntoView({block: "start"});
  };
  form.hidden = false;
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  window.addEventListener("hashchange", go);
  const query = new URLSearchParams(location.search);
  for (const field of fields) if (query.has(field.dataset.filter)) field.value = query.get(field.dataset.filter);
  apply();
  go();
})();
