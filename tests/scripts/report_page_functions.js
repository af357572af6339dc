// Checks the functions of the report page that draw nothing. report_page_scripts_test.py runs it with node, which is given
// the directory of the scripts. Each test is run; the exit code is 1 if one failed.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

// Loads the scripts in the given order into a namespace of their own, without a document.
function load(folder, names) {
  const context = vm.createContext({});
  for (const name of names) vm.runInContext(fs.readFileSync(path.join(folder, name), "utf8"), context, { filename: name });
  return context.netsimPage;
}

const folder = process.argv[2];
const names = fs.readdirSync(folder).filter((name) => name.endsWith(".js")).sort();
const page = load(folder, names);
const plain = (value) => JSON.parse(JSON.stringify(value));  // objects of another context have other prototypes
const tests = [];
const test = (name, run) => tests.push({ name, run });

test("scripts may be loaded in any order", () => {
  const reversed = load(folder, names.slice().reverse());
  assert.deepEqual(Object.keys(reversed).sort(), Object.keys(page).sort());
  assert.equal(reversed.timeText(0.0827), "82.7 ms");
});

test("texts of values have three digits and the unit that fits", () => {
  const times = [[0, "0 s"], [0.0827, "82.7 ms"], [1.01e-3, "1.01 ms"], [6.83e-4, "683 us"], [4.1e-3, "4.10 ms"], [9.999e-4, "1.00 ms"],
    [9.994e-4, "999 us"], [1e-12, "1.00 ps"], [123, "123 s"], [1234, "1234 s"]];
  for (const [seconds, text] of times) assert.equal(page.timeText(seconds), text);
  assert.equal(page.bytesText(66), "66 B");
  assert.equal(page.bytesText(58836), "58.8 KB");
  assert.equal(page.bytesText(0), "0 B");
  assert.equal(page.rateText(2e11), "200 Gb/s");
  assert.equal(page.shareText(0.0787), "7.9 %");
  assert.equal(page.textOf("share")(0.5), "50.0 %");
  assert.equal(page.textOf("packets")(12), "12 packets");
});

test("ticks have no digits that say nothing", () => {
  const write = page.tickText(page.timeText);
  assert.equal(write(0.02), "20 ms");
  assert.equal(write(0.0025), "2.5 ms");
  assert.equal(write(0.2), "200 ms");
  assert.equal(write(0), "0 s");
});

test("ticks of a timeline share the unit of its window", () => {
  assert.equal(page.spanText(43e6, 43e6)(5e6), "5 ms");
  assert.equal(page.spanText(80e3, 760e3)(690e3), "690 us");
  assert.equal(page.spanText(500, 1000500)(1000100), "1,000.1 us");
  assert.equal(page.spanText(480e3, 8.2e6)(7.85e6), "7.85 ms");
});

test("texts of the screen become sentences", () => {
  assert.equal(page.sentence("limit reached at 10.0 ms"), "Limit reached at 10.0 ms.");
  assert.equal(page.sentence("It is done."), "It is done.");
  assert.equal(page.sentence(""), "");
  assert.equal(page.unbroken("at a->b"), "at a-\u2060>b");
});

test("cells are compared by their values in base units", () => {
  const values = [["82.7 ms", 0.0827], ["683 us", 6.83e-4], ["1,234", 1234], ["15.5 % of 312", 0.155], ["1.47 GiB", 1.47 * 2 ** 30],
    ["200 Gbps", 2e11], ["-3", -3], ["1e3", 1000], ["23.2 GB/s", 23.2e9]];
  for (const [text, value] of values) assert.ok(Math.abs(page.numberIn(text) - value) <= 1e-12 * Math.abs(value), text);
  for (const text of ["", "ring", "host0/gpu1", "-", "t3.17", "3x", "1.5.2"]) assert.equal(page.numberIn(text), null, text);
  const cells = ["", "2 ms", "ring", "900 us", "10 ms", "nic10", "nic9"];
  assert.deepEqual(cells.sort(page.compareCells), ["900 us", "2 ms", "10 ms", "nic9", "nic10", "ring", ""]);
});

test("columns are numeric, empty or neither", () => {
  assert.equal(page.isNumeric(["1 ms", "", "-"]), true);
  assert.equal(page.isNumeric(["1 ms", "ring"]), false);
  assert.equal(page.isNumeric(["", ""]), false);
  assert.deepEqual(plain(page.filledColumns([["a", "", "1"], ["b", "", ""]], 3)), [0, 2]);
  assert.deepEqual(plain(page.filledColumns([], 2)), [0, 1]);
});

test("categories have different colours and patterns, with readable text on them", () => {
  const styles = page.categoryKeys().map((key) => page.styleOf(key));
  assert.equal(new Set(styles.map((style) => style.colour)).size, styles.length);
  for (const style of styles) assert.ok(page.contrast(style.colour, page.textOn(style.colour)) >= 4.5, style.key);
  assert.equal(page.styleOf("exposed tp").key, "tp");
  assert.equal(page.styleOf("exposed DP").key, "dp");
  assert.notEqual(page.styleOf("held", 0).key, page.styleOf("checkpoint", 1).key);
  assert.equal(page.categoryName("exposed tp"), "exposed TP");
  assert.equal(page.categoryName("offload"), "offload");
  assert.equal(page.categoryName("cpu"), "CPU");
  assert.notEqual(page.styleOf("cpu").colour, page.styleOf("compute").colour);
  assert.equal(page.contrast("#000000", "#ffffff").toFixed(1), "21.0");
});

test("the window of a timeline never leaves it", () => {
  const view = new page.TimeWindow(1e6);
  view.zoom(0.5, 0.25);
  assert.deepEqual([view.begin, view.end], [125000, 625000]);
  view.pan(-1);
  assert.deepEqual([view.begin, view.end], [0, 500000]);
  view.pan(5);
  assert.deepEqual([view.begin, view.end], [500000, 1000000]);
  for (let i = 0; i < 50; ++i) view.zoom(0.5, 0.5);
  assert.equal(view.length, 100);
  for (let i = 0; i < 50; ++i) view.zoom(2, 0.9);
  assert.deepEqual([view.begin, view.end], [0, 1e6]);
  view.reveal(10, 20);
  assert.ok(view.begin <= 10 && view.end >= 20 && view.length < 5000);
});

test("the place below the pointer keeps its time when the window is zoomed", () => {
  const view = new page.TimeWindow(1e9);
  view.place(3e8, 0.5, 1e8);
  const time = () => view.begin + 0.3 * view.length;
  const before = time();
  view.zoom(0.7, 0.3);
  assert.ok(Math.abs(time() - before) < 1e-3);
});

const BOXES = [[0, 10], [10, 5], [100, 50], [1000, 1]];

test("boxes are found by time", () => {
  assert.deepEqual([-1, 0, 9.5, 10, 14, 15, 99, 149, 150, 2000].map((time) => page.firstBox(BOXES, time)), [0, 0, 0, 1, 1, 2, 2, 2, 3, 4]);
  assert.equal(page.boxAt(BOXES, 120, 0), 2);
  assert.equal(page.boxAt(BOXES, 50, 10), -1);
  assert.equal(page.boxAt(BOXES, 155, 10), 2);
  assert.equal(page.boxAt(BOXES, 999, 3), 3);
  assert.equal(page.boxAt([], 5, Infinity), -1);
});

test("labels of boxes name layer, microbatch and chunk, the longest label first", () => {
  const tasks = ["mlp_forward", "optimizer"];
  assert.deepEqual(plain(page.boxLabels([0, 1, 0, 0, 12, 3, -1, 1], tasks)), ["L12 mb3 mlp fwd", "L12 mb3", "mb3"]);
  assert.deepEqual(plain(page.boxLabels([0, 1, 0, 0, -1, 3, 2, 1], tasks)), ["mb3 c2 mlp fwd", "mb3 c2", "mb3"]);
  assert.deepEqual(plain(page.boxLabels([0, 1, 1, 0, -1, -1, -1, 1], tasks)), ["optimizer"]);
  assert.deepEqual(plain(page.boxLabels([0, 1, 0, 0, -1, -1, -1, 1], ["adam_kernel"])), ["adam_kernel"]);
  assert.equal(page.boxLabels([0, 1, 0, 0, -1, 3, -1, 9], tasks)[0], "mb3 9 tasks");
});

test("the sentence of a box has its times with units", () => {
  const timeline = { names: ["mlp_forward"], categories: ["compute", "tp"], begin: { s: 0.1, text: "100 ms" } };
  const sentence = page.boxSentence(timeline, { label: "rank 0, compute" }, [2000000, 500000, 0, 0, 4, 1, -1, 1]);
  assert.equal(sentence, "rank 0, compute: mlp_forward, layer 4, microbatch 1. It begins 2.00 ms into the iteration, at 102 ms of the run, " +
    "and takes 500 us.");
});

test("an iteration that the run did not end says so once", () => {
  assert.equal(page.lastingText({ duration_ns: 2e6, complete: true }), "takes 2.00 ms");
  assert.equal(page.lastingText({ duration_ns: 2e6, complete: false }),
    "had not ended when the run ended; those of its tasks that had ended span 2.00 ms");
});

test("tracks are laid out with a heading where the group changes", () => {
  const layout = page.layTracks([{ group: "a", label: "x" }, { group: "a", label: "y" }, { group: "b", label: "z" }], 20, 22);
  assert.deepEqual(plain(layout.rows.map((row) => [row.heading ?? null, row.y])), [["a", 0], [null, 22], [null, 42], ["b", 62], [null, 84]]);
  assert.equal(layout.height, 104);
  const ranks = page.layTracks([{ group: "rank 0", label: "rank 0, compute" }, { group: "rank 1", label: "rank 1, tp" }], 20, 21);
  assert.deepEqual(plain(ranks.rows.map((row) => row.y)), [7, 34]);
});

test("segments of a bar follow each other and add up", () => {
  const categories = ["compute", "exposed tp", "exposed pp", "idle"];
  const row = { label: "stage 0", s: [6, 0, 3, 1], text: ["6 s", "0 s", "3 s", "1 s"] };
  const parts = page.stack(categories, row);
  assert.deepEqual(plain(parts.map((part) => [part.category, part.begin, part.end])), [["compute", 0, 6], ["exposed pp", 6, 9], ["idle", 9, 10]]);
  const sentence = page.breakdownSentence({ categories, rows: [row], mean: row });
  assert.equal(sentence, "A mean GPU computes for 60.0 % of the time, waits for exposed communication for 30.0 %, most of it PP (30.0 %), " +
    "and is idle for 10.0 %.");
});

test("bars of a waterfall begin where the bar above ends", () => {
  const causes = [{ label: "compute", s: 6, text: "6 s" }, { label: "held", s: 0, text: "0 s" }, { label: "queueing", s: 4, text: "4 s" }];
  assert.deepEqual(plain(page.waterfall(causes, 10, true).map((bar) => [bar.label, bar.begin, bar.share])),
    [["compute", 0, 0.6], ["queueing", 6, 0.4]]);
  assert.deepEqual(plain(page.waterfall(causes, 10, false).map((bar) => bar.begin)), [0, 0]);
  assert.equal(page.pathSentence({ total: { s: 10, text: "10.0 s" }, causes }),
    "The critical path takes 10.0 s. Its largest parts are compute (60.0 %) and queueing (40.0 %).");
  assert.match(page.pathSentence({ iterations: 3, total: { s: 10, text: "10.0 s" }, causes }), /^The critical path takes 10\.0 s, in the mean of 3 iterations\. Its/);
});

test("texts are cut only where they are too wide", () => {
  assert.equal(page.cutText("queueing", page.widthOf("queueing")), "queueing");
  assert.equal(page.cutText("queueing", page.widthOf("queue"), 12), "queu\u2026");
});

test("the text of a bar never leaves the drawing", () => {
  assert.deepEqual(plain(page.valuePlace(10, 50, 60, 0, 200)), { x: 56, end: false });
  assert.deepEqual(plain(page.valuePlace(100, 190, 60, 0, 200)), { x: 94, end: true });
  assert.deepEqual(plain(page.valuePlace(0, 190, 60, 0, 200)), { x: 8, end: false });
});

test("colour classes of links cover all values", () => {
  const limits = page.heatLimits([0.1, 0.5, 0.2], 0.01);
  assert.equal(limits.length, 5);
  assert.deepEqual([0, 0.1, 0.1000001, 0.3, 0.5].map((value) => page.heatClass(value, limits)), [0, 0, 1, 2, 4]);
  assert.equal(page.heatClass(0, page.heatLimits([], 0.01)), 0);
});

test("names of nodes are drawn only where their row has room", () => {
  const node = (x, y, name) => ({ x, y, name });
  const found = page.nodeNames([node(0, 0, "switch0"), node(0, 9, "host0/gpu0"), node(40, 9, "host0/gpu1"), node(0, 20, "nic0"), node(5, 20, "nic1")], 12);
  assert.deepEqual(plain([...found]), [[0, "switch0"], [1, "gpu0"], [2, "gpu1"]]);
});

test("lines of a map run between the edges of rows that face each other, between centres, or on their own path", () => {
  const row = [{ x: 10, y: 100, w: 90 }, { x: 50, y: 0, w: 10 }];
  assert.equal(page.pathOf([0, 1, 1, 0, 0, 0], row), "M10 89L50 5");
  assert.equal(page.pathOf([0, 1, 1, 0, 0, 0], row.map((node) => ({ ...node, below: false }))), "M10 100L50 0");
  assert.equal(page.pathOf([0, 1, 1, 0, 0, 0, "M0 0L1 1"], row), "M0 0L1 1");
});

test("names in boxes shrink to fit, and are shortened where that is too small", () => {
  const width = (text) => page.widthOf(text, 10);
  assert.deepEqual(plain(page.nameInside({ w: width("switch0") + 6, name: "switch0" }, 10)), { name: "switch0", size: 10 });
  assert.deepEqual(plain(page.nameInside({ w: width("switch0") * 0.8 + 6, name: "switch0" }, 10)), { name: "switch0", size: 8 });
  const hosts = { w: width("4 hosts") + 6, name: "4 hosts (host0 to host3)", short: "4 hosts" };
  assert.equal(page.nameInside(hosts, 10).name, "4 hosts");
  assert.equal(page.nameInside({ w: 10, name: "switch0" }, 10), null);
});

test("the drawing of a topology is as large as its nodes", () => {
  const nodes = [{ x: 600, y: 40, w: 90 }, { x: 320, y: 150, w: 90 }];
  assert.deepEqual(plain(page.mapBounds({ nodes, links: [[0, 1, 1, 0, 0, 0]] })), [245, 24, 430, 142]);
  assert.deepEqual(plain(page.mapBounds({ nodes, links: [[0, 1, 1, 0, 0, 0, "M600 40C700.5 40 320 -10 320 150"]] })), [245, -26, 485.5, 192]);
  const node = (y) => ({ y, name: "host0/gpu0" });
  assert.equal(page.leastMapWidth([node(1), node(1), node(2)]), 2 * (page.widthOf("gpu0", 12) + 14));
  assert.equal(page.leastMapWidth(Array(100).fill(node(1))), 900);
});

test("the sentence on tiers names the busiest and the longest queue", () => {
  const tier = (name, mean, queue) => ({ tier: name, mean, mean_text: page.shareText(mean), maximum: mean, maximum_text: page.shareText(mean),
    queue_bytes: queue, queue_text: page.bytesText(queue), queue_where: name + " port" });
  assert.equal(page.tierSentence([tier("a", 0.1, 5), tier("b", 0.2, 0)]),
    "The busiest tier is b, in use for 20.0 % of the run in the mean and 20.0 % at most. The longest queue was 5 B at a port.");
  const spine = { ...tier("c", 0.1, 0), maximum: 0.8, maximum_text: "80.0 %", busiest: "leaf0->spine1" };
  assert.equal(page.tierSentence([tier("b", 0.2, 0), spine]),
    "The busiest tier is b, in use for 20.0 % of the run in the mean and 20.0 % at most. The busiest link is leaf0->spine1, in use for 80.0 %.");
  assert.equal(page.tierSentence([tier("a", 0, 0)]), "No link carried packets.");
});

test("cumulative distributions are steps", () => {
  assert.deepEqual(plain(page.stepPoints([[1, 0.5], [3, 1]])), [[1, 0], [1, 0.5], [3, 0.5], [3, 1]]);
  assert.equal(page.wantsLogarithm([1, 31]), true);
  assert.equal(page.wantsLogarithm([0, 31]), false);
});

test("labels of quantiles stand away from the curve, the lines and each other", () => {
  const cdf = [[10, 0.1], [95, 0.5], [100, 1]];  // a value is a pixel
  const reached = (at) => page.shareAt(cdf, at);
  assert.deepEqual([0, 10, 94, 95, 200].map(reached), [0, 0.1, 0.1, 0.5, 1]);
  const lines = [{ x: 95, top: 0.5, width: 40 }, { x: 100, top: 0.99, width: 40 }];
  const places = page.placeLabels(lines, reached, 0, 100);
  for (const place of places) {
    assert.ok(place.from >= 0 && place.to < 95);
    assert.ok(place.share > 0.14 || place.share < 0.05, String(place.share));
  }
  assert.ok(Math.abs(places[0].share - places[1].share) > 0.07);
  assert.ok(places[1].to < 95 || places[1].share > 0.5);
});

test("the label of a line without room beside it stands beyond the next line", () => {
  const reached = (at) => (at < 15 ? 0 : at < 30 ? 0.5 : 1);
  const [first] = page.placeLabels([{ x: 15, top: 0.5, width: 40 }, { x: 30, top: 0.99, width: 40 }], reached, 0, 200);
  assert.ok(first.from > 30, String(first.from));
});

test("the distribution of a column has quantiles by nearest rank, and ignores cells without a number", () => {
  const cells = Array.from({ length: 20 }, (_, at) => `${20 - at} ms`).concat("-", "");
  const one = page.distributionOf(cells);
  assert.deepEqual(["p50", "p95", "p99", "max"].map((key) => one[key].text), ["10 ms", "19 ms", "20 ms", "20 ms"]);
  assert.equal(one.cdf.length, 20);
  assert.deepEqual(plain(one.cdf[4]), [0.005, 0.25]);
  assert.equal(page.distributionOf(cells.slice(0, 9)), null);
});

test("the breakdown of jobs has a row for each job and the categories of all", () => {
  const job = (name, categories, s) => ({ job: name, categories, rows: [], mean: { s, text: s.map(page.timeText), total: { text: "" } } });
  const all = page.breakdownOfJobs([job("a", ["compute", "exposed dp", "idle"], [1, 2, 3]), job("b", ["compute", "exposed tp", "idle"], [4, 5, 6])]);
  assert.deepEqual(plain(all.categories), ["compute", "exposed dp", "exposed tp", "idle"]);
  assert.deepEqual(plain(all.rows.map((row) => [row.label, row.s])), [["a", [1, 2, 0, 3]], ["b", [4, 0, 5, 6]]]);
});

test("sentences of several jobs name the job, and only the first jobs have them", () => {
  const breakdowns = Array.from({ length: 6 }, (_, at) => ({ job: "job" + at, categories: ["compute"], rows: [], mean: { s: [1], text: ["1 s"] } }));
  const texts = (data) => plain(page.shortSentences(data).map((one) => one.text));
  assert.equal(texts({ kind: "training", breakdowns, jobs: {} }).length, 4);
  assert.match(texts({ kind: "training", breakdowns: breakdowns.slice(0, 1), jobs: {} })[0], /^job0: A mean GPU/);
  assert.match(texts({ kind: "training", breakdowns: breakdowns.slice(0, 1) })[0], /^A mean GPU/);
});

test("a single fault is named with its times and the iterations it hit", () => {
  const columns = ["from", "until", "where", "fault", "packets lost", "iterations hit"];
  const row = ["3.00 ms", "4.00 ms", "a-b", "is down", "128", "0"];
  assert.equal(page.faultSentence({ columns, rows: [row] }), "a-b is down from 3.00 ms until 4.00 ms. Iterations hit: 0.");
  assert.equal(page.faultSentence({ columns, rows: [row, row] }), "The run had 2 faults.");
});

test("series are grouped by kind, the largest first", () => {
  const series = (title, kind, most) => ({ title, kind, points: [[0, 0], [1, most]] });
  const groups = page.groupSeries([series("a", "queue", 1), series("b", "rate", 1), series("c", "queue", 7), series("d", "queue", 1)]);
  assert.deepEqual(plain(groups.map((group) => [group.kind, group.list.map((one) => one.title)])), [["queue", ["c", "a", "d"]], ["rate", ["b"]]]);
});

test("the sentence of a series names its largest value and when it was", () => {
  const series = { unit: "bytes", points: [[1e-6, 0], [2e-6, 5000], [3e-6, 5000]] };
  assert.equal(page.sampleSentence(series), "At most 5.00 KB, first at 2.00 us.");
});

test("sections stand in their order, those of traffic with flows first, and notes before all", () => {
  const data = { kind: "training", meta: {}, notes: ["n"], headline: [1], breakdowns: [{}], links: { tiers: [{}] }, flows: { count: 2 } };
  const ids = () => plain(page.sectionsOf(data).map((section) => section.id));
  assert.deepEqual(ids(), ["notes", "summary", "breakdown", "links", "flows", "repeat"]);
  data.kind = "traffic";
  assert.deepEqual(ids(), ["notes", "summary", "flows", "breakdown", "links", "repeat"]);
  data.waiting = ["rank 0"];
  data.jobs = { rows: [["a"], ["b"]] };
  assert.deepEqual(ids().slice(0, 4), ["waiting", "notes", "summary", "flows"]);
  data.kind = "training";
  assert.equal(ids()[3], "jobs");
});

let failed = 0;
for (const { name, run } of tests) {
  try {
    run();
  } catch (error) {
    failed += 1;
    console.error(`FAILED: ${name}\n${error.stack}`);
  }
}
console.log(`${tests.length - failed} of ${tests.length} tests passed`);
process.exit(failed ? 1 : 0);
