// Flow completion times and slowdowns, as cumulative distributions with their quantiles.
(function (page) {
  "use strict";

  // Returns whether values span so much that a logarithmic axis shows them better.
  page.wantsLogarithm = (values) => values.length > 1 && values[0] > 0 && values[values.length - 1] / values[0] > 30;

  // Returns the points of a step curve from (first value, 0) on.
  page.stepPoints = function (cdf) {
    const points = [];
    let share = 0;
    for (const [value, next] of cdf) {
      points.push([value, share], [value, next]);
      share = next;
    }
    return points;
  };

  function quantiles(one) {
    return ["p50", "p99"].filter((key) => one[key]).map((key) => ({ key, value: one[key].s ?? one[key].value, text: one[key].text }));
  }

  function drawQuantile(svg, mark, x, y, width, bottom) {
    const at = x(mark.value);
    const right = at + 90 < width;
    const share = Number(mark.key.slice(1)) / 100;
    svg.append(page.svgElement("path", { class: "quantile", d: `M${at} ${bottom}V${y(share)}` }),
      page.label(at + (right ? 6 : -6), bottom - (mark.key === "p50" ? 10 : 28), `${mark.key} ${mark.text}`,
        { class: "value halo" + (right ? "" : " end"), "aria-hidden": "true" }));
  }

  function draw(one, write, label, place, width) {
    const values = one.cdf.map((point) => point[0]);
    const logarithmic = page.wantsLogarithm(values);
    const [height, left] = [260, 52];
    const bottom = height - 30;
    const svg = page.chart(width, height, label);
    const [first, last] = logarithmic ? [values[0] / 1.1, values[values.length - 1] * 1.1] : [0, values[values.length - 1] || 1];
    const x = (logarithmic ? d3.scale.log() : d3.scale.linear()).domain([first, last]).range([left, width - 20]);
    const y = d3.scale.linear().domain([0, 1]).range([bottom, 14]);
    page.axis(svg, x, "bottom", 0, bottom, page.ticksOf(x, Math.max(2, Math.floor(width / 110)), logarithmic), page.tickText(write), bottom - 14);
    page.axis(svg, y, "left", left, 0, [0, 0.25, 0.5, 0.75, 1], (share) => 100 * share + " %", width - left - 20);
    const path = d3.svg.line().x((point) => x(point[0])).y((point) => y(point[1]));
    svg.append(page.svgElement("path", { class: "curve", d: path(page.stepPoints(one.cdf)) }));
    quantiles(one).forEach((mark) => drawQuantile(svg, mark, x, y, width, bottom));
    place.replaceChildren(svg);
  }

  function figureOf(one, title, noun, write) {
    const known = ["mean", "p50", "p95", "p99", "max"].filter((key) => one[key]);
    const text = known.map((key) => `${key} ${one[key].text}`).join(", ");
    const spread = page.wantsLogarithm(one.cdf.map((point) => point[0])) ? " The horizontal axis is logarithmic." : "";
    return page.figure({ title, summary: `The curve gives the share of flows whose ${noun} is at most the value below: ${text}.${spread}`,
      table: { caption: title.replace(/\.$/, "") + ", by share of flows", columns: ["share of flows", noun + ", at most"],
        rows: one.cdf.filter((_, at) => at % Math.ceil(one.cdf.length / 20) === 0 || at === one.cdf.length - 1)
          .map(([value, share]) => [page.shareText(share), write(value)]) },
      draw: (place, width) => draw(one, write, `${title} ${text}.`, place, width) });
  }

  const factor = (value) => Number(value.toFixed(2)).toLocaleString("en", { minimumFractionDigits: 2 });

  // Returns the slowdown's numbers with texts, as completion times have them.
  page.slowdownTexts = function (one) {
    const texts = { cdf: one.cdf };
    for (const key of ["mean", "p50", "p95", "p99", "max"]) {
      if (typeof one[key] === "number") texts[key] = { value: one[key], text: factor(one[key]) };
      else if (one[key]) texts[key] = one[key];
    }
    return texts;
  };

  page.flowFigures = function (flows) {
    const has = (one) => one && one.cdf && one.cdf.length > 0;
    return [
      has(flows.completion) ? figureOf(flows.completion, "Flow completion times.", "completion time", page.timeText) : null,
      has(flows.slowdown) ? figureOf(page.slowdownTexts(flows.slowdown), "Slowdowns.", "slowdown", factor) : null,
    ];
  };

  page.flowSentence = function (flows) {
    const done = `${page.plural(flows.count, "flow")} ended.`;
    const times = flows.completion;
    if (!times || !times.p50) return done;
    return `${done} Half of them took at most ${times.p50.text}, 99 % at most ${times.p99.text}, and the longest ${times.max.text}.`;
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
