/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/diskstats.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512 }; /* bytes; the counters use it for each device */

int diskstats_parse(FILE *file, int (*is_disk)(const char *name), struct diskstats *out)
{
	char line[512];

	*out = (struct diskstats){0};
	while (fgets(line, sizeof(line), file)) {
		struct diskstats_device device;
		uint64_t read, written;

		/* major minor name reads merged SECTORS ms writes merged SECTORS ... */
		if (sscanf(line, "%*u %*u %31s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64,
			   device.name, &read, &written) != 3 ||
		    !is_disk(device.name))
			continue;
		if (out->n == DISKSTATS_MAX) {
			out->dropped++;
			continue;
		}
		device.read = read * SECTOR;
		device.written = written * SECTOR;
		out->devices[out->n++] = device;
	}
	return ferror(file) ? -EIO : 0;
}

static int has_entries(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	int found = 0;

	if (!dir)
		return 0;
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.';
	closedir(dir);
	return found;
}

/* Partitions are not in /sys/block; a device that lies on others has slaves there. */
static int is_disk(const char *name)
{
	static const char *const others[] = {"ram", "zram", "loop"};
	char path[96];

	if (strchr(name, '/') || name[0] == '.')
		return 0;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strncmp(name, others[i], strlen(others[i])))
			return 0;
	snprintf(path, sizeof(path), "/sys/block/%s", name);
	if (access(path, F_OK))
		return 0;
	snprintf(path, sizeof(path), "/sys/block/%s/slaves", name);
	return !has_entries(path);
}

int diskstats_read(struct diskstats *out)
{
	FILE *file = fopen("/proc/diskstats", "re");
	int err;

	*out = (struct diskstats){0};
	if (!file)
		return -errno;
	err = diskstats_parse(file, is_disk, out);
	fclose(file);
	return err;
}

static const struct diskstats_device *find(const struct diskstats *stats, const char *name)
{
	for (size_t i = 0; i < stats->n; i++)
		if (!strcmp(stats->devices[i].name, name))
			return &stats->devices[i];
	return NULL;
}

void diskstats_since(struct diskstats *now, const struct diskstats *before)
{
	for (size_t i = 0; i < now->n; i++) {
		struct diskstats_device *device = &now->devices[i];
		const struct diskstats_device *old = find(before, device->name);

		if (!old || old->read > device->read || old->written > device->written)
			continue;
		device->read -= old->read;
		device->written -= old->written;
	}
}
