// Links by tier, and the topology with the load of its links in colour and width.
(function (page) {
  "use strict";

  const STEPS = 5;  // classes heat0 to heat4 of page.css

  // Returns the upper ends of the colour classes: equal parts of the largest value, at least of `least`.
  page.heatLimits = function (values, least) {
    const most = Math.max(least, ...values);
    return Array.from({ length: STEPS }, (_, at) => most * (at + 1) / STEPS);
  };

  // Returns the colour class of a value: the first whose end it does not exceed.
  page.heatClass = (value, limits) => limits.findIndex((limit) => value <= limit * (1 + 1e-12));

  page.METRICS = [
    { key: "mean", name: "mean utilisation", at: 3, write: page.shareText, least: 0.01 },
    { key: "most", name: "largest utilisation", at: 4, write: page.shareText, least: 0.01 },
    { key: "queue", name: "longest queue", at: 5, write: page.bytesText, least: 1 },
  ];

  const PATH = 6;  // index of the path in a line of the map, where the line is not straight

  // Returns [x, y, width, height] of what the map takes; the names below the last row are drawn outside of that.
  page.mapBounds = function ({ nodes, links }) {
    const xs = nodes.flatMap((node) => [node.x - node.w / 2, node.x + node.w / 2]);
    const ys = nodes.map((node) => node.y);
    for (const link of links) {
      if (link[PATH]) link[PATH].match(/-?[\d.]+/g).forEach((number, at) => (at % 2 ? ys : xs).push(Number(number)));
    }
    const [left, top] = [Math.min(...xs), Math.min(...ys)];
    return [left - 30, top - 16, Math.max(...xs) - left + 60, Math.max(...ys) - top + 32];
  };

  const GAP = 14;  // pixels beside a name
  const NAME = 12;  // pixels, the size of names on the screen

  // Returns the width in pixels below which a map is not readable: that of the names of its widest row, but at most 900.
  page.leastMapWidth = function (nodes) {
    const widths = new Map();
    for (const node of nodes) widths.set(node.y, (widths.get(node.y) || 0) + page.widthOf(node.name.split("/").pop(), NAME) + GAP);
    return Math.min(900, Math.max(...widths.values()));
  };

  // Returns which nodes have room for a name: its width fits between its neighbours in the same row.
  page.namedNodes = function (nodes, size) {
    const rows = new Map();
    nodes.forEach((node, index) => {
      if (!rows.has(node.y)) rows.set(node.y, []);
      rows.get(node.y).push({ index, x: node.x, half: page.widthOf(node.name, size) / 2 });
    });
    const named = new Set();
    for (const row of rows.values()) {
      row.sort((a, b) => a.x - b.x);
      if (row.every((one, at) => at === 0 || one.x - row[at - 1].x > one.half + row[at - 1].half + 4)) {
        row.forEach((one) => named.add(one.index));
      }
    }
    return named;
  };

  const heightOf = (node) => Math.min(22, Math.max(4, node.w));

  // Returns the path of a line: its own one, or the straight line between the centres, or in rows between the edges that face
  // each other.
  page.pathOf = function (link, nodes) {
    if (link[PATH]) return link[PATH];
    const [from, to] = [nodes[link[0]], nodes[link[1]]];
    const side = from.below === false ? 0 : Math.sign(to.y - from.y);
    return `M${from.x} ${from.y + side * heightOf(from) / 2}L${to.x} ${to.y - side * heightOf(to) / 2}`;
  };

  function drawLinks(svg, map, metric, limits) {
    const order = map.links.map((link, at) => ({ link, at })).sort((a, b) => a.link[metric.at] - b.link[metric.at] || a.at - b.at);
    for (const { link } of order) {
      const [from, to] = [map.nodes[link[0]], map.nodes[link[1]]];
      const names = `${from.name} and ${to.name}${link[2] > 1 ? `, ${link[2]} links` : ""}`;
      const text = page.METRICS.map((one) => `${one.name} ${one.write(link[one.at])}`).join(", ");
      svg.append(page.svgElement("path", { class: "heat heat" + page.heatClass(link[metric.at], limits), d: page.pathOf(link, map.nodes) },
        page.svgElement("title", {}, `${names}: ${text}`)));
    }
  }

  const widthOfNode = (node) => Math.max(6, node.w);
  const fits = (node, name, size) => page.widthOf(name, size) + 8 <= widthOfNode(node) && size <= heightOf(node) - 4;

  function shapeOf(node) {
    const [w, h] = [widthOfNode(node), heightOf(node)];
    return page.svgElement("rect", { x: node.x - w / 2, y: node.y - h / 2, width: w, height: h, rx: node.kind === "switch" ? 2 : 5 });
  }

  // Returns the names that are drawn, by node: in full where a row has room for them, else what follows the last slash.
  page.nodeNames = function (nodes, size) {
    const short = nodes.map((node) => Object.assign({}, node, { name: node.name.split("/").pop() }));
    const [full, brief] = [page.namedNodes(nodes, size), page.namedNodes(short, size)];
    const nameOf = (node, at) => (full.has(at) ? node.name : brief.has(at) ? short[at].name : "");
    return new Map(nodes.map((node, at) => [at, nameOf(node, at)]).filter(([, name]) => name));
  };

  const LEAST = 0.7;  // of the size of names, down to which they shrink

  // Returns the name that fits into the box of a node as {name, size}, in smaller letters if need be, or null.
  page.nameInside = function (node, size) {
    for (const name of [node.name, node.short || node.name.split("/").pop()]) {
      const fitting = Math.min(size, heightOf(node) - 4, size * (widthOfNode(node) - 6) / page.widthOf(name, size));
      if (fitting >= LEAST * size) return { name, size: fitting };
    }
    return null;
  };

  // Draws a node whose lines end at the edge of its box. Lines may pass below the box, so its name is inside or left out.
  function drawBox(node, size) {
    const inside = page.nameInside(node, size);
    return [page.svgElement("g", { class: "node node-" + node.kind }, page.svgElement("title", {}, node.name), shapeOf(node)),
      inside && page.label(node.x, node.y + 0.5, inside.name,
        { class: `node-name inside-${node.kind}`, style: `font-size: ${inside.size}px`, "aria-hidden": "true" })];
  }

  function drawNodes(svg, map, size) {
    const named = page.nodeNames(map.nodes, size);
    map.nodes.forEach((node, at) => {
      if (node.below === false) {
        svg.append(...drawBox(node, size).filter(Boolean));
        return;
      }
      const name = named.get(at) || "";
      const inside = name !== "" && fits(node, name, size);
      svg.append(page.svgElement("g", { class: "node node-" + node.kind }, page.svgElement("title", {}, node.name), shapeOf(node)));
      if (name) {
        svg.append(page.label(node.x, node.y + (inside ? 0.5 : heightOf(node) / 2 + 1.5 + size), name,
          { class: inside ? `node-name inside-${node.kind}` : "node-name halo", style: `font-size: ${size}px`, "aria-hidden": "true" }));
      }
    });
  }

  function heatLegend(metric, limits) {
    const ranges = limits.map((limit, at) => `${at === 0 ? "0" : "over " + metric.write(limits[at - 1])} to ${metric.write(limit)}`);
    return page.element("ul", { class: "legend", "aria-label": "Legend: " + metric.name }, ranges.map((text, at) => page.element("li", {},
      page.svgElement("svg", { width: 30, height: 14, "aria-hidden": "true" },
        page.svgElement("path", { class: "heat heat" + at, d: "M0 7H30" })), text)));
  }

  function draw(map, metric, place, width) {
    const limits = page.heatLimits(map.links.map((link) => link[metric.at]), metric.least);
    const [x, y, w, h] = page.mapBounds(map);
    const wide = Math.min(1.1 * w, Math.max(width, page.leastMapWidth(map.nodes)));  // on narrower pages the map scrolls
    const size = NAME * w / wide;
    const high = h + 1.5 * size;
    const svg = page.svgElement("svg", { viewBox: `${x} ${y} ${w} ${high}`, width: wide, height: Math.round(wide * high / w),
      role: "img", class: "map", "aria-label": mapSentence(map, metric) });
    drawLinks(svg, map, metric, limits);
    drawNodes(svg, map, size);
    place.replaceChildren(heatLegend(metric, limits), page.scrollRegion(svg, "Map of the topology"));
  }

  function mapSentence(map, metric) {
    const most = map.links.reduce((best, link) => (best && best[metric.at] >= link[metric.at] ? best : link), null);
    if (!most || most[metric.at] === 0) return `The topology, with the ${metric.name} of its links, which is 0 everywhere.`;
    return `The topology, with the ${metric.name} of its links. It is largest between ${map.nodes[most[0]].name} and ` +
      `${map.nodes[most[1]].name}, ${metric.write(most[metric.at])}.`;
  }

  function busiestTable(map) {
    const links = map.links.slice().sort((a, b) => b[4] - a[4] || b[5] - a[5]).slice(0, 30);
    return { caption: "The lines of the map with the largest utilisation, at most 30",
      columns: ["between", "and", "links"].concat(page.METRICS.map((metric) => metric.name)),
      rows: links.map((link) => [map.nodes[link[0]].name, map.nodes[link[1]].name, link[2]]
        .concat(page.METRICS.map((metric) => metric.write(link[metric.at])))) };
  }

  // Makes the figure of the map, with a choice of what the colours mean.
  page.mapFigure = function (map) {
    let metric = page.METRICS[0];
    let last = null;
    const choose = (one) => {
      metric = one;
      if (last) draw(map, metric, ...last);
    };
    const choices = page.element("fieldset", { class: "controls" }, page.element("legend", {}, "Colours show the"),
      page.METRICS.map((one) => page.element("label", {}, page.element("input", { type: "radio", name: "metric", value: one.key,
        checked: one === metric, onchange: () => choose(one) }), " ", one.name)));
    return page.figure({ title: "Heat map.", summary: mapSentence(map, metric) + " The wider and stronger a line is, the larger is its value.",
      controls: choices, note: map.note, table: busiestTable(map), draw: (place, width) => {
        last = [place, width];
        draw(map, metric, place, width);
      } });
  };

  page.tierSentence = function (tiers) {
    const used = tiers.filter((tier) => tier.maximum > 0);
    if (!used.length) return "No link carried packets.";
    const most = used.reduce((best, tier) => (tier.mean > best.mean ? tier : best));
    const fullest = used.reduce((best, tier) => (tier.maximum > best.maximum ? tier : best));
    const link = fullest === most ? "" : ` The busiest link is ${fullest.busiest}, in use for ${fullest.maximum_text}.`;
    const queue = tiers.reduce((best, tier) => (tier.queue_bytes > best.queue_bytes ? tier : best));
    const waited = queue.queue_bytes > 0 ? ` The longest queue was ${queue.queue_text} at ${queue.queue_where}.` : "";
    return `The busiest tier is ${most.tier}, in use for ${most.mean_text} of the run in the mean and ${most.maximum_text} at most.${link}${waited}`;
  };

  page.tierTable = function (tiers) {
    return page.table({ caption: "Links by tier; each direction counts as a link",
      columns: ["tier", "links", "rate", "mean use", "largest use", "busiest link", "carried", "longest queue", "where", "ECN marks", "held back"],
      bars: { 3: tiers.map((tier) => tier.mean), 4: tiers.map((tier) => tier.maximum) },
      rows: tiers.map((tier) => [tier.tier, tier.links, tier.rate_text || "", tier.mean_text, tier.maximum_text, tier.busiest,
        tier.carried_text || "", tier.queue_text, tier.queue_where, tier.ecn_marks || "", tier.held ? tier.held.text : ""]) });
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
