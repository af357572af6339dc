// Opens report pages in headless Chromium and prints what it finds as JSON. report_page_browser_test.py runs it with node:
//   report_page_browser.js MODULES CHROMIUM PAGE...
// MODULES is a directory node_modules with puppeteer-core and axe-core. The first page is opened at two widths in two themes, and
// so are the others with NETSIM_TEST_SIZE=full; otherwise those are opened wide and light, and narrow and dark.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const url = require("node:url");

const [modules, chromium, ...pages] = process.argv.slice(2);
const puppeteer = require(path.join(modules, "puppeteer-core"));
const axe = fs.readFileSync(path.join(modules, "axe-core", "axe.min.js"), "utf8");
const FEW = [[1440, "light"], [390, "dark"]];
const ALL = [[1440, "light"], [1440, "dark"], [390, "light"], [390, "dark"]];

// Returns what the page shows. It runs in the page.
function look() {
  const root = document.documentElement;
  const text = (node) => node.textContent.trim();
  const right = root.clientWidth;
  const outside = [...document.querySelectorAll("main svg text, main p, main li, main h2, main figcaption")].filter((node) => {
    if (node.closest(".scroll")) return false;
    const box = node.getBoundingClientRect();
    return box.width > 0 && (box.right > right + 1 || box.left < -1);
  });
  const sections = [...document.querySelectorAll("main section")];
  const visible = (node) => node.getBoundingClientRect().width > 0;
  return {
    overflow: root.scrollWidth - innerWidth,
    outside: outside.map(text),
    sections: sections.filter((node) => node.getBoundingClientRect().height > 40).map((node) => node.id),
    contents: [...document.querySelectorAll("#contents a")].map((link) => link.getAttribute("href")),
    empty: [...document.querySelectorAll(".drawing")].filter(visible)
      .filter((place) => !place.querySelector("svg, canvas") || place.getBoundingClientRect().height < 20).length,
    drawings: [...document.querySelectorAll(".drawing")].filter(visible).length,
    unnamed: [...document.querySelectorAll("svg[role=img]")].filter((node) => !/\w+.*\.$/.test(node.getAttribute("aria-label") || "")).length,
    headline: [...document.querySelectorAll("dd[data-summary]")].map((node) => ({ path: node.dataset.summary, text: text(node) })),
    tables: [...document.querySelectorAll("table")].map((table) => ({ caption: text(table.caption),
      columns: [...table.querySelectorAll("thead th > span, thead th button > span:first-child")].map(text),
      rows: [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells].map(text)) })),
  };
}

async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map((one) => ({ rule: one.id, nodes: one.nodes.map((node) => node.html.slice(0, 200)) }));
}

// Uses the keyboard: the timeline, the tabs and the order of a table. Returns what changed.
async function press(page) {
  const found = {};
  if (await page.$(".timeline")) {
    await page.focus(".timeline");
    const details = () => page.$eval(".details", (node) => node.textContent);
    await page.keyboard.press("ArrowDown");
    found.first = await details();
    await page.keyboard.press("n");
    found.next = await details();
    const view = () => page.$eval(".timeline canvas", (canvas) => canvas.toDataURL());
    const before = await view();
    for (const key of ["+", "+", "ArrowRight"]) await page.keyboard.press(key);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    found.zoomed = before !== await view();
  }
  if (await page.$("[role=tab]")) {
    await page.focus("[role=tab][aria-selected=true]");
    await page.keyboard.press("ArrowRight");
    found.tab = await page.$eval("[role=tab]:nth-of-type(2)", (tab) => tab.getAttribute("aria-selected") === "true" && document.activeElement === tab);
    found.panel = await page.$$eval("[role=tabpanel]", (panels) => panels[1].querySelector("svg") !== null && panels[1].offsetHeight > 50);
  }
  const sort = await page.$("#links .sort");
  if (sort) {
    await sort.focus();
    await page.keyboard.press("Enter");
    found.sorted = await page.$$eval("#links table:first-of-type", ([table]) => ({ sort: table.querySelector("th").getAttribute("aria-sort"),
      first: [...table.querySelectorAll("tbody th")].map((cell) => cell.textContent) }));
  }
  return found;
}

// Prints the page as a reader would, with `pdf` into a file that is dropped, and returns what is seen then.
async function print(page, pdf) {
  await page.evaluate(() => {
    addEventListener("beforeprint", () => {
      globalThis.printed = { panels: document.querySelectorAll("[role=tabpanel]").length,
        drawn: [...document.querySelectorAll("[role=tabpanel] .drawing")].filter((place) => place.querySelector("svg")).length,
        theme: document.documentElement.dataset.theme };
    });
  });
  await page.emulateMediaType("print");
  await page.evaluate(() => document.querySelectorAll("details").forEach((node) => { node.open = false; }));
  let bytes = 0;
  if (pdf) bytes = (await page.pdf({ format: "A4", printBackground: true, timeout: 0 })).length;
  else await page.evaluate(() => ["beforeprint", "afterprint"].forEach((name) => dispatchEvent(new Event(name))));
  await page.emulateMediaType("screen");
  return Object.assign(await page.evaluate(() => globalThis.printed), { bytes, after: await page.evaluate(() => document.documentElement.dataset.theme || "") });
}

// Returns the CPU time in ms that the page has taken so far, which does not depend on what else runs on the machine.
async function computingTime(client) {
  const { metrics } = await client.send("Performance.getMetrics");
  return 1000 * metrics.find((metric) => metric.name === "TaskDuration").value;
}

// Returns the fields of the page's data that the page never reads, as paths: ".links.tiers[].kind". Numbers beside a text that is
// shown (s, value, carried_bytes) are for readers of the data.
async function unreadFields(browser, file) {
  const page = await browser.newPage();
  page.setDefaultTimeout(0);
  page.setDefaultNavigationTimeout(0);
  await page.evaluateOnNewDocument(() => {
    const parse = JSON.parse;
    const [present, read] = [new Set(), new Set()];
    const collect = (value, path) => {
      if (Array.isArray(value)) value.forEach((one) => collect(one, path + "[]"));
      else if (value && typeof value === "object") Object.entries(value).forEach(([key, one]) => {
        present.add(path + "." + key);
        collect(one, path + "." + key);
      });
    };
    const watched = (value, path) => (!value || typeof value !== "object" ? value : new Proxy(value, { get(target, key) {
      const found = Reflect.get(target, key);
      if (typeof key === "symbol" || typeof found === "function" || (Array.isArray(target) && key === "length")) return found;
      const at = Array.isArray(target) ? path + "[]" : path + "." + key;
      read.add(at);
      return watched(found, at);
    } }));
    JSON.parse = (text) => {
      const data = parse(text);
      collect(data, "");
      return watched(data, "");
    };
    globalThis.unread = () => [...present].filter((path) => !read.has(path));
  });
  await page.goto(url.pathToFileURL(file).href);
  await page.waitForSelector("html[data-rendered]");
  await page.evaluate(() => document.querySelectorAll("[role=tab], button.more").forEach((button) => button.click()));
  if (await page.$(".timeline")) {
    await page.focus(".timeline");
    await page.keyboard.press("ArrowDown");
  }
  const found = await page.evaluate(() => globalThis.unread());
  await page.close();
  return found.filter((path) => !/\.(s|value|carried_bytes)$/.test(path));
}

async function visit(browser, file, width, theme) {
  const page = await browser.newPage();
  page.setDefaultTimeout(0);  // the caller has a limit; other tests may run beside this one
  page.setDefaultNavigationTimeout(0);
  const complaints = [];
  page.on("console", (message) => complaints.push(message.type() + ": " + message.text()));
  page.on("pageerror", (error) => complaints.push("error: " + error.message));
  page.on("request", (request) => {
    if (!/^(file|data):/.test(request.url())) complaints.push("request: " + request.url());
  });
  await page.setViewport({ width, height: width < 500 ? 844 : 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }, { name: "prefers-reduced-motion", value: "reduce" }]);
  const client = await page.createCDPSession();
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto(url.pathToFileURL(file).href);
  await page.waitForSelector("html[data-rendered]");
  const found = Object.assign({ width, theme, milliseconds: await computingTime(client), paper: await page.evaluate(() => getComputedStyle(document.body).backgroundColor) },
    await page.evaluate(look));
  await page.evaluate(() => document.querySelectorAll("details").forEach((node) => { node.open = true; }));
  found.violations = await violations(page);
  found.openedOverflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  found.keys = await press(page);
  if (theme === "dark") found.print = await print(page, file === pages[0] && width > 500);
  found.complaints = complaints;
  await page.close();
  return found;
}

async function main() {
  const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"], headless: true });
  const found = {};
  try {
    for (const file of pages) {
      found[file] = { unread: await unreadFields(browser, file), views: [] };
      const views = file === pages[0] || process.env.NETSIM_TEST_SIZE === "full" ? ALL : FEW;
      for (const [width, theme] of views) found[file].views.push(await visit(browser, file, width, theme));
    }
  } finally {
    await browser.close();
  }
  process.stdout.write(JSON.stringify(found));
}

main().catch((error) => {
  console.error(error.stack);
  process.exit(1);
});
