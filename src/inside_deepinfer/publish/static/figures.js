// Draws the figures of a page from their JSON islands. plotly.min.js (one file beside this one) is loaded once, when the
// first figure comes near the screen. Colours follow the page's theme at run time; sliders work without a server.
"use strict";
(() => {
  const here = document.currentScript.src.replace(/[^/]*$/, "");
  const figures = new Map(); // element -> {data, layout, frames, at, drawn}
  let loading = null;

  const plotly = () => loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = here + "plotly.min.js";
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("plotly.min.js cannot be loaded"));
    document.head.append(script);
  });

  let printing = false;
  const dark = () => !printing && document.documentElement.dataset.theme === "dark";

  // every colour of the light palette becomes the dark palette's colour of the same role
  const recolour = part => {
    if (Array.isArray(part)) return part.map(recolour);
    if (part && typeof part === "object" && !ArrayBuffer.isView(part)) {
      return Object.fromEntries(Object.entries(part).map(([key, item]) => [key, recolour(item)]));
    }
    return typeof part === "string" && part[0] === "#" ? window.insideTheme.swap[part.toLowerCase()] ?? part : part;
  };

  const merge = (base, more) => {
    if (!more || typeof more !== "object" || Array.isArray(more) || ArrayBuffer.isView(more)) return more;
    const both = {...base};
    for (const [key, value] of Object.entries(more)) both[key] = merge(base?.[key], value);
    return both;
  };

  // the figure as it stands at its slider's position, in the colours of the page
  const state = figure => {
    let {data, layout} = figure;
    const frame = figure.frames && figure.frames[figure.at];
    if (frame) {
      data = [...data];
      (frame.data || []).forEach((trace, order) => {
        const which = frame.traces ? frame.traces[order] : order;
        data[which] = {...data[which], ...trace};
      });
      layout = merge(layout, frame.layout || {});
    }
    const narrow = window.matchMedia("(max-width: 40rem)").matches;
    const touch = window.matchMedia("(pointer: coarse)").matches;
    layout = {...layout, template: window.insideTheme[dark() ? "dark" : "light"], autosize: true,
              dragmode: touch ? false : layout.dragmode ?? "zoom", uirevision: "kept"};
    if (narrow) layout = merge(layout, {font: {size: 12}, margin: {l: 48, r: 10}});
    return dark() ? [recolour(data), {...recolour({...layout, template: null}), template: layout.template}] : [data, layout];
  };

  const draw = element => {
    const figure = figures.get(element), plot = element.querySelector(".figure-plot");
    if (!figure.drawn) plot.replaceChildren();
    const [data, layout] = state(figure);
    figure.drawn = true;
    return window.Plotly.react(plot, data, layout, {responsive: true, displayModeBar: false, displaylogo: false});
  };

  const drawSoon = element => plotly().then(() => draw(element)).catch(problem => {
    element.querySelector(".figure-plot").textContent = `This figure could not be drawn (${problem.message}); its data is below.`;
  });
  const redraw = () => figures.forEach((figure, element) => figure.drawn && draw(element));

  const arm = (element, figure) => {
    const slider = element.querySelector("input[type=range]");
    if (!slider || !figure.frames) return;
    const output = element.querySelector("output"), sentence = element.querySelector(".figure-alt");
    const first = sentence.textContent;
    const names = figure.frames.map(frame => frame.name);
    const move = () => {
      const step = figure.steps[Number(slider.value)];
      figure.at = names.indexOf(step.frame);
      output.textContent = step.label + slider.dataset.suffix;
      slider.setAttribute("aria-valuetext", output.textContent);
      sentence.textContent = figure.frames[figure.at]?.layout?.meta?.alt ?? first;
      drawSoon(element);
    };
    slider.addEventListener("input", move);
    element.querySelector(".figure-slider").hidden = false;
    // a browser may restore the slider's position after a reload
    if (slider.value !== slider.defaultValue) move();
    else figure.at = names.indexOf(figure.steps[Number(slider.value)].frame);
  };

  const save = (name, href) => {
    const link = document.createElement("a");
    link.download = name;
    link.href = href;
    link.click();
  };

  const csv = element => {
    const cell = part => {
      const text = part.dataset.v ?? (part.matches(".n") ? part.textContent.replaceAll(",", "") : part.textContent);
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const rows = [...element.querySelectorAll(".figure-data tr")].map(row => [...row.cells].map(cell).join(","));
    const address = URL.createObjectURL(new Blob([rows.join("\r\n") + "\r\n"], {type: "text/csv"}));
    save(`${element.dataset.name}.csv`, address);
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };

  const png = async element => {
    await drawSoon(element);
    const [data, layout] = state(figures.get(element));
    const page = getComputedStyle(document.body).backgroundColor;
    const size = {width: 1200, height: Math.max(600, layout.height || 0)};
    const address = await window.Plotly.toImage(
      {data, layout: {...layout, ...size, paper_bgcolor: page, plot_bgcolor: page}}, {format: "png", scale: 2, ...size});
    save(`${element.dataset.name}.png`, address);
  };

  const near = new IntersectionObserver(entries => entries.forEach(entry => {
    if (!entry.isIntersecting) return;
    near.unobserve(entry.target);
    drawSoon(entry.target);
  }), {rootMargin: "600px"});

  for (const element of document.querySelectorAll("figure.figure-live")) {
    const figure = JSON.parse(element.querySelector("script").textContent);
    figures.set(element, figure);
    arm(element, figure);
    near.observe(element);
    element.querySelector(".get-csv").addEventListener("click", () => csv(element));
    element.querySelector(".get-png").addEventListener("click", () => png(element));
  }
  if (!figures.size) return;

  new MutationObserver(redraw).observe(document.documentElement, {attributeFilter: ["data-theme"]});
  // printing cannot wait for a script, so it is fetched while nothing else happens
  window.addEventListener("load", () => setTimeout(plotly, 3000));
  window.addEventListener("beforeprint", () => {
    printing = true;
    if (window.Plotly) figures.forEach((_, element) => draw(element));
  });
  window.addEventListener("afterprint", () => { printing = false; redraw(); });
})();
