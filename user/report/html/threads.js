// SPDX-License-Identifier: MIT
// Where the time of all threads went: a bar a phase, cut into what they did and what they waited for.

function threadBar(kinds, parts, whole) {
	const element = bar(parts.map((size, i) => [kinds[i].colour, size]).filter(([, size]) => size), whole);

	element.title = kinds.map((kind, i) => [parts[i], kind.title]).filter(([size]) => size)
		.map(([size, title]) => `${title} ${percent(size, whole)}, ${secs(size)}`).join("\n");
	element.ariaHidden = "false";
	element.role = "img";
	element.ariaLabel = element.title;
	return element;
}

function addThreads() {
	const section = byId("threads");
	const rows = profile.threads, kinds = profile.thread_kinds;

	section.hidden = !rows.length;
	if (section.hidden)
		return;
	for (const row of rows) {
		row.whole = row.parts.reduce((sum, part) => sum + part, 0);
		row.outside = !row.number;
		kinds.forEach((kind, i) => {
			row[kind.colour] = row.parts[i] / row.whole;
		});
	}
	addTable(section, {
		title: "Where the time of threads went",
		rows,
		order: {key: "start", up: true},
		filterBy: row => row.name,
		action: row => {
			zoomTo(profile.phases.find(phase => phase.number === row.number));
			byId("charts").scrollIntoView({block: "start"});
		},
		columns: [
			{key: "name", title: "Phase", text: true, depth: true},
			{key: "whole", title: "Time of threads", show: row => secs(row.whole), always: true,
				hint: "Of all threads together: four that live for a second have four"},
			{key: "start", title: "", kind: "drawn", show: row => threadBar(kinds, row.parts, row.whole), always: true},
			...kinds.map((kind, i) => ({key: kind.colour, title: kind.title, hint: kind.means,
				show: row => row.parts[i] ? percent(row.parts[i], row.whole) : ""})),
			{key: "slow", title: "Why", text: true, kind: "text words"},
		],
	});
	section.querySelector(".head").after(el("p", {className: "key"},
		...kinds.filter((kind, i) => rows.some(row => row.parts[i])).map(kind =>
			el("span", {title: kind.means}, swatch(kind.colour), kind.title))));
}
