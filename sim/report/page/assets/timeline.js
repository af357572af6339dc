// The timeline of an iteration: ranks times streams, drawn on a canvas so that tens of thousands of boxes stay fast.
// Wheel, drag, pinch, buttons and keys move its window; a line of details says what the selected box is.
(function (page) {
  "use strict";

  const TRACK = 20;
  const HEADING = 22;
  const AXIS = 24;
  const TALLEST = 560;  // CSS pixels of the part that scrolls
  const SHADES = { backward: "#003f66", optimizer: "#7a8794" };
  const FONT = "11px system-ui, sans-serif";
  const KEYS = "Drag or use the arrow keys to move, + and - to zoom, 0 for the whole iteration, n and p for the next and the previous " +
    "box, the up and down arrows for another track. The wheel zooms after a click into the timeline.";

  const colourOf = (shade) => SHADES[shade] || page.styleOf(shade).colour;

  function themeColours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    return Object.fromEntries(["ink", "muted", "edge", "line", "panel", "fault", "paper"].map((name) => [name, of("--" + name)]));
  }

  // A timeline on the page. It owns the window, the selection and the canvas.
  class Timeline {
    constructor(data, marks) {
      this.data = data;
      this.window = new page.TimeWindow(data.duration_ns);
      this.layout = page.layTracks(data.tracks, TRACK, HEADING);
      this.marks = (marks || []).map((mark) => Object.assign({ at: (mark.s - data.begin.s) * 1e9 }, mark))
        .filter((mark) => mark.at >= 0 && mark.at <= data.duration_ns);
      this.selected = null;  // {row, box}
      this.pointers = new Map();
      this.widths = new Map();
      this.pictures = new Map();
      this.make();
    }

    make() {
      this.canvas = page.element("canvas", { "aria-hidden": "true" });
      this.space = page.element("div", { class: "timeline-space" }, this.canvas);
      this.tip = page.element("div", { class: "tip", "aria-hidden": "true", hidden: true });
      this.details = page.element("p", { class: "details", "aria-live": "polite" }, "Select a box to see what it is.");
      this.view = page.element("div", { class: "timeline", tabindex: "0", role: "application", "aria-roledescription": "timeline",
        "aria-label": `Timeline of ${page.plural(this.data.tracks.length, "track")} over ${page.timeText(this.data.duration_ns * 1e-9)}. ` + KEYS },
        this.space);
      this.view.addEventListener("scroll", () => this.request());
      this.view.addEventListener("keydown", (event) => this.onKey(event));
      this.view.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
      this.view.addEventListener("pointerdown", (event) => this.onDown(event));
      this.view.addEventListener("pointermove", (event) => this.onMove(event));
      for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
        this.view.addEventListener(name, (event) => this.onUp(event));
      }
    }

    controls() {
      const button = (text, label, act) => page.element("button", { type: "button", class: "control", "aria-label": label, title: label,
        onclick: () => { act(); this.request(); } }, text);
      return page.element("div", { class: "controls" },
        button("+", "Zoom in", () => this.window.zoom(0.5, 0.5)), button("\u2212", "Zoom out", () => this.window.zoom(2, 0.5)),
        button("\u2190", "Earlier", () => this.window.pan(-0.25)), button("\u2192", "Later", () => this.window.pan(0.25)),
        button("Whole iteration", "Show the whole iteration", () => this.window.reset()),
        button("Next box", "Select the next box", () => this.step(1)), button("Previous box", "Select the previous box", () => this.step(-1)));
    }

    // ---- Geometry

    xOf(time) {
      return this.gutter + (time - this.window.begin) / this.window.length * (this.width - this.gutter);
    }

    shareAt(event) {
      const x = event.clientX - this.view.getBoundingClientRect().left - this.gutter;
      return Math.min(1, Math.max(0, x / (this.width - this.gutter)));
    }

    // Returns the box below the pointer as {row, box}, or null.
    find(event) {
      const bounds = this.view.getBoundingClientRect();
      const y = event.clientY - bounds.top - AXIS + this.view.scrollTop;
      const row = this.layout.rows.findIndex((one) => one.track && y >= one.y && y < one.y + one.height);
      if (row < 0 || event.clientX < bounds.left + this.gutter || event.clientY < bounds.top + AXIS) return null;
      const slack = 3 * this.window.length / (this.width - this.gutter);
      const box = page.boxAt(this.layout.rows[row].track.boxes, this.window.begin + this.shareAt(event) * this.window.length, slack);
      return box < 0 ? null : { row, box };
    }

    // ---- Selection

    sentence({ row, box }) {
      const track = this.layout.rows[row].track;
      return page.boxSentence(this.data, track, track.boxes[box]);
    }

    select(place) {
      this.selected = place;
      this.details.textContent = this.sentence(place);
      this.request();
    }

    // Selects a box by the keyboard and brings it into view.
    selectSeen(place) {
      const row = this.layout.rows[place.row];
      const [begin, duration] = row.track.boxes[place.box];
      this.window.reveal(begin, begin + duration);
      const seen = this.view.clientHeight - AXIS;
      if (row.y < this.view.scrollTop) this.view.scrollTop = row.y;
      if (row.y + row.height > this.view.scrollTop + seen) this.view.scrollTop = row.y + row.height - seen;
      this.select(place);
    }

    // Selects the next or the previous box of the track; without a selection, the first box that is seen.
    step(direction) {
      if (!this.selected) {
        this.changeTrack(1);
        return;
      }
      const boxes = this.layout.rows[this.selected.row].track.boxes;
      const box = Math.min(boxes.length - 1, Math.max(0, this.selected.box + direction));
      this.selectSeen({ row: this.selected.row, box });
    }

    changeTrack(direction) {
      const rows = this.layout.rows;
      const from = this.selected ? rows[this.selected.row].track.boxes[this.selected.box] : null;
      const time = from ? from[0] + from[1] / 2 : this.window.begin;
      for (let row = (this.selected ? this.selected.row : -1) + direction; row >= 0 && row < rows.length; row += direction) {
        if (!rows[row].track || rows[row].track.boxes.length === 0) continue;
        this.selectSeen({ row, box: page.boxAt(rows[row].track.boxes, time, Infinity) });
        return;
      }
    }

    // ---- Input

    onKey(event) {
      const acts = {
        ArrowLeft: () => this.window.pan(-0.15), ArrowRight: () => this.window.pan(0.15),
        ArrowUp: () => this.changeTrack(-1), ArrowDown: () => this.changeTrack(1),
        "+": () => this.zoomByKey(0.5), "=": () => this.zoomByKey(0.5), "-": () => this.zoomByKey(2),
        0: () => this.window.reset(), Home: () => this.window.place(0, 0, this.window.length),
        End: () => this.window.place(this.window.whole, 1, this.window.length), n: () => this.step(1), p: () => this.step(-1),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(acts, event.key)) return;
      event.preventDefault();
      acts[event.key]();
      this.request();
    }

    // Zooms around the selected box where it is seen, else around the middle.
    zoomByKey(factor) {
      let share = 0.5;
      if (this.selected) {
        const [begin, duration] = this.layout.rows[this.selected.row].track.boxes[this.selected.box];
        const at = (begin + duration / 2 - this.window.begin) / this.window.length;
        if (at >= 0 && at <= 1) share = at;
      }
      this.window.zoom(factor, share);
    }

    onWheel(event) {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.view) return;  // the page scrolls
      if (event.shiftKey) return;  // the tracks scroll
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.window.pan(event.deltaX / this.width);
      else this.window.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), this.shareAt(event));
      this.request();
    }

    onDown(event) {
      if (event.button !== 0 || event.offsetX > this.view.clientWidth) return;
      this.view.focus({ preventScroll: true });
      this.pointers.set(event.pointerId, { x: event.clientX, moved: false });
      const found = this.find(event);
      if (found) this.select(found);
    }

    onMove(event) {
      const held = this.pointers.get(event.pointerId);
      if (!held) {
        this.showTip(event);
        return;
      }
      if (!held.moved && Math.abs(event.clientX - held.x) < 4) return;
      if (!held.moved) this.view.setPointerCapture(event.pointerId);
      held.moved = true;
      const before = this.spread();
      const moved = event.clientX - held.x;
      held.x = event.clientX;
      if (before > 0) this.window.zoom(before / Math.max(10, this.spread()), this.shareAt(event));
      else this.window.pan(-moved / (this.width - this.gutter));
      this.hideTip();
      this.request();
    }

    // Returns the distance of two fingers, or 0 where there are not two.
    spread() {
      const all = [...this.pointers.values()];
      return all.length === 2 ? Math.abs(all[0].x - all[1].x) : 0;
    }

    onUp(event) {
      this.pointers.delete(event.pointerId);
      this.hideTip();
    }

    showTip(event) {
      const found = this.find(event);
      if (!found) {
        this.hideTip();
        return;
      }
      const bounds = this.tip.parentNode.getBoundingClientRect();
      this.tip.textContent = this.sentence(found);
      this.tip.hidden = false;
      const x = Math.min(event.clientX - bounds.left + 12, bounds.width - this.tip.offsetWidth - 4);
      this.tip.style.left = Math.max(0, x) + "px";
      this.tip.style.top = event.clientY - bounds.top + 16 + "px";
    }

    hideTip() {
      this.tip.hidden = true;
    }

    // ---- Drawing

    request() {
      if (this.frame) return;
      this.frame = requestAnimationFrame(() => this.paint());
    }

    // Draws into `place`. On paper the whole height is drawn, else the part that the region shows.
    draw(place, width) {
      if (this.view.parentNode !== place) place.replaceChildren(this.view, this.tip, this.details);
      const whole = this.layout.height + AXIS;
      this.seen = page.onPaper ? Math.min(whole, 8000) : Math.min(whole, TALLEST, Math.max(240, 0.65 * innerHeight));
      this.view.style.height = this.seen + 2 + "px";
      this.space.style.height = whole + "px";
      this.width = Math.max(200, this.view.clientWidth || width);
      this.gutter = Math.round(Math.min(16 + d3.max(this.data.tracks, (track) => page.widthOf(track.label, 11)), this.width * 0.26));
      this.brief = this.data.tracks.some((track) => page.widthOf(track.label, 11) > this.gutter - 10);
      this.paint();
    }

    paint() {
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      const ratio = Math.min(3, globalThis.devicePixelRatio || 1);
      const [w, h] = [Math.round(this.width * ratio), Math.round(this.seen * ratio)];
      if (this.canvas.width !== w || this.canvas.height !== h) Object.assign(this.canvas, { width: w, height: h });
      this.canvas.style.width = this.width + "px";
      this.canvas.style.height = this.seen + "px";
      this.colours = themeColours();
      const ink = this.ink = this.canvas.getContext("2d");
      ink.setTransform(ratio, 0, 0, ratio, 0, 0);
      ink.clearRect(0, 0, this.width, this.seen);
      ink.font = FONT;
      ink.textBaseline = "middle";
      const top = page.onPaper ? 0 : this.view.scrollTop;
      this.paintGrid();
      for (const row of this.layout.rows) {
        const y = row.y - top + AXIS;
        if (y + row.height < AXIS || y > this.seen) continue;
        if (row.track) this.paintTrack(row, y);
        else this.paintHeading(row, y);
      }
      this.paintAxis();
      this.paintMarks();
    }

    paintHeading(row, y) {
      this.ink.fillStyle = this.colours.panel;
      this.ink.fillRect(0, y, this.width, row.height);
      this.ink.fillStyle = this.colours.ink;
      this.ink.font = "600 " + FONT;
      this.ink.fillText(row.heading, 6, y + row.height / 2);
      this.ink.font = FONT;
    }

    paintTrack(row, y) {
      const ink = this.ink;
      ink.fillStyle = this.colours.muted;
      ink.fillText(this.trackName(row.track), 6, y + row.height / 2);
      ink.save();
      ink.beginPath();
      ink.rect(this.gutter, y, this.width - this.gutter, row.height);
      ink.clip();
      this.paintBoxes(row, y + 2, row.height - 4);
      ink.restore();
    }

    // Returns the label of a track, in brief on all tracks where the longest one has no room.
    trackName(track) {
      const name = this.brief ? track.label.replace("rank ", "").replace(", ", " ") : track.label;
      return this.measure(name) <= this.gutter - 10 ? name : page.cutText(name, this.gutter - 10, 11);
    }

    paintBoxes(row, y, height) {
      const boxes = row.track.boxes;
      let painted = -1;  // the right edge of the last box, to leave out those that no pixel is left for
      for (let at = page.firstBox(boxes, this.window.begin); at < boxes.length && boxes[at][0] < this.window.end; ++at) {
        const left = this.xOf(boxes[at][0]);
        const right = this.xOf(boxes[at][0] + boxes[at][1]);
        if (right < painted + 0.5) continue;
        this.paintBox(boxes[at], Math.max(left, this.gutter - 2), Math.min(right, this.width + 2), y, height);
        painted = Math.max(right, left + 1);
      }
      if (this.selected && this.layout.rows[this.selected.row] === row) this.paintSelection(boxes[this.selected.box], y, height);
    }

    paintBox(box, left, right, y, height) {
      const ink = this.ink;
      const shade = page.boxShade(this.data.categories[box[3]], this.data.names[box[2]]);
      const wide = right - left;
      ink.fillStyle = wide < 6 ? colourOf(shade) : this.picture(shade);
      ink.fillRect(left, y, Math.max(1, wide - (wide > 3 ? 1 : 0)), height);
      if (wide > 3) {
        ink.strokeStyle = this.colours.edge;
        ink.lineWidth = 0.75;
        ink.strokeRect(left + 0.25, y + 0.25, wide - 1, height - 0.5);
      }
      if (wide > 16) this.paintLabel(box, shade, left, wide, y, height);
    }

    paintLabel(box, shade, left, wide, y, height) {
      const text = this.fit(page.boxLabels(box, this.data.names), wide - 6);
      if (!text) return;
      const ink = this.ink;
      const size = this.measure(text);
      const x = left + (wide - size) / 2;
      if (page.strokesOf(page.styleOf(shade).pattern) && !SHADES[shade]) {  // letters are read on a plain ground
        ink.fillStyle = colourOf(shade);
        ink.fillRect(x - 2, y + 1, size + 4, height - 2);
      }
      ink.fillStyle = page.textOn(colourOf(shade));
      ink.fillText(text, x, y + height / 2 + 0.5);
    }

    paintSelection(box, y, height) {
      const left = this.xOf(box[0]);
      const wide = Math.max(3, this.xOf(box[0] + box[1]) - left);
      this.ink.strokeStyle = this.colours.paper;
      this.ink.lineWidth = 4;
      this.ink.strokeRect(left, y, wide, height);
      this.ink.strokeStyle = this.colours.fault;
      this.ink.lineWidth = 2;
      this.ink.strokeRect(left, y, wide, height);
    }

    // Returns the ticks of the axis of time: {time, x}.
    ticks() {
      const scale = d3.scale.linear().domain([this.window.begin, this.window.end]).range([this.gutter, this.width]);
      return scale.ticks(Math.max(2, Math.floor((this.width - this.gutter) / 110))).map((time) => ({ time, x: Math.round(scale(time)) + 0.5 }));
    }

    paintGrid() {
      const ink = this.ink;
      ink.strokeStyle = this.colours.line;
      ink.lineWidth = 1;
      for (const { x } of this.ticks()) {
        ink.beginPath();
        ink.moveTo(x, AXIS - 6);
        ink.lineTo(x, this.seen);
        ink.stroke();
      }
    }

    // Writes the times above the tracks, over what of them has scrolled there.
    paintAxis() {
      const ink = this.ink;
      ink.fillStyle = this.colours.paper;
      ink.fillRect(0, 0, this.width, AXIS);
      ink.fillStyle = this.colours.muted;
      const write = page.spanText(this.window.length, this.window.end);
      for (const { time, x } of this.ticks()) {
        const text = write(time);
        ink.fillText(text, Math.min(this.width - this.measure(text) - 2, Math.max(this.gutter, x - this.measure(text) / 2)), 10);
      }
    }

    paintMarks() {
      for (const mark of this.marks) {
        if (mark.at < this.window.begin || mark.at > this.window.end) continue;
        const [ink, x] = [this.ink, this.xOf(mark.at)];
        ink.strokeStyle = ink.fillStyle = this.colours.fault;
        ink.lineWidth = 1.5;
        ink.setLineDash([5, 3]);
        ink.beginPath();
        ink.moveTo(x, AXIS - 6);
        ink.lineTo(x, this.seen);
        ink.stroke();
        ink.setLineDash([]);
        ink.beginPath();
        ink.moveTo(x, AXIS - 8);
        ink.lineTo(x + 6, AXIS - 4);
        ink.lineTo(x, AXIS);
        ink.fill();
      }
    }

    // Returns the fill of a shade: its colour with its pattern.
    picture(shade) {
      if (SHADES[shade] || page.styleOf(shade).pattern === "none") return colourOf(shade);
      if (!this.pictures.has(shade)) {
        const tile = page.element("canvas", { width: 8, height: 8 });
        const ink = tile.getContext("2d");
        ink.fillStyle = colourOf(shade);
        ink.fillRect(0, 0, 8, 8);
        ink.strokeStyle = page.patternInk;
        ink.stroke(new Path2D(page.strokesOf(page.styleOf(shade).pattern)));
        this.pictures.set(shade, this.ink.createPattern(tile, "repeat"));
      }
      return this.pictures.get(shade);
    }

    measure(text) {
      if (!this.widths.has(text)) this.widths.set(text, this.ink.measureText(text).width);
      return this.widths.get(text);
    }

    // Returns the first of `texts` that is not wider than `width`, or "".
    fit(texts, width) {
      return texts.find((text) => text && this.measure(text) <= width) || "";
    }
  }

  // Returns the function that writes times of an axis of `length` ns up to `end` ns: all ticks in one unit, the largest in which
  // the last tick is at least 1 and few digits tell the ticks apart.
  page.spanText = function (length, end) {
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find((one) => end >= one[1] && length >= one[1] / 100) || ["ns", 1];
    return (time) => Number((time / size).toFixed(6)).toLocaleString("en", { maximumFractionDigits: 6 }) + " " + unit;
  };

  function shadesOf(timeline) {
    const shades = new Map();
    for (const track of timeline.tracks) {
      for (const box of track.boxes) {
        const category = timeline.categories[box[3]];
        const shade = page.boxShade(category, timeline.names[box[2]]);
        const part = Object.hasOwn(SHADES, shade) ? shade : "forward and other";
        const name = category === "compute" ? "compute, " + part : page.categoryName(category);
        shades.set(name, SHADES[shade] || page.fillOf(page.styleOf(shade)));
      }
    }
    return [...shades].map(([name, fill]) => ({ name, fill }));
  }

  function tableOf(timeline) {
    const share = (track) => page.shareText(page.busyOf(track) / timeline.duration_ns);
    return { caption: "Tracks of the timeline, with the time in which a task ran",
      columns: ["track", "group", "tasks", "busy", "share of the iteration"],
      rows: timeline.tracks.map((track) => [track.label, track.group, page.tasksOf(track), page.timeText(page.busyOf(track) * 1e-9), share(track)]) };
  }

  // Makes the figure of a timeline; `marks` are the faults of the run.
  page.timelineFigure = function (data, marks) {
    const one = new Timeline(data, marks);
    page.repaints.push(() => one.width && one.paint());
    const where = one.marks.length ? " Dashed lines are faults: " + one.marks.map((mark) => mark.text + ", " + mark.label).join("; ") + "." : "";
    return page.figure({ title: `${data.job}, iteration ${data.iteration}.`,
      summary: `It begins at ${data.begin.text} of the run and ${page.lastingText(data)}. ${page.plural(data.tracks.length, "track")} ` +
        `hold ${page.plural(data.tracks.reduce((sum, track) => sum + page.tasksOf(track), 0), "task")}.${where}`,
      controls: one.controls(), legend: page.legend(shadesOf(data)), note: data.note, table: tableOf(data),
      draw: (place, width) => one.draw(place, width) });
  };

  page.timelineKeys = KEYS;
})(globalThis.netsimPage = globalThis.netsimPage || {});
