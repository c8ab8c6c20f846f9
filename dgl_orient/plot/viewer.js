// RandomStream clouds with their orientations on canvases: orbit, hover, toggles. It needs nothing but itself.
"use strict";

const scene = JSON.parse(document.getElementById("scene").textContent);
const byId = (id) => document.getElementById(id);
const AXES = scene.axisColors.map((rgb) => `rgb(${rgb})`);
const GLOBAL_LENGTH = 0.6;

// Arrays travel as base64 of little-endian numbers.
function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}

// 3 x 3 matrices are flat and in rows.
const times = (a, b) => a.map((_, i) => {
  const row = 3 * Math.floor(i / 3), column = i % 3;
  return a[row] * b[column] + a[row + 1] * b[column + 3] + a[row + 2] * b[column + 6];
});
const transposed = (a) => [a[0], a[3], a[6], a[1], a[4], a[7], a[2], a[5], a[8]];
const applied = (a, x, y, z) => [
  a[0] * x + a[1] * y + a[2] * z, a[3] * x + a[4] * y + a[5] * z, a[6] * x + a[7] * y + a[8] * z,
];
const about = (axis, angle) => {
  const c = Math.cos(angle), s = Math.sin(angle);
  return axis === "x" ? [1, 0, 0, 0, c, -s, 0, s, c] : [c, 0, s, 0, 1, 0, -s, 0, c];
};

const state = { view: scene.view, zoom: 1 };
const panels = scene.clouds.map((cloud) => {
  const figure = document.createElement("figure");
  const canvas = document.createElement("canvas");
  const caption = document.createElement("figcaption");
  caption.textContent = cloud.title;
  figure.append(caption, canvas);
  byId("panels").append(figure);
  return {
    canvas, caption,
    pos: unpack(cloud.pos, Float32Array),
    rows: unpack(cloud.rows, Int32Array),
    frames: unpack(cloud.frames, Float32Array),
    glob: cloud.glob === null ? null : unpack(cloud.glob, Float32Array),
    colors: cloud.colorings.map((each) => ({ ...each, rgb: unpack(each.rgb, Uint8Array) })),
    turn: cloud.turn, centre: cloud.centre, radius: cloud.radius, places: [],
  };
});

// What the controls say.
function chosen() {
  return {
    points: byId("points").checked,
    axes: [0, 1, 2].filter((axis) => byId(`axis${axis}`).checked),
    global: byId("global").checked,
    back: byId("back").checked,
    color: byId("color").selectedIndex,
    level: Number(byId("level").value || 0),
    orientation: Number(byId("orientation").value || 0),
    count: Number(byId("count").value),
    length: Number(byId("length").value),
  };
}

// From a place in space to one on the canvas, with its depth.
function projection(panel, look, size) {
  const view = look.back ? times(state.view, transposed(panel.turn)) : state.view;
  const scale = (0.44 * size * state.zoom) / panel.radius;
  return (x, y, z) => {
    const [right, up, near] = applied(
      view, x - panel.centre[0], y - panel.centre[1], z - panel.centre[2]);
    return [size / 2 + scale * right, size / 2 - scale * up, near / panel.radius];
  };
}

function pointItems(panel, look, project, size) {
  const { rgb } = panel.colors[look.color];
  const number = panel.pos.length / 3;
  const radius = Math.max(1.2, Math.min(0.022, 0.4 / Math.sqrt(number)) * 0.44 * size * state.zoom);
  panel.places = [];
  const items = [];
  for (let i = 0; i < number; i += 1) {
    const [x, y, depth] = project(panel.pos[3 * i], panel.pos[3 * i + 1], panel.pos[3 * i + 2]);
    panel.places.push([x, y, depth]);
    const fog = 0.18 * (1 - Math.max(-1, Math.min(1, depth)));
    const color = [0, 1, 2].map((c) => Math.round(rgb[3 * i + c] * (1 - fog) + 255 * fog));
    items.push({ depth, x, y, radius, color: `rgb(${color})` });
  }
  return items;
}

// A frame is 9 numbers from `at` on, its axes in columns.
function arrowItem(panel, project, start, frames, at, axis, length, width) {
  const end = start.map((value, i) => value + length * panel.radius * frames[at + 3 * i + axis]);
  const tail = project(...start), tip = project(...end);
  return { depth: (tail[2] + tip[2]) / 2, tail, tip, width, color: AXES[axis] };
}

function arrowItems(panel, look, project) {
  const [levels, several] = scene.shape;
  const items = [];
  if (levels === 0) return items;
  const count = Math.min(look.count, scene.levelSizes[look.level], panel.rows.length);
  for (let m = 0; m < count; m += 1) {
    const row = panel.rows[m];
    const start = [panel.pos[3 * row], panel.pos[3 * row + 1], panel.pos[3 * row + 2]];
    const at = 9 * ((m * levels + look.level) * several + look.orientation);
    for (const axis of look.axes) {
      items.push(arrowItem(panel, project, start, panel.frames, at, axis, look.length, 1.5));
    }
  }
  return items;
}

function globalItems(panel, look, project) {
  const wanted = look.global || scene.levelSizes[look.level] === 0;
  if (!wanted || panel.glob === null) return [];
  const at = 9 * look.orientation;
  return look.axes.map((axis) =>
    arrowItem(panel, project, panel.centre, panel.glob, at, axis, GLOBAL_LENGTH, 4));
}

function drawArrow(pen, { tail, tip, width, color }, ratio) {
  const along = [tip[0] - tail[0], tip[1] - tail[1]];
  const length = Math.hypot(...along) || 1;
  const unit = along.map((value) => value / length);
  const head = Math.min(4 * width * ratio, 0.6 * length);
  const neck = [tip[0] - head * unit[0], tip[1] - head * unit[1]];
  pen.strokeStyle = pen.fillStyle = color;
  pen.lineWidth = width * ratio;
  pen.beginPath();
  pen.moveTo(tail[0], tail[1]);
  pen.lineTo(...neck);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(tip[0], tip[1]);
  pen.lineTo(neck[0] - 0.45 * head * unit[1], neck[1] + 0.45 * head * unit[0]);
  pen.lineTo(neck[0] + 0.45 * head * unit[1], neck[1] - 0.45 * head * unit[0]);
  pen.fill();
}

function drawPanel(panel, look) {
  const ratio = window.devicePixelRatio || 1;
  const size = Math.max(1, Math.round(panel.canvas.clientWidth * ratio));
  panel.canvas.width = panel.canvas.height = size;
  const pen = panel.canvas.getContext("2d");
  const project = projection(panel, look, size);
  const points = pointItems(panel, look, project, size);
  const items = [...(look.points ? points : []), ...arrowItems(panel, look, project)];
  items.sort((a, b) => a.depth - b.depth);
  for (const item of [...items, ...globalItems(panel, look, project)]) {
    if (item.tip) {
      drawArrow(pen, item, ratio);
    } else {
      pen.fillStyle = item.color;
      pen.beginPath();
      pen.arc(item.x, item.y, item.radius, 0, 2 * Math.PI);
      pen.fill();
    }
  }
}

function drawLegend(look) {
  const entries = new Map(panels.flatMap(({ colors }) => colors[look.color].legend));
  byId("legend").replaceChildren(...[...entries].map(([words, rgb]) => {
    const entry = document.createElement("span"), patch = document.createElement("i");
    patch.style.background = `rgb(${rgb})`;
    entry.append(patch, words);
    return entry;
  }));
}

// Browsers hand out moves of the pointer once a frame, so there is nothing to save up.
function draw() {
  const look = chosen();
  panels.forEach((panel) => drawPanel(panel, look));
  drawLegend(look);
}

// The nearest point under the pointer, the foremost of those that are close.
function pointAt(panel, event) {
  const box = panel.canvas.getBoundingClientRect();
  const ratio = panel.canvas.width / box.width;
  const x = (event.clientX - box.left) * ratio, y = (event.clientY - box.top) * ratio;
  let best = -1;
  panel.places.forEach(([px, py, depth], i) => {
    const close = Math.hypot(px - x, py - y) < 7 * ratio;
    if (close && (best < 0 || depth > panel.places[best][2])) best = i;
  });
  return best;
}

function values(panel, i) {
  const look = chosen();
  const near = [0, 1, 2].map((c) => panel.pos[3 * i + c].toFixed(3));
  const coloring = panel.colors[look.color];
  const lines = [`point ${i}`, `position ${near.join(", ")}`, `${coloring.name} ${coloring.texts[i]}`];
  const m = panel.rows.indexOf(i), [levels, several] = scene.shape;
  if (m >= 0 && levels > 0) {
    const at = 9 * ((m * levels + look.level) * several + look.orientation);
    ["first", "second", "third"].forEach((name, axis) => {
      const parts = [0, 1, 2].map((c) => panel.frames[at + 3 * c + axis].toFixed(3));
      lines.push(`${name} axis ${parts.join(", ")}`);
    });
  }
  return lines.join("\n");
}

function hover(panel, event) {
  const i = byId("points").checked ? pointAt(panel, event) : -1;
  const tip = byId("tip");
  tip.style.display = i < 0 ? "none" : "block";
  if (i < 0) return;
  tip.textContent = values(panel, i);
  tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 240)}px`;
  tip.style.top = `${event.clientY + 14}px`;
}

function listen(panel) {
  const { canvas } = panel;
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = [event.clientX, event.clientY];
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointercancel", () => { held = null; });
  canvas.addEventListener("pointerleave", () => { byId("tip").style.display = "none"; });
  canvas.addEventListener("pointermove", (event) => {
    if (held === null) {
      hover(panel, event);
      return;
    }
    byId("tip").style.display = "none";
    const turn = times(about("x", (event.clientY - held[1]) / 120), about("y", (event.clientX - held[0]) / 120));
    state.view = times(turn, state.view);
    held = [event.clientX, event.clientY];
    draw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    state.zoom = Math.max(0.2, Math.min(20, state.zoom * Math.exp(-event.deltaY / 500)));
    draw();
  }, { passive: false });
  canvas.addEventListener("dblclick", () => {
    state.view = scene.view;
    state.zoom = 1;
    draw();
  });
}

function fill(select, words, index) {
  select.replaceChildren(...words.map((text, number) => new Option(text, number)));
  select.selectedIndex = index;
  select.parentElement.hidden = words.length < 2;
}

function start() {
  const [levels, several] = scene.shape, { look } = scene;
  document.title = scene.title;
  byId("title").textContent = scene.title;
  for (const axis of [0, 1, 2]) {
    byId(`axis${axis}`).checked = look.axes.includes(axis);
    byId(`axis${axis}`).parentElement.hidden = levels === 0;
  }
  byId("global").checked = look.showGlobal;
  byId("global").parentElement.hidden = panels[0].glob === null;
  byId("back").parentElement.hidden = panels.length < 2;
  fill(byId("color"), panels[0].colors.map((each) => each.name), look.color);
  fill(byId("level"), scene.levelNames, look.level);
  fill(byId("orientation"), [...Array(several).keys()].map(String), look.orientation);
  byId("count").max = panels[0].rows.length;
  byId("count").value = look.numArrows;
  byId("length").value = look.arrowLength;
  byId("count").parentElement.hidden = byId("length").parentElement.hidden = levels === 0;
  byId("controls").addEventListener("input", draw);
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("resize", draw);
  panels.forEach(listen);
  draw();
}

start();
