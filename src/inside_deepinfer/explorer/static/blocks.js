// What a page shows below its figures: prose, token chips, and tables to search, filter, sort and download.
import { csv, download, h, mark } from "./dom.js"
import { cellText } from "./figures.js"

const TONES = { good: ["circle", "green"], warn: ["triangle-up-open", "red"] }

// search and filters of a table stand behind the # of the address, so that a link shows the same rows
function recalled(block) {
  const memory = { search: "", filters: {}, sort: null }
  const [name, query] = location.hash.slice(1).split("?")
  if (name !== block.name || !query) return memory
  for (const [title, value] of new URLSearchParams(query)) {
    if (title === "search") memory.search = value.slice(0, 200)
    else if (block.filters.includes(title)) memory.filters[title] = value
  }
  return memory
}

function keep(block, memory) {
  const chosen = Object.entries({ search: memory.search, ...memory.filters }).filter(([, value]) => value)
  const hash = chosen.length ? `#${block.name}?${new URLSearchParams(chosen)}` : ""
  history.replaceState(null, "", location.pathname + location.search + hash)
}

export class Blocks {
  constructor(openRow) {
    this.openRow = openRow
    this.element = h("div", { class: "blocks" })
    this.memory = new Map() // table name -> {search, filters, sort}: what the reader set stays when the scenario changes
    this.written = ""
  }

  update(view) {
    const written = JSON.stringify(view.blocks)
    if (written === this.written) return
    this.written = written
    this.element.replaceChildren(...view.blocks.map((block) => this[block.type](block)))
  }

  prose(block) {
    const tone = TONES[block.tone]
    return h("section", { class: `prose ${block.tone}` }, block.title ? h("h2", {}, tone ? mark(...tone) : null, " ", block.title) : null, h("p", {}, block.text))
  }

  chips(block) {
    const notes = block.chips.filter((chip) => chip.note)
    return h("section", { class: "chips" }, h("h2", {}, block.title),
      h("ol", { class: "chip-row" }, block.chips.map((chip) => h("li", { class: "chip", style: `--role: var(--${chip.role})`, title: chip.note }, chip.text))),
      notes.length ? h("ul", { class: "chip-notes" }, notes.map((chip) => h("li", {}, h("code", {}, chip.text), ` ${chip.note}`))) : null)
  }

  counts(block) {
    return h("section", { class: "counts", "aria-label": block.title },
      h("dl", {}, block.counts.map((one) => h("div", { class: one.tone }, h("dt", {}, one.label), h("dd", {}, one.mark ? h("span", { "aria-hidden": "true" }, `${one.mark} `) : null, one.text)))))
  }

  // tokens in their turns: shape, sign and words tell them apart; each stands for itself, whatever its writing direction
  strip(block) {
    const style = h("style")
    style.textContent = block.css
    const piece = ([kind, mark, text, label]) => (mark === undefined ? h("span", { class: "token" }, h("bdi", {}, kind))
      : h("span", { class: `control ${kind}`, role: "img", "aria-label": label, title: label }, h("span", { "aria-hidden": "true" }, `${mark} `), h("bdi", {}, text)))
    const turns = block.turns.map((turn) => h("li", { class: turn.forged ? "turn forged" : "turn" },
      h("span", { class: "role" }, turn.forged ? `⚠ ${turn.label}` : turn.label), h("span", { class: "tokens" }, turn.pieces.map(piece)),
      turn.left_out ? h("span", { class: "more" }, ` … ${turn.left_out.toLocaleString("en-US")} more tokens`) : null))
    const legend = block.legend.map(([mark, kind, words]) => h("li", {}, h("span", { class: `control ${kind}`, "aria-hidden": "true" }, mark), ` ${words}`))
    return h("section", { class: "strip" }, style, h("h2", {}, block.title),
      h("div", { class: "token-strip", role: "region", "aria-label": block.title, tabindex: "0" }, h("ol", { role: "list" }, turns)), h("ul", { class: "token-strip legend-row" }, legend))
  }

  table(block) {
    const memory = this.memory.get(block.name) || recalled(block)
    this.memory.set(block.name, memory)
    const body = h("tbody")
    const count = h("p", { class: "count", role: "status" })
    const index = Object.fromEntries(block.columns.map((title, n) => [title, n]))
    const fill = () => {
      const words = memory.search.toLowerCase().split(/\s+/).filter(Boolean)
      let rows = block.rows.filter((row) => {
        const text = row.join(" ").toLowerCase()
        return words.every((word) => text.includes(word)) && Object.entries(memory.filters).every(([title, wanted]) => !wanted || String(row[index[title]]) === wanted)
      })
      if (memory.sort) {
        const { column, down } = memory.sort
        const value = (row) => row[index[column]]
        rows = [...rows].sort((a, b) => (down ? -1 : 1) * (typeof value(a) === "number" && typeof value(b) === "number" ? value(a) - value(b) : String(value(a) ?? "").localeCompare(String(value(b) ?? ""), "en", { numeric: true })))
      }
      this.rows = rows
      count.textContent = rows.length === block.rows.length ? `${rows.length} rows` : `${rows.length} of ${block.rows.length} rows`
      body.replaceChildren(...rows.map((row) => h("tr", {}, row.map((cell, n) => this.cell(block, block.columns[n], cell)))))
      return rows
    }
    const narrow = () => { keep(block, memory); fill() }
    const search = h("input", { type: "search", id: `${block.name}-search`, value: memory.search, autocomplete: "off", oninput: (event) => { memory.search = event.target.value; narrow() } })
    const filters = block.filters.map((title) => {
      const values = [...new Set(block.rows.map((row) => String(row[index[title]])))].sort()
      const id = `${block.name}-${index[title]}`
      if (!values.includes(memory.filters[title])) delete memory.filters[title] // a link may ask for what is not there
      const select = h("select", { id, onchange: (event) => { memory.filters[title] = event.target.value; narrow() } }, h("option", { value: "" }, "all"), values.map((value) => h("option", { value }, value)))
      select.value = memory.filters[title] || ""
      return h("span", { class: "filter" }, h("label", { for: id }, title), select)
    })
    const heads = block.columns.map((title) => {
      const head = h("th", { scope: "col" })
      head.append(h("button", { type: "button", class: "sort", onclick: () => {
        memory.sort = memory.sort?.column === title ? (memory.sort.down ? null : { column: title, down: true }) : { column: title, down: false }
        heads.forEach((other) => other.removeAttribute("aria-sort"))
        if (memory.sort) head.setAttribute("aria-sort", memory.sort.down ? "descending" : "ascending")
        fill()
      } }, title))
      if (memory.sort?.column === title) head.setAttribute("aria-sort", memory.sort.down ? "descending" : "ascending")
      return head
    })
    fill()
    return h("section", { class: "table" }, h("h2", {}, block.title),
      h("div", { class: "filters" }, block.search ? h("span", { class: "filter grow" }, h("label", { for: search.id }, "Search"), search) : h("span", { class: "grow" }), filters,
        h("button", { type: "button", onclick: () => download(`${block.name}.csv`, csv(block.columns, fill()), "text/csv"), "aria-label": `Download ${block.title} as CSV` }, "CSV")),
      count, h("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": block.title }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)))
  }

  cell(block, title, cell) {
    const shape = block.marks[title]?.[cell]
    const text = cellText(cell)
    if (title === block.key && block.details) {
      return h("td", {}, h("button", { type: "button", class: "row", onclick: (event) => this.openRow(block.name, String(cell), event.currentTarget) }, text))
    }
    return h("td", { class: typeof cell === "number" ? "number" : shape ? "marked" : "" }, shape ? [mark(...shape), " "] : null, text)
  }
}
