// Tables of the report page: sortable by column, with a caption and headers that screen readers announce.
(function (page) {
  "use strict";

  const MANY = 30;  // rows of a table of which only the first FEW are shown at once
  const FEW = 15;

  const isNumber = (text) => page.numberIn(text) !== null;

  // Returns whether the cells of a column are numbers: none is another text, and at least one is a number.
  page.isNumeric = function (cells) {
    const filled = cells.filter((cell) => cell !== "" && cell !== "-");
    return filled.length > 0 && filled.every(isNumber);
  };

  // Returns the indices of the columns that have a text in some row.
  page.filledColumns = (rows, count) =>
    Array.from({ length: count }, (_, at) => at).filter((at) => rows.length === 0 || rows.some((row) => row[at] !== ""));

  function header(column, index, table) {
    const sortable = table.rows.length > 1;
    const name = page.element("span", {}, column);
    const inside = sortable
      ? page.element("button", { type: "button", class: "sort", onclick: () => table.sort(index) }, name,
        page.element("span", { class: "arrow", "aria-hidden": "true" }))
      : name;
    return page.element("th", { scope: "col", class: table.numeric[index] ? "number" : null }, inside);
  }

  function barOf(share) {
    const bar = page.element("span", { class: "bar", "aria-hidden": "true" }, page.element("span", {}));
    bar.firstChild.style.width = 100 * Math.max(0, Math.min(1, share)) + "%";
    return bar;
  }

  // Returns a text as pieces between which it may be broken: after the arrow and the slashes of a link's name.
  function breakable(text) {
    if (text.length < 20) return text;
    return text.split(/(?<=->|\/)/).flatMap((piece, at) => [at === 0 ? null : page.element("wbr"),
      piece.includes("->") ? page.element("span", { class: "whole" }, piece) : piece]);
  }

  function cell(text, index, table, row) {
    const bar = table.bars[index] ? barOf(table.bars[index][row]) : null;
    const kind = table.numeric[index] ? "number" : text.length > 40 ? "text" : text.length >= 20 ? "name" : null;
    return page.element(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: kind }, breakable(text), bar);
  }

  // Makes a table in a region of its own, which scrolls where the page is narrower. `given` has "caption", "columns",
  // "rows" (texts), and may have "note", a sentence, and "bars": shares of cells by column.
  page.table = function (given) {
    const all = given.rows.map((row) => given.columns.map((_, at) => String(row[at] ?? "")));
    const filled = page.filledColumns(all, given.columns.length);
    const columns = filled.map((at) => given.columns[at]);
    const rows = all.map((row) => filled.map((at) => row[at]));
    const bars = filled.map((at) => (given.bars || {})[at]);
    const table = { rows, bars, numeric: columns.map((_, at) => at > 0 && page.isNumeric(rows.map((row) => row[at]))) };
    const body = page.element("tbody", {});
    const order = rows.map((_, at) => at);
    let most = rows.length > MANY ? FEW : rows.length;  // rows that are shown; on paper all are
    const fill = () => body.replaceChildren(...order.slice(0, page.onPaper ? rows.length : most).map((row) =>
      page.element("tr", {}, rows[row].map((text, at) => cell(text, at, table, row)))));
    const more = most < rows.length && page.element("button", { type: "button", class: "control", onclick: () => {
      most = rows.length;
      fill();
      more.remove();
    } }, `Show all ${rows.length} rows`);
    if (more) page.repaints.push(fill);
    let sorted = null;
    table.sort = (index) => {
      const up = !(sorted && sorted.index === index && sorted.up);
      sorted = { index, up };
      order.sort((a, b) => (up ? 1 : -1) * page.compareCells(rows[a][index], rows[b][index]) || a - b);
      fill();
      heads.forEach((head, at) => {
        if (at === index) head.setAttribute("aria-sort", up ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      page.announce("The table is sorted by " + columns[index] + (up ? ", smallest first." : ", largest first."));
    };
    const heads = columns.map((column, index) => header(column, index, table));
    fill();
    const whole = page.element("table", {}, page.element("caption", {}, page.element("span", {}, given.caption)),
      page.element("thead", {}, page.element("tr", {}, heads)), body);
    return [given.note ? page.element("p", { class: "note" }, given.note) : null,
      page.scrollRegion(whole, "Table: " + given.caption), more || null];
  };

  // Puts `node` into an element that scrolls sideways. Where it must scroll, the keyboard reaches it.
  page.scrollRegion = function (node, label) {
    const region = page.element("div", { class: "scroll" }, node);
    new ResizeObserver(() => {
      const scrolls = region.scrollWidth > region.clientWidth + 1;
      for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", label]]) {
        if (scrolls) region.setAttribute(name, value);
        else region.removeAttribute(name);
      }
    }).observe(region);
    return region;
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
