/* SPDX-License-Identifier: GPL-2.0-only */
/* list.c - qprof-bpf list: shows the USDT probes of a file or a process, and what they mean. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "kernel/sites.h"
#include "base/log.h"
#include "kernel/procfs.h"
#include "kernel/python_marks.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/usdt.h"

struct list {
	struct pids pids;
	const char *file;
	size_t probes;
	uint64_t last_device, last_inode; /* mappings of a file follow each other */
	pid_t pid;
};

static const struct command_option options[] = {
	{'p', "pid", "PID", "The probes of everything that this process has mapped", OPT_PIDS,
	 INTO(struct list, pids), .most = 1, .replaces_arguments = true,
	 .wrong = "not one process id"},
	{0},
};

static const char *meaning(const struct usdt_probe *probe)
{
	uint32_t named_by_site;

	switch (sites_classify(probe, NULL, 0, &named_by_site)) {
	case WIRE_BEGIN:
		return "begin of a phase";
	case WIRE_END:
		return "end of a phase";
	case WIRE_MARK:
		return named_by_site ? "mark, named after the probe" : "mark";
	case WIRE_METRIC:
		return !strcmp(probe->name, "summary")	? "metric of the whole run"
		       : !strcmp(probe->name, "define") ? "definition of a metric"
		       : !strcmp(probe->name, "item")	? "item of a recipe"
		       : !strcmp(probe->name, "failed") ? "exception that nobody catches"
							: "metric";
	default:
		return "only with --usdt";
	}
}

/* Prints what an ELF file says, made safe for terminals. */
static void print_safe(const char *format, const char *text)
{
	char safe[1024 * TEXT_TERMINAL_GROWTH + 1];

	text_for_terminal(safe, sizeof(safe), text, 1024);
	printf(format, safe);
}

static void print_probe(const struct usdt_probe *probe)
{
	char name[2 * USDT_NAME_LEN];

	snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name);
	print_safe("  %-36s", name);
	printf(" 0x%-8llx%s ", (unsigned long long)probe->offset,
	       probe->semaphore ? " semaphore" : "");
	print_safe("%s", meaning(probe));
	if (probe->refused)
		printf(" (%s)", probe->refused);
	print_safe("  [%s]\n", probe->args);
}

/* Prints nothing for a file without probes. Returns 0, or -errno and *why. */
static int list_open_file(struct list *list, int fd, const char *path, const char **why)
{
	struct usdt_file file;
	int err = usdt_file_read(fd, &file, why);
	char notes[UNITS_TEXT_MAX];

	if (err)
		return err;
	if (file.count) {
		print_safe("%s\n", path);
		for (size_t i = 0; i < file.count; i++)
			print_probe(&file.probes[i]);
	}
	if (file.bad_notes)
		printf("  (skipped %s without sense)\n",
		       units_counted(notes, sizeof(notes), file.bad_notes, "note(s)"));
	list->probes += file.count;
	usdt_file_free(&file);
	return 0;
}

static int list_mapping(void *context, const struct procfs_mapping *m)
{
	struct list *list = context;
	const char *why;
	int fd;

	if (!m || (m->device == list->last_device && m->inode == list->last_inode))
		return 0;
	list->last_device = m->device;
	list->last_inode = m->inode;
	fd = procfs_open_mapping(list->pid, m->start, m->end);
	if (fd < 0)
		return fd == -EACCES || fd == -EPERM ? fd : 0;
	list_open_file(list, fd, m->path, &why);
	close(fd);
	return 0;
}

/* Says why the Python package qprof, if it is there, cannot be heard. */
static void say_python(pid_t pid)
{
	enum python_marks found;

	if (python_marks_look(pid, &found))
		return;
	if (found == PYTHON_NO_LIBRARY)
		puts("marks of the Python package qprof cannot be heard: " PYTHON_NO_LIBRARY_WHY);
	else if (found == PYTHON_NO_PACKAGE)
		puts("this Python has not loaded libqprof.so.0: if it uses the package qprof, its "
		     "marks cannot be heard");
}

static int list_process(struct list *list)
{
	int err;

	list->pid = (pid_t)list->pids.items[0];
	err = procfs_each_executable(list->pid, list_mapping, list);
	if (err) {
		log_error("cannot read what process %d maps: %s%s", list->pid, strerror(-err),
			  err == -ENOENT ? "; there is no such process" : "; use sudo");
		return 125;
	}
	return 0;
}

static int list_file(struct list *list)
{
	int fd = open(list->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why = NULL;
	int err;

	if (fd < 0) {
		log_error("cannot read '%s': %s", list->file, strerror(errno));
		return 125;
	}
	err = list_open_file(list, fd, list->file, &why);
	close(fd);
	if (!err)
		return 0;
	log_error("cannot read the probes of '%s': %s", list->file,
		  why		    ? why
		  : err == -ENOEXEC ? "no ELF file for this machine"
				    : strerror(-err));
	return 125;
}

static int list_main(int argc, char **argv)
{
	struct list list = {0};
	int status;

	options_parse(&command_list, argc, argv, &list);
	status = list.file ? list_file(&list) : list_process(&list);
	if (!status && !list.probes)
		puts("no USDT probes");
	if (!status && !list.file)
		say_python(list.pid);
	free(list.pids.items);
	return status;
}

const struct command command_list = {
	.name = "list",
	.title = "qprof-bpf list",
	.what = "Show the USDT probes of a file or a process",
	.usage = "-p PID\nFILE",
	.doc = "The USDT probes that are there, and what they would be as checkpoints.",
	.tables = (const struct option_table[]){{options, 0}, {0}},
	.arguments = {ARGUMENTS_FILES, .least = 1, .most = 1, .at = offsetof(struct list, file),
		      .too_few = "say what to look at: -p PID, or a FILE",
		      .too_many = "say what to look at: -p PID, or one FILE"},
	.run = list_main,
};
