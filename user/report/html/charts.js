// SPDX-License-Identifier: MIT
// The charts over time: memory with its phases, CPU, and I/O. All have one width and one view.

const FONT = `12px ${getComputedStyle(document.documentElement).fontFamily}`;
const LANE = 19; // pixels, of a lane of phases
const RIGHT = 22; // pixels, right of a plot
const HEIGHTS = {memory: 300, gpu: 170, cpu: 130, io: 150};

const GUTTER = parseInt(getComputedStyle(document.documentElement).getPropertyValue("--gutter"), 10);

// Sizes and clears a canvas. Its context draws in CSS pixels.
function canvasOf(canvas, width, height) {
	const ratio = devicePixelRatio || 1;
	const context = canvas.getContext("2d");

	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	canvas.style.width = `${width}px`;
	canvas.style.height = `${height}px`;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	return context;
}

// ---- Values that hold until the next one

// Draws a line through the values from i0 to i1. In each column of pixels it draws at most four of them:
// the first, the lowest, the highest and the last. However many values there are, no peak is lost.
function stepLine(times, values, i0, i1, x, y) {
	const path = new Path2D();
	let column = Math.round(x(times[i0])), low = values[i0], high = low, now = low;

	function leaveColumn() {
		if (low === high)
			return;
		path.lineTo(column, y(low));
		path.lineTo(column, y(high));
		path.lineTo(column, y(now));
	}

	path.moveTo(column, y(now));
	for (let i = i0 + 1; i <= i1; i++) {
		const at = Math.round(x(times[i]));

		if (at !== column) {
			leaveColumn();
			path.lineTo(at, y(now));
			column = at;
			low = high = now;
		}
		now = values[i];
		low = Math.min(low, now);
		high = Math.max(high, now);
	}
	leaveColumn();
	return path;
}

// Draws the area below such a line, and the line: a peak within one pixel has no area.
function areaBelow(line, from, to, bottom) {
	const path = new Path2D(line);

	path.lineTo(to, bottom);
	path.lineTo(from, bottom);
	path.closePath();
	return path;
}

// uPlot calls this to draw a series.
function stepPaths(u, series, i0, i1) {
	const {left, top, width, height} = u.bbox;
	const {min, max} = u.scales.x, high = u.scales.y.max;
	const times = u.data[0], values = u.data[series];
	const x = t => left + (t - min) / (max - min) * width;
	const y = v => top + height - v / high * height;
	// The value that held when the view begins, and the last value in it.
	const first = Math.max(0, Math.min(i0, indexAt(times, min)));
	const end = Math.min(times.length - 1, Math.max(i1, indexAt(times, max) + 1));
	const line = stepLine(times, values, first, end, x, y);

	return {
		stroke: line,
		fill: areaBelow(line, Math.round(x(times[first])), Math.round(x(times[end])), top + height),
		clip: null,
		band: null,
		gaps: null,
		flags: 3,
	};
}

// ---- What is shown

const timeline = profile.timeline;
const KINDS = [
	["anon", "anonymous", "heap, stacks, private copies"],
	["shmem", "shared", "shared memory, tmpfs"],
	["file", "file", "pages of mapped files: can be dropped and read again"],
	["unsplit", "not told apart", "the profile does not say of what kind"],
];

// The kinds of memory in this run. Each has the sum of itself and the kinds below it, up to the end of the run.
function stack() {
	const kinds = KINDS.filter(([kind]) => timeline[kind].some(v => v > profile.totals.peak / 200));
	const used = kinds.length ? kinds : [KINDS[0]];
	let sum = new Float64Array(timeline.time.length + 1);

	return used.map(([kind, name, means]) => {
		const values = timeline[kind];

		sum = sum.map((below, i) => below + (values[Math.min(i, values.length - 1)] ?? 0));
		return {kind, name, means, values, sum};
	});
}

const times = [...timeline.time, runEnd];
const kinds = stack();
// All kinds together, with those that are too small for the chart.
const total = times.map((_, i) => KINDS.reduce((sum, [kind]) => sum + (timeline[kind][Math.min(i, timeline.time.length - 1)] ?? 0), 0));
const hasSwap = timeline.swap.some(v => v > 0);

// What was held on GPUs, up to the end of the run. The highest since the point before stands at the same time before what
// a point has.
function gpuSeries() {
	const {time, held, highest, pinned} = profile.gpu_timeline ?? {time: []};
	const gpu = {times: [], held: [], pinned: []};

	time.forEach((t, i) => {
		for (const value of highest[i] > held[i] ? [highest[i], held[i]] : [held[i]]) {
			gpu.times.push(t);
			gpu.held.push(value);
			gpu.pinned.push(pinned[i]);
		}
	});
	gpu.times.push(runEnd);
	gpu.held.push(last(gpu.held) ?? 0);
	gpu.pinned.push(last(gpu.pinned) ?? 0);
	return gpu;
}

const gpu = gpuSeries();
const hasGpu = gpu.held.some(v => v > 0), hasPinned = gpu.pinned.some(v => v > 0);

function rateSeries(key) {
	const values = profile.rates.map(r => r[key] / (r.end - r.start));

	return [...values, last(values) ?? 0];
}

const rateTimes = [...profile.rates.map(r => r.start), last(profile.rates)?.end ?? runEnd];
// The wide lines first: the narrow ones stay visible on them.
const IO = [
	["disk_read", "read from storage", "disk-read", 5],
	["disk_write", "written to storage", "disk-write", 5],
	["io_read", "read", "read", 1.5],
	["io_write", "written", "write", 1.5],
].filter(([key]) => profile.rates.some(r => r[key] > 0));
// Without a curve between them, checkpoints alone say what was used by when.
const means = profile.has_curve ? "" : ", mean between checkpoints";
const hasCpu = profile.rates.some(r => r.cpu > 0);
const cores = rateSeries("cpu");
const ioRates = IO.map(([key]) => rateSeries(key));

const charts = [];
const widthOf = figure => Math.max(240, figure.clientWidth - parseFloat(getComputedStyle(figure).paddingLeft) * 2);

function axis(values, extra) {
	return {
		font: FONT,
		stroke: () => palette.of("dim"),
		grid: {stroke: () => palette.of("grid"), width: 1},
		ticks: {stroke: () => palette.of("line"), width: 1, size: 4},
		values,
		...extra,
	};
}

const highest = lists => lists.reduce((high, list) => list.reduce((a, b) => Math.max(a, b), high), 0);

// lists has the values of each of series at these times.
function addChart({id, label, times, lists, series, head, values, incrs, hooks}) {
	const figure = byId(id);
	const element = figure.querySelector(".chart");
	const high = (highest(lists) || 1) * head;
	const chart = new uPlot({
		width: widthOf(figure),
		height: HEIGHTS[id],
		padding: [8, RIGHT, 0, 0],
		legend: {show: false},
		scales: {
			x: {time: false, range: () => [view.min, view.max]},
			y: {range: () => [0, high]},
		},
		series: [{}, ...series.map(s => ({paths: stepPaths, points: {show: false}, ...s}))],
		axes: [
			axis((u, splits, a, space, step) => splits.map(t => moment(t, step, true)), {size: 30, space: 90}),
			axis((u, splits) => splits.map(values), {size: GUTTER, space: 34, ...(incrs && {incrs})}),
		],
		cursor: {
			y: false,
			points: {show: false},
			drag: {x: true, y: false, setScale: false},
			bind: {dblclick: () => () => {
				view.all();
				return null;
			}},
		},
		hooks: {
			setSelect: [u => {
				if (u.select.width < 4)
					return;
				const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");

				u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
				view.set(from, to);
			}],
			setCursor: [u => cursor.moved(u)],
			...hooks,
		},
	}, [times, ...lists], element);

	element.setAttribute("aria-label", label);
	element.addEventListener("keydown", event => keys(event, chart));
	element.addEventListener("blur", () => cursor.hide());
	element.addEventListener("wheel", event => {
		if (!event.ctrlKey && !event.metaKey)
			return;
		event.preventDefault();
		view.zoom(event.deltaY < 0 ? 0.8 : 1.25, chart.posToVal(event.clientX - chart.over.getBoundingClientRect().left, "x"));
	}, {passive: false});
	charts.push(chart);
	return chart;
}

// ---- On the memory chart: phases behind the areas, marks and the peak before them

// In the chart's own pixels.
const place = (u, t) => u.valToPos(t, "x", true);

function shadePhases(u) {
	const {left, top, width, height} = u.bbox;

	u.ctx.save();
	u.ctx.globalAlpha = 0.12;
	for (const phase of profile.phases) {
		const from = Math.max(left, place(u, phase.start));
		const to = Math.min(left + width, place(u, phase.start + phase.seconds));

		if (phase.lane !== 0 || to - from < 2)
			continue;
		u.ctx.fillStyle = palette.phase(phase);
		u.ctx.fillRect(from, top, to - from, height);
	}
	u.ctx.restore();
}

function drawMarks(u) {
	const {left, top, width, height} = u.bbox;
	const size = 5 * devicePixelRatio;
	let before = -1;

	u.ctx.save();
	u.ctx.strokeStyle = u.ctx.fillStyle = palette.of("ink");
	u.ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
	u.ctx.globalAlpha = 0.55;
	for (const mark of profile.marks) {
		const x = Math.round(place(u, mark.time));

		if (x < left || x > left + width || x === before)
			continue;
		u.ctx.beginPath();
		u.ctx.moveTo(x, top);
		u.ctx.lineTo(x, top + height);
		u.ctx.stroke();
		u.ctx.beginPath();
		u.ctx.moveTo(x - size, top);
		u.ctx.lineTo(x + size, top);
		u.ctx.lineTo(x, top + size * 1.4);
		u.ctx.fill();
		before = x;
	}
	u.ctx.restore();
}

function drawPeak(u) {
	const {left, top, width} = u.bbox, c = u.ctx, px = devicePixelRatio;
	const x = place(u, profile.peak.time);
	const y = u.valToPos(profile.totals.peak, "y", true);
	const text = `Peak ${bytes(profile.totals.peak)}`;

	if (x < left || x > left + width || !profile.peak.exact)
		return;
	c.save();
	c.font = `600 ${12 * px}px ${FONT.slice(5)}`;
	const wide = c.measureText(text).width + 12 * px;
	const from = Math.min(Math.max(x - wide / 2, left), left + width - wide);

	c.fillStyle = c.strokeStyle = palette.of("peak");
	c.lineWidth = 1.5 * px;
	c.beginPath();
	c.moveTo(x, top + 18 * px);
	c.lineTo(x, y);
	c.stroke();
	c.beginPath();
	c.arc(x, y, 4 * px, 0, 7);
	c.fill();
	c.beginPath();
	c.roundRect(from, top, wide, 18 * px, 4 * px);
	c.fill();
	c.fillStyle = palette.of("card");
	c.textBaseline = "middle";
	c.textAlign = "left";
	c.fillText(text, from + 6 * px, top + 9.5 * px);
	c.restore();
}

// ---- Phases in lanes above the memory chart

// The text, or as much of it as fits, cut in its middle: what tells repeats apart is at the end.
function fitted(c, text, room) {
	const chars = [...text.slice(0, 400)];
	let low = 0, high = chars.length;

	if (text.length <= 400 && c.measureText(text).width <= room)
		return text;
	const kept = n => chars.slice(0, Math.ceil(n / 3)).join("") + "\u2026" + chars.slice(chars.length - Math.floor(2 * n / 3)).join("");

	while (low < high) {
		const middle = (low + high + 1) >> 1;

		if (c.measureText(kept(middle)).width <= room)
			low = middle;
		else
			high = middle - 1;
	}
	return low > 1 ? kept(low) : "";
}

const lanes = {
	canvas: byId("lanes"),
	hits: [], // where each phase was drawn

	x: t => GUTTER + (t - view.min) / (view.max - view.min) * plotWidth(),
	draw() {
		const width = GUTTER + plotWidth();
		const c = canvasOf(this.canvas, width, profile.lanes * LANE + 3);
		const until = new Float64Array(profile.lanes).fill(-1);

		this.hits = [];
		c.font = "11.5px " + FONT.slice(5);
		c.textBaseline = "middle";
		for (const phase of profile.phases) {
			if (phase.lane >= profile.lanes || phase.start > view.max || phase.start + phase.seconds < view.min)
				continue;
			const from = Math.max(GUTTER, this.x(phase.start));
			const to = Math.min(width, this.x(phase.start + phase.seconds));

			// Of several phases in one pixel, draw one.
			if (to < until[phase.lane] + 0.5)
				continue;
			this.bar(c, phase, from, Math.max(to, from + 1));
			until[phase.lane] = to;
		}
	},
	bar(c, phase, from, to) {
		const top = phase.lane * LANE, wide = to - from;

		c.fillStyle = palette.phase(phase);
		c.globalAlpha = phase.gap ? 0.6 : 1;
		c.fillRect(from, top, Math.max(wide - 1, 1), LANE - 2);
		c.globalAlpha = 1;
		this.hits.push({phase, from, to, top});
		if (wide < 24)
			return;
		c.fillStyle = phase.gap ? palette.of("ink") : "#16181d";
		c.fillText(fitted(c, phase.name, wide - 8), from + 4, top + LANE / 2 - 0.5);
	},
	at(event) {
		const box = this.canvas.getBoundingClientRect();
		const x = event.clientX - box.left, y = event.clientY - box.top;

		return this.hits.findLast(h => x >= h.from - 1 && x <= h.to + 1 && y >= h.top && y < h.top + LANE)?.phase;
	},
	start() {
		this.canvas.hidden = !profile.phases.length;
		this.canvas.addEventListener("mousemove", event => {
			const phase = this.at(event);

			this.canvas.style.cursor = phase ? "pointer" : "default";
			if (phase)
				tip.show(event.clientX, event.clientY, phaseTip(phase));
			else
				tip.hide();
		});
		this.canvas.addEventListener("mouseleave", () => tip.hide());
		this.canvas.addEventListener("click", event => {
			const phase = this.at(event);

			if (phase)
				zoomTo(phase);
		});
	},
};

function zoomTo(phase) {
	view.around(phase.start, phase.seconds);
	say(`Zoomed to ${phase.name}: ${view.text()}`);
}

// ---- The cursor: one time in all charts

// Stretches between marks come before pairs, of which the last is the innermost.
const phasesAt = t => profile.phases.filter(p => p.start <= t && t <= p.start + p.seconds).sort((a, b) => b.gap - a.gap);
const say = text => byId("said").replaceChildren(named(text));

const cursor = {
	moving: false,
	time: null,
	set: null, // set by setTime: a pixel is less exact than the time asked for

	// Called for the mouse and by setTime. Charts get a new view a little after it is set, so this
	// does not use their own scales.
	timeAt(left) {
		if (left < 0)
			return null;
		return this.set?.left === left ? this.set.time : view.min + left / plotWidth() * (view.max - view.min);
	},
	moved(u) {
		if (this.moving)
			return;
		this.moving = true;
		this.time = this.timeAt(u.cursor.left);
		for (const other of charts) {
			if (other !== u)
				other.setCursor({left: u.cursor.left, top: 10});
		}
		this.moving = false;
		tracks.showTime(this.time, u.cursor.left);
		if (this.time === null) {
			tip.hide();
			return;
		}
		const box = u.over.getBoundingClientRect();

		tip.show(box.left + u.cursor.left, box.top + Math.max(0, u.cursor.top), timeTip(this.time));
	},
	setTime(u, t) {
		t = Math.min(Math.max(t, view.min), view.max);
		this.set = {time: t, left: (t - view.min) / (view.max - view.min) * plotWidth()};
		u.setCursor({left: this.set.left, top: 10});
		say(spoken(t));
	},
	hide() {
		charts[0].setCursor({left: -10, top: -10});
	},
};

function keys(event, u) {
	const time = cursor.time ?? (view.min + view.max) / 2;
	const step = (view.max - view.min) / 100;
	const actions = {
		ArrowLeft: () => event.shiftKey ? view.shift(-0.2) : cursor.setTime(u, time - step),
		ArrowRight: () => event.shiftKey ? view.shift(0.2) : cursor.setTime(u, time + step),
		Home: () => cursor.setTime(u, view.min),
		End: () => cursor.setTime(u, view.max),
		"+": () => view.zoom(0.5, time),
		"=": () => view.zoom(0.5, time),
		"-": () => view.zoom(2, time),
		0: () => view.all(),
		p: () => {
			showPeak();
			cursor.setTime(u, profile.peak.time);
		},
		Escape: () => cursor.hide(),
	};
	const action = Object.hasOwn(actions, event.key) && actions[event.key];

	if (!action || event.ctrlKey || event.metaKey || event.altKey)
		return;
	event.preventDefault();
	action();
}

function showPeak() {
	view.around(profile.peak.time - runEnd / 40, runEnd / 20);
}

// ---- What the tip says about a time or a phase

const tip = {
	element: byId("tip"),

	show(x, y, content) {
		this.element.replaceChildren(...content);
		this.element.hidden = false;
		const {width, height} = this.element.getBoundingClientRect();
		const left = x + 16 + width < innerWidth ? x + 16 : Math.max(4, x - 16 - width);
		const top = Math.max(4, Math.min(y + 14, innerHeight - height - 8));

		this.element.style.transform = `translate(${left}px, ${top}px)`;
	},
	hide() {
		this.element.hidden = true;
	},
};

const pair = (what, value, mark) => el("tr", {}, el("td", {}, ...(mark ? [mark, " "] : []), what), el("td", {}, value));

function timeTip(t) {
	const at = indexAt(times, t), rates = indexAt(rateTimes, t);
	const lines = [];

	if (at >= 0)
		lines.push(pair("memory", bytes(total[at])));
	if (at >= 0 && kinds.length > 1) {
		for (const k of [...kinds].reverse())
			lines.push(pair(k.name, bytes(k.values[Math.min(at, k.values.length - 1)]), swatch(k.kind)));
	}
	if (at >= 0 && hasSwap)
		lines.push(pair("in swap", bytes(timeline.swap[Math.min(at, timeline.swap.length - 1)]), swatch("swap", "line dashed")));
	const onGpu = indexAt(gpu.times, t);

	if (onGpu >= 0 && hasGpu)
		lines.push(pair("on GPUs", bytes(gpu.held[onGpu]), swatch("for-gpu")));
	if (onGpu >= 0 && hasPinned)
		lines.push(pair("pinned for GPUs", bytes(gpu.pinned[onGpu]), swatch("swap", "line dashed")));
	if (rates >= 0 && hasCpu)
		lines.push(pair("CPU", `${cores[rates].toFixed(2)} cores`, swatch("cpu")));
	if (rates >= 0)
		IO.forEach(([, name, colour], i) => ioRates[i][rates] && lines.push(pair(name, rate(ioRates[i][rates]), swatch(colour))));
	return [
		el("div", {className: "when"}, moment(t, (view.max - view.min) / 1000)),
		...phasesAt(t).slice(-4).map(p => el("div", {}, "in ", named(p.name))),
		el("table", {}, ...lines),
	];
}

function spoken(t) {
	const at = indexAt(times, t), phases = phasesAt(t);

	return `${moment(t, (view.max - view.min) / 1000)}: ${at < 0 ? "" : bytes(total[at])}${phases.length ? `, in ${last(phases).name}` : ""}`;
}

function phaseTip(phase) {
	return [
		el("div", {className: "when"}, named(phase.name)),
		el("table", {},
			pair("from", `${secs(phase.start)}, for ${secs(phase.seconds)}${phase.closed ? "" : " (still open at the end)"}${phase.buffered ? " (late: its output is buffered)" : ""}`),
			pair("peak", bytes(phase.peak)),
			pair("memory", delta(phase.delta)),
			...phase.gpu ? [pair("on GPUs", `peak ${bytes(phase.gpu)}, ${delta(phase.gpu_delta)}`)] : [],
			pair("read", `${bytes(phase.io_read)} (storage ${bytes(phase.disk_read)})`),
			pair("written", `${bytes(phase.io_write)} (storage ${bytes(phase.disk_write)})`),
			pair("CPU", secs(phase.cpu)),
			pair("process", String(phase.pid)),
			...phase.own_peak === null ? [] : [pair("alone", `peak ${bytes(phase.own_peak)}${phase.own_delta === null ? "" : `, ${delta(phase.own_delta)}`}`)],
			...phase.own_cpu === null ? [] : [pair("", `CPU ${secs(phase.own_cpu)}, read ${bytes(phase.own_read)}, wrote ${bytes(phase.own_write)}`)]),
	];
}

// ---- All of them

const plotWidth = () => charts[0].bbox.width / devicePixelRatio;

function addGpuChart(incrs) {
	byId("gpu").hidden = !hasGpu && !hasPinned;
	if (byId("gpu").hidden)
		return;
	addChart({
		id: "gpu",
		label: `Memory on GPUs over time, up to ${bytes(profile.totals.gpu_peak)}`,
		times: gpu.times,
		lists: [gpu.held, ...(hasPinned ? [gpu.pinned] : [])],
		series: [
			{label: "on GPUs", stroke: () => palette.of("for-gpu"), fill: () => palette.of("for-gpu"), width: 1},
			...(hasPinned ? [{label: "pinned for GPUs", stroke: () => palette.of("swap"), width: 2, dash: [5, 4]}] : []),
		],
		head: 1.1,
		values: bytesShort,
		incrs,
		hooks: {drawClear: [shadePhases], draw: [drawMarks]},
	});
	byId("gpu-key").append(
		el("span", {title: "what the run has allocated there, all devices together"}, swatch("for-gpu"), `on GPUs, up to ${bytes(profile.totals.gpu_peak)}`),
		...(hasPinned ? [el("span", {title: "memory of the host"}, swatch("swap", "line dashed"), "pinned on the host for GPUs")] : []));
}

function startCharts() {
	const powers = Array.from({length: 56}, (_, i) => 2 ** i);
	const areas = [...kinds].reverse();

	addChart({
		id: "memory",
		label: `Memory over time, up to ${bytes(profile.totals.peak)}. Arrow keys move through it.`,
		times,
		lists: [...areas.map(k => k.sum), ...(hasSwap ? [[...timeline.swap, last(timeline.swap)]] : [])],
		series: [
			...areas.map(k => ({label: k.name, stroke: () => palette.of(k.kind), fill: () => palette.of(k.kind), width: 1})),
			...(hasSwap ? [{label: "in swap", stroke: () => palette.of("swap"), width: 2, dash: [5, 4]}] : []),
		],
		head: 1.14, // room for the peak's name
		values: bytesShort,
		incrs: powers,
		hooks: {drawClear: [shadePhases], draw: [drawMarks, drawPeak]},
	});
	byId("memory-key").append(
		...areas.map(k => el("span", {title: k.means}, swatch(k.kind), k.name)),
		...(hasSwap ? [el("span", {}, swatch("swap", "line dashed"), "in swap")] : []),
		...(profile.marks.length ? [el("span", {}, "\u25bc mark")] : []));

	addGpuChart(powers);
	byId("cpu").hidden = !hasCpu;
	if (hasCpu) {
		addChart({
			id: "cpu",
			label: "CPU use over time, in cores",
			times: rateTimes,
			lists: [cores],
			series: [{label: "cores", stroke: () => palette.of("cpu"), fill: () => palette.of("cpu"), width: 1}],
			head: 1.1,
			values: n => `${+n.toFixed(2)}`,
		});
		byId("cpu-key").append(el("span", {}, swatch("cpu"), `cores${means}`));
	}
	byId("io").hidden = !IO.length;
	if (IO.length) {
		addChart({
			id: "io",
			label: "Input and output over time, in bytes a second",
			times: rateTimes,
			lists: ioRates,
			series: IO.map(([, name, colour, width]) => ({label: name, stroke: () => palette.of(colour), width})),
			head: 1.1,
			values: n => `${bytesShort(n)}/s`,
			incrs: powers,
		});
		byId("io-key").append(
			...IO.map(([, name, colour, width]) => el("span", {}, swatch(colour, width > 2 ? "line" : "line thin"), name)),
			...(means ? [el("span", {}, means.slice(2))] : []));
	}
	lanes.start();
}

function redrawCharts() {
	for (const chart of charts)
		chart.setScale("x", {min: view.min, max: view.max});
	lanes.draw();
	byId("range").textContent = view.text();
}

function resizeCharts(width) {
	for (const chart of charts)
		chart.setSize({width, height: chart.height});
}
