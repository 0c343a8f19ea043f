/* SPDX-License-Identifier: GPL-2.0-only */
/* doctor.c - qprof-bpf doctor: tells what this kernel and these privileges allow, and why. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/commands.h"
#include "kernel/discovery.h"
#include "kernel/engine.h"
#include "kernel/pids.h"

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
	const struct engine_config config = {.follow = true};
	const struct features *features;
	struct features_backends from;
	struct discovery *d;
	struct engine *e;
	struct error err = {0};

	if (engine_new(&config, &e, &err) || engine_attach(e, &err)) {
		say("BPF programs", "no", err.text);
		return 1;
	}
	features = engine_features(e);
	from = features_backends(features);
	say("BPF programs", "yes", "loaded and attached");
	check_pids(engine_pid_level(e));
	say("memory", "yes", from.rss);
	say("I/O through calls", "yes", from.io_calls);
	say("I/O to storage", "yes", from.io_storage);
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

static int doctor_main(int argc, char **argv)
{
	int status;

	options_parse(&command_doctor, argc, argv, NULL);
	check_kernel();
	check_capabilities();
	status = check_engine();
	puts(status ? "Profiling does not work here." : "Profiling works here.");
	return status;
}

const struct command command_doctor = {
	.name = "doctor",
	.title = "qprof-bpf doctor",
	.what = "Say what this kernel and these privileges allow",
	.doc = "What this kernel and these privileges allow, and the reason for whatever is "
	       "missing. Exit status 0 if profiling works, 1 if not.",
	.tables = (const struct option_table[]){{0}},
	.arguments = {ARGUMENTS_NONE, .too_many = "it takes no arguments"},
	.run = doctor_main,
};
