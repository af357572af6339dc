// Figures of the report page: a title, a sentence that says what is seen, the drawing, and its numbers as a table.
(function (page) {
  "use strict";

  const drawn = [];
  const inks = new Map();  // contexts that measure texts, by size of the font; to set a font takes long

  // Makes a figure. `given` has "title", "summary" (a sentence; the text alternative), "draw(place, width)", which fills an
  // element of that width, and may have "legend", "table" (as page.table takes it), "controls" and "note".
  page.figure = function (given) {
    const place = page.element("div", { class: "drawing" });
    const table = given.table && page.element("details", {}, page.element("summary", {}, "The numbers of this figure as a table"),
      page.table(given.table));
    const figure = page.element("figure", {},
      page.element("figcaption", {}, page.element("strong", {}, page.unbroken(given.title)), " ", page.unbroken(given.summary)),
      given.controls, given.legend, place, given.note ? page.element("p", { class: "note" }, given.note) : null, table);
    drawn.push({ place, draw: given.draw, width: 0 });
    return figure;
  };

  // Draws all figures whose width has changed since; with `all`, every figure.
  page.drawFigures = function (all) {
    for (const one of drawn) {
      const width = Math.floor(one.place.getBoundingClientRect().width);
      if (width === 0 || (!all && width === one.width)) continue;
      one.width = width;
      one.draw(one.place, width);
    }
  };

  page.FIRST_JOBS = 4;  // jobs that are described and drawn at once

  // Makes the figures of the first entries, in an element with these attributes, and a button that adds the others.
  page.firstFigures = function (all, first, make, noun, attributes) {
    const place = page.element("div", attributes);
    const add = (some) => {
      place.append(...some.map(make));
      page.drawFigures(false);
    };
    add(all.slice(0, first));
    const more = all.length > first && page.element("button", { type: "button", class: "control more", onclick: () => {
      add(all.slice(first));
      more.remove();
    } }, `Show the other ${all.length - first} ${noun}`);
    return [place, more];
  };

  // Makes the root of a chart. `label` is its text alternative.
  page.chart = function (width, height, label) {
    return page.svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" });
  };

  page.rect = (x, y, width, height, attributes) =>
    page.svgElement("rect", Object.assign({ x, y, width: Math.max(0, width), height }, attributes));

  page.label = (x, y, text, attributes) => page.svgElement("text", Object.assign({ x, y }, attributes), text);

  // Returns the width of `text` in pixels at a size of font, 12 pixels by default. Without a document it is an estimate.
  page.widthOf = function (text, size) {
    if (typeof document === "undefined") return text.length * 0.6 * (size || 12);
    size = size || 12;
    if (!inks.has(size)) {
      inks.set(size, document.createElement("canvas").getContext("2d"));
      inks.get(size).font = `${size}px system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif`;  // as page.css has it
    }
    return inks.get(size).measureText(text).width;
  };

  // Cuts `text` to a width and marks the cut.
  page.cutText = function (text, width, size) {
    if (page.widthOf(text, size) <= width) return text;
    let most = text.length - 1;
    while (most > 1 && page.widthOf(text.slice(0, most) + "\u2026", size) > width) most -= 1;
    return text.slice(0, most) + "\u2026";
  };

  // Makes the legend of categories: a sample of colour and pattern beside each name.
  page.legend = function (categories) {
    return page.element("ul", { class: "legend", "aria-label": "Legend" }, categories.map(({ name, fill }) =>
      page.element("li", {}, page.svgElement("svg", { width: 22, height: 14, "aria-hidden": "true" },
        page.rect(0.5, 0.5, 21, 13, { fill, class: "outlined" })), name)));
  };

  page.fillOf = (style) => `url(#fill-${style.key})`;

  // Draws an axis of D3 into `svg` at (x, y). `write` makes the text of a tick.
  page.axis = function (svg, scale, orient, x, y, ticks, write, length) {
    const axis = d3.svg.axis().scale(scale).orient(orient).tickValues(ticks).tickFormat(write).innerTickSize(-length).outerTickSize(0)
      .tickPadding(6);
    d3.select(svg).append("g").attr("class", "axis").attr("transform", `translate(${x},${y})`).call(axis);
  };

  // Returns at most `count` ticks of a scale; of a logarithmic one, powers of ten only where there are several.
  page.ticksOf = function (scale, count, logarithmic) {
    if (!logarithmic) return scale.ticks(count);
    const all = scale.ticks();
    const powers = all.filter((value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9);
    const ticks = powers.length >= 2 ? powers : all;
    return ticks.filter((_, at) => at % Math.ceil(ticks.length / count) === 0);
  };

  // Draws the faults of the run as lines at their times. Those outside of the scale's domain are left out.
  page.drawMarks = function (svg, marks, scale, top, bottom) {
    const [first, last] = scale.domain();
    for (const mark of marks || []) {
      if (mark.s < first || mark.s > last) continue;
      const x = scale(mark.s);
      svg.append(page.svgElement("g", { class: "fault" },
        page.svgElement("title", {}, mark.text + ": " + mark.label),
        page.svgElement("path", { d: `M${x} ${top}V${bottom}` }),
        page.svgElement("path", { class: "flag", d: `M${x} ${top}l5 4l-5 4z` })));
    }
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
