// SPDX-License-Identifier: MIT
// Which files were read, from storage and by calls, and written, how often, and during which phases.

const PATH = 64; // letters of a path: its end tells more than a column's width has room for
const HEAT = 12; // phases side by side

// Both ends of a path tell something, its middle least.
function shortPath(path) {
	const letters = [...path];

	return letters.length <= PATH ? path : `${letters.slice(0, 16).join("")}\u2026${letters.slice(17 - PATH).join("")}`;
}

const pathOf = file => el("bdi", {title: file.path}, shortPath(file.path), file.deleted ? " (deleted)" : "");

// What calls read is counted once, though storage may have delivered it for them.
const used = (read, written, called) => Math.max(read, called) + written;

// The names of the phases during which most was read and written, in order of time.
function phasesOfFiles(files) {
	const sums = new Map();
	const begins = name => profile.phases.findIndex(p => p.name === name || p.gap && p.name.startsWith(`${name} -> `));
	const place = name => (begins(name) + profile.phases.length + 1) % (profile.phases.length + 1); // last, if it is not there

	for (const [name, ...amounts] of files.flatMap(file => file.uses))
		sums.set(name, (sums.get(name) ?? 0) + used(...amounts));
	return [...sums].sort((a, b) => b[1] - a[1]).slice(0, HEAT).map(([name]) => [name, place(name)])
		.sort((a, b) => a[1] - b[1]).map(([name]) => name);
}

function usedIn(...amounts) {
	const words = ["from storage", "written", "by calls"].map((word, i) => amounts[i] ? `${bytes(amounts[i])} ${word}` : "").filter(Boolean).join(", ");

	return words ? el("span", {title: words}, bytes(used(...amounts))) : "";
}

function addFilePhases() {
	const section = byId("file-phases");
	const names = phasesOfFiles(profile.files);
	const all = new Set(profile.files.flatMap(file => file.uses.map(([name]) => name))).size;
	const rows = profile.files.filter(file => file.uses.some(([name]) => names.includes(name))).map(file => ({...file}));
	let most = 0;

	section.hidden = !names.length;
	if (section.hidden)
		return;
	for (const row of rows) {
		row.of = new Map(row.uses.map(([name, ...amounts]) => [name, amounts]));
		names.forEach((name, i) => {
			row[`phase${i}`] = used(...row.of.get(name) ?? [0, 0, 0]);
			most = Math.max(most, row[`phase${i}`]);
		});
	}
	addTable(section, {
		title: "Files by phase",
		rows,
		order: {key: "", up: true},
		filterBy: file => file.path,
		columns: [
			{key: "path", title: "File", text: true, kind: "text path", show: pathOf},
			...names.map((name, i) => ({key: `phase${i}`, title: named(name), kind: "heat", bar: true, most, always: true, hint: name,
				show: file => usedIn(...file.of.get(name) ?? [0, 0, 0])})),
		],
	});
	section.querySelector(".head").after(el("p", {className: "dim"},
		`Read and written during all phases of a name${all > HEAT ? `, of the ${HEAT} names with the most` : ""}. A phase within another counts in both.`));
}

function addFiles() {
	const section = byId("files");

	section.hidden = !profile.files;
	if (section.hidden)
		return;
	if (!profile.files.length) {
		section.append(el("h2", {}, "Files"), el("p", {className: "dim"}, "Nothing was read or written."));
		return;
	}
	const most = profile.files.reduce((high, file) => Math.max(high, file.read), 0); // bars of one scale

	addTable(section, {
		title: "Files",
		rows: profile.files,
		order: {key: "", up: true},
		filterBy: file => file.path,
		columns: [
			{key: "path", title: "File", text: true, kind: "text path", show: pathOf},
			{key: "size", title: "Size", show: f => f.rest ? "" : bytes(f.size), always: true, hint: "Of the file, at last"},
			{key: "read", title: "Read", show: f => f.read ? bytes(f.read) : "", bar: true, hint: "Bytes that storage had to deliver, for mapped files too"},
			{key: "distinct", title: "Distinct", show: f => f.distinct ? bytes(f.distinct) : "", bar: true, most, hint: "Of these, each block of 4 KiB once"},
			{key: "reread", title: "Times", show: f => f.reread ? f.reread.toFixed(2) : "", hint: "How often a block that was read was read, on average"},
			{key: "written", title: "Written", show: f => f.written ? bytes(f.written) : "", bar: true, hint: "Bytes of pages made dirty, and direct writes"},
			{key: "called", title: "Read by calls", show: f => f.called ? bytes(f.called) : "", bar: true, hint: "Bytes that calls returned, whether storage had to deliver them or the page cache had them"},
			{key: "mapped", title: "Mapped", show: f => f.mapped ? bytes(f.mapped) : "", bar: true, hint: "Pages of it that processes had mapped in memory, of each process, the most at the end of a phase"},
			{key: "copied", title: "Copied", show: f => f.copied ? bytes(f.copied) : "", bar: true, hint: "Pages of private mappings that are copies since they were written to, the most at the end of a phase"},
		],
	});
	const said = [...profile.read_again, ...profile.copied_files];

	if (said.length)
		section.querySelector(".head").after(el("ul", {className: "said"}, ...said.map(text => el("li", {}, named(text)))));
	addFilePhases();
}
