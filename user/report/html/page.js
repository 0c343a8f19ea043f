// SPDX-License-Identifier: MIT
// The page: the answer at the top, then charts and tables; colours for screen and paper.

function part(colour, size, whole, ...name) {
	return el("div", {className: "part"},
		colour ? swatch(colour) : el("span"),
		el("span", {className: "size"}, bytes(size)),
		el("span", {className: "share"}, percent(size, whole)),
		el("span", {className: "name"}, ...name));
}

function bar(parts, whole) {
	const element = el("div", {className: "whole", ariaHidden: "true"});

	for (const [colour, size] of parts) {
		const piece = el("span");

		piece.style.width = `${100 * size / whole}%`;
		piece.style.backgroundColor = `var(--${colour})`;
		element.append(piece);
	}
	return element;
}

function showRun() {
	const {command, pids, source, started_at: started, hostname, kernel, version} = profile;
	const about = [`${secs(profile.totals.duration)}`];

	if (started)
		about.push(`on ${new Date(started * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`);
	if (hostname)
		about.push(`on ${hostname}`);
	if (kernel)
		about.push(`Linux ${kernel}`);
	byId("command").append(named(command.length ? command.join(" ") : pids.length ? `processes ${pids.join(", ")}` : source));
	byId("about").append(named(`Ran ${about.join(", ")}`));
	byId("footer").append("Made by qprof-bpf", ...(version ? [" ", named(version)] : []), " of ", named(source),
		". This page is one file and loads nothing.");
	for (const [title, sentence] of [...(profile.slow ? [["Slow: ", profile.slow]] : []),
		...(profile.trends || []).map(trend => ["Grows: ", trend]),
		...(profile.closest ? [["Closest ", profile.closest]] : [])]) {
		const item = document.createElement("li");

		item.append(title, named(sentence));
		byId("reasons").append(item);
		byId("reasons").hidden = false;
	}
	if (profile.ending) {
		byId("ending").append(named(profile.ending));
		byId("ending").hidden = false;
	}
	if (profile.partial) {
		byId("partial").textContent = profile.partial;
		byId("partial").hidden = false;
	}
}

const where = ({words, phase}) => phase === null ? [] : [words, el("b", {}, named(phase))];

function showPeakAnswer() {
	const {peak, totals} = profile;

	byId("peak-size").textContent = `Peak ${bytes(totals.peak)}`;
	byId("peak-where").append(
		peak.exact ? `at ${secs(peak.time)}` : `; the file does not say when, its highest step is at ${secs(peak.time)}`,
		...(peak.exact ? where(peak) : []));
	if (peak.least) {
		byId("least").textContent = peak.least;
		byId("least").hidden = false;
	}
	if (peak.plateau)
		byId("plateau").append(`99 % of it first at ${secs(peak.plateau.time)}`, ...where(peak.plateau));

	byId("kinds-card").hidden = byId("shares-card").hidden = !peak.shares;
	if (!peak.shares)
		return;
	const present = KINDS.filter(([kind]) => peak[kind]).map(([kind, name, means]) => ({kind, name, means, size: peak[kind]}));
	const whole = present.reduce((sum, p) => sum + p.size, 0);
	const largest = [...present].sort((a, b) => b.size - a.size);

	byId("kinds").append(bar(present.map(p => [p.kind, p.size]), whole),
		...largest.map(p => part(p.kind, p.size, whole, p.name, " ", el("small", {title: p.means}, p.means))),
		...(peak.swap ? [part("swap", peak.swap, 0, "in swap, beside it")] : []));

	const MOST = 4;
	const size = share => share.anon + share.shmem + share.file;
	const rest = peak.shares.slice(MOST).reduce((sum, s) => sum + size(s), 0);

	byId("shares").append(
		...peak.shares.slice(0, MOST).flatMap(s => [
			part("", size(s), whole, named(processName(profile.processes[s.process]))),
		]),
		...(rest ? [part("", rest, whole, `${count(peak.shares.length - MOST)} other processes`)] : []));
	if (peak.shares.length) {
		const top = peak.shares[0];

		byId("shares").prepend(bar([...KINDS.filter(([kind]) => top[kind]).map(([kind]) => [kind, top[kind]]),
			["line", Math.max(0, whole - size(top))]], whole));
	}
}

function showTotals() {
	const t = profile.totals;
	const lines = [];
	const line = (what, value, hint = "") => lines.push(el("dt", {title: hint}, what), el("dd", {}, value));

	if (t.needed !== undefined) {
		const kinds = "Most of what cannot be reclaimed: anonymous, shared, in swap";
		const why = `${kinds}. Processes may share shmem and what they inherited at fork`;

		if (t.least === undefined)
			line("Needs at most", bytes(t.needed), why);
		else if (bytes(t.least) === bytes(t.needed))
			line(profile.killed ? "Needs MORE than" : "Needs at least", bytes(t.least), kinds);
		else
			line(profile.killed ? "Needs MORE than" : "Needs at least", `${bytes(t.least)}, ${profile.killed ? "had " : ""}at most ${bytes(t.needed)}`, why);
		line("Reclaimable", `up to ${bytes(t.files)} of mapped files`, "Can be dropped and read again");
	}
	if (t.charged)
		line("Memory cgroup", t.charged, "What the kernel charges to it, which the limit of a container is on");
	if (t.hugetlb_peak)
		line("Hugetlb memory", `${bytes(t.hugetlb_peak)} or more`, "Huge pages set aside, beside all other memory; seen at checkpoints and exits");
	if (t.gpu_peak)
		line("GPU memory", `peak ${bytes(t.gpu_peak)}`, "What the run has allocated on GPUs, all devices together");
	if (t.pinned_peak)
		line("Pinned host", `peak ${bytes(t.pinned_peak)}`, "Memory of the host that the run has pinned for GPUs");
	for (const words of t.devices || [])
		line("GPU", words, "As its driver says at rows; between two there may have been more");
	if (t.io_read || t.disk_read)
		line("Read", `${bytes(t.io_read)} (storage ${bytes(t.disk_read)})`);
	if (t.io_write || t.disk_write)
		line("Written", `${bytes(t.io_write)} (storage ${bytes(t.disk_write)})`);
	if (t.cpu)
		line("CPU", `${secs(t.cpu)} (${(t.cpu / runEnd).toFixed(2)} cores)`);
	for (const q of profile.quantities)
		line(q.hint[0].toUpperCase() + q.hint.slice(1), inUnit[q.unit](t[q.key]));
	line("Followed", `${profile.processes.length ? `${plural(profile.processes.length, "process", "processes")}, ` : ""}${plural(profile.steps.length, "checkpoint", "checkpoints")}`);
	byId("totals").append(...lines);
}

function showQuality() {
	const doubts = [
		...profile.doubts.map(d => `${count(d.count)} ${d.means}`),
		...profile.warnings.map(w => `${w.what}: ${w.why}`),
	];

	byId("doubts").append(...(doubts.length ? doubts : ["Nothing was lost and nothing is in doubt."]).map(text => el("li", {}, named(text))));
	byId("notes").append(...profile.notes.map(text => el("li", {}, named(text))));
	byId("notes").closest("details").hidden = !profile.notes.length;
}

// ---- Colours and sizes

const THEMES = {"": "Auto", light: "Light", dark: "Dark"};

function redraw() {
	palette.cache.clear();
	for (const chart of charts)
		chart.redraw(true, true);
	lanes.draw();
	tracks.redraw();
}

function setTheme(theme) {
	document.documentElement.dataset.theme = theme;
	byId("theme").textContent = `Colours: ${THEMES[theme]}`;
	redraw();
}

function resize() {
	resizeCharts(widthOf(byId("memory")));
	// uPlot lays out in a microtask.
	queueMicrotask(() => {
		lanes.draw();
		tracks.redraw();
		flame.resize();
	});
}

function startPaper() {
	const PAPER = 690; // pixels, inside the margins of A4 and US letter
	let before = null;

	addEventListener("beforeprint", () => {
		before = document.documentElement.dataset.theme ?? "";
		setTheme("light");
		resizeCharts(PAPER - 30);
		queueMicrotask(() => {
			lanes.draw();
			tracks.drawAll();
			flame.resize(PAPER - 30);
		});
	});
	addEventListener("afterprint", () => {
		if (before === null)
			return;
		setTheme(before);
		before = null;
		resize();
	});
}

function start() {
	showRun();
	showPeakAnswer();
	showTotals();
	startCharts();
	tracks.start();
	startTables();
	addWindows();
	addThreads();
	addRanks();
	addFiles();
	addFileSystems();
	addDisks();
	flame.start();
	showQuality();

	view.changed.push(redrawCharts, () => tracks.redraw());
	const actions = {in: () => view.zoom(0.5), out: () => view.zoom(2), all: () => view.all(), peak: showPeak};

	byId("toolbar").addEventListener("click", event => actions[event.target.dataset.do]?.());
	byId("theme").addEventListener("click", () => {
		const names = Object.keys(THEMES);

		setTheme(names[(names.indexOf(document.documentElement.dataset.theme ?? "") + 1) % names.length]);
	});
	setTheme("");
	redrawCharts();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
	new ResizeObserver(resize).observe(byId("memory"));
	startPaper();
}

start();
