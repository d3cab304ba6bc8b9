// The side panel: the chain behind a number, down to its sources.
import { h, kindMark, narrow } from "./dom.js"
import { link } from "./controls.js"

export class Drawer {
  constructor(page) {
    this.page = page
    this.title = h("h2", { id: "drawer-title", tabindex: "-1" }, "Where this number comes from")
    this.body = h("div", { class: "drawer-body" })
    this.element = h("dialog", { class: "drawer", "aria-labelledby": "drawer-title", onclose: () => this.back?.focus(), onkeydown: (event) => { if (event.key === "Escape") this.close() } },
      h("div", { class: "drawer-head" }, this.title, h("button", { type: "button", class: "plain", onclick: () => this.close() }, "Close")), this.body)
  }

  get isOpen() { return this.element.open }

  close() { this.element.close() }

  open(title, from) {
    this.back = from
    this.title.textContent = title
    this.body.replaceChildren(h("p", {}, "Asking the server …"))
    if (!this.element.open) {
      if (narrow()) this.element.showModal()
      else this.element.show()
    }
    this.title.focus()
  }

  fill(...parts) { this.body.replaceChildren(...parts) }

  chain(chain) { return h("div", { class: "chain" }, this.part(chain, chain.root, "", new Set(), true)) }

  part(chain, name, called, seen, first = false) {
    const part = chain.parts[name]
    const again = seen.has(name)
    seen.add(name)
    const head = h("span", { class: "chain-head" }, kindMark(this.page, part.kind), " ", h("span", { class: "chain-label" }, part.label), " ", h("b", {}, part.text))
    const inner = [
      first ? h("p", { class: "meaning" }, `${part.kind}: ${part.meaning}.`) : null,
      part.formula ? h("p", { class: "formula" }, h("span", { class: "tag" }, "formula"), h("code", {}, part.formula)) : null,
      part.numbers ? h("p", { class: "formula" }, h("span", { class: "tag" }, "with numbers"), h("code", {}, `${part.numbers} = ${part.text}`)) : null,
      part.note ? h("p", { class: "note" }, part.note) : null,
      part.sources.length ? h("p", { class: "source" }, h("span", { class: "tag" }, part.kind), h("span", {}, part.sources.map((id) => h("span", { class: "one" }, link(chain.sources[id]))))) : null,
      !part.sources.length && part.kind === "choice" ? h("p", { class: "source" }, h("span", { class: "tag" }, "choice"), "set in this scenario") : null,
      part.inputs.length && !again ? h("ul", {}, part.inputs.map((input) => h("li", {}, this.part(chain, input.name, input.called, seen)))) : null,
      again && part.inputs.length ? h("p", { class: "meaning" }, "shown above") : null,
    ].filter(Boolean)
    const name_ = called && called !== part.label ? h("code", { class: "called" }, called) : null
    if (first) return h("div", {}, head, inner)
    const short = part.inputs.length > 0
    return short ? h("details", {}, h("summary", {}, head, " ", name_), inner) : h("div", { class: "leaf" }, head, " ", name_, inner)
  }
}
