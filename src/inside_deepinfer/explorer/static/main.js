// The page: puts the parts together, keeps the address, and talks to the server through the wire.
import { Bench } from "./bench.js"
import { Blocks } from "./blocks.js"
import { Cards } from "./cards.js"
import { Controls } from "./controls.js"
import { h, kindMark, narrow, say } from "./dom.js"
import { Figures } from "./figures.js"
import { Drawer } from "./provenance.js"
import { Upload } from "./upload.js"
import { Wire } from "./wire.js"

const { page, view: opening } = JSON.parse(document.getElementById("opening").textContent)
const book = document.body.dataset.book
const base = location.pathname.replace(/\/+$/, "").replace(/[^/]*$/, "")
const root = document.documentElement
const asked = new URLSearchParams(location.search)
let mode = opening.view === "full" && window.parent !== window ? "embed" : opening.view // in a frame of the book: no bar
const inputs = Object.keys(page.controls).length > 0 // by scenario parameters
let current = opening

// --- parts ---------------------------------------------------------------------------------------------------------------------
const change = (changes) => wire.change(changes)
const bench = page.fields.length && !inputs ? new Bench(page, { change: ask, copy: copyLink }) : null // a page without a scenario
const controls = new Controls(bench ? { ...page, fields: [] } : page, change)
const figures = new Figures(page, { caption, ask: (message) => wire.ask(message) })
const drawer = new Drawer(page)
const cards = new Cards(page, openChain)
const blocks = new Blocks(openRow)
const upload = page.upload ? new Upload(page, { caption, address: () => `${base}${page.slug}/file${current.query ? `?${current.query}` : ""}` }) : null
const notices = h("ul")
const finding = h("p", { class: "finding", "aria-live": "polite" })
const scenario = h("p", { class: "scenario" })
const compared = h("section", { class: "comparison", "aria-label": "Scenario A against this one", hidden: true })
const line = h("p", { class: "line", role: "alert", hidden: true }, bench ? "The server does not answer. What you see is the last answer; copy your text, then reload the page." : "The server does not answer. What you see is the last answer; the page goes on by itself when the server is back.")

const compareButton = h("button", { type: "button", "aria-pressed": "false", onclick: toggleCompare }, "Compare")
const copyButton = h("button", { type: "button", onclick: () => copyLink() }, "Copy link")
const largeButton = h("button", { type: "button", onclick: () => setMode(mode === "stakeholder" ? "full" : "stakeholder") }, "Large view")
const themeButton = h("button", { type: "button", onclick: toggleTheme })
const sideButton = h("button", { type: "button", class: "side-toggle", "aria-controls": "side", "aria-expanded": "false", onclick: () => setSide(side.hidden) }, "Inputs")
const links = page.pages.map((other) => h("a", { "data-slug": other.slug, "aria-current": other.slug === page.slug ? "page" : null }, other.title))
const chapter = book ? h("a", { class: "chapter" }, "Read the chapter behind this page") : null
const side = h("section", { class: "side", id: "side", "aria-label": "Inputs" },
  h("div", { class: "side-head" }, h("h2", {}, "Inputs"), h("button", { type: "button", class: "plain close", onclick: () => setSide(false) }, "Close")),
  controls.build(),
  h("p", {}, h("button", { type: "button", onclick: () => wire.change({ preset: current.preset }, withCompare(presetQuery(current.preset))) }, "Back to the preset")))

document.getElementById("explorer").replaceChildren(
  h("header", { class: "bar" },
    book ? h("a", { class: "brand", href: `${book}/index.html` }, "Inside DeepInfer") : h("span", { class: "brand" }, "Inside DeepInfer"),
    h("nav", { "aria-label": "Pages of the dashboard" }, links),
    h("div", { class: "tools" }, inputs ? [sideButton, compareButton] : [], copyButton, largeButton), themeButton),
  h("div", { class: "frame" }, inputs ? side : [],
    h("main", { id: "result", tabindex: "-1" }, line, h("h1", {}, page.question), bench ? bench.element : [], h("div", { class: "notices", role: "status" }, notices), finding, scenario, compared, cards.element, bench ? [blocks.element, figures.element] : [marksLegend(), figures.element, blocks.element], upload ? upload.element : [],
      h("p", { class: "foot" }, chapter))),
  drawer.element, h("div", { id: "spoken", class: "ear", role: "status" }))

// where the pages do not fit beside each other, the present one is in sight
const present = links.find((link) => link.hasAttribute("aria-current"))
if (present) present.parentElement.scrollLeft = present.offsetLeft - present.parentElement.offsetLeft - (present.parentElement.clientWidth - present.offsetWidth) / 2

// --- state ---------------------------------------------------------------------------------------------------------------------
const wire = new Wire({
  onView: (view, more) => show(view, more),
  onProblem: (problem) => { notify([problem]); if (bench) bench.working(false) },
  onLine: (open, gone) => { line.hidden = open; root.dataset.line = open ? "open" : "lost"; if (gone) lookForServer() },
  ...(bench ? { beside: () => ({ private: bench.private() }), patience: 90_000 } : {}),
})

// on a page with its own inputs: ask for the result, or say why nothing is sent
function ask(changes, refusal = "") {
  document.getElementById("result").classList.toggle("stale", Boolean(refusal))
  writeAddress()
  if (refusal) return
  bench.working(true)
  wire.change(changes)
}

function show(view, more = false, first = false) {
  current = view
  wire.query = fullQuery()
  controls.update(view, more)
  cards.update(view)
  figures.update(view)
  blocks.update(view)
  if (bench) bench.update(view, first, more)
  if (!more) notify(view.notices, first)
  finding.classList.toggle("impossible", Boolean(view.finding.reason))
  finding.textContent = view.finding.reason ? `Not possible, because ${view.finding.reason}` : view.finding.text
  describeScenario(view)
  describeComparison(view)
  writeAddress()
}

const presetQuery = (preset) => (preset === "published" ? "" : `preset=${encodeURIComponent(preset)}`)
const withCompare = (query, a = current.compare?.query) => [query, a === undefined || a === null ? "" : `a=${encodeURIComponent(a)}`].filter(Boolean).join("&")
const fullQuery = () => withCompare(current.query)

let writing = 0
function writeAddress() {
  const parts = [fullQuery(), bench ? bench.query() : "", mode === "full" ? "" : `view=${mode}`, asked.get("theme") === root.dataset.theme ? `theme=${root.dataset.theme}` : ""]
  const query = parts.filter(Boolean).join("&")
  for (const link of links) link.href = `${base}${link.dataset.slug}${fullQuery() ? `?${fullQuery()}` : ""}`
  if (chapter) chapter.href = `${book}/notebooks/${page.chapter}.html${current.query ? `?${current.query}` : ""}`
  // browsers allow about a hundred writes in half a minute, a drag makes more
  clearTimeout(writing)
  writing = setTimeout(() => history.replaceState(null, "", `${location.pathname}${query ? `?${query}` : ""}${location.hash}`), 150)
}

// the address is the state, so a reload goes on where the reader was; only a text of the reader's own would be lost
let looking = 0
function lookForServer() {
  if (looking || bench) return
  looking = setInterval(async () => {
    const answer = await fetch(`${location.pathname}/metadata`, { cache: "no-store" }).catch(() => null)
    if (answer?.ok) location.reload()
  }, 2000)
}

// --- what is said --------------------------------------------------------------------------------------------------------------
function notify(texts, keep = false) {
  for (const old of [...notices.children]) if (!old.dataset.keep) old.remove()
  for (const text of texts) {
    const item = h("li", { "data-keep": keep ? "1" : null }, h("span", {}, text),
      h("button", { type: "button", class: "plain", "aria-label": "Dismiss this notice", onclick: () => { item.remove(); document.getElementById("result").focus() } }, "×"))
    notices.append(item)
  }
}

function presetLabel(id) { return page.presets.find((preset) => preset.id === id)?.label ?? id }

function describeScenario(view) {
  scenario.hidden = Boolean(bench) || (!inputs && !view.changed.length)
  const here = view.changed.map((entry) => `${entry.label} ${entry.text} (was ${entry.was})`)
  scenario.replaceChildren(h("b", {}, presetLabel(view.preset)), here.length ? `, changed: ${here.join("; ")}` : "")
}

function caption() {
  const changed = current.changed.map((entry) => `${entry.label} ${entry.text}`).join("; ")
  const text = `Inside DeepInfer · ${presetLabel(current.preset)}${changed ? `, ${changed}` : ""}`
  return text.length > 150 ? `${text.slice(0, 149)}…` : text
}

function describeComparison(view) {
  compared.hidden = !view.compare
  compareButton.setAttribute("aria-pressed", String(Boolean(view.compare)))
  compareButton.textContent = view.compare ? "Stop comparing" : "Compare"
  if (!view.compare) return
  const { inputs } = view.compare
  compared.replaceChildren(
    h("h2", {}, "A against B"),
    h("p", {}, inputs.length ? "A stays as it was; every input you move belongs to B." : "A and B are the same now. Move an input: the change belongs to B, A stays."),
    h("p", {}, h("b", {}, "A: "), view.compare.finding.reason ? `Not possible, because ${view.compare.finding.reason}` : view.compare.finding.text),
    ...(inputs.length ? [h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Inputs that differ" }, h("table", {}, h("thead", {}, h("tr", {}, ["input", "A", "B"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, inputs.map((row) => h("tr", {}, h("th", { scope: "row" }, row.label), h("td", { class: "number" }, row.a), h("td", { class: "number" }, row.b))))))] : []),
    h("p", {}, h("button", { type: "button", onclick: () => wire.change({}, withCompare(current.compare.query, current.query)) }, "Swap A and B")))
}

function marksLegend() {
  return h("details", { class: "legend" }, h("summary", {}, "What the marks mean"),
    h("ul", {}, Object.entries(page.kinds).map(([kind, meaning]) => h("li", {}, kindMark(page, kind), ` ${kind}: ${meaning}`))))
}

// --- tools ---------------------------------------------------------------------------------------------------------------------
function toggleCompare() {
  wire.change({}, current.compare ? current.query : withCompare(current.query, current.query))
}

async function copyLink(words = "") {
  const query = [fullQuery(), bench ? bench.query() : "", mode === "full" ? "" : `view=${mode}`].filter(Boolean).join("&")
  const address = `${location.origin}${location.pathname}${query ? `?${query}` : ""}${location.hash}`
  try {
    await navigator.clipboard.writeText(address)
    copyButton.textContent = "Link copied"
    say(words || "Link copied")
    if (bench) bench.say(words || (bench.shared ? "Link copied." : "Link copied; the text is not in it."))
    writeAddress()
    setTimeout(() => { copyButton.textContent = "Copy link" }, 2000)
  } catch (error) {
    writeAddress()
    drawer.open(bench ? "Link to this page" : "Link to this scenario", copyButton)
    drawer.fill(h("label", { for: "address" }, "The browser does not let this page copy. Select and copy:"), h("textarea", { id: "address", rows: "4", readonly: true }, address))
  }
}

function setMode(next) {
  mode = next
  document.body.classList.toggle("stakeholder", mode === "stakeholder")
  document.body.classList.toggle("embed", mode === "embed")
  largeButton.textContent = mode === "stakeholder" ? "Leave large view" : "Large view"
  setSide(mode === "embed" || (mode === "full" && !narrow()))
  writeAddress()
  figures.draw()
}

function setSide(open) {
  side.hidden = !open
  sideButton.setAttribute("aria-expanded", String(open))
  if (open && narrow()) side.querySelector("select, input")?.focus()
  else if (!open && narrow() && side.contains(document.activeElement)) sideButton.focus()
}

function toggleTheme() {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"
  try { for (const key of ["mode", "theme"]) localStorage.setItem(key, root.dataset.theme) } catch (error) { /* storage is switched off */ }
  asked.delete("theme")
  writeAddress()
}

function nameTheme() {
  const other = root.dataset.theme === "dark" ? "light" : "dark"
  themeButton.textContent = other === "dark" ? "Dark" : "Light"
  themeButton.setAttribute("aria-label", `Switch to the ${other} theme`)
}

async function openChain(name, from) {
  const card = current.numbers.find((entry) => entry.name === name)
  drawer.open(card?.label || name, from)
  try { drawer.fill(drawer.chain((await wire.ask({ op: "chain", name })).chain)) } catch (error) { drawer.fill(h("p", { class: "impossible" }, `Not possible, because ${error.message}`)) }
}

async function openRow(table, key, from) {
  drawer.open(key, from)
  try {
    const { details } = await wire.ask({ op: "details", table, key })
    drawer.fill(...details.map((part) => (part.type === "chain" ? drawer.chain(part.chain) : blocks[part.type](part))))
  } catch (error) { drawer.fill(h("p", { class: "impossible" }, error.message)) }
}

// --- start ---------------------------------------------------------------------------------------------------------------------
new MutationObserver(nameTheme).observe(root, { attributes: true, attributeFilter: ["data-theme"] })
nameTheme()
setMode(mode)
show(opening, false, true)
if (opening.waiting) ask({})
matchMedia("(max-width: 859px)").addEventListener("change", () => setSide(mode === "embed" || (mode === "full" && !narrow())))
window.addEventListener("popstate", () => wire.change({}, location.search.slice(1)))
window.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return
  if (drawer.isOpen) drawer.close()
  else if (narrow() && !side.hidden) setSide(false)
})
if (mode === "embed" && window.parent !== window) {
  new ResizeObserver(() => window.parent.postMessage({ type: "deepinfer-size", height: document.body.scrollHeight }, location.origin)).observe(document.body)
}
root.dataset.ready = "1"
