// Number cards: label, number, unit, kind; each opens the chain behind it. With a scenario A: both values and the difference.
import { h, kindMark } from "./dom.js"

export class Cards {
  constructor(page, open) {
    Object.assign(this, { page, open })
    this.element = h("ul", { class: "cards", "aria-label": "Numbers" })
    this.shown = ""
  }

  update(view) {
    // cards are rebuilt, so the focus is put back on the same one
    const focused = document.activeElement?.dataset?.card
    const before = view.compare?.numbers
    this.element.replaceChildren(...view.numbers.map((card, n) => h("li", {}, this.card(card, before?.[n], view.compare?.deltas[n]))))
    if (focused) this.element.querySelector(`[data-card="${CSS.escape(focused)}"]`)?.focus()
  }

  card(card, before, delta) {
    const value = card.reason ? [h("span", { class: "impossible" }, `Not possible, because ${card.reason}`)]
      : [h("span", { class: "big" }, card.big), " ", h("span", { class: "unit" }, card.unit)]
    const rests = card.rests_on.length ? h("span", { class: "rests" }, "rests on ", card.rests_on.map((kind) => kindMark(this.page, kind))) : null
    const beside = card.beside ? h("span", { class: "beside" }, kindMark(this.page, card.beside.kind), ` ${card.beside.text} ${card.beside.kind}`) : null
    const compared = before ? h("span", { class: "compared" },
      h("span", {}, "A ", h("b", {}, before.reason ? "not possible" : `${before.big} ${before.unit}`)),
      delta ? h("span", {}, `B − A ${delta.text}`, delta.share ? ` (${delta.share})` : "") : null) : null
    return h("button", { type: "button", class: "card", "data-card": card.name, onclick: (event) => this.open(card.name, event.currentTarget),
      title: "Where this number comes from" },
    h("span", { class: "label" }, kindMark(this.page, card.kind), " ", card.label), h("span", { class: "value" }, value), compared,
    h("span", { class: "foot" }, beside, rests))
  }
}
