// Small helpers around the document. Foreign text only ever becomes a text node or an attribute value, never HTML.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
    else if (name === "class") element.className = value
    else if (name in element && typeof value === "boolean") element[name] = value
    else element.setAttribute(name, value)
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

const SVG = "http://www.w3.org/2000/svg"
const SHAPES = {
  "square": "M3 3h10v10H3z", "square-open": "M3 3h10v10H3z", "diamond": "M8 1.5 14.5 8 8 14.5 1.5 8z",
  "pentagon": "M8 1.5 14.5 6.5 12 14H4L1.5 6.5z", "circle": "M8 2a6 6 0 1 1 0 12A6 6 0 1 1 8 2z",
  "circle-open": "M8 2a6 6 0 1 1 0 12A6 6 0 1 1 8 2z", "triangle-up-open": "M8 2 14.5 13.5h-13z", "x": "M3 3l10 10M13 3 3 13",
  "star": "M8 1l2 4.8 5.2.4-4 3.4 1.3 5.1L8 12l-4.500 2.700 1.300-5.100-4-3.400 5.200-.4z", "line-ew-open": "M2 8h12",
}

// the mark of a kind of value: shape and colour; hidden from readers of the page by ear, who get the word
export function mark(shape, role) {
  const svg = document.createElementNS(SVG, "svg")
  svg.setAttribute("viewBox", "0 0 16 16")
  svg.setAttribute("class", "mark")
  svg.setAttribute("aria-hidden", "true")
  svg.style.color = `var(--${role})`
  const path = document.createElementNS(SVG, "path")
  path.setAttribute("d", SHAPES[shape] || SHAPES.circle)
  path.setAttribute("fill", shape.endsWith("-open") || shape === "x" ? "none" : "currentColor")
  path.setAttribute("stroke", "currentColor")
  path.setAttribute("stroke-width", "2")
  path.setAttribute("stroke-linejoin", "round")
  svg.append(path)
  return svg
}

// a mark with its word, for the eye (title) and the ear (visually hidden text)
export function kindMark(page, kind) {
  const [shape, role] = page.marks[kind] || ["circle", "muted"]
  return h("span", { class: "kind", title: `${kind}: ${page.kinds[kind] || ""}` }, mark(shape, role), h("span", { class: "ear" }, kind))
}

export const narrow = () => matchMedia("(max-width: 859px)").matches

export function download(name, content, type) {
  const url = typeof content === "string" && content.startsWith("data:") ? content
    : URL.createObjectURL(new Blob([content], { type }))
  const link = h("a", { href: url, download: name })
  document.body.append(link)
  link.click()
  link.remove()
  if (url.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

// text that a spreadsheet would read as a formula gets an apostrophe in front
export function csv(columns, rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return ""
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value)
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n"
}

export function say(text) {
  const region = document.getElementById("spoken")
  region.textContent = ""
  setTimeout(() => { region.textContent = text }, 50)
}
