/* SPDX-License-Identifier: GPL-2.0-only */
/* What all formats of an audit's report have in common. */
#include "audit/report/audit_report.h"

#include "capture/audit_state.h"

void audit_report_fill(struct audit_report *report, struct capture *c)
{
	struct audit *a = audit_of(c);

	*report = (struct audit_report){
		.info = capture_info(c),
		.quality = capture_quality(c),
		.machine = audit_machine(a),
		.cgroups = audit_cgroups(a),
		.users = audit_user_names(a),
		.start_ns = audit_start_ns(a),
		.end_ns = audit_finished_ns(a),
	};
	user_names_forget(report->users); /* the report has names as they are at the end */
	audit_disks(a, &report->disks);
}

static void add_storage(struct audit_storage *s, const struct profile_usage *usage)
{
	s->processes_read += usage->disk_read;
	if (usage->disk_write > usage->disk_write_cancelled)
		s->processes_written += usage->disk_write - usage->disk_write_cancelled;
}

struct audit_storage audit_storage(const struct audit_report *report)
{
	struct audit_storage s = {0};
	size_t n;
	const struct profile_process *const *processes = machine_processes(report->machine, &n);

	for (size_t i = 0; i < n; i++)
		add_storage(&s, &processes[i]->usage);
	for (size_t i = 0; i < machine_n_sums(report->machine); i++)
		add_storage(&s, &machine_sum(report->machine, i)->usage);
	for (size_t i = 0; i < report->disks.n; i++) {
		s.devices_read += report->disks.devices[i].read;
		s.devices_written += report->disks.devices[i].written;
	}
	return s;
}
