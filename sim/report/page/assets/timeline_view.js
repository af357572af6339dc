// What the timeline shows: its window of time, which boxes lie in it, and their labels. Nothing here draws.
(function (page) {
  "use strict";

  // A window [begin, end] of a timeline, in nanoseconds; it always lies within [0, whole].
  page.TimeWindow = class {
    constructor(whole) {
      this.whole = Math.max(1, whole);
      this.least = Math.min(this.whole, 100);  // the shortest window, in ns
      this.reset();
    }

    reset() {
      this.begin = 0;
      this.end = this.whole;
    }

    get length() {
      return this.end - this.begin;
    }

    // Sets a window of `length` in which `at` keeps its place at the share `share` of the width.
    place(at, share, length) {
      length = Math.min(this.whole, Math.max(this.least, length));
      this.begin = Math.min(Math.max(0, at - share * length), this.whole - length);
      this.end = this.begin + length;
    }

    // Shows `factor` times as much time around the share `share` of the width.
    zoom(factor, share) {
      this.place(this.begin + share * this.length, share, this.length * factor);
    }

    // Moves by a share of the window; positive is later.
    pan(share) {
      this.place(this.begin + share * this.length, 0, this.length);
    }

    // Moves and zooms so far that [begin, end] is well seen.
    reveal(begin, end) {
      const size = Math.max(1, end - begin);
      const length = size < this.length / 200 ? size * 40 : Math.max(this.length, size * 1.2);
      if (begin < this.begin || end > this.end || length !== this.length) this.place((begin + end) / 2, 0.5, length);
    }
  };

  // Returns the index of the first box that ends after `time`; boxes are sorted and do not overlap.
  page.firstBox = function (boxes, time) {
    let [low, high] = [0, boxes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (boxes[middle][0] + boxes[middle][1] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  // Returns the box at `time`, or the nearest one within `slack` ns, as an index; -1 where there is none.
  page.boxAt = function (boxes, time, slack) {
    const next = page.firstBox(boxes, time);
    const distance = (at) => {
      if (at < 0 || at >= boxes.length) return Infinity;
      const [begin, duration] = boxes[at];
      return time < begin ? begin - time : Math.max(0, time - begin - duration);
    };
    const best = distance(next) <= distance(next - 1) ? next : next - 1;
    return boxes.length > 0 && distance(best) <= slack ? best : -1;
  };

  const SHORT = { forward: "fwd", backward: "bwd", recompute: "rec", attention: "attn", embedding: "emb", optimizer: "opt" };

  // Returns a task's name as a box shows it: "mlp_forward" is "mlp fwd".
  page.shortName = (name) => name.split("_").map((word) => (Object.hasOwn(SHORT, word) ? SHORT[word] : word)).join(" ");

  // Returns the labels of a box, the longest first: "L12 mb3 mlp fwd", "L12 mb3", "mb3". The tasks of traces have no marks, and keep
  // their names.
  page.boxLabels = function (box, names) {
    const [, , name, , layer, microbatch, chunk, tasks] = box;
    const parts = [];
    if (layer >= 0) parts.push("L" + layer);
    if (microbatch >= 0) parts.push("mb" + microbatch);
    if (chunk > 0) parts.push("c" + chunk);
    const marks = parts.join(" ");
    const text = tasks > 1 ? tasks + " tasks" : marks ? page.shortName(names[name]) : names[name];
    const labels = [(marks + " " + text).trim()];
    if (marks) labels.push(marks);
    if (microbatch >= 0 && parts.length > 1) labels.push("mb" + microbatch);
    return labels;
  };

  // Returns a sentence about a box, for the line of details.
  page.boxSentence = function (timeline, track, box) {
    const [begin, duration, name, category, layer, microbatch, chunk, tasks] = box;
    const marks = [[layer, "layer"], [microbatch, "microbatch"], [chunk, "chunk"]].filter(([value]) => value >= 0)
      .map(([value, noun]) => noun + " " + value).join(", ");
    const what = tasks > 1 ? tasks + " tasks, the first of them " + timeline.names[name] : timeline.names[name];
    const start = timeline.begin.s + begin * 1e-9;
    const kind = timeline.categories[category];
    const stream = track.label.endsWith(kind) ? "" : ` (${page.categoryName(kind)})`;
    return `${track.label}: ${what}${stream}${marks ? ", " + marks : ""}. It begins ` +
      `${page.timeText(begin * 1e-9)} into the iteration, at ${page.timeText(start)} of the run, and takes ${page.timeText(duration * 1e-9)}.`;
  };

  // Returns how long the iteration takes. Of one that the run did not end, only tasks that had ended are drawn.
  page.lastingText = function (timeline) {
    const lasting = page.timeText(timeline.duration_ns * 1e-9);
    return timeline.complete ? `takes ${lasting}` : `had not ended when the run ended; those of its tasks that had ended span ${lasting}`;
  };

  // Returns how a box of computation is shaded: forward, backward and other computations are told apart.
  page.boxShade = function (category, name) {
    if (category !== "compute") return page.styleOf(category).key;
    if (/backward|bwd|grad/.test(name)) return "backward";
    return /optimi|step|update/.test(name) ? "optimizer" : "compute";
  };

  // Returns the busy time of a track in ns, and its boxes' tasks by number.
  page.busyOf = (track) => track.boxes.reduce((sum, box) => sum + box[1], 0);
  page.tasksOf = (track) => track.boxes.reduce((sum, box) => sum + (box[7] || 1), 0);

  // Lays out tracks below each other: [{track, y, height, heading}], and returns the height too. Where the group changes there
  // is a heading, or only a gap where the labels of the tracks begin with the group.
  page.layTracks = function (tracks, height, heading) {
    const rows = [];
    let y = 0;
    let group = null;
    for (const track of tracks) {
      if (track.group !== group) {
        group = track.group;
        const named = track.label.startsWith(group + ",");
        if (!named) rows.push({ heading: group, y, height: heading });
        y += named ? heading / 3 : heading;
      }
      rows.push({ track, y, height });
      y += height;
    }
    return { rows, height: y };
  };
})(globalThis.netsimPage = globalThis.netsimPage || {});
