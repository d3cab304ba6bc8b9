// The line to the server. One request for a view is on its way at a time; what the reader does meanwhile is merged into the next
// one, so a slow server gets fewer requests instead of a queue.

export class Wire {
  constructor({ onView, onProblem, onLine, beside = () => ({}), patience = 15_000 }) {
    Object.assign(this, { onView, onProblem, onLine, beside, wait: patience }) // beside: what goes with a question and is no part of the state
    this.model = null
    this.next = 1
    this.asked = new Map() // id -> {resolve, reject}: chains and details
    this.pending = null // changes that wait for the view on its way
    this.busy = 0 // id of the view on its way
    this.query = ""
    if (window.deepinfer_wire) this.connect(window.deepinfer_wire)
    else window.addEventListener("deepinfer-wire", () => this.connect(window.deepinfer_wire), { once: true })
  }

  connect(model) {
    this.model = model
    model.on("msg:custom", (text) => this.receive(JSON.parse(text)))
    this.onLine(true)
    for (const doc of window.Bokeh?.documents ?? []) doc.on_event("connection_lost", () => this.onLine(false, true))
    this.flush()
  }

  // ask for a view; `query` replaces the state, `changes` are applied to it
  change(changes, query = null) {
    if (query !== null) this.pending = { query, changes }
    else this.pending = { query: this.pending?.query ?? null, changes: { ...this.pending?.changes, ...changes } }
    this.flush()
  }

  flush() {
    if (!this.model || this.busy || !this.pending) return
    const { query, changes } = this.pending
    this.pending = null
    this.busy = this.send({ op: "view", query: query ?? this.query, changes, ...this.beside() })
    clearTimeout(this.patience)
    this.patience = setTimeout(() => this.onLine(false), this.wait)
  }

  ask(message) {
    return new Promise((resolve, reject) => {
      if (!this.model) return reject(new Error("the page is still connecting to its server"))
      this.asked.set(this.send({ query: this.query, ...message }), { resolve, reject })
    })
  }

  send(message) {
    const id = this.next++
    this.model.send_msg(JSON.stringify({ ...message, id }))
    return id
  }

  receive(reply) {
    const waiting = this.asked.get(reply.id)
    if (waiting) {
      this.asked.delete(reply.id)
      return reply.problem ? waiting.reject(new Error(reply.problem)) : waiting.resolve(reply)
    }
    if (reply.id !== this.busy) return
    clearTimeout(this.patience)
    this.busy = 0
    this.onLine(true)
    if (reply.problem) this.onProblem(reply.problem)
    else this.onView(reply.view, this.pending !== null)
    this.flush()
  }
}
