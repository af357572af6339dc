// Text, colours and elements that all parts of the report page use. The scripts share one namespace, `netsimPage`, and
// may be loaded in any order: only `netsimPage.start()` of main.js, called last, uses what the others define.
(function (page) {
  "use strict";

  // ---- Text

  const UNITS = {
    time: [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9], ["ps", 1e-12]],
    bytes: [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["KB", 1e3], ["B", 1]],
    bps: [["Tb/s", 1e12], ["Gb/s", 1e9], ["Mb/s", 1e6], ["Kb/s", 1e3], ["b/s", 1]],
  };

  // Returns `value` with three significant digits and the unit that makes its number at least 1.
  function scaled(value, units) {
    const size = Math.abs(value);
    let at = units.findIndex((unit) => size >= unit[1]);
    if (at < 0) at = units.length - 1;
    if (at > 0 && Number((size / units[at][1]).toPrecision(3)) * units[at][1] >= units[at - 1][1]) at -= 1;
    const number = value / units[at][1];
    return (Math.abs(number) >= 100 ? String(Math.round(number)) : number.toPrecision(3)) + " " + units[at][0];
  }

  page.timeText = (seconds) => (seconds === 0 ? "0 s" : scaled(seconds, UNITS.time));
  page.bytesText = (bytes) => (bytes < 1000 ? Math.round(bytes) + " B" : scaled(bytes, UNITS.bytes));
  page.rateText = (rate) => (rate === 0 ? "0 b/s" : scaled(rate, UNITS.bps));
  page.shareText = (share) => (100 * share).toFixed(1) + " %";

  // Returns the function that writes values of a series' unit.
  page.textOf = function (unit) {
    const known = { bytes: page.bytesText, bps: page.rateText, share: page.shareText, s: page.timeText };
    return known[unit] || ((value) => Number(value.toPrecision(3)) + (unit ? " " + unit : ""));
  };

  // Returns the text of a tick of an axis: as `write`, without digits that say nothing ("20.0 ms" is "20 ms").
  page.tickText = (write) => (value) => write(value).replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");

  const FACTORS = {
    "": 1, "%": 0.01, ps: 1e-12, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400,
    B: 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, KiB: 1024, MiB: 1048576, GiB: 1073741824, TiB: 1099511627776,
    "b/s": 1, "Kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12, bps: 1, Kbps: 1e3, Mbps: 1e6, Gbps: 1e9, Tbps: 1e12,
    "GB/s": 1e9, "MB/s": 1e6, "KB/s": 1e3, "B/s": 1, k: 1e3, M: 1e6, G: 1e9,
  };

  // Returns the number that a cell's text begins with, in the base unit of its unit, or null where it has none.
  page.numberIn = function (text) {
    const found = /^\s*(-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)(\s*)([A-Za-z%/]*)(?=[\s,;(]|$)/.exec(text);
    if (!found) return null;
    const [, digits, gap, unit] = found;
    if (!Object.hasOwn(FACTORS, unit) && gap === "") return null;
    return Number(digits.replace(/,/g, "")) * (Object.hasOwn(FACTORS, unit) ? FACTORS[unit] : 1);
  };

  // Orders cells: numbers by their value, then other texts, then empty cells.
  page.compareCells = function (a, b) {
    const place = (text, number) => (text === "" ? 2 : number === null ? 1 : 0);
    const [x, y] = [page.numberIn(a), page.numberIn(b)];
    const [p, q] = [place(a, x), place(b, y)];
    if (p !== q) return p - q;
    return p === 0 ? x - y : a.localeCompare(b, "en", { numeric: true });
  };

  // Returns a text of the screen as a sentence: with a capital and a full stop.
  page.sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".") : "");

  // Returns a text in which no line ends within the arrow of a link's name.
  page.unbroken = (text) => text.replaceAll("->", "-\u2060>");

  page.plural = (count, noun) => count.toLocaleString("en") + " " + noun + (count === 1 ? "" : "s");

  // ---- Colours: those of Okabe and Ito, which readers with a colour-vision deficiency can tell apart, and a pattern each

  const CATEGORIES = {
    compute: { colour: "#0072b2", pattern: "none" },
    tp: { colour: "#e69f00", pattern: "rising" },
    pp: { colour: "#009e73", pattern: "dots" },
    dp: { colour: "#56b4e9", pattern: "falling" },
    ep: { colour: "#cc79a7", pattern: "grid" },
    cp: { colour: "#f0e442", pattern: "columns" },
    io: { colour: "#d55e00", pattern: "rows" },
    offload: { colour: "#b9a27c", pattern: "squares" },
    cpu: { colour: "#a6a6a6", pattern: "crosses" },
    idle: { colour: "#d7dbe0", pattern: "none" },
  };
  const OTHERS = ["ep", "io", "cp", "offload", "dp", "pp", "tp"];

  // These styles are kept by category and index, because timelines ask for that of each box.
  const styles = new Map();

  // Returns the colour and the pattern of a category; `index` chooses for those whose words are unknown.
  page.styleOf = function (category, index) {
    const asked = category + " " + (index || 0);
    if (!styles.has(asked)) {
      const words = category.toLowerCase().split(/[^a-z]+/);
      const key = words.find((word) => Object.hasOwn(CATEGORIES, word)) || OTHERS[(index || 0) % OTHERS.length];
      styles.set(asked, Object.assign({ key }, CATEGORIES[key]));
    }
    return styles.get(asked);
  };

  // Returns a category as the screen writes it: "exposed tp" is "exposed TP".
  page.categoryName = (category) => category.replace(/\b(tp|pp|dp|ep|cp|io|cpu)\b/g, (word) => word.toUpperCase());

  page.categoryKeys = () => Object.keys(CATEGORIES);

  // Returns the relative luminance of "#rrggbb", as WCAG 2 defines it.
  page.luminance = function (colour) {
    const parts = [1, 3, 5].map((at) => {
      const part = parseInt(colour.slice(at, at + 2), 16) / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };

  page.contrast = function (a, b) {
    const [x, y] = [page.luminance(a), page.luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };

  // Returns the colour of text on `colour`: black or white, whichever is read more easily.
  page.textOn = (colour) => (page.contrast(colour, "#000000") >= page.contrast(colour, "#ffffff") ? "#000000" : "#ffffff");

  // ---- Elements

  function append(parent, children) {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      parent.append(child);
    }
    return parent;
  }

  function make(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    return append(node, children);
  }

  // Makes an HTML element. An attribute "onclick" is a listener; null and false leave an attribute or a child out.
  page.element = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);

  page.svgElement = (tag, attributes, ...children) =>
    make(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  // Says `text` to screen readers.
  page.announce = function (text) {
    document.getElementById("announcement").textContent = text;
  };

  // ---- Patterns

  const INK = "rgba(0, 0, 0, 0.55)";
  const STROKES = {
    none: "", rising: "M-2 2L2 -2M0 8L8 0M6 10L10 6", falling: "M-2 6L2 10M0 0L8 8M6 -2L10 2", grid: "M4 0V8M0 4H8",
    columns: "M4 0V8", rows: "M0 4H8", dots: "M3 4h2", squares: "M2 2h4v4h-4z",
    crosses: "M2 2L6 6M6 2L2 6",
  };

  // Returns the drawing of a pattern, of 8 by 8 pixels, as a path of SVG; it is empty for a plain colour.
  page.strokesOf = (pattern) => STROKES[pattern];
  page.patternInk = INK;

  // Returns an invisible drawing that holds the patterns of all categories, for fill="url(#fill-tp)".
  page.patterns = function () {
    const all = Object.entries(CATEGORIES).map(([key, style]) =>
      page.svgElement("pattern", { id: "fill-" + key, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
        page.svgElement("rect", { width: 8, height: 8, fill: style.colour }),
        page.svgElement("path", { d: STROKES[style.pattern], stroke: INK, fill: "none", "stroke-width": style.pattern === "dots" ? 2 : 1 })));
    return page.svgElement("svg", { width: 0, height: 0, class: "patterns", "aria-hidden": "true" }, page.svgElement("defs", {}, all));
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
