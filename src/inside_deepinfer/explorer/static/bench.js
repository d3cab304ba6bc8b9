// Inputs of a page that has no scenario: a text, a few choices, examples. They stand above the result.
// A private field travels beside the address: it enters a link only when the visitor asks for one.
import { h, say } from "./dom.js"

const PAUSE = 250 // ms without a key before a text is sent
const LONG = 50_000 // characters; longer texts wait for a longer pause
const LINK = 3_800 // characters of a private value in an address, encoded; servers refuse addresses above about 4,000
const FRAME = 4_000_000 // characters of a message as it travels (explorer/session.py)

const bytes = (text) => new TextEncoder().encode(text).length
const wellFormed = (text) => (text.toWellFormed ? text.toWellFormed() : text)
const size = (count) => (count < 2 ** 20 ? `${count.toLocaleString("en-US")} bytes` : `${(count / 2 ** 20).toFixed(1)} MiB`)

export class Bench {
  constructor(page, { change, copy }) {
    Object.assign(this, { page, change, copy })
    this.parts = new Map()
    this.shared = false // the address holds the private fields
    this.status = h("p", { class: "bench-status", role: "status" })
    this.hint = h("p", { class: "doc example-doc" })
    this.element = h("section", { class: "bench", "aria-label": "Inputs" },
      page.fields.filter((field) => !field.options.length).map((field) => this.text(field)),
      h("div", { class: "choices" }, page.fields.filter((field) => field.options.length).map((field) => this.choice(field))),
      page.examples.length ? h("div", { class: "examples" }, h("h2", {}, "Examples"),
        h("ul", {}, page.examples.map((example) => h("li", {}, h("button", { type: "button", title: example.doc, onclick: () => this.load(example) }, example.label)))), this.hint) : null)
  }

  text(field) {
    const id = `field-${field.key}`
    const input = h("textarea", { id, rows: String(field.lines), spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": `${id}-doc`, oninput: () => this.typed(field) })
    input.value = field.value
    this.parts.set(field.key, { field, input })
    return h("div", { class: "control" }, h("label", { for: id }, field.label), input,
      h("div", { class: "bench-foot" }, this.status,
        h("button", { type: "button", onclick: () => { input.value = ""; this.typed(field); input.focus() } }, "Clear"),
        field.private ? h("button", { type: "button", class: "share", onclick: () => this.share() }, "Make a link with this text") : null),
      h("p", { class: "doc", id: `${id}-doc` }, field.doc))
  }

  choice(field) {
    const id = `field-${field.key}`
    const doc = h("p", { class: "doc", id: `${id}-doc` })
    const input = h("select", { id, "aria-describedby": doc.id, onchange: () => { this.hint.textContent = ""; this.send({ [field.key]: input.value }) } },
      field.options.map((option) => h("option", { value: option }, field.about[option]?.[0] || option)))
    this.parts.set(field.key, { field, input, doc })
    return h("div", { class: "control" }, h("label", { for: id }, field.label), input, doc)
  }

  // what goes with every question to the server
  private() {
    return Object.fromEntries([...this.parts.values()].filter((part) => part.field.private).map((part) => [part.field.key, part.input.value]))
  }

  // the same as a part of the address, where the visitor asked for it
  query() {
    if (!this.shared) return ""
    return Object.entries(this.private()).map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(wellFormed(value))}`).join("&")
  }

  // why a text is not sent at all; empty where it can be
  refusal() {
    for (const { field, input } of this.parts.values()) {
      if (!field.private || input.value.length * 3 <= field.max_bytes) continue
      const count = bytes(input.value)
      if (count > field.max_bytes) return `${field.label}: ${size(count)} are too many, at most ${size(field.max_bytes)} are taken. Nothing was sent.`
      if (bytes(JSON.stringify(JSON.stringify(input.value))) > FRAME) return `${field.label}: too many characters that need escapes on the way to the server. Nothing was sent.`
    }
    return ""
  }

  typed(field) {
    this.shared = false
    this.hint.textContent = ""
    const { input } = this.parts.get(field.key)
    clearTimeout(this.timer)
    this.waits = true
    this.timer = setTimeout(() => this.send(), input.value.length > LONG ? 3 * PAUSE : PAUSE)
  }

  send(changes = {}) {
    clearTimeout(this.timer)
    this.waits = false
    const refusal = this.refusal()
    this.say(refusal, Boolean(refusal))
    this.change(changes, refusal)
  }

  load(example) {
    this.shared = false
    const choices = {}
    for (const [key, value] of Object.entries(example.values)) {
      const { field, input } = this.parts.get(key)
      input.value = value
      if (!field.private) choices[key] = value
    }
    this.hint.textContent = example.doc
    this.send(choices)
  }

  share() {
    const [part] = [...this.parts.values()].filter((one) => one.field.private)
    if (this.waits) this.send() // so that what is said here stays
    this.shared = true
    if ([...part.input.value].length > part.field.max_length || this.query().length > LINK) {
      this.shared = false
      this.say(`Too long for a link: at most ${part.field.max_length} characters, fewer where they need long codes. Share the text another way.`, true)
      return
    }
    this.copy("The address now holds this text, and the link was copied. Whoever gets the link can read it, and so can every server on its way.")
  }

  say(text, warn = false) {
    this.status.classList.toggle("warn", warn)
    this.status.textContent = text
  }

  working(on) {
    if (on) this.say("Encoding …")
    else if (this.status.textContent === "Encoding …") this.say("")
  }

  // bring the choices to the state of a view; the text is only ever set by the visitor, or by the address that opened the page
  update(view, first, more) {
    if (!more && !view.waiting) this.working(false)
    for (const { field, input, doc } of this.parts.values()) {
      const value = view.fields[field.key]
      if (value === undefined) continue
      if (field.private && first) {
        input.value = value
        this.shared = new URLSearchParams(location.search).has(field.key) && value !== field.value
      }
      if (!field.private) input.value = value
      if (doc) doc.textContent = field.about[value]?.[1] || field.doc
    }
  }
}
