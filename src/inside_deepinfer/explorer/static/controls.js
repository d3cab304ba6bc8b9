// Controls, made from the declaration of each parameter: a slider with an exact entry beside it, or a select box.
import { h, kindMark } from "./dom.js"
import { exact, show, toPosition, toValue } from "./format.js"

export class Controls {
  constructor(page, change) {
    Object.assign(this, { page, change })
    this.parts = new Map()
    this.currency = ""
  }

  build() {
    const { page } = this
    this.preset = h("select", { id: "preset", onchange: (event) => this.change({ preset: event.target.value }) },
      page.presets.map((preset) => h("option", { value: preset.id, title: preset.doc }, preset.label)))
    this.presetDoc = h("p", { class: "doc", id: "preset-doc" })
    this.preset.setAttribute("aria-describedby", "preset-doc")
    const [first, ...folded] = page.groups
    return [
      h("div", { class: "control" }, h("label", { for: "preset" }, "Start from"), this.preset, this.presetDoc),
      ...page.fields.map((field) => this.field(field)),
      ...first.controls.map((name) => this.control(page.controls[name])),
      ...folded.map((group) => h("details", { class: "group" }, h("summary", {}, group.title),
        group.controls.map((name) => this.control(page.controls[name])))),
    ]
  }

  field(field) {
    const id = `field-${field.key}`
    const commit = (event) => this.change({ [field.key]: event.target.value })
    const common = { id, "aria-describedby": `${id}-doc`, onchange: commit }
    const input = field.options.length
      ? h("select", common, field.options.map((option) => h("option", { value: option }, option)))
      : field.lines > 1 ? h("textarea", { ...common, rows: field.lines, maxlength: field.max_length, spellcheck: "false" })
        : h("input", { ...common, type: "text", maxlength: field.max_length, spellcheck: "false" })
    this.parts.set(field.key, { field, input })
    return h("div", { class: "control" }, h("label", { for: id }, field.label), input, h("p", { class: "doc", id: `${id}-doc` }, field.doc))
  }

  control(control) {
    const id = `c-${control.name}`
    const part = { control, dragging: false, kind: h("span", { class: "whose" }) }
    this.parts.set(control.name, part)
    const about = h("div", { class: "about", id: `${id}-about`, hidden: true })
    part.about = about
    const info = h("button", {
      type: "button", class: "info", "aria-expanded": "false", "aria-controls": about.id, "aria-label": `About ${control.label}`,
      title: `${control.doc} Allowed: ${control.allowed}. Source: ${control.origin.map((source) => source.title).join("; ")}`,
      onclick: () => { about.hidden = !about.hidden; info.setAttribute("aria-expanded", String(!about.hidden)) },
    }, "i")
    const label = h("label", { for: id }, control.label)
    const head = h("div", { class: "head" }, part.kind, label, info)
    if (control.options) {
      part.input = h("select", { id, onchange: (event) => this.change({ [control.name]: event.target.value }) },
        control.options.map((option) => h("option", { value: option }, option)))
      return h("div", { class: "control" }, head, part.input, about)
    }
    part.range = h("input", {
      type: "range", id, min: "0", max: String(control.steps), step: "1",
      oninput: () => this.slide(part), onchange: () => { part.dragging = false },
    })
    part.output = h("output", { for: id })
    part.entry = h("input", {
      type: "text", inputmode: "decimal", autocomplete: "off", class: "entry", id: `${id}-entry`,
      "aria-label": `${control.label}, exact value${control.unit && control.raw_unit !== "ratio" ? ` in ${control.unit}` : ""}`,
      title: `Allowed: ${control.allowed}`,
      onchange: () => this.change({ [control.name]: part.entry.value }),
    })
    return h("div", { class: "control" }, head, h("div", { class: "slide" }, part.range, part.entry), part.output, about)
  }

  slide(part) {
    part.dragging = true
    const value = toValue(Number(part.range.value), part.control)
    this.write(part, value)
    this.change({ [part.control.name]: String(value) })
  }

  write(part, value) {
    const text = show(value, part.control, this.currency)
    part.output.textContent = text
    part.range.setAttribute("aria-valuetext", text)
    part.entry.value = exact(value)
  }

  // bring every control to the state of a view; the one that is being dragged stays where the hand is
  update(view, more) {
    this.currency = view.currency
    this.preset.value = view.preset
    this.presetDoc.textContent = this.page.presets.find((preset) => preset.id === view.preset).doc
    for (const [name, part] of this.parts) {
      if (part.field) {
        if (document.activeElement !== part.input || !more) part.input.value = view.fields[name]
        continue
      }
      const now = view.controls[name]
      part.kind.replaceChildren(kindMark(this.page, now.kind))
      this.explain(part, now)
      if (part.input) { part.input.value = now.value; continue }
      if (part.dragging && more) continue
      this.write(part, now.value)
      if (!part.dragging) part.range.value = String(toPosition(now.value, part.control))
    }
  }

  explain(part, now) {
    const { control } = part
    const whose = now.kind === "choice" && !now.sources.length ? "Your choice." : `${now.kind}: ${now.sources.join("; ") || "this preset"}.`
    part.about.replaceChildren(
      h("p", {}, control.doc), h("p", {}, `Allowed: ${control.allowed}.`), h("p", {}, `Value now: ${whose}`),
      h("p", {}, "Published value: ", ...control.origin.map((source) => link(source)), control.note ? ` ${control.note}` : ""))
  }
}

export function link(source) {
  const text = `${source.title} (${source.kind}, ${source.date})`
  return source.url ? h("a", { href: source.url, rel: "noreferrer", target: "_blank" }, text) : h("span", {}, text)
}
