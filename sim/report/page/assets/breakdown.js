// Where the time of an iteration goes: a stacked bar for each stage or rank, and one for the mean GPU.
(function (page) {
  "use strict";

  // Returns the segments of a row with their begin and end in seconds; categories without time are left out.
  page.stack = function (categories, row) {
    let at = 0;
    return categories.map((category, index) => {
      const begin = at;
      at += row.s[index];
      return { category, index, begin, end: at, text: row.text[index] };
    }).filter((one) => one.end > one.begin);
  };

  page.sumOf = (row) => row.s.reduce((sum, value) => sum + value, 0);

  // Returns the categories that have time in some row, as indices.
  page.usedCategories = (one) => one.categories.map((_, index) => index).filter((index) => one.rows.some((row) => row.s[index] > 0));

  // Returns a sentence on a breakdown: the shares of compute, exposed communication and idle of the mean GPU.
  page.breakdownSentence = function (one) {
    const mean = one.mean;
    const total = page.sumOf(mean);
    if (total <= 0) return "No time was recorded.";
    const share = (match) => one.categories.reduce((sum, name, at) => sum + (match(name) ? mean.s[at] : 0), 0) / total;
    const exposed = one.categories.map((name, at) => ({ name, s: mean.s[at] })).filter((part) => part.name.startsWith("exposed") && part.s > 0)
      .sort((a, b) => b.s - a.s);
    const kind = exposed.length ? page.categoryName(exposed[0].name).replace("exposed ", "") : "";
    const most = kind ? `, most of it ${kind} (${page.shareText(exposed[0].s / total)})` : "";
    return `A mean GPU computes for ${page.shareText(share((name) => name === "compute"))} of the time, waits for exposed communication for ` +
      `${page.shareText(share((name) => name.startsWith("exposed")))}${most}, and is idle for ${page.shareText(share((name) => name === "idle"))}.`;
  };

  function drawRow(svg, categories, row, y, height, x) {
    for (const part of page.stack(categories, row)) {
      const style = page.styleOf(part.category, part.index);
      const [left, wide] = [x(part.begin), x(part.end) - x(part.begin)];
      svg.append(page.svgElement("g", {}, page.svgElement("title", {}, `${row.label}, ${page.categoryName(part.category)}: ${part.text}`),
        page.rect(left, y, wide, height, { fill: page.fillOf(style), class: "outlined" })));
      if (height >= 16 && wide > page.widthOf(part.text, 11) + 8) {
        svg.append(page.label(left + wide / 2, y + height / 2, part.text,
          { class: "inside", fill: page.textOn(style.colour), stroke: style.colour, "aria-hidden": "true" }));
      }
    }
  }

  function draw(one, rows, label, place, width) {
    const narrow = width < 560;
    const height = rows.length <= 20 ? 24 : rows.length <= 70 ? 14 : 7;
    const gap = height > 10 ? 6 : 1;
    const gutter = narrow ? 0 : Math.min(200, 14 + Math.max(...rows.map((row) => page.widthOf(row.label))));
    const above = narrow && height > 10 ? 16 : 0;  // labels stand above the bars where there is no room beside them
    const step = height + gap + above;
    const bottom = rows.length * step + 4;
    const svg = page.chart(width, bottom + 26, label);
    const x = d3.scale.linear().domain([0, d3.max(rows, page.sumOf) || 1]).range([gutter, width - 12]);
    page.axis(svg, x, "bottom", 0, bottom, x.ticks(narrow ? 4 : 8), page.tickText(page.timeText), bottom);
    rows.forEach((row, at) => {
      const y = at * step + above;
      drawRow(svg, one.categories, row, y, height, x);
      if (height < 14 && at % 10 !== 0) return;
      if (narrow) svg.append(page.label(0, y - 4, row.label, { class: "row-label", "aria-hidden": "true" }));
      else {
        svg.append(page.label(gutter - 8, y + height / 2, page.cutText(row.label, gutter - 8),
          { class: "row-label end middle", "aria-hidden": "true" }));
      }
    });
    place.replaceChildren(svg);
  }

  function tableOf(one, rows) {
    const used = page.usedCategories(one);
    return { caption: `Time by ${one.per} and category, mean of an iteration`,
      columns: [one.per].concat(used.map((at) => page.categoryName(one.categories[at])), "total"),
      rows: rows.map((row) => [row.label].concat(used.map((at) => row.text[at]), row.total.text)) };
  }

  function figureOf(one, rows, title, summary) {
    const legend = page.usedCategories(one).map((at) => ({ name: page.categoryName(one.categories[at]),
      fill: page.fillOf(page.styleOf(one.categories[at], at)) }));
    return page.figure({ title, summary, legend: page.legend(legend), note: one.note, table: tableOf(one, rows),
      draw: (place, width) => draw(one, rows, `${title} ${summary}`, place, width) });
  }

  page.breakdownFigure = function (one) {
    const rows = one.rows.length > 1 ? [Object.assign({}, one.mean, { label: "mean GPU" })].concat(one.rows) : one.rows;
    const title = one.note ? `Time of ${one.job} so far, by ${one.per}.` : `Mean iteration of ${one.job}, by ${one.per}.`;
    return figureOf(one, rows, title, page.breakdownSentence(one));
  };

  // Returns a breakdown that has a row for each job: its mean GPU.
  page.breakdownOfJobs = function (all) {
    const rank = (name) => (name === "compute" ? 0 : name === "idle" ? 2 : 1);
    const categories = [...new Set(all.flatMap((one) => one.categories))].sort((a, b) => rank(a) - rank(b));
    const pick = (one, list, none) => categories.map((name) => (one.categories.includes(name) ? list[one.categories.indexOf(name)] : none));
    return { job: "", per: "job", categories, rows: all.map((one) =>
      ({ label: one.job, s: pick(one, one.mean.s, 0), text: pick(one, one.mean.text, page.timeText(0)), total: one.mean.total })) };
  };

  // Makes the figures of all jobs. Where they are many, a figure with a bar for each job comes first.
  page.breakdownFigures = function (all, jobsOfRun) {
    const each = page.firstFigures(all, page.FIRST_JOBS, page.breakdownFigure, "jobs", {});
    if (all.length <= page.FIRST_JOBS) return each;
    const jobs = page.breakdownOfJobs(all);
    const some = jobsOfRun > all.length ? `${all.length} of ${jobsOfRun} jobs` : `${all.length} jobs`;
    return [figureOf(jobs, jobs.rows, `Mean iteration of ${some}.`, "Each bar is the mean GPU of a job."), each];
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
