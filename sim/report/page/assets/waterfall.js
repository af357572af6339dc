// The critical path: a waterfall of its causes, and bars of the tasks, ports and pairs of GPUs on it, each behind a tab.
(function (page) {
  "use strict";

  const TABS = [
    { key: "causes", title: "By cause", sums: true, first: "cause",
      text: "Each bar begins where the bar above it ends. Together they are the duration of the path." },
    { key: "collectives", title: "By task and collective", first: "task",
      text: "Each bar is the time that the path spends in tasks of one name." },
    { key: "ports", title: "By port", first: "port",
      text: "Each bar is the time that messages of the path spend at one port: transmission, queueing and pauses." },
    { key: "pairs", title: "By pair of GPUs", first: "sender and receiver", text: "Each bar is the time of the path's messages between two GPUs." },
  ];

  // Returns the bars of a list: {label, text, s, begin, share}. Bars that add up follow each other.
  page.waterfall = function (list, total, sums) {
    let at = 0;
    return list.filter((one) => one.s > 0).map((one) => {
      const bar = { label: one.label, text: one.text, s: one.s, begin: sums ? at : 0, share: total > 0 ? one.s / total : 0 };
      at += one.s;
      return bar;
    });
  };

  page.pathSentence = function (path) {
    const causes = path.causes.filter((one) => one.s > 0).slice().sort((a, b) => b.s - a.s);
    const mean = path.iterations > 1 ? `, in the mean of ${path.iterations} iterations` : "";
    const whole = `The critical path takes ${path.total.text}${mean}.`;
    if (!causes.length || path.total.s <= 0) return whole;
    const named = causes.slice(0, 3).map((one) => `${one.label} (${page.shareText(one.s / path.total.s)})`);
    const list = named.length > 1 ? named.slice(0, -1).join(", ") + " and " + named[named.length - 1] : named[0];
    return `${whole} Its largest part${named.length > 1 ? "s are" : " is"} ${list}.`;
  };

  // Returns where the text of a bar stands: after it, else before it, else inside. `end` says that it ends at x.
  page.valuePlace = function (left, right, room, first, last) {
    if (right + room <= last) return { x: right + 6, end: false };
    if (left - room >= first) return { x: left - 6, end: true };
    return { x: left + 8, end: false };
  };

  function draw(bars, extent, sums, label, place, width) {
    const beside = 14 + Math.max(...bars.map((bar) => page.widthOf(bar.label)));
    const narrow = beside > 0.42 * width;  // labels then stand above their bars
    const gutter = narrow ? 0 : beside;
    const values = 118;  // pixels for the text after a bar
    const step = narrow ? 42 : 26;
    const bottom = bars.length * step + 2;
    const svg = page.chart(width, bottom + 26, label);
    const x = d3.scale.linear().domain([0, extent || 1]).range([gutter, width - (sums ? 12 : values)]);
    page.axis(svg, x, "bottom", 0, bottom, x.ticks(narrow ? 3 : 6), page.tickText(page.timeText), bottom);
    bars.forEach((bar, at) => {
      const y = at * step + (narrow ? 18 : 3);
      const [left, right] = [x(bar.begin), x(bar.begin + bar.s)];
      const text = `${bar.text}, ${page.shareText(bar.share)}`;
      const compute = /^compute/.test(bar.label);
      svg.append(page.rect(left, y, Math.max(1.5, right - left), 18, { class: compute ? "bar-compute outlined" : "bar-other outlined" }));
      if (sums && at + 1 < bars.length) svg.append(page.svgElement("path", { class: "step", d: `M${right} ${y + 18}V${y + step}` }));
      const place = page.valuePlace(left, right, page.widthOf(text, 11.5) + 8, gutter, width);
      svg.append(page.label(place.x, y + 9.5, text, { class: "value" + (place.end ? " end" : ""), "aria-hidden": "true" }));
      svg.append(narrow ? page.label(0, y - 5, page.cutText(bar.label, width), { class: "row-label", "aria-hidden": "true" })
        : page.label(gutter - 8, y + 9.5, page.cutText(bar.label, gutter - 8), { class: "row-label end middle", "aria-hidden": "true" }));
    });
    place.replaceChildren(svg);
  }

  function tableOf(path, tab) {
    const list = path[tab.key];
    const extra = ["transmission_s", "queueing_s", "paused_s"].filter((key) => list.some((one) => one[key] !== undefined));
    const steps = list.some((one) => one.steps !== undefined);
    return { caption: `Critical path of ${path.job}, ${tab.title.toLowerCase()}`,
      columns: [tab.first, "time", "share of the path"].concat(steps ? ["tasks"] : [], extra.map((key) => key.slice(0, -2))),
      rows: list.map((one) => [one.label, one.text, page.shareText(path.total.s > 0 ? one.s / path.total.s : 0)]
        .concat(steps ? [one.steps ?? ""] : [], extra.map((key) => page.timeText(one[key] || 0)))) };
  }

  function figureOf(path, tab) {
    const most = tab.sums ? 40 : 20;
    const all = page.waterfall(path[tab.key], path.total.s, tab.sums);
    const bars = all.slice(0, most);
    const left = all.length > most ? ` The ${most} longest are drawn; the table has more.` : "";
    return page.figure({ title: tab.title + ".", summary: tab.text + left,
      table: tableOf(path, tab), draw: (place, width) =>
        draw(bars, tab.sums ? path.total.s : d3.max(bars, (bar) => bar.s), tab.sums,
          `Critical path of ${path.job}. ${page.pathSentence(path)}`, place, width) });
  }

  // Makes the figures of a critical path behind tabs. `number` makes the ids unique.
  page.pathFigures = function (path, number) {
    const tabs = TABS.filter((tab) => (path[tab.key] || []).some((one) => one.s > 0))
      .map((tab) => ({ name: tab.title, content: figureOf(path, tab) }));
    return [page.element("p", {}, page.pathSentence(path)), page.tabs(tabs, `Views of the critical path of ${path.job}`, "path" + number)];
  };

  // Makes tabs with the keys of WAI-ARIA: arrows, Home and End change the tab. On paper all panels are shown.
  page.tabs = function (tabs, label, id) {
    const select = (index, focus) => {
      buttons.forEach((button, at) => {
        button.setAttribute("aria-selected", String(at === index));
        button.setAttribute("tabindex", at === index ? "0" : "-1");
        panels[at].classList.toggle("unselected", at !== index);
      });
      if (focus) buttons[index].focus();
      page.drawFigures(false);
    };
    const onKey = (event, index) => {
      const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      select((to + tabs.length) % tabs.length, true);
    };
    const buttons = tabs.map((tab, at) => page.element("button", { type: "button", role: "tab", id: `${id}-tab${at}`,
      "aria-controls": `${id}-panel${at}`, onclick: () => select(at, false), onkeydown: (event) => onKey(event, at) }, tab.name));
    const panels = tabs.map((tab, at) => page.element("div", { role: "tabpanel", id: `${id}-panel${at}`, "aria-labelledby": `${id}-tab${at}`,
      class: "panel" }, tab.content));
    const whole = page.element("div", { class: "tabs" }, page.element("div", { role: "tablist", "aria-label": label }, buttons), panels);
    if (tabs.length) select(0, false);
    return whole;
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
