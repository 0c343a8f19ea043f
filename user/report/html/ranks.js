// SPDX-License-Identifier: MIT
// Processes that run the same script, side by side: which rank the others wait for.

function addRanks() {
	const rows = profile.ranks, section = byId("ranks");
	const of = (value, rank) => value === null ? "" : `${value} (#${rank})`;

	section.hidden = !rows.length;
	if (section.hidden)
		return;
	for (const row of rows)
		row.label = row.occurrence > 1 ? `${row.name} (${row.occurrence})` : row.name;
	addTable(section, {
		title: "Phases by rank",
		rows,
		order: {key: "time_high", up: false},
		filterBy: row => row.label,
		columns: [
			{key: "label", title: "Phase", text: true},
			{key: "ranks", title: "Ranks", always: true, hint: "How many of them have it"},
			{key: "time_low", title: "Lowest", show: row => secs(row.time_low), always: true},
			{key: "time", title: "Median", show: row => secs(row.time), always: true},
			{key: "time_high", title: "Highest", show: row => of(secs(row.time_high), row.slowest), bar: true, always: true,
				hint: "Who takes longest"},
			{key: "cpu", title: "CPU", show: row => row.cpu === null ? "" : secs(row.cpu), hint: "Median of the CPU time of the process alone"},
			{key: "cpu_high", title: "Most CPU", show: row => row.cpu_high === null ? "" : of(secs(row.cpu_high), row.busiest)},
			{key: "peak_high", title: "Highest peak", show: row => row.peak_high === null ? "" : of(bytes(row.peak_high), row.largest)},
			{key: "waits", title: "Who waits for whom", text: true, words: true},
		],
	});
}
