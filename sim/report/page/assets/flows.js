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

  // Returns the share that the step curve has reached at a value.
  page.shareAt = function (cdf, value) {
    let share = 0;
    for (const [end, next] of cdf) {
      if (end > value) break;
      share = next;
    }
    return share;
  };

  const MARGIN = 0.05;  // share of the height that a label keeps from the curve and from other labels

  // Returns where labels of vertical lines stand, as {from, to, share}: beside their line, away from the curve, the other
  // lines and the labels before; where there is no room, beyond a line to the right. A line has "x", "top" (the share up
  // to which it is drawn) and "width" (of its label).
  page.placeLabels = function (lines, reached, first, last) {
    const places = [];
    const free = (place, own) => {
      const [low, high] = [reached(place.from), reached(place.to)];
      if (place.share > low - MARGIN && place.share < high + MARGIN) return false;
      if (lines.some((line) => line !== own && line.x > place.from - 3 && line.x < place.to + 3 && line.top > place.share - MARGIN)) return false;
      return places.every((other) => other.to < place.from || other.from > place.to || Math.abs(other.share - place.share) > 1.6 * MARGIN);
    };
    for (const line of lines) {
      const sides = [[line.x + 6, line.x + 6 + line.width], [line.x - 6 - line.width, line.x - 6]]
        .filter(([from, to]) => from >= first && to <= last);
      const beyond = lines.filter((other) => other.x > line.x).map((other) => [other.x + 6, other.x + 6 + line.width])
        .filter(([, to]) => to <= last);
      const all = sides.concat(beyond).flatMap(([from, to]) => Array.from({ length: 12 }, (_, at) => ({ from, to, share: 0.06 + 0.08 * at })));
      places.push(all.find((place) => free(place, line)) || all[0] || { from: line.x, to: line.x + line.width, share: 0.06 });
    }
    return places;
  };

  function drawQuantiles(svg, one, x, y) {
    const [left, right] = x.range();
    const lines = quantiles(one).map((mark) => ({ x: x(mark.value), top: Number(mark.key.slice(1)) / 100, text: `${mark.key} ${mark.text}`,
      width: page.widthOf(`${mark.key} ${mark.text}`, 11.5) }));
    const places = page.placeLabels(lines, (at) => page.shareAt(one.cdf, x.invert(at)), left, right + 20);
    lines.forEach((line, at) => svg.append(
      page.svgElement("path", { class: "quantile", d: `M${line.x} ${y(0)}V${y(line.top)}` }),
      page.label(places[at].from < line.x ? places[at].to : places[at].from, y(places[at].share), line.text,
        { class: "value" + (places[at].from < line.x ? " end" : ""), "aria-hidden": "true" })));
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
    drawQuantiles(svg, one, x, y);
    place.replaceChildren(svg);
  }

  function figureOf(one, title, noun, write, unit) {
    const known = ["mean", "p50", "p95", "p99", "max"].filter((key) => one[key]);
    const text = known.map((key) => `${key} ${one[key].text}`).join(", ");
    const spread = page.wantsLogarithm(one.cdf.map((point) => point[0])) ? " The horizontal axis is logarithmic." : "";
    return page.figure({ title, summary: `The curve gives the share of ${unit} whose ${noun} is at most the value below: ${text}.${spread}`,
      table: { caption: title.replace(/\.$/, "") + `, by share of ${unit}`, columns: [`share of ${unit}`, noun + ", at most"],
        rows: one.cdf.filter((_, at) => at % Math.ceil(one.cdf.length / 20) === 0 || at === one.cdf.length - 1)
          .map(([value, share]) => [page.shareText(share), write(value)]) },
      draw: (place, width) => draw(one, write, `${title} ${text}.`, place, width) });
  }

  const factor = (value) => Number(value.toFixed(2)).toLocaleString("en", { minimumFractionDigits: 2 });

  page.flowFigures = function (flows) {
    const has = (one) => one && one.cdf && one.cdf.length > 0;
    return [
      has(flows.completion) ? figureOf(flows.completion, "Flow completion times.", "completion time", page.timeText, "flows") : null,
      has(flows.slowdown) ? figureOf(flows.slowdown, "Slowdowns.", "slowdown", factor, "flows") : null,
    ];
  };

  // Returns the distribution of a column of numbers, with its quantiles by nearest rank, or null where it has too few to draw.
  page.distributionOf = function (cells) {
    const all = cells.map((text) => ({ value: page.numberIn(text), text })).filter((one) => one.value !== null).sort((a, b) => a.value - b.value);
    if (all.length < 10) return null;
    const at = (share) => all[Math.ceil(share * all.length) - 1];
    const points = Math.min(all.length, 100);
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1),
      cdf: Array.from({ length: points }, (_, index) => [at((index + 1) / points).value, (index + 1) / points]) };
  };

  // Makes the distributions of the job times, waiting times and slowdowns in the table of jobs.
  page.jobFigures = function (jobs) {
    return [["job time", page.timeText], ["queued", page.timeText], ["slowdown", factor]].map(([name, write]) => {
      const column = jobs.columns.indexOf(name);
      const one = column < 0 ? null : page.distributionOf(jobs.rows.map((row) => row[column]));
      const noun = name === "queued" ? "time in the queue" : name;
      return one && figureOf(one, `Distribution of the ${noun}.`, noun, write, "jobs");
    });
  };

  page.flowSentence = function (flows) {
    const done = `${page.plural(flows.count, "flow")} ended.`;
    const times = flows.completion;
    if (!times || !times.p50) return done;
    return `${done} Half of them took at most ${times.p50.text}, 99 % at most ${times.p99.text}, and the longest ${times.max.text}.`;
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
