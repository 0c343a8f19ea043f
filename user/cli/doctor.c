/* SPDX-License-Identifier: GPL-2.0-only */
/* doctor.c - qprof-bpf doctor: tells what this kernel and these privileges allow, and why; and what
 * can be heard of a process. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/use_service.h"
#include "kernel/discovery.h"
#include "kernel/engine.h"
#include "kernel/gpu_helper.h"
#include "kernel/pids.h"
#include "kernel/procfs.h"
#include "kernel/python_marks.h"
#include "kernel/sites.h"
#include "kernel/usdt.h"
#include "service/talk.h"

enum { GPU_MS = 5000, DETAIL_MAX = 160 };

struct doctor {
	struct pids pids;
};

static const struct command_option options[] = {
	{'p', "pid", "PID", "Say what can be heard of this process, too, and the reason if nothing",
	 OPT_PIDS, INTO(struct doctor, pids), .most = 1, .wrong = "not one process id"},
	{0},
};

static void say(const char *what, const char *state, const char *detail)
{
	printf("  %-22s %-8s %s\n", what, state, detail ? detail : "");
}

/* linux/capability.h */
static const struct {
	unsigned int number;
	const char *name, *for_what;
} capabilities[] = {
	{39, "CAP_BPF", "to load BPF programs"},
	{38, "CAP_PERFMON", "to read kernel memory from them, and for tracepoints"},
	{19, "CAP_SYS_PTRACE", "to see what other users' processes map"},
	{40, "CAP_CHECKPOINT_RESTORE", "to open what they map"},
	{2, "CAP_DAC_READ_SEARCH", "to read these files, and to find a cgroup by its id"},
	{28, "CAP_LEASE", "to be told before a file with probes is overwritten"},
	{21, "CAP_SYS_ADMIN", "only before Linux 6.6: to attach probes"},
};

static uint64_t effective_capabilities(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t set = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %" SCNx64, &set) == 1)
			break;
	if (file)
		fclose(file);
	return set;
}

static void check_capabilities(void)
{
	uint64_t have = effective_capabilities();

	for (size_t i = 0; i < sizeof(capabilities) / sizeof(*capabilities); i++)
		say(capabilities[i].name, have >> capabilities[i].number & 1 ? "yes" : "no",
		    capabilities[i].for_what);
}

static void check_kernel(void)
{
	struct utsname uts;

	uname(&uts);
	printf("qprof-bpf %s on Linux %s (%s)\n", QPROF_VERSION, uts.release, uts.machine);
	say("type information", access("/sys/kernel/btf/vmlinux", R_OK) ? "no" : "yes",
	    "/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF");
}

static void ignore(void *context, const char *what, const char *why)
{
	(void)context;
	(void)what;
	(void)why;
}

static void check_pids(unsigned int level)
{
	char nested[160];

	snprintf(nested, sizeof(nested),
		 "nested, level %u: only the processes in it; pids are those that ps shows", level);
	say("pid namespace", "yes", level ? nested : "the initial one: all processes");
}

/* Loads and attaches everything, as a run does; it does not look at versions. */
static int check_engine(void)
{
	const struct engine_config config = {.follow = true, .curves = true};
	const struct features *features;
	struct features_backends from;
	char room[CAPACITY_TEXT_MAX];
	struct discovery *d;
	struct engine *e;
	struct error err = {0};

	if (engine_new(&config, &e, &err) || engine_load_all(e, &err) || engine_attach(e, &err)) {
		say("BPF programs", "no", err.text);
		return 1;
	}
	features = engine_features(e);
	from = features_backends(features);
	say("BPF programs", "yes", "loaded and attached");
	check_pids(engine_pid_level(e));
	say("memory", "yes", from.rss);
	capacity_say(engine_capacity(e), room);
	say("room", "yes", room);
	say("I/O through calls", "yes", from.io_calls);
	say("I/O to storage", "yes", from.io_storage);
	say("OOM kills", from.oom_kills ? "yes" : "no",
	    from.oom_kills ? from.oom_kills : "the kernel has no tracepoint mark_victim");
	say("exact CPU time", engine_clock_reason(e) ? "no" : "yes", engine_clock_reason(e));
	say("fexit", features->fexit ? "yes" : "no",
	    features->fexit ? NULL : features->fexit_reason);
	d = discovery_new(e, NULL, 0, ignore, NULL, 0);
	if (d)
		discovery_search_process(d, pids_self(), false);
	say("checkpoints", "yes", from.checkpoints);
	discovery_free(d);
	engine_free(e);
	return 0;
}

/* ---- GPUs ---- */

static void say_device(const struct gpu_device *device)
{
	char what[32], detail[GPU_TEXT_MAX + 128], used[UNITS_TEXT_MAX], total[UNITS_TEXT_MAX];
	char safe[DETAIL_MAX * TEXT_TERMINAL_GROWTH + 1];

	snprintf(what, sizeof(what), "GPU %u", device->index);
	snprintf(detail, sizeof(detail), "%.*s at %.*s: %s of %s in use", GPU_TEXT_MAX,
		 device->name, GPU_PCI_MAX, device->pci,
		 device->knows_used ? units_bytes_for_people(used, device->used) : "?",
		 units_bytes_for_people(total, device->total));
	text_for_terminal(safe, sizeof(safe), detail, DETAIL_MAX);
	say(what, "yes", safe);
}

/* What runs would ask; a machine without any is as good. */
static void check_gpus(void)
{
	static struct gpu_look look;

	if (!gpu_look_once(&look, GPU_MS)) {
		say("GPUs", "no", "their drivers did not answer within 5 s");
		return;
	}
	for (uint32_t i = 0; i < look.n_devices; i++)
		say_device(&look.devices[i]);
	if (*look.nvidia_why)
		say("NVIDIA's GPUs", "no", look.nvidia_why);
	if (*look.amd_why)
		say("AMD's GPUs", "no", look.amd_why);
}

/* ---- A process --------------------------------------------------------------------------------
 */

/* The probes of what a process maps that would be checkpoints. */
struct heard {
	pid_t pid;
	uint64_t last_device, last_inode; /* mappings of a file follow each other */
	size_t probes, files;
};

static int count_probes(void *context, const struct procfs_mapping *m)
{
	struct heard *heard = context;
	struct usdt_file file;
	const char *why;
	uint32_t named_by_site;
	size_t n = 0;
	int fd;

	if (!m || (m->device == heard->last_device && m->inode == heard->last_inode))
		return 0;
	heard->last_device = m->device;
	heard->last_inode = m->inode;
	fd = procfs_open_mapping(heard->pid, m->start, m->end);
	if (fd < 0)
		return fd == -EACCES || fd == -EPERM ? fd : 0;
	if (!usdt_file_read(fd, &file, &why)) {
		for (size_t i = 0; i < file.count; i++)
			n += !file.probes[i].refused &&
			     sites_classify(&file.probes[i], NULL, 0, &named_by_site);
		usdt_file_free(&file);
	}
	close(fd);
	heard->probes += n;
	heard->files += n != 0;
	return 0;
}

static void check_python(pid_t pid)
{
	enum python_marks found;

	if (python_marks_look(pid, &found) || found == PYTHON_NONE)
		return;
	say("marks of Python", found == PYTHON_HEARD ? "yes" : "no",
	    found == PYTHON_HEARD	 ? "libqprof.so.0 is loaded"
	    : found == PYTHON_NO_LIBRARY ? PYTHON_NO_LIBRARY_WHY
					 : "the package qprof was not imported");
}

/* Returns 0 if the process can be watched. */
static int check_process(pid_t pid)
{
	struct heard heard = {.pid = pid};
	struct error err = {0};
	char probes[UNITS_TEXT_MAX], files[UNITS_TEXT_MAX], text[2 * UNITS_TEXT_MAX + 8];
	int failed = 0;

	printf("process %d\n", pid);
	if (procfs_check_target(pid, &err)) {
		say("can be profiled", "no", err.text);
		return 1;
	}
	say("can be profiled", "yes", NULL);
	failed = procfs_each_executable(pid, count_probes, &heard);
	if (failed) {
		snprintf(text, sizeof(text), "%s%s", strerror(-failed),
			 failed == -EACCES || failed == -EPERM ? "; use sudo" : "");
		say("checkpoint probes", "no", text);
		return 1;
	}
	snprintf(text, sizeof(text), "%s in %s",
		 units_counted(probes, sizeof(probes), heard.probes, "probe(s)"),
		 units_counted(files, sizeof(files), heard.files, "file(s)"));
	say("checkpoint probes", heard.probes ? "yes" : "no",
	    heard.probes ? text : "nothing that it has mapped has any; see qprof-bpf list");
	check_python(pid);
	return 0;
}

static int doctor_main(int argc, char **argv)
{
	struct doctor doctor = {0};
	bool serves;
	int status;

	options_parse(&command_doctor, argc, argv, &doctor);
	check_kernel();
	check_capabilities();
	serves = use_service_may();
	say("service", serves ? "yes" : "no",
	    serves ? "it profiles what is yours without root"
		   : "none at " TALK_PATH " that you may use: see qprof-bpf -a --serve");
	status = check_engine();
	check_gpus();
	if (doctor.pids.n && check_process((pid_t)doctor.pids.items[0]))
		status = 1;
	puts(!status  ? "Profiling works here."
	     : serves ? "Profiling works here through the service alone."
		      : "Profiling does not work here.");
	free(doctor.pids.items);
	return serves ? 0 : status;
}

const struct command command_doctor = {
	.name = "doctor",
	.title = "qprof-bpf doctor",
	.what = "Say what this kernel and these privileges allow",
	.usage = "[-p PID]",
	.doc = "What this kernel and these privileges allow, and the reason for whatever is "
	       "missing. Exit status 0 if profiling works, 1 if not.",
	.tables = (const struct option_table[]){{options, 0}, {0}},
	.arguments = {ARGUMENTS_NONE, .too_many = "it takes no arguments"},
	.run = doctor_main,
};
