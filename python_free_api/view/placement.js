'use strict';
// Draws the placed graph in `DATA` (placement_view.cc says its form): boxes for scopes that open and
// close, colour by device, edges that cross devices with their bytes. The layout is our own: within
// each open scope, items go in rows by their longest path from the top.

const COLOURS = ['#8ecae6', '#ffb703', '#95d5b2', '#cdb4db', '#f4a39a', '#bcb8b1', '#a3c4f3', '#e9d985'];
const NODE = { width: 128, height: 30 };
const GAP = { x: 22, y: 36 };
const PAD = { x: 16, top: 28, bottom: 16 };

const $ = id => document.getElementById(id);
const colourOf = device => COLOURS[DATA.devices.findIndex(d => d.name === device) % COLOURS.length] || '#fff';
const shortDevice = name => name.replace('/job:', '').replace('/task:', ':').replace('/device:', ' ');

function bytesText(bytes) {
  if (bytes < 0) return '? B';
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['KB', 1e3]]) {
    if (bytes >= size) return `${(bytes / size).toFixed(bytes >= 10 * size ? 0 : 1)} ${unit}`;
  }
  return `${bytes} B`;
}

// The tree of name scopes. A node's name may also be that of a scope ("w" and "w/read"): the scope
// is then kept apart by a slash at its end.
function buildTree() {
  const root = { name: '', path: '', children: new Map(), parent: null, open: true, nodes: [] };
  DATA.nodes.forEach((node, index) => {
    let scope = root;
    const parts = node.name.split('/');
    scope.nodes.push(index);
    for (let i = 0; i + 1 < parts.length; ++i) {
      const key = parts[i] + '/';
      if (!scope.children.has(key)) {
        scope.children.set(key, {
          name: parts[i], path: parts.slice(0, i + 1).join('/'), children: new Map(),
          parent: scope, open: false, nodes: [],
        });
      }
      scope = scope.children.get(key);
      scope.nodes.push(index);
    }
    const leaf = { name: parts[parts.length - 1], path: node.name, parent: scope, node: index, nodes: [index] };
    scope.children.set(leaf.name, leaf);
    node.item = leaf;
  });
  return root;
}

const root = buildTree();
let chosen = -1;

// The innermost item on the way from the root to the node that is drawn as one box.
function visibleItem(index) {
  const path = [];
  for (let item = DATA.nodes[index].item; item; item = item.parent) path.push(item);
  for (let i = path.length - 1; i >= 0; --i) {
    if (path[i].node !== undefined || !path[i].open) return path[i];
  }
  return path[0];
}

// The ancestor of `item` (or itself) that is a direct child of `scope`; null if it is not inside.
function childWithin(scope, item) {
  while (item && item.parent !== scope) item = item.parent;
  return item;
}

function layout(scope) {
  const items = [...scope.children.values()];
  for (const item of items) {
    if (item.node === undefined && item.open) {
      layout(item);
    } else {
      item.width = NODE.width;
      item.height = NODE.height;
    }
    item.first = item.nodes[0];  // nodes come in topological order
    item.row = 0;
  }
  items.sort((a, b) => a.first - b.first);
  items.forEach((item, order) => { item.order = order; });
  // Edges among the items of this scope; those against the order (scopes can be in a cycle) do not
  // move anything.
  const before = new Map(items.map(item => [item, new Set()]));
  for (const index of scope.nodes) {
    const to = childWithin(scope, DATA.nodes[index].item);
    for (const input of DATA.nodes[index].inputs) {
      const from = childWithin(scope, DATA.nodes[input.node].item);
      if (from && from !== to && from.order < to.order) before.get(to).add(from);
    }
  }
  for (const item of items) {
    for (const from of before.get(item)) item.row = Math.max(item.row, from.row + 1);
  }
  const rows = [];
  for (const item of items) (rows[item.row] = rows[item.row] || []).push(item);
  // Long rows are broken, so that a wide graph stays readable.
  const lines = [];
  for (const row of rows.filter(Boolean)) {
    for (let i = 0; i < row.length; i += 8) lines.push(row.slice(i, i + 8));
  }
  let y = PAD.top;
  let width = NODE.width;
  for (const line of lines) {
    let x = PAD.x;
    for (const item of line) {
      item.x = x;
      item.y = y;
      x += item.width + GAP.x;
    }
    line.width = x - GAP.x + PAD.x;
    width = Math.max(width, line.width);
    y += Math.max(...line.map(item => item.height)) + GAP.y;
  }
  for (const line of lines) {
    const shift = (width - line.width) / 2;
    for (const item of line) item.x += shift;
  }
  scope.width = width;
  scope.height = y - GAP.y + PAD.bottom;
}

function svg(tag, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function devicesOf(item) {
  const counts = new Map();
  for (const index of item.nodes) {
    const device = DATA.nodes[index].device;
    counts.set(device, (counts.get(device) || 0) + 1);
  }
  return [...counts.entries()].sort();
}

// `layers`: frames of open scopes, then (drawn later) edges, then boxes.
function drawItem(layers, item, x, y) {
  item.absoluteX = x;
  item.absoluteY = y;
  const isScope = item.node === undefined;
  const open = isScope && item.open;
  const layer = open ? layers.frames : layers.boxes;
  const devices = devicesOf(item);
  // A collapsed scope on several devices shows them in proportion.
  if (open) {
    layer.append(svg('rect', { x, y, width: item.width, height: item.height, rx: 8, fill: '#fff', class: 'box scope open' }));
  } else {
    let at = x;
    for (const [device, count] of devices) {
      const width = item.width * count / item.nodes.length;
      layer.append(svg('rect', { x: at, y, width, height: item.height, fill: colourOf(device), rx: 4 }));
      at += width;
    }
  }
  const frame = svg('rect', {
    x, y, width: item.width, height: open ? 22 : item.height, rx: isScope ? 8 : 4,
    fill: open ? '#e4e9ee' : 'transparent',
    class: `box${isScope ? ' scope' : ''}${!isScope && item.node === chosen ? ' chosen' : ''}`,
  });
  frame.append(svg('title', {}, isScope ? `${item.path}/ (${item.nodes.length} nodes)` : `${item.path} (${DATA.nodes[item.node].op})`));
  frame.addEventListener('click', () => {
    if (isScope) {
      item.open = !item.open;
      draw();
    } else {
      choose(item.node);
    }
  });
  layer.append(frame);
  const label = isScope ? `${open ? '−' : '+'} ${item.name} (${item.nodes.length})` : item.name;
  const room = Math.floor((item.width - 14) / 6.4);
  const shown = label.length > room ? label.slice(0, room - 1) + '…' : label;
  layer.append(svg('text', { x: x + 7, y: y + (open ? 15 : 19), class: isScope ? 'title' : '' }, shown));
  if (open) {
    for (const child of item.children.values()) drawItem(layers, child, x + child.x, y + child.y);
  }
}

// Bytes of a tensor to a device, as the partitioner made its channels.
const channelBytes = new Map();
for (const link of DATA.links) {
  for (const tensor of link.carried) channelBytes.set(`${tensor.name}>${link.destination}`, tensor.bytes);
}

function drawEdges(layer, labels) {
  const edges = new Map();
  DATA.nodes.forEach((node, index) => {
    const to = visibleItem(index);
    for (const input of node.inputs) {
      const from = visibleItem(input.node);
      if (from === to) continue;
      const key = `${from.path}|${from.node === undefined}>${to.path}|${to.node === undefined}`;
      const edge = edges.get(key) || { from, to, control: true, tensors: new Map(), cross: false };
      edge.control = edge.control && input.control;
      if (DATA.nodes[input.node].device !== node.device) {
        edge.cross = true;
        const channel = `${input.port}>${node.device}`;
        if (channelBytes.has(channel)) edge.tensors.set(channel, channelBytes.get(channel));
      }
      edges.set(key, edge);
    }
  });
  for (const edge of edges.values()) {
    const x1 = edge.from.absoluteX + edge.from.width / 2;
    const y1 = edge.from.absoluteY + edge.from.height;
    const x2 = edge.to.absoluteX + edge.to.width / 2;
    const y2 = edge.to.absoluteY;
    const bend = Math.max(20, Math.abs(y2 - y1) / 2);
    layer.append(svg('path', {
      d: `M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`,
      class: `edge${edge.cross ? ' cross' : ''}${edge.control ? ' control' : ''}`,
    }));
    if (edge.cross && edge.tensors.size > 0) {
      let sum = 0;
      for (const bytes of edge.tensors.values()) sum += Math.max(0, bytes);
      labels.append(svg('text', { x: (x1 + x2) / 2 + 4, y: (y1 + y2) / 2, class: 'bytes' }, bytesText(sum)));
    }
  }
}

const view = { x: 0, y: 0, scale: 1 };

function applyView() {
  $('world').setAttribute('transform', `translate(${view.x},${view.y}) scale(${view.scale})`);
}

function fit() {
  const box = $('graph').getBoundingClientRect();
  view.scale = Math.min(1.25, box.width / (root.width + 20), box.height / (root.height + 60));
  view.x = (box.width - root.width * view.scale) / 2;
  view.y = 45;
  applyView();
}

function draw() {
  layout(root);
  const world = $('world');
  world.replaceChildren();
  const layers = { frames: svg('g', {}), boxes: svg('g', {}) };
  for (const child of root.children.values()) drawItem(layers, child, child.x, child.y);
  const edges = svg('g', { 'pointer-events': 'none' });
  const labels = svg('g', { 'pointer-events': 'none' });
  drawEdges(edges, labels);
  world.append(layers.frames, edges, layers.boxes, labels);
}

function row(table, head, text) {
  const line = table.insertRow();
  const th = document.createElement('th');
  th.textContent = head;
  const td = document.createElement('td');
  td.textContent = text;
  line.append(th, td);
  return td;
}

function jumpLink(index) {
  const link = document.createElement('a');
  link.className = 'jump name';
  link.textContent = DATA.nodes[index].name;
  link.addEventListener('click', () => reveal(index));
  return link;
}

function choose(index) {
  chosen = index;
  const node = DATA.nodes[index];
  const details = $('details');
  details.replaceChildren();
  const title = document.createElement('h2');
  title.textContent = 'Node';
  const name = document.createElement('div');
  name.className = 'name';
  name.id = 'node-name';
  name.textContent = node.name;
  const reason = document.createElement('p');
  reason.id = 'reason';
  reason.textContent = node.reason || 'no reason was recorded';
  const table = document.createElement('table');
  row(table, 'op', node.op);
  row(table, 'device', node.device);
  node.outputs.forEach((output, i) => row(table, `output ${i}`, output));
  for (const alternative of node.alternatives) row(table, 'beat', alternative);
  for (const [key, value] of node.attributes) row(table, key, value);
  for (const input of node.inputs) {
    const cell = row(table, input.control ? 'after' : 'input', '');
    cell.append(jumpLink(input.node));
  }
  DATA.nodes.forEach((other, i) => {
    if (other.inputs.some(input => input.node === index)) row(table, 'user', '').append(jumpLink(i));
  });
  details.append(title, name, reason, table);
  draw();
}

// Opens the scopes around a node, and shows it.
function reveal(index) {
  for (let item = DATA.nodes[index].item.parent; item; item = item.parent) item.open = true;
  choose(index);
  const item = DATA.nodes[index].item;
  const box = $('graph').getBoundingClientRect();
  view.x = box.width / 2 - (item.absoluteX + item.width / 2) * view.scale;
  view.y = box.height / 2 - item.absoluteY * view.scale;
  applyView();
}

function fillSide() {
  $('summary').textContent = `${DATA.nodes.length} nodes on ${DATA.devices.length} devices` + (DATA.policy ? `, policy ${DATA.policy}` : '');
  for (const device of DATA.devices) {
    const line = document.createElement('div');
    line.className = 'legend';
    const swatch = document.createElement('span');
    swatch.className = 'swatch';
    swatch.style.background = colourOf(device.name);
    const text = document.createElement('span');
    text.textContent = `${device.name} (${device.nodes} nodes)`;
    line.append(swatch, text);
    $('devices').append(line);
  }
  const table = $('links');
  for (const link of DATA.links) {
    const line = table.insertRow();
    line.insertCell().textContent = `${shortDevice(link.source)} → ${shortDevice(link.destination)}`;
    const cells = [link.tensors, bytesText(link.predicted), link.measured === null ? '' : bytesText(link.measured)];
    for (const text of cells) {
      const cell = line.insertCell();
      cell.className = 'number';
      cell.textContent = text;
    }
  }
}

function listen() {
  const graph = $('graph');
  let drag = null;
  graph.addEventListener('mousedown', event => { drag = { x: event.clientX - view.x, y: event.clientY - view.y }; });
  window.addEventListener('mousemove', event => {
    if (!drag) return;
    graph.classList.add('dragging');
    view.x = event.clientX - drag.x;
    view.y = event.clientY - drag.y;
    applyView();
  });
  window.addEventListener('mouseup', () => { drag = null; graph.classList.remove('dragging'); });
  graph.addEventListener('wheel', event => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY / 500);
    const box = graph.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    view.x = x - (x - view.x) * factor;
    view.y = y - (y - view.y) * factor;
    view.scale *= factor;
    applyView();
  }, { passive: false });
  $('search').addEventListener('change', event => {
    const index = DATA.nodes.findIndex(node => node.name.includes(event.target.value));
    if (event.target.value && index >= 0) reveal(index);
  });
  const setAll = open => {
    const visit = item => { for (const child of item.children.values()) if (child.node === undefined) { child.open = open; visit(child); } };
    visit(root);
    draw();
    fit();
  };
  $('open').addEventListener('click', () => setAll(true));
  $('close').addEventListener('click', () => setAll(false));
  $('fit').addEventListener('click', fit);
}

fillSide();
listen();
draw();
fit();
// "#name" shows a node at once; "#+" opens the first level of scopes.
const wanted = decodeURIComponent(location.hash.slice(1));
if (wanted === '+') {
  for (const item of root.children.values()) if (item.node === undefined) item.open = true;
  draw();
  fit();
} else if (wanted) {
  const index = DATA.nodes.findIndex(node => node.name === wanted);
  if (index >= 0) reveal(index);
}
