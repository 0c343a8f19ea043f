// SPDX-License-Identifier: MIT
// How disks served the run, and each of its phases.

// Of a request: "0.98 ms" tells more than "1 ms".
const took = t => t >= 1e-3 && t < 1e-2 ? `${(t * 1e3).toFixed(2)} ms` : secs(t);

const ofRequests = (key, show, more) => ({key, show: row => row[key] ? show(row[key]) : "", ...more});

function requestsOf(bytesKey, countKey, way, title) {
	return [
		ofRequests(bytesKey, bytes, {title, bar: true, hint: `Bytes of requests to ${way}`}),
		ofRequests(countKey, count, {title: "Requests", hint: `Requests to ${way} that have ended`}),
		ofRequests(`${way}_mean`, took, {title: "Mean", hint: `How long a request to ${way} took`}),
	];
}

function addDisks() {
	const section = byId("disks");
	const phases = byId("disk-phases");

	section.hidden = !profile.disks.length;
	phases.hidden = !profile.disk_phases.length;
	if (section.hidden)
		return;
	const how = [
		{key: "busy", title: "Busy", show: row => secs(row.busy), always: true, hint: "How long at least one request of the run was open"},
		{key: "speed", title: "Speed", show: row => row.speed ? rate(row.speed) : "", always: true, hint: "Bytes in a second in which it was busy"},
	];
	const spread = way => [
		ofRequests(`${way}_p50`, took, {title: "50 %", hint: `Half of the requests to ${way} took no longer`}),
		ofRequests(`${way}_p99`, took, {title: "99 %", hint: `99 % of the requests to ${way} took no longer`}),
		ofRequests(`${way}_max`, took, {title: "Max", hint: `The longest request to ${way}`}),
	];
	const disk = {key: "disk", title: "Disk", text: true, kind: "text", show: row => named(row.disk)};

	addTable(section, {
		title: "Disks",
		rows: profile.disks,
		order: {key: "", up: true},
		filterBy: row => row.disk,
		columns: [disk, ...how, ...requestsOf("read", "reads", "read", "Read"), ...spread("read"),
			...requestsOf("written", "writes", "write", "Written"), ...spread("write")],
	});
	if (profile.busy_disks.length)
		section.querySelector(".head").after(el("ul", {className: "said"}, ...profile.busy_disks.map(text => el("li", {}, named(text)))));
	if (phases.hidden)
		return;
	addTable(phases, {
		title: "Disks by phase",
		rows: profile.disk_phases,
		order: {key: "", up: true},
		filterBy: row => row.phase,
		columns: [disk, {key: "phase", title: "Phase", text: true, kind: "text", show: row => named(row.phase)},
			{key: "secs", title: "Took", show: row => secs(row.secs), always: true, hint: "How long phases of that name were, together"},
			...how, ...requestsOf("read", "reads", "read", "Read"), ...requestsOf("written", "writes", "write", "Written")],
	});
}
