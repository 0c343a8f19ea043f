/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/procfs.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/pids.h"

enum { /* linux/sched.h; the ninth field of /proc/PID/stat */
       PF_FORKNOEXEC = 0x00000040,
       PF_KTHREAD = 0x00200000,
};

static FILE *open_file(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

/* Reads the number behind a key of /proc/PID/status. Returns false if there is none. */
static bool read_number(pid_t pid, const char *key, int base, uint64_t *number)
{
	FILE *file = open_file(pid, "status");
	char line[256];
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		found = !strncmp(line, key, strlen(key));
		if (found)
			*number = strtoull(line + strlen(key), NULL, base);
	}
	fclose(file);
	return found;
}

/* Returns that number if it is decimal, or -1. */
static long read_status(pid_t pid, const char *key)
{
	uint64_t number;

	return read_number(pid, key, 10, &number) ? (long)number : -1;
}

int procfs_memory(struct procfs_memory *memory)
{
	FILE *file = fopen("/proc/meminfo", "re");
	struct procfs_memory kib = {0};
	char line[128];

	if (!file)
		return -errno;
	while (!kib.committed && fgets(line, sizeof(line), file)) { /* it is the last of these */
		sscanf(line, "MemTotal: %" SCNu64 " kB", &kib.total);
		sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib.available);
		sscanf(line, "CommitLimit: %" SCNu64 " kB", &kib.commit_limit);
		sscanf(line, "Committed_AS: %" SCNu64 " kB", &kib.committed);
	}
	fclose(file);
	if (!kib.total)
		return -ENODATA;
	*memory = (struct procfs_memory){.total = kib.total << 10,
					 .available = kib.available << 10,
					 .committed = kib.committed << 10,
					 .commit_limit = kib.commit_limit << 10};
	return 0;
}

/* Of /proc/PID/stat. */
struct stat_line {
	char state;
	unsigned int flags;
	long threads;
	unsigned long long start_ticks; /* CLOCK_BOOTTIME, of sysconf(_SC_CLK_TCK) a second */
};

/* Looks for the last ')': the name before it may have any character, ')' too. */
static int read_stat(pid_t pid, struct stat_line *stat)
{
	FILE *file = open_file(pid, "stat");
	char line[1024], *rest;
	size_t n;

	if (!file)
		return -errno;
	n = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[n] = 0;
	rest = strrchr(line, ')');
	if (!rest || sscanf(rest + 1,
			    " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			    "%ld %*d %llu",
			    &stat->state, &stat->flags, &stat->threads, &stat->start_ticks) != 4)
		return -ESRCH;
	return 0;
}

bool procfs_may_load(void)
{
	const uint64_t any_of = 1ull << 39 | 1ull << 21; /* CAP_BPF, CAP_SYS_ADMIN */
	uint64_t effective = 0;

	return read_number(pids_self(), "CapEff:", 16, &effective) && effective & any_of;
}

bool procfs_has_ended(pid_t pid, uint64_t started_ns)
{
	struct stat_line stat = {0};

	/* A main thread that has called pthread_exit() is a zombie while the others go on. */
	return read_stat(pid, &stat) || (stat.state == 'Z' && stat.threads <= 1) ||
	       stat.state == 'X' || !procfs_is_still(pid, started_ns);
}

bool procfs_has_memory(pid_t pid, uint64_t started_ns)
{
	return read_status(pid, "VmSize:") > 0 && procfs_is_still(pid, started_ns);
}

int procfs_check_target(pid_t pid, struct error *err)
{
	struct stat_line stat = {0};
	long tgid;

	if (read_stat(pid, &stat))
		return error_set(err, "no process %d: it does not exist or has just exited", pid);
	if (stat.flags & PF_KTHREAD)
		return error_set(
			err,
			"process %d is a kernel thread: it has no memory of its own to profile",
			pid);
	/* A main thread that has called pthread_exit() is a zombie while the others go on. */
	if ((stat.state == 'Z' && read_status(pid, "Threads:") <= 1) || stat.state == 'X')
		return error_set(err,
				 "process %d has exited already (its parent has not waited for it)",
				 pid);
	tgid = read_status(pid, "Tgid:");
	if (tgid > 0 && tgid != pid)
		return error_set(err, "%d is a thread of process %ld: use -p %ld", pid, tgid, tgid);
	return 0;
}

/* What our time namespace adds to CLOCK_BOOTTIME. /proc shows times with it, BPF without. */
static int64_t boottime_offset_ns(void)
{
	FILE *file = fopen("/proc/self/timens_offsets", "re");
	int64_t seconds = 0, ns = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "boottime %" SCNd64 " %" SCNd64, &seconds, &ns) == 2)
			break;
	if (file)
		fclose(file);
	return seconds * 1000000000 + ns;
}

bool procfs_is_still(pid_t pid, uint64_t started_ns)
{
	const uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	const uint64_t here_ns = started_ns + (uint64_t)boottime_offset_ns();
	struct stat_line stat = {0};

	return !read_stat(pid, &stat) && stat.start_ticks == here_ns / tick_ns;
}

bool procfs_has_executed(pid_t pid)
{
	struct stat_line stat = {0};

	return !read_stat(pid, &stat) && !(stat.flags & PF_FORKNOEXEC);
}

bool procfs_ignores(pid_t pid, int signal)
{
	uint64_t ignored;

	return read_number(pid, "SigIgn:", 16, &ignored) && ignored >> (signal - 1) & 1;
}

ssize_t procfs_executable(pid_t pid, char *path, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = readlink(link, path, size - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return n;
}

static ssize_t read_words(pid_t pid, const char *name, char *buffer, size_t size)
{
	FILE *file = open_file(pid, name);
	size_t n;

	if (!file)
		return -errno;
	n = fread(buffer, 1, size, file);
	fclose(file);
	return n;
}

ssize_t procfs_cmdline(pid_t pid, char *buffer, size_t size)
{
	return read_words(pid, "cmdline", buffer, size);
}

ssize_t procfs_environ(pid_t pid, char *buffer, size_t size)
{
	return read_words(pid, "environ", buffer, size);
}

/* Parses "start-end perms offset major:minor inode   path". Returns false if it is not wanted. */
static bool parse_mapping(char *line, bool executable, struct procfs_mapping *m)
{
	unsigned int major, minor;
	int path = 0;
	char perms[5];
	const char *blank = strchr(line, ' ');

	/* Most are not executable, and scanning costs more than all else here. */
	if (!blank || strlen(blank) < 5 || (executable && blank[3] != 'x'))
		return false;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start,
		   &m->end, perms, &m->offset, &major, &minor, &m->inode, &path) != 7 ||
	    !m->inode)
		return false;
	m->device = (uint64_t)major << 32 | minor;
	m->path = path ? line + path : "";
	line[strcspn(line, "\n")] = 0;
	return true;
}

/* linux/fs.h has it from 6.11 on (ed5d583a88a9 "fs/procfs: implement efficient VMA querying API").
 */
struct procmap_query {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};

enum {
	QUERY_EXECUTABLE = 0x04,
	QUERY_COVERING_OR_NEXT = 0x10,
	QUERY_FILE_BACKED = 0x20,
};

#define QUERY_MAPPING _IOWR('f', 17, struct procmap_query)

/*
 * Python with PyTorch has over a thousand mappings. The kernel needs a millisecond to print them
 * all, and the program waits for us meanwhile: so we ask for the wanted ones alone. Returns -ENOTTY
 * if this kernel cannot be asked.
 */
static int each_by_query(int fd, bool executable, procfs_visit_fn visit, void *context)
{
	char path[PATH_MAX + 16]; /* " (deleted)" */
	struct procmap_query q = {
		.size = sizeof(q),
		.query_flags = QUERY_COVERING_OR_NEXT | QUERY_FILE_BACKED |
			       (executable ? QUERY_EXECUTABLE : 0),
		.vma_name_addr = (uintptr_t)path,
	};
	int err = 0;

	while (!err) {
		struct procfs_mapping m;

		q.vma_name_size = sizeof(path);
		if (ioctl(fd, QUERY_MAPPING, &q))
			return errno == ENOENT ? 0 : -errno;
		m = (struct procfs_mapping){
			.start = q.vma_start,
			.end = q.vma_end,
			.offset = q.vma_offset,
			.device = (uint64_t)q.dev_major << 32 | q.dev_minor,
			.inode = q.inode,
			.path = q.vma_name_size ? path : "",
		};
		path[sizeof(path) - 1] = 0;
		err = visit(context, &m);
		q.query_addr = q.vma_end;
	}
	return err;
}

static int each_by_text(int fd, bool executable, procfs_visit_fn visit, void *context)
{
	FILE *file = fdopen(fd, "re");
	char buffer[16384];
	struct procfs_mapping m;
	char *line = NULL;
	size_t room = 0;
	int err = 0;

	if (!file) {
		err = -errno;
		close(fd);
		return err;
	}
	setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	while (!err && getline(&line, &room, file) > 0)
		err = visit(context, parse_mapping(line, executable, &m) ? &m : NULL);
	free(line);
	fclose(file);
	return err;
}

static int each_mapping(pid_t pid, bool executable, procfs_visit_fn visit, void *context)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = each_by_query(fd, executable, visit, context);
	if (err == -ENOTTY)
		return each_by_text(fd, executable, visit, context);
	close(fd);
	return err;
}

int procfs_each_executable(pid_t pid, procfs_visit_fn visit, void *context)
{
	return each_mapping(pid, true, visit, context);
}

int procfs_each_mapped(pid_t pid, procfs_visit_fn visit, void *context)
{
	return each_mapping(pid, false, visit, context);
}

int procfs_each_open(pid_t pid, procfs_open_fn visit, void *context)
{
	char path[PATH_MAX + 16]; /* " (deleted)" */
	const struct dirent *entry;
	ssize_t n;
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		/* Reads the link: to open it may act on a device, or wait for a pipe. */
		n = readlinkat(dirfd(dir), entry->d_name, path, sizeof(path) - 1);
		path[n < 0 ? 0 : n] = '\0';
		err = visit(context, path);
	}
	closedir(dir);
	return err;
}

pid_t procfs_other_thread(pid_t pid)
{
	const struct dirent *entry;
	char path[32];
	long tid = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (!tid || tid == pid) && (entry = readdir(dir)))
		tid = strtol(entry->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	return tid == pid ? 0 : (pid_t)tid;
}

/* The owner of /proc/PID may be root instead: of a process that keeps others from debugging it. */
int procfs_user(pid_t pid, uid_t *uid)
{
	const long number = read_status(pid, "Uid:");

	if (number < 0)
		return -ESRCH;
	*uid = (uid_t)number;
	return 0;
}

/* A link straight to the file; following it needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. */
static void link_of(char *path, size_t size, pid_t pid, uint64_t start, uint64_t end)
{
	snprintf(path, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end);
}

ssize_t procfs_mapping_path(pid_t pid, uint64_t start, uint64_t end, char *path, size_t size)
{
	char link[96];
	ssize_t n;

	link_of(link, sizeof(link), pid, start, end);
	n = readlink(link, path, size - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return n;
}

/* Opens it with O_PATH first: to open a device for reading may act on it. */
int procfs_open_mapping(pid_t pid, uint64_t start, uint64_t end)
{
	char path[96];
	struct stat st;
	int found, fd;

	link_of(path, sizeof(path), pid, start, end);
	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0)
		return -errno;
	if (fstat(found, &st) || !S_ISREG(st.st_mode)) {
		close(found);
		return -EINVAL;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		fd = -errno;
	close(found);
	return fd;
}

uint32_t procfs_max_mappings(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	uint32_t most = 0;

	if (file && fscanf(file, "%" SCNu32, &most) != 1)
		most = 0;
	if (file)
		fclose(file);
	return most;
}
