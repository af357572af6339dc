// The sections of the page in their order, the table of contents, the theme, and printing.
(function (page) {
  "use strict";

  const element = (...given) => page.element(...given);
  page.onPaper = false;
  // These functions make anew what depends on the theme or on printing: timelines, and long tables, which are whole on paper.
  page.repaints = [];

  const paragraphs = (texts) => (texts || []).map((text) => element("p", {}, page.unbroken(page.sentence(text))));
  const list = (texts) => element("ul", {}, texts.map((text) => element("li", {}, page.unbroken(text))));
  const marksOf = (data) => (data.faults && data.faults.marks) || [];

  function tableIf(given, caption) {
    return given.columns && given.rows && given.rows.length ? page.table(Object.assign({ caption }, given)) : null;
  }

  function headline(data) {
    return element("dl", { class: "headline" }, data.headline.map((one) => element("div", {}, element("dt", {}, one.label),
      element("dd", { "data-summary": one.summary || null, class: one.text.length > 24 ? "long" : null }, one.text))));
  }

  // Returns a sentence on the faults: what a single one was, or the number of several.
  page.faultSentence = function (faults) {
    if (faults.rows.length > 1) return `The run had ${faults.rows.length.toLocaleString("en")} faults.`;
    const [row] = faults.rows;
    const cell = (name) => row[faults.columns.indexOf(name)] || "";
    const hit = cell("iterations hit");
    const until = /\d/.test(cell("until")) ? ` until ${cell("until")}` : "";
    return `${cell("where")} ${cell("fault")} from ${cell("from")}${until}.` + (/\d/.test(hit) ? ` Iterations hit: ${hit}.` : "");
  };

  // Returns the sentences that say in short what the sections below show, each with the id of its section.
  page.shortSentences = function (data) {
    const found = [];
    const add = (id, text) => found.push({ id, text });
    if (data.kind === "traffic" && data.flows) add("flows", page.flowSentence(data.flows));
    const addJobs = (id, all, write) => (all || []).slice(0, page.FIRST_JOBS)
      .forEach((one) => add(id, (data.jobs ? one.job + ": " : "") + write(one)));
    addJobs("breakdown", data.breakdowns, page.breakdownSentence);
    addJobs("path", data.paths, page.pathSentence);
    if (data.links && data.links.tiers && data.links.tiers.length) add("links", page.tierSentence(data.links.tiers));
    if (data.kind !== "traffic" && data.flows) add("flows", page.flowSentence(data.flows));
    if (data.faults && data.faults.rows.length) add("faults", page.faultSentence(data.faults));
    return found;
  };

  function summary(data) {
    const short = page.shortSentences(data);
    return [headline(data), short.length ? element("ul", { class: "short" }, short.map((one) =>
      element("li", {}, page.unbroken(one.text) + " ", element("a", { href: "#" + one.id }, "See " + titleOf(one.id))))) : null];
  }

  function links(data) {
    return [element("p", {}, page.unbroken(page.tierSentence(data.links.tiers))), page.tierTable(data.links.tiers),
      data.links.map ? page.mapFigure(data.links.map) : null];
  }

  function flows(data) {
    const one = data.flows;
    return [list(one.text), element("div", { class: "grid" }, page.flowFigures(one)),
      one.by_size ? tableIf(one.by_size, "Flows by size") : null];
  }

  function scheduling(data) {
    return data.scheduling.map((layer) => [element("h3", {}, layer.title), list(layer.text)]);
  }

  function memory(data) {
    return data.memory.map((one) => [data.memory.length > 1 ? element("h3", {}, one.job) : null, paragraphs(one.text),
      tableIf(one, `Memory of the fullest GPU of ${one.job}`)]);
  }

  // Makes a command with a button that copies it.
  function command(text) {
    const code = element("code", {}, text);
    const done = (copied) => page.announce(copied ? "The command was copied." : "The command is selected. Copy it by the keyboard.");
    const copy = () => {
      const selection = getSelection();
      selection.selectAllChildren(code);
      const copied = document.execCommand("copy");
      if (copied) selection.removeAllRanges();
      button.textContent = copied ? "Copied" : "Selected";
      done(copied);
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    };
    const button = element("button", { type: "button", class: "control", "aria-label": "Copy the command " + text, onclick: copy }, "Copy");
    return element("div", { class: "command" }, page.scrollRegion(element("pre", {}, code), "Command"), button);
  }

  function inputsTable(repeat) {
    const rows = [["input", repeat.inputs], ["plug-in", repeat.plugins]]
      .flatMap(([kind, files]) => (files || []).map((one) => [one.path, kind, one.hash]));
    return rows.length ? page.table({ caption: "Files that the run read", columns: ["file", "kind", "hash"], rows }) : null;
  }

  function repeat(data) {
    const given = data.repeat;
    const meta = data.meta;
    const facts = [["version", meta.version], ["commit", meta.commit], ["seed", meta.seed], ["fingerprint of results", meta.fingerprints.results],
      ["fingerprint of packets", meta.fingerprints.packets], ["fingerprint of events", meta.fingerprints.events]]
      .filter(([, value]) => value !== undefined && value !== null && value !== "");
    return [element("p", {}, "These commands repeat the run. Equal inputs and an equal seed give equal fingerprints of results and packets."),
      given.commands.map(command), page.table({ caption: "What identifies the run", columns: ["fact", "value"], rows: facts }), inputsTable(given),
      given.configuration ? element("details", {}, element("summary", {}, "The whole configuration"),
        page.scrollRegion(element("pre", {}, element("code", {}, given.configuration)), "Configuration")) : null,
      data.files && data.files.length ? [element("h3", {}, "Files of the run"), element("p", {}, "They lie in the same directory as this page."),
        element("ul", { class: "files" }, data.files.map((name) =>
          element("li", {}, element("a", { href: encodeURIComponent(name) }, name))))] : null];
  }

  function timelines(data) {
    return [element("p", {}, "Each row is a stream of a rank, and each box a task: L is its layer, mb its microbatch, " +
      "c its chunk of the model. " + page.timelineKeys),
      page.firstFigures(data.timelines, page.FIRST_JOBS, (one) => page.timelineFigure(one, marksOf(data)), "timelines", {})];
  }

  const SECTIONS = [
    { id: "waiting", title: "What the run waits for", has: (d) => d.waiting && d.waiting.length, build: (d) => list(d.waiting) },
    { id: "notes", title: "Notes", has: (d) => d.notes && d.notes.length, build: (d) => list(d.notes) },
    { id: "summary", title: "Results", has: (d) => d.headline && d.headline.length, build: summary },
    { id: "jobs", title: "Jobs", has: (d) => d.jobs && d.jobs.rows && d.jobs.rows.length,
      build: (d) => [list(d.jobs.text || []), tableIf(d.jobs, "Jobs of the run"), element("div", { class: "grid" }, page.jobFigures(d.jobs))] },
    { id: "breakdown", title: "Where the time goes", has: (d) => d.breakdowns && d.breakdowns.length,
      build: (d) => [element("p", {}, "Exposed is communication that no computation of the same GPU hides. " +
        "Idle is neither computation nor communication."),
        page.breakdownFigures(d.breakdowns, d.jobs ? d.jobs.rows.length : 1)] },
    { id: "timeline", title: "Timeline", has: (d) => d.timelines && d.timelines.length, build: timelines },
    { id: "path", title: "Critical path", has: (d) => d.paths && d.paths.length,
      build: (d) => [element("p", {}, "The critical path is the chain of tasks and messages that determines when an " +
        "iteration ends. Only what shortens it shortens the iteration."),
        d.paths.map((path, at) => [d.paths.length > 1 ? element("h3", {}, path.job) : null, page.pathFigures(path, at)])] },
    { id: "links", title: "Links", has: (d) => d.links && d.links.tiers && d.links.tiers.length, build: links },
    { id: "flows", title: "Flows", has: (d) => d.flows && d.flows.count, build: flows },
    { id: "samples", title: "Samples over time", has: (d) => d.samples && d.samples.series && d.samples.series.length,
      build: (d) => [element("p", {}, `A sample was taken every ${d.samples.interval.text}. ${d.samples.note}`), page.sampleFigures(d.samples, marksOf(d))] },
    { id: "aggregation", title: "Aggregation in switches", has: (d) => d.aggregation && d.aggregation.rows.length,
      build: (d) => [list(d.aggregation.text), tableIf(d.aggregation, "Switches that added up")] },
    { id: "collectives", title: "Collectives", has: (d) => d.collectives && d.collectives.rows.length,
      build: (d) => tableIf(d.collectives, "Collectives by kind, ranks and size") },
    { id: "scheduling", title: "Scheduling", has: (d) => d.scheduling && d.scheduling.length, build: scheduling },
    { id: "faults", title: "Faults", has: (d) => d.faults && d.faults.rows.length,
      build: (d) => tableIf(d.faults, "Faults of links and hosts, in order of time") },
    { id: "memory", title: "Memory", has: (d) => d.memory && d.memory.length, build: memory },
    { id: "hints", title: "What more could be shown", has: (d) => d.hints && d.hints.length, build: (d) => hints(d.hints) },
    { id: "repeat", title: "How to repeat the run", has: (d) => d.meta, build: repeat },
  ];

  function hints(all) {
    return element("ul", {}, all.map((one) => element("li", {}, one.text,
      one.set ? [" ", element("code", {}, "--set " + one.set), " adds this."] : null)));
  }

  const titleOf = (id) => SECTIONS.find((section) => section.id === id).title;

  // Returns the sections that the document fills, in the order of the page. Traffic has its flows after the results.
  page.sectionsOf = function (data) {
    const order = SECTIONS.slice();
    if (data.kind === "traffic") {
      const flow = order.splice(order.findIndex((section) => section.id === "flows"), 1)[0];
      order.splice(order.findIndex((section) => section.id === "summary") + 1, 0, flow);
    }
    return order.filter((section) => section.has(data));
  };

  function fillHead(meta) {
    document.getElementById("title").textContent = meta.title;
    const size = [meta.gpus ? page.plural(meta.gpus, "GPU") : "", meta.simulated ? meta.simulated.text + " simulated" : ""]
      .filter(Boolean).join(", ");
    const outcome = document.getElementById("outcome");
    outcome.textContent = [page.sentence(meta.outcome_text), page.sentence(size)].filter(Boolean).join(" ");
    if (meta.outcome !== "done") outcome.className = "unfinished";
    document.getElementById("footer").textContent = `Written by netsim ${meta.version}. The page needs no network; ` +
      "its numbers are those of summary.json and of the tables.";
  }

  function fillContents(sections) {
    const links = sections.map((section) => element("a", { href: "#" + section.id }, section.title));
    const bar = element("ul", {}, links.map((link) => element("li", {}, link)));
    document.getElementById("contents").append(bar);
    const seen = new Set();
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) seen[entry.isIntersecting ? "add" : "delete"](entry.target.id);
      const first = sections.find((section) => seen.has(section.id));
      links.forEach((link, at) => {
        if (first && sections[at] === first) {
          link.setAttribute("aria-current", "true");
          bar.scrollLeft = link.offsetLeft - 40;  // matters only where the contents lie in one line
        }
        else link.removeAttribute("aria-current");
      });
    }, { rootMargin: "-80px 0px -40% 0px" });
    sections.forEach((section) => watch.observe(document.getElementById(section.id)));
  }

  // ---- Theme

  const THEMES = [["", "as the system"], ["light", "light"], ["dark", "dark"]];

  function setTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    page.repaints.forEach((repaint) => repaint());
  }

  function startTheme() {
    const button = document.getElementById("theme");
    let at = 0;
    button.addEventListener("click", () => {
      at = (at + 1) % THEMES.length;
      button.textContent = "Colours: " + THEMES[at][1];
      setTheme(THEMES[at][0]);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(THEMES[at][0]));
  }

  // ---- Printing

  function startPrinting() {
    let theme = "";
    addEventListener("beforeprint", () => {
      theme = document.documentElement.dataset.theme || "";
      page.onPaper = true;
      setTheme("light");
      page.drawFigures(true);
    });
    addEventListener("afterprint", () => {
      page.onPaper = false;
      setTheme(theme);
      page.drawFigures(true);
    });
  }

  // Fills the page from the document in the element "data". The attribute data-rendered of the root says when all is drawn.
  page.start = function () {
    const data = JSON.parse(document.getElementById("data").textContent);
    const content = document.getElementById("content");
    document.body.prepend(page.patterns());
    fillHead(data.meta);
    const sections = page.sectionsOf(data);
    content.replaceChildren(...sections.map((section) => {
      const heading = element("h2", { id: section.id + "-heading" }, section.title);
      const whole = element("section", { id: section.id, "aria-labelledby": heading.id }, heading);
      whole.append(...[section.build(data)].flat(Infinity).filter(Boolean));
      return whole;
    }));
    fillContents(sections);
    startTheme();
    startPrinting();
    page.drawFigures(false);
    new ResizeObserver(() => page.drawFigures(false)).observe(content);
    document.documentElement.dataset.rendered = String(sections.length);
    document.documentElement.dataset.milliseconds = String(Math.round(performance.now()));
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
