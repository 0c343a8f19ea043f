/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * known_files.h - the files that were searched for probes, up to a limit.
 */
#ifndef QPROF_KNOWN_FILES_H
#define QPROF_KNOWN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "bpf/wire.h"

/*
 * A file that was searched. Its key is what its probes belong to: see mappings.bpf.c. If the file
 * is written anew in place, it keeps its key, but size or changed_ns differ.
 */
struct known_file {
	struct wire_file key;
	uint64_t size, changed_ns;
	uint64_t digest;	/* of its probes, and of the code where they are */
	uint64_t lists;		/* of wishes that it was searched for: see wishes.h */
	uint64_t of_jobs;	/* the same of lists that are jobs' */
	unsigned int n_of_jobs; /* of these, those with places in it */
	uint64_t held_until_ms; /* not 0: until then nothing is attached, see leave_alone() */
	uint32_t group;		/* of what is attached in it */
	int lease; /* a descriptor of it, of one with probes, that holds a lease if it can; or -1 */
	bool leased;   /* it does hold one */
	bool written;  /* it could not, as somebody had the file open for writing */
	bool attached; /* anything */
	bool linker;   /* a dynamic linker */
	bool gpu;      /* a library of a GPU's driver, by its name */
	bool overlaid; /* found by way of an overlay mount */
	bool kept;     /* searched before anybody maps it: stays known */
	bool partial;  /* some of its probes may not be attached, for want of time or of room */
	bool doubtful; /* there was a warning of its content or its probes */
	UT_hash_handle hh;
	struct known_file *prev, *next;
};

struct known_files {
	struct known_file *first;  /* in the order in which they were added; hh.next is the next */
	struct known_file *oldest; /* in the order in which they were last used */
	size_t limit;
};

/* Returns the file, or NULL. */
struct known_file *known_files_find(const struct known_files *files, const struct wire_file *key);
/* It is in use: it will be among the last to be forgotten. */
void known_files_use(struct known_files *files, struct known_file *file);
/*
 * Adds a file that is not known yet; all but its key and lease (-1) is zero. At the limit, the file
 * is forgotten that was not used for the longest time, of those without probes: if a process maps
 * it again, it is searched again. Returns NULL if there is no memory, or all files have probes.
 */
struct known_file *known_files_add(struct known_files *files, const struct wire_file *key);
void known_files_remove(struct known_files *files, struct known_file *file);

#endif
