// How a number is shown while the server has not answered yet; the server's own text replaces it (facts/units.py has the rules).

export function digits(value, significant = 4) {
  if (!Number.isFinite(value)) return ""
  if (value === 0) return "0"
  const places = Math.max(significant - 1 - Math.floor(Math.log10(Math.abs(value))), 0)
  return value.toLocaleString("en-US", { maximumFractionDigits: Math.min(places, 20) })
}

const COUNTS = [[1e12, " trillion"], [1e9, " billion"], [1e6, " million"]]
const BYTES = [[2 ** 50, "Pi"], [2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"]]
const TIMES = [[1e-3, "ms"], [1e-6, "µs"]]

export function show(value, control, currency) {
  const unit = control.unit.replace("price/", `${currency}/`)
  if (control.raw_unit === "ratio") return digits(value)
  if (/^B(\/GPU|\/sequence|\/token)?$/.test(control.raw_unit)) {
    const step = BYTES.find(([size]) => value >= size)
    return step ? `${digits(value / step[0])} ${step[1]}${unit}` : `${digits(value)} ${unit}`
  }
  if (control.raw_unit === "s" && value < 1) {
    const step = TIMES.find(([size]) => value >= size)
    if (step) return `${digits(value / step[0])} ${step[1]}`
  }
  const step = COUNTS.find(([size]) => value >= size)
  return step ? `${digits(value / step[0])}${step[1]} ${unit}` : `${digits(value)} ${unit}`.trim()
}

// the text of an exact entry: seven digits are enough to tell values apart, more would not fit
export function exact(value) {
  if (typeof value !== "number") return String(value)
  if (Math.abs(value) < 1e7) return String(Number(value.toPrecision(7)))
  const [mantissa, exponent] = value.toExponential().split("e")
  return `${Number(Number(mantissa).toPrecision(7))}e${Number(exponent)}`
}

// slider position 0..steps <-> value, on the scale of the control
export function toValue(position, control) {
  const t = position / control.steps
  let value
  if (t <= 0) value = control.low
  else if (t >= 1) value = control.high
  else if (control.scale === "log") value = Number((control.low * (control.high / control.low) ** t).toPrecision(3))
  else value = control.low + (control.high - control.low) * t ** control.exponent
  if (control.scale !== "log") {
    const decimals = Math.max(0, Math.ceil(-Math.log10(control.step) - 1e-9))
    value = Number((Math.round(value / control.step) * control.step).toFixed(Math.min(decimals, 12)))
  }
  if (control.whole) value = Math.round(value)
  return Math.min(control.high, Math.max(control.low, value))
}

export function toPosition(value, control) {
  const t = control.scale === "log" ? Math.log(value / control.low) / Math.log(control.high / control.low)
    : ((value - control.low) / (control.high - control.low)) ** (1 / control.exponent)
  return Math.round(Math.min(1, Math.max(0, t)) * control.steps)
}
