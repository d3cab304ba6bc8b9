// A file of the reader's own: sent to this server when asked to, answered, and forgotten. Its name never leaves the page.
import { Blocks } from "./blocks.js"
import { h, say } from "./dom.js"
import { Figures } from "./figures.js"

const size = (count) => (count < 2 ** 20 ? `${count.toLocaleString("en-US")} bytes` : `${(count / 2 ** 20).toFixed(1)} MiB`)

export class Upload {
  constructor(page, { address, caption }) {
    Object.assign(this, { given: page.upload, address })
    this.request = null
    const { title, label, doc, accept } = page.upload
    this.file = h("input", { type: "file", id: "upload-file", accept, "aria-describedby": "upload-doc upload-line", onchange: () => this.chosen() })
    this.read = h("button", { type: "button", onclick: () => this.send() }, "Read it")
    this.stop = h("button", { type: "button", hidden: true, onclick: () => this.request?.abort() }, "Stop")
    this.forget = h("button", { type: "button", hidden: true, onclick: () => this.clear() }, "Forget it")
    this.bar = h("progress", { max: "1", value: "0", hidden: true, "aria-label": "Sending the file" })
    this.line = h("p", { class: "bench-status", id: "upload-line", role: "status" })
    this.heading = h("h3", { tabindex: "-1" })
    this.blocks = new Blocks(() => {})
    this.tables = new Blocks(() => {}) // below the figures
    this.figures = new Figures(page, { caption: () => `${caption()} · a trace of the reader's own`, ask: () => Promise.reject(new Error("no numbers")) })
    this.figures.element.setAttribute("aria-label", "Figures of your file")
    this.answer = h("div", { class: "upload-answer", hidden: true }, this.heading, this.blocks.element, this.figures.element, this.tables.element)
    this.element = h("section", { class: "upload", "aria-labelledby": "upload-title" }, h("h2", { id: "upload-title" }, title),
      h("p", { class: "doc", id: "upload-doc" }, doc),
      h("div", { class: "upload-row" }, h("label", { for: "upload-file" }, label), this.file, this.read, this.stop, this.forget, this.bar), this.line, this.answer)
  }

  say(text, warn = false) {
    this.line.classList.toggle("warn", warn)
    this.line.textContent = text
  }

  // why a file is not sent at all; empty where it can be
  refusal(file) {
    if (!file) return "Choose a file first."
    if (file.size > this.given.max_bytes) return `The file has ${size(file.size)}; at most ${size(this.given.max_bytes)} are taken. Nothing was sent.`
    if (!file.size) return "The file is empty: a trace has one request per line. Nothing was sent."
    return ""
  }

  chosen() {
    const [file] = this.file.files
    const refusal = file ? this.refusal(file) : ""
    this.say(refusal || (file ? `${size(file.size)}, not sent yet.` : ""), Boolean(refusal))
  }

  send() {
    const [file] = this.file.files
    const refusal = this.refusal(file)
    if (refusal || this.request) return this.say(refusal || this.line.textContent, Boolean(refusal))
    const request = this.request = new XMLHttpRequest() // fetch tells nothing about how much was sent
    request.open("POST", this.address())
    request.setRequestHeader("Content-Type", "application/octet-stream")
    request.upload.onprogress = (event) => { if (event.lengthComputable) this.progress(event.loaded / event.total) }
    request.onload = () => this.done(file, request)
    request.onerror = () => this.ended("The server did not answer. Try again in a moment.", true)
    request.onabort = () => this.ended("Stopped.")
    this.working(true)
    this.progress(0)
    request.send(file)
  }

  progress(share) {
    if (share < 1) {
      this.bar.value = share
      this.say(`Sending … ${Math.floor(100 * share)} %`)
    } else {
      this.bar.removeAttribute("value") // sent: how long reading takes is not known
      this.bar.setAttribute("aria-label", "Reading the file")
      this.say("Sent. Reading …")
    }
  }

  working(on) {
    this.read.disabled = this.file.disabled = on
    this.stop.hidden = this.bar.hidden = !on
    this.element.setAttribute("aria-busy", String(on))
    if (!on) this.request = null
  }

  ended(text, warn = false) {
    const held = document.activeElement === this.stop || document.activeElement === document.body
    this.working(false)
    this.say(text, warn)
    if (held) this.read.focus({ preventScroll: true })
  }

  done(file, request) {
    let reply = null
    try { reply = JSON.parse(request.responseText) } catch (error) { /* a server without this address answers with a page */ }
    if (!reply) return this.ended("This server takes no files. The one that inside-deepinfer serve starts does.", true)
    if (reply.problem) return this.ended(`Not possible, because ${reply.problem}.`, true)
    this.ended("")
    this.heading.textContent = file.name
    this.answer.hidden = this.forget.hidden = false
    this.show(reply.blocks)
    this.figures.element.replaceChildren()
    this.figures.slots = [] // another file may have fewer figures
    this.figures.update(reply)
    say("The file was read; its numbers are below the input.")
    this.heading.focus({ preventScroll: true })
    return null
  }

  show(blocks) {
    this.blocks.update({ blocks: blocks.filter((block) => block.type !== "table") })
    this.tables.update({ blocks: blocks.filter((block) => block.type === "table") })
  }

  clear() {
    this.file.value = ""
    this.say("")
    this.answer.hidden = this.forget.hidden = true
    this.heading.textContent = ""
    this.show([])
    this.figures.element.replaceChildren()
    Object.assign(this.figures, { slots: [], figures: null })
    this.file.focus()
  }
}
