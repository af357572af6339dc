// Samples over time: a small chart for each series, all with the same axis of time, grouped by what was sampled.
(function (page) {
  "use strict";

  const FIRST = 4;  // series of a kind that are drawn at once; a button draws the others
  const TITLES = { queue: "Queue lengths", utilisation: "Utilisation", rate: "Rates", aggregation: "Memory of switches for sums" };

  page.largest = (series) => series.points.reduce((most, point) => Math.max(most, point[1]), 0);

  page.sampleSentence = function (series) {
    const most = page.largest(series);
    const first = series.points.find((point) => point[1] === most);
    return `At most ${page.textOf(series.unit)(most)}, first at ${page.timeText(first[0])}.`;
  };

  // Returns the series by kind, each kind's with the largest values first; equal ones keep their order.
  page.groupSeries = function (all) {
    const kinds = new Map();
    for (const series of all) {
      if (!kinds.has(series.kind)) kinds.set(series.kind, []);
      kinds.get(series.kind).push({ series, most: page.largest(series) });
    }
    for (const list of kinds.values()) list.sort((a, b) => b.most - a.most);
    return [...kinds].map(([kind, list]) => ({ kind, list: list.map((one) => one.series) }));
  };

  function draw(series, span, most, marks, place, width) {
    const write = page.textOf(series.unit);
    const [height, left] = [150, 66];
    const bottom = height - 26;
    const label = `${series.title}. ${page.sampleSentence(series)}`;
    const svg = page.chart(width, height, label);
    const x = d3.scale.linear().domain(span).range([left, width - 20]);
    const y = d3.scale.linear().domain([0, most || 1]).range([bottom, 10]);
    page.axis(svg, x, "bottom", 0, bottom, x.ticks(Math.max(2, Math.floor(width / 130))), page.tickText(page.timeText), bottom - 10);
    page.axis(svg, y, "left", left, 0, y.ticks(3), page.tickText(write), width - left - 20);
    const points = series.points;
    const line = d3.svg.line().interpolate("step-before").x((point) => x(point[0])).y((point) => y(point[1]));
    const area = d3.svg.area().interpolate("step-before").x((point) => x(point[0])).y0(bottom).y1((point) => y(point[1]));
    if (points.length > 1) {
      svg.append(page.svgElement("path", { class: "area", d: area(points) }), page.svgElement("path", { class: "curve thin", d: line(points) }));
    } else points.forEach((point) => svg.append(page.svgElement("circle", { class: "point", cx: x(point[0]), cy: y(point[1]), r: 3 })));
    page.drawMarks(svg, marks, x, 10, bottom);
    place.replaceChildren(svg);
  }

  function figureOf(series, span, most, marks) {
    const write = page.textOf(series.unit);
    const every = Math.ceil(series.points.length / 40);
    return page.figure({ title: series.title + ".",
      summary: page.sampleSentence(series),
      table: { caption: series.title + (every > 1 ? `, every ${every}th sample` : ""), columns: ["time", "value"],
        rows: series.points.filter((_, at) => at % every === 0).map(([s, value]) => [page.timeText(s), write(value)]) },
      draw: (place, width) => draw(series, span, most, marks, place, width) });
  }

  function groupOf({ kind, list }, span, marks) {
    const most = Math.max(...list.map(page.largest));
    const figures = page.firstFigures(list, FIRST, (series) => figureOf(series, span, most, marks), "series", { class: "grid" });
    const text = list.length > FIRST ? `The ${FIRST} series with the largest values come first. ` : "";
    return [page.element("h3", {}, TITLES[kind]), page.element("p", {}, `${text}All charts of this kind have the same axes.`), figures];
  }

  page.sampleFigures = function (samples, marks) {
    const times = samples.series.flatMap((series) => series.points.map((point) => point[0]));
    const span = [d3.min(times) || 0, d3.max(times) || 1];
    if (span[0] === span[1]) span[0] = 0;
    return page.groupSeries(samples.series.filter((series) => series.points.length > 0)).map((group) => groupOf(group, span, marks));
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
