// SPDX-License-Identifier: MIT
// Tables. A click or Enter on a title sorts; typing into the field filters.

const ROWS = 50; // shown at first: thousands of rows make a page slow
const MORE_ROWS = 500;

function endOf(process) {
	if (process.end === null)
		return "running";
	return process.exit_signal ? `killed by signal ${process.exit_signal}` : `exit ${process.exit_code}`;
}

// For sort(): by = {key, up}; texts as people sort them, what is absent first. Stretches between marks
// tell of the same time once more: they come after all pairs; as does what is no file, after files.
function compareBy(by, a, b) {
	const isLast = row => Boolean(row.gap || row.rest);

	if (isLast(a) !== isLast(b))
		return isLast(a) ? 1 : -1;

	const x = a[by.key], y = b[by.key];
	const way = typeof x === "string" || typeof y === "string" ? String(x ?? "").localeCompare(String(y ?? "")) : (x ?? -1) - (y ?? -1);

	return by.up ? way : -way;
}

function markSorted(section, by) {
	for (const th of section.querySelectorAll("th")) {
		if (th.dataset.key === by.key)
			th.setAttribute("aria-sort", by.up ? "ascending" : "descending");
		else
			th.removeAttribute("aria-sort");
	}
}

/*
 * columns: {key, title, show(row), a text or an element, or nothing for the value itself, text: of
 * words, bar: with a bar that is as long as the value, most: of the value where a bar is whole, if not
 * the highest of the column, kind: classes of its cells, hint}. order: {key, up} to begin with; action(row): of the button that
 * the first column of words is; mark(row): what stands behind it, or nothing.
 */
function addTable(section, {title, rows, columns, order, action, mark, filterBy}) {
	const body = el("tbody");
	const filter = el("input", {type: "search", placeholder: "Filter", ariaLabel: `Filter ${title}`});
	const total = el("span", {className: "dim"});
	const more = el("button", {type: "button"});
	const shown = columns.filter(c => c.always || c.text || rows.some(row => row[c.key]));
	const most = new Map(shown.filter(c => c.bar).map(c => [c.key, c.most ?? rows.reduce((high, row) => Math.max(high, row[c.key]), 0)]));
	let limit = profile.top || ROWS, by = order;

	function cell(column, row) {
		const value = column.show ? column.show(row) : row[column.key];
		const td = el("td", {className: column.kind ?? (column.text ? "text" : column.bar ? "bar" : "")});

		if (most.get(column.key))
			td.style.setProperty("--part", `${100 * row[column.key] / most.get(column.key)}%`);
		if (!column.text) {
			td.append(value ?? "");
			return td;
		}
		if (column.depth)
			td.style.paddingLeft = `${8 + 14 * Math.min(by.key === "start" ? row.depth : 0, 8)}px`;
		if (action && !row.outside && column === shown.find(c => c.text)) {
			const button = el("button", {type: "button", title: `Show ${value} in the charts`}, el("bdi", {}, value));

			button.addEventListener("click", () => action(row));
			td.append(button, ...(mark?.(row) ?? []));
		} else {
			td.append(value instanceof Node ? value : named(value ?? ""));
		}
		return td;
	}

	function fill() {
		const words = filter.value.toLowerCase();
		const wanted = rows.filter(row => !words || filterBy(row).toLowerCase().includes(words)).sort((a, b) => compareBy(by, a, b));
		const kept = wanted.filter((row, i) => i < limit || row.rest); // what is no file may be most of it

		body.replaceChildren(...kept.map(row =>
			el("tr", {className: mark?.(row).length ? "at-peak" : row.gap || row.outside || row.rest ? "aside" : ""}, ...shown.map(c => cell(c, row)))));
		more.hidden = wanted.length === kept.length;
		more.textContent = `Show ${count(Math.min(MORE_ROWS, wanted.length - kept.length))} more`;
		total.textContent = more.hidden ? count(wanted.length) : `${count(kept.length)} of ${count(wanted.length)}`;
		markSorted(section, by);
	}

	const titles = shown.map(column => {
		const th = el("th", {className: column.text ? "text" : column.kind === "heat" ? "heat" : "", scope: "col"},
			el("button", {type: "button", title: column.hint ?? ""}, column.title));

		th.dataset.key = column.key;
		th.firstChild.addEventListener("click", () => {
			by = {key: column.key, up: by.key === column.key ? !by.up : Boolean(column.text || column.up)};
			fill();
		});
		return th;
	});

	filter.addEventListener("input", fill);
	more.addEventListener("click", () => {
		limit += MORE_ROWS;
		fill();
	});
	section.append(
		el("div", {className: "head"}, el("h2", {}, title), total, filter),
		el("div", {className: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, ...titles)), body)),
		el("p", {className: "more"}, more));
	filter.hidden = rows.length < 8;
	fill();
}

const usageColumns = [
	{key: "io_read", title: "Read", show: r => bytes(r.io_read), bar: true, hint: "Bytes through read calls"},
	{key: "disk_read", title: "from storage", show: r => bytes(r.disk_read), bar: true, hint: "Bytes that storage had to deliver, for mapped files too"},
	{key: "io_write", title: "Written", show: r => bytes(r.io_write), bar: true, hint: "Bytes through write calls"},
	{key: "disk_write", title: "to storage", show: r => bytes(r.disk_write), bar: true, hint: "Bytes of pages made dirty, and direct writes"},
	{key: "cpu", title: "CPU", show: r => secs(r.cpu), bar: true, hint: "CPU time, user and system"},
	...profile.quantities.map(q => ({key: q.key, title: asTitle(q.title), show: r => inUnit[q.unit](r[q.key]), bar: true, hint: q.hint})),
];

/* What a phase needs is between two bounds, where processes may share pages. */
function needColumns() {
	const known = profile.phases.filter(p => p.needed !== null);
	const text = (p, amount) => amount === null ? "" : `${profile.killed && !p.closed ? ">" : ""}${bytes(amount)}`;
	const hint = "Most of what cannot be reclaimed: anonymous, shared, in swap";
	const least = {key: "least", title: "Needs", show: p => text(p, p.least), hint};

	if (known.every(p => p.least !== null && bytes(p.least) === bytes(p.needed)))
		return [least];
	return [
		{...least, title: "Needs at least", hint: `${hint}; what processes may share counts once`},
		{key: "needed", title: "at most", show: p => p.needed === null ? "" : bytes(p.needed), hint: "The same as a sum over processes, as if they shared nothing"},
	];
}

function addPhases(order) {
	const needs = needColumns();
	// Time in no phase is told beside the phases, but nobody can zoom to what is in many places.
	const rows = [...profile.phases, ...profile.outside.map(o => ({...o, outside: true}))];

	for (const phase of rows)
		phase.cores = phase.seconds >= (profile.cpu_error ?? 0.0001) ? phase.cpu / phase.seconds : null;
	addTable(byId("phases"), {
		title: profile.filter ? `Phases (${profile.filter})` : "Phases",
		rows,
		order: {key: order, up: order === "start"},
		filterBy: p => p.name,
		action: p => {
			zoomTo(p);
			byId("charts").scrollIntoView({block: "start"});
		},
		mark: p => p.number && p.number === profile.peak.number ? [el("span", {className: "badge"}, "peak")] : [],
		columns: [
			{key: "number", title: "#", show: p => p.number || "", up: true, always: true},
			{key: "name", title: "Phase", text: true, depth: true, show: p => p.name + (p.closed ? "" : " (open)")},
			{key: "start", title: "Start", show: p => secs(p.start), up: true, always: true},
			{key: "seconds", title: "Time", show: p => (p.buffered ? "~" : "") + secs(p.seconds), bar: true, always: true, hint: "~: made of buffered output, so its begin or its end is late"},
			{key: "peak", title: "Peak", show: p => bytes(p.peak), bar: true, always: true, hint: "Highest memory of all processes during it"},
			{key: "delta", title: "Change", show: p => delta(p.delta), always: true, hint: "Memory at its end less that at its begin"},
			...needs,
			{key: "own_peak", title: "Own peak", show: p => p.own_peak === null ? "-" : bytes(p.own_peak), bar: true, hint: "Highest memory of the process that began it, alone"},
			{key: "own_delta", title: "Own change", show: p => p.own_delta === null ? "-" : delta(p.own_delta), hint: "Of the process that began it, alone"},
			{key: "own_cpu", title: "Own CPU", show: p => p.own_cpu === null ? "-" : secs(p.own_cpu), bar: true, hint: "CPU time of the process that began it, alone"},
			{key: "gpu", title: "GPU peak", show: p => bytes(p.gpu), bar: true, hint: "The most that all processes had on GPUs during it"},
			{key: "gpu_delta", title: "GPU change", show: p => delta(p.gpu_delta), hint: "Memory on GPUs at its end less that at its begin"},
			{key: "pinned", title: "Pinned", show: p => bytes(p.pinned), hint: "The most memory of the host that was pinned for GPUs during it"},
			...usageColumns,
			{key: "cores", title: "Cores", show: p => p.cores === null ? "-" : p.cores.toFixed(2), hint: "CPU time by its duration; - where that is shorter than the error of the CPU time"},
		],
	});
	byId("phases").hidden = !rows.length;
}

// Hundreds of phases may have one name: then a button changes between each of them and each name.
function addNamed(order) {
	const sections = [byId("phases"), byId("named")];
	const show = byName => sections.forEach((section, i) => {
		section.hidden = byName !== Boolean(i);
	});

	if (!profile.named.length)
		return;
	addTable(byId("named"), {
		title: profile.filter ? `Phases by name (${profile.filter})` : "Phases by name",
		rows: profile.named,
		order: {key: order === "start" ? "seconds" : order, up: false},
		filterBy: p => p.name,
		action: p => {
			zoomTo(profile.phases.find(phase => phase.number === p.number));
			byId("charts").scrollIntoView({block: "start"});
		},
		columns: [
			{key: "name", title: "Name", text: true},
			{key: "count", title: "Count", always: true, bar: true},
			{key: "seconds", title: "Total", show: p => secs(p.seconds), bar: true, always: true, hint: "Time of all phases of that name"},
			{key: "mean", title: "Mean", show: p => secs(p.mean), bar: true, always: true},
			{key: "peak", title: "Peak", show: p => bytes(p.peak), bar: true, always: true, hint: "Highest memory of all processes during one of them"},
			{key: "delta", title: "Change", show: p => delta(p.delta), always: true, hint: "Memory at their ends less that at their begins"},
			...usageColumns,
			{key: "path", title: "Peak in", text: true, show: p => p.count > 1 ? `#${p.number} ${p.path}` : "", hint: "Which of them had that peak"},
		],
	});
	for (const [i, title] of ["By name", "Each phase"].entries()) {
		const button = el("button", {type: "button"}, title);

		button.addEventListener("click", () => show(!i));
		sections[i].querySelector(".head").append(button);
	}
	show(profile.by_name);
}

function addProcesses(order) {
	for (const process of profile.processes) {
		process.label = processName(process);
		process.seconds = (process.end ?? runEnd) - process.start;
		process.ended = endOf(process);
	}
	addTable(byId("processes"), {
		title: "Processes",
		rows: profile.processes,
		order: {key: ["start", "delta"].includes(order) ? "peak" : order, up: false},
		filterBy: p => `${p.pid} ${p.comm} ${p.cmdline ?? ""}`,
		action: p => {
			view.around(p.start, p.seconds);
			byId("charts").scrollIntoView({block: "start"});
		},
		columns: [
			{key: "label", title: "Process", text: true},
			{key: "ppid", title: "Parent", up: true},
			{key: "start", title: "Start", show: p => secs(p.start), up: true, always: true},
			{key: "seconds", title: "Time", show: p => secs(p.seconds), bar: true, always: true},
			{key: "peak", title: "Peak", show: p => bytes(p.peak), bar: true, always: true, hint: "Its own highest memory"},
			{key: "gpu", title: "GPU peak", show: p => bytes(p.gpu), bar: true, hint: "The most that it alone had on GPUs"},
			{key: "pinned", title: "Pinned", show: p => bytes(p.pinned), hint: "The most memory of the host that it alone pinned for GPUs"},
			...usageColumns,
			{key: "ended", title: "End", text: true},
		],
	});
	byId("processes").hidden = !profile.processes.length;
}

function addSteps() {
	for (const step of profile.steps)
		step.values = step.metrics.map(m => `${m.name} = ${sixDigits(m.value)}`).join(", ");
	addTable(byId("steps"), {
		title: "",
		rows: profile.steps,
		order: {key: "time", up: true},
		filterBy: s => `${s.name} ${s.values}`,
		action: s => {
			view.around(s.time - runEnd / 100, runEnd / 50);
			byId("charts").scrollIntoView({block: "start"});
		},
		columns: [
			{key: "time", title: "Time", show: s => moment(s.time, 1e-3), up: true, always: true},
			{key: "name", title: "Step", text: true},
			{key: "pid", title: "Process", up: true},
			{key: "rss", title: "Memory", show: s => bytes(s.rss), bar: true, always: true},
			{key: "peak", title: "Peak before it", show: s => bytes(s.peak), bar: true, always: true, hint: "Highest memory since the step before"},
			{key: "gpu", title: "GPU", show: s => bytes(s.gpu), bar: true},
			{key: "values", title: "Metrics", text: true},
		],
	});
}

// Values come as texts with all their digits; the order is by the number.
function addMetrics() {
	const section = byId("metrics");
	const value = (key, title, hint) => ({key: `${key}_number`, title, show: m => sixDigits(m[key]), always: true, hint});

	for (const metric of profile.metrics) {
		for (const key of ["last", "lowest", "highest"]) {
			const number = Number(metric[key].replace("inf", "Infinity"));

			metric[`${key}_number`] = Number.isNaN(number) ? null : number;
		}
	}
	section.hidden = !profile.metrics.length && !profile.definitions.length;
	if (section.hidden)
		return;
	addTable(section, {
		title: "Metrics of the program",
		rows: profile.metrics,
		order: {key: "", up: true},
		filterBy: m => m.name,
		columns: [
			{key: "name", title: "Metric", text: true},
			value("last", "Last", "The value that it had last"),
			{key: "time", title: "At", show: m => m.of_run ? "the whole run" : moment(m.time, 1e-3), up: true, always: true},
			{key: "times", title: "Times", show: m => count(m.times), always: true},
			value("lowest", "Lowest"),
			value("highest", "Highest"),
		],
	});
	section.append(...profile.definitions.map(text => el("p", {className: "dim"}, named(text))));
}

function startTables() {
	addPhases(profile.order);
	addNamed(profile.order);
	addProcesses(profile.order);
	addMetrics();
	addSteps();
}
