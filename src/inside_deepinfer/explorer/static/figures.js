// Figures: drawn by plotly in the colours of the theme, with their data table, CSV and PNG.
import { csv, download, h, narrow } from "./dom.js"

const dark = () => document.documentElement.dataset.theme === "dark"
const CONFIG = { displayModeBar: false, doubleClick: "reset" }
const loaded = () => new Promise((resolve, reject) => {
  if (window.Plotly) return resolve(window.Plotly)
  const script = document.getElementById("plotly")
  script.addEventListener("load", () => resolve(window.Plotly))
  script.addEventListener("error", () => reject(new Error("plotly.js did not load")))
})

const count = (what) => { document.documentElement.dataset[what] = String(Number(document.documentElement.dataset[what] || 0) + 1) }
const onScreen = (element) => { const box = element.getBoundingClientRect(); return box.top < window.innerHeight && box.bottom > 0 }

export class Figures {
  constructor(page, state) {
    Object.assign(this, { page, state })
    this.swap = [{}, {}] // theme -> colour of the other theme -> colour of this one
    for (const [light, night] of Object.values(page.palette)) {
      this.swap[0][night.toLowerCase()] = light
      this.swap[1][light.toLowerCase()] = night
    }
    this.slots = []
    this.element = h("section", { class: "figures", "aria-label": "Figures" })
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] })
    // plotly's own "responsive" only hears the window; here the side bar, the columns and the first layout change widths too
    this.watch = new ResizeObserver((entries) => {
      if (entries.some(({ target }) => target.clientWidth && target.clientWidth !== target.drawnWidth)) {
        cancelAnimationFrame(this.frame)
        this.frame = requestAnimationFrame(() => this.draw())
      }
    })
  }

  slot() {
    const part = { plot: h("div", { class: "plot", role: "img" }), plotA: h("div", { class: "plot", role: "img" }), reason: h("p", { class: "impossible", hidden: true }) }
    part.table = h("div", { class: "scroll", tabindex: "0", role: "region" })
    part.alt = h("p", { class: "alt" })
    part.data = h("details", { class: "data", ontoggle: () => this.fill(part) }, h("summary", {}, "Numbers behind it"), part.alt, part.table)
    part.tools = h("div", { class: "tools" },
      h("button", { type: "button", onclick: () => this.saveTable(part) }, "CSV"),
      h("button", { type: "button", onclick: () => this.savePicture(part) }, "PNG"))
    part.sideA = h("div", { class: "side-a", hidden: true }, h("b", {}, "A"), part.plotA)
    part.nameB = h("b", { hidden: true }, "B")
    part.element = h("figure", {}, h("div", { class: "pair" }, part.sideA, h("div", {}, part.nameB, part.plot)), part.reason, h("figcaption", {}, part.data, part.tools))
    this.element.append(part.element)
    this.watch.observe(part.plot)
    this.watch.observe(part.plotA)
    return part
  }

  update(view) {
    this.figures = view.figures
    this.others = view.compare?.figures
    while (this.slots.length < view.figures.length) this.slots.push(this.slot())
    return this.draw()
  }

  // what is on the screen first; the rest when that stands, unless something newer has come meanwhile
  async draw() {
    if (!this.figures) return
    const turn = this.turn = (this.turn || 0) + 1
    let plotly
    try { plotly = await loaded() } catch (error) { plotly = null }
    const one = (n) => this.one(plotly, this.slots[n], this.figures[n], this.others?.[n])
    const all = [...this.slots.keys()]
    const inSight = all.filter((n) => onScreen(this.slots[n].element))
    await Promise.all(inSight.map(one))
    count("drawn")
    for (const n of all.filter((other) => !inSight.includes(other))) {
      await new Promise((resolve) => { setTimeout(resolve) })
      if (turn !== this.turn) return
      await one(n)
    }
    count("complete")
  }

  one(plotly, part, figure, other) {
    part.figure = figure
    const reason = figure.reason ? `Not possible, because ${figure.reason}` : plotly ? "" : "The figure cannot be drawn: plotly.js did not load."
    part.reason.hidden = !reason
    part.reason.textContent = reason
    part.plot.hidden = Boolean(reason)
    part.tools.hidden = Boolean(figure.reason)
    part.data.hidden = Boolean(figure.reason)
    if (figure.reason) return null
    part.plot.setAttribute("aria-label", figure.alt)
    part.table.setAttribute("aria-label", `Numbers behind the figure ${figure.name}`)
    for (const button of part.tools.children) button.setAttribute("aria-label", `Download ${figure.name} as ${button.textContent}`)
    if (part.data.open) this.fill(part)
    if (!plotly) return null
    const a = other && !other.reason && other.data ? other : null
    const together = a !== null && plain([...a.data, ...figure.data], figure.layout)
    part.sideA.hidden = part.nameB.hidden = a === null || together
    if (!part.sideA.hidden) {
      part.plotA.setAttribute("aria-label", `Scenario A: ${a.alt}`)
      this.put(plotly, part.plotA, this.themed(a))
    }
    part.drawn = this.themed(figure, together ? a : null)
    return this.put(plotly, part.plot, part.drawn)
  }

  put(plotly, plot, { data, layout }) {
    plot.style.height = `${layout.height}px`
    layout.width = plot.drawnWidth = plot.clientWidth
    return plotly.react(plot, data, layout, CONFIG)
  }

  themed(figure, other) {
    const theme = dark() ? 1 : 0
    const swap = this.swap[theme]
    const walk = (part) => {
      if (typeof part === "string") return part[0] === "#" ? swap[part.toLowerCase()] ?? part : part
      if (Array.isArray(part)) return part.map(walk)
      return part && typeof part === "object" ? Object.fromEntries(Object.entries(part).map(([key, item]) => [key, walk(item)])) : part
    }
    const layout = walk(figure.layout)
    let data = walk(figure.data)
    if (other) data = beside(walk(other.data), data)
    layout.template = this.page.templates[theme]
    layout.uirevision = figure.name
    layout.meta = { name: figure.name }
    layout.height ??= 380
    layout.dragmode = matchMedia("(pointer: coarse)").matches ? false : layout.dragmode // a finger scrolls the page
    if (document.body.classList.contains("stakeholder")) {
      layout.font = { ...layout.font, size: narrow() ? 14 : 19 }
      layout.height = Math.max(layout.height, Math.min(620, window.innerHeight - 330))
      for (const axis of ["xaxis", "yaxis", ...["xaxis2", "yaxis2"].filter((name) => layout[name])]) layout[axis] = { ...layout[axis], tickfont: { size: narrow() ? 13 : 17 }, title: { ...layout[axis]?.title, font: { size: narrow() ? 14 : 18 } } }
      layout.legend = { ...layout.legend, font: { size: narrow() ? 13 : 17 } }
      data = data.map((trace) => (trace.text ? { ...trace, textfont: { ...trace.textfont, size: narrow() ? 13 : 18 } } : trace))
    }
    if (narrow()) layout.margin = { l: 8, r: 18, t: 36, b: 40, ...layout.margin }
    return { data, layout }
  }

  // the numbers behind a figure, asked for once per state
  async rows(figure) {
    figure.table ??= (await this.state.ask({ op: "table", name: figure.name })).table
    return figure.table
  }

  async fill(part) {
    const { figure } = part
    if (!part.data.open || !figure || figure.reason) return
    part.alt.textContent = figure.alt
    let table
    try { table = await this.rows(figure) } catch (error) { part.table.replaceChildren(h("p", {}, error.message)); return }
    if (part.figure !== figure) return // something newer came
    part.table.replaceChildren(h("table", {},
      h("thead", {}, h("tr", {}, table.columns.map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, table.rows.map((row) => h("tr", {}, row.map((cell) => h("td", { class: typeof cell === "number" ? "number" : String(cell).length > 30 ? "text" : "" }, cellText(cell))))))))
  }

  async saveTable({ figure }) {
    const { columns, rows } = await this.rows(figure)
    download(`${figure.name}.csv`, csv(columns, rows), "text/csv")
  }

  async savePicture({ figure, drawn }) {
    const paper = getComputedStyle(document.body).backgroundColor
    const height = drawn.layout.height + 40
    const note = { text: this.state.caption(), xref: "paper", yref: "paper", x: 0, y: 0, xanchor: "left", yanchor: "top", yshift: -58, showarrow: false, font: { size: 11 } }
    const layout = { ...drawn.layout, width: 1200, height, paper_bgcolor: paper, plot_bgcolor: paper, margin: { ...drawn.layout.margin, b: 90 },
      annotations: [...(drawn.layout.annotations || []), note] }
    download(`${figure.name}.png`, await window.Plotly.toImage({ data: drawn.data, layout }, { format: "png", width: 1200, height, scale: 2 }))
  }
}

// curves, and bars that stand alone, can be drawn over each other; anything else is drawn twice
const plain = (traces, layout) => traces.every((trace) => trace.type === "scatter" || (trace.type === "bar" && !layout.barmode))

// scenario A pale behind the present one
function beside(a, b) {
  const pale = a.map((trace, n) => ({ ...trace, opacity: 0.4, name: n ? `A: ${trace.name || ""}` : "A (pale)", legendgroup: "A", showlegend: n === 0,
    ...(trace.type === "bar" ? { offsetgroup: "A", text: null } : {}), ...(trace.line ? { line: { ...trace.line, width: 5 } } : {}) }))
  return [...pale, ...b.map((trace) => (trace.type === "bar" ? { ...trace, offsetgroup: "B" } : trace))]
}

export const cellText = (cell) => (cell === null || cell === undefined ? "–"
  : typeof cell === "number" ? cell.toLocaleString("en-US", { maximumSignificantDigits: 6 }) : String(cell))
