// SPDX-License-Identifier: MIT
// The profile, and the stretch of the run that the charts show.

// The profile has its tables as {keys, rows}.
function objects(table) {
	return table.rows.map(row => Object.fromEntries(table.keys.map((key, i) => [key, row[i]])));
}

const profile = JSON.parse(byId("profile").textContent);

for (const key of ["phases", "processes", "rates", "marks", "steps", "doubts", "warnings", "palette", "metrics"])
	profile[key] = objects(profile[key]);
profile.outside = profile.outside ? objects(profile.outside) : [];
profile.named = profile.named ? objects(profile.named) : [];
profile.quantities = profile.quantities ? objects(profile.quantities) : [];
profile.threads = profile.threads ? objects(profile.threads) : [];
profile.ranks = profile.ranks ? objects(profile.ranks) : [];
profile.file_systems = profile.file_systems ? objects(profile.file_systems) : [];
profile.disks = profile.disks ? objects(profile.disks) : [];
profile.disk_phases = profile.disk_phases ? objects(profile.disk_phases) : [];
profile.files = profile.files ? objects(profile.files) : null;
if (profile.stacks) {
	profile.stacks.functions = objects(profile.stacks.functions);
	profile.stacks.graphs = objects(profile.stacks.graphs);
}
if (profile.window)
	profile.window.phases = objects(profile.window.phases);
profile.thread_kinds = profile.thread_kinds ? objects(profile.thread_kinds) : [];
if (profile.peak.shares)
	profile.peak.shares = objects(profile.peak.shares);

const last = list => list[list.length - 1];
const runEnd = Math.max(profile.totals.duration, last(profile.timeline.time) ?? 0, last(profile.steps)?.time ?? 0, 1e-6);

// The index of the last of these ascending times that is at or before t; -1 if there is none.
function indexAt(times, t) {
	let low = 0, high = times.length;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (times[middle] <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

function processName(process) {
	const text = process.cmdline || process.comm || "";
	const space = text.indexOf(" ");
	const slash = text.lastIndexOf("/", space < 0 ? text.length : space);

	return `${process.pid} ${text.slice(slash + 1)}`;
}

const view = {
	min: 0,
	max: runEnd,
	changed: [], // called after a change

	set(min, max) {
		const span = Math.min(runEnd, Math.max(max - min, 2e-6, runEnd * 1e-6));

		min = Math.min(Math.max(0, (min + max - span) / 2), runEnd - span);
		if (min === this.min && min + span === this.max)
			return;
		this.min = min;
		this.max = min + span;
		for (const call of this.changed)
			call();
	},
	all() {
		this.set(0, runEnd);
	},
	// A factor below 1 zooms in. The time `around` stays where it is on the screen.
	zoom(factor, around = (this.min + this.max) / 2) {
		this.set(around - (around - this.min) * factor, around + (this.max - around) * factor);
	},
	shift(part) {
		const by = Math.min(Math.max((this.max - this.min) * part, -this.min), runEnd - this.max);

		this.set(this.min + by, this.max + by);
	},
	// With some room on both sides.
	around(start, seconds) {
		const room = Math.max(seconds * 0.08, runEnd * 1e-4);

		this.set(start - room, start + seconds + room);
	},
	text() {
		const step = (this.max - this.min) / 100;

		return `${moment(this.min, step)} \u2013 ${moment(this.max, step)} of ${secs(runEnd)}`;
	},
};

// ---- Colours, in the form that a canvas needs

const palette = {
	cache: new Map(),
	probe: document.body.appendChild(el("span", {hidden: true})),

	start() {
		for (const colour of profile.palette)
			document.documentElement.style.setProperty(`--${colour.name}`, `light-dark(${colour.light}, ${colour.dark})`);
	},
	of(name) {
		if (!this.cache.has(name)) {
			this.probe.style.color = `var(--${name})`;
			this.cache.set(name, getComputedStyle(this.probe).color);
		}
		return this.cache.get(name);
	},
	phase: phase => profile.phase_colours[phase.group % profile.phase_colours.length],
};

palette.start();
