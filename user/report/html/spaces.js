// SPDX-License-Identifier: MIT
// How much room file systems had that the run wrote to, and what temporary files took of it.

function addFileSystems() {
	const section = byId("file-systems");
	const most = profile.file_systems.reduce((high, fs) => Math.max(high, fs.written), 0); // bars of one scale

	section.hidden = !profile.file_systems.length;
	if (section.hidden)
		return;
	addTable(section, {
		title: "File systems",
		rows: profile.file_systems,
		order: {key: "", up: true},
		filterBy: fs => fs.path,
		columns: [
			{key: "path", title: "Mounted at", text: true, kind: "text path", show: pathOf},
			{key: "size", title: "Size", show: fs => bytes(fs.size), always: true, hint: "Of all of it"},
			{key: "first", title: "Left at first", show: fs => bytes(fs.first), always: true, hint: "Soon after the first write to it. Root may have more"},
			{key: "last", title: "Left at last", show: fs => fs.last === null ? "" : bytes(fs.last), always: true, hint: "At the end of the run. Root may have more"},
			{key: "least", title: "Least", show: fs => bytes(fs.least), always: true, hint: "The lowest that was seen to be left"},
			{key: "secs", title: "At", show: fs => secs(fs.secs), always: true, hint: "When that was"},
			{key: "phase", title: "In", text: true, show: fs => fs.phase ?? "", hint: "In which phase that was"},
			{key: "written", title: "Written", show: fs => fs.written ? bytes(fs.written) : "", bar: true, hint: "To its files"},
			{key: "removed", title: "Removed", show: fs => fs.removed ? bytes(fs.removed) : "", bar: true, most, hint: "Of it, to files that had no name any more at the end"},
		],
	});
	if (profile.removed.length)
		section.querySelector(".head").after(el("ul", {className: "said"}, ...profile.removed.map(text => el("li", {}, named(text)))));
}
