// SPDX-License-Identifier: GPL-2.0-only
/* recorded_death.c - how a process ended badly, as a profile has it. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "format/fields.h"
#include "format/recorded.h"
#include "model/refusal.h"

enum { NULL_AREA = 64 << 10 }; /* bytes at address 0 that nobody has: vm.mmap_min_addr */

/* si_code of a fault. */
static const char *fault_words(const struct profile_death *death)
{
	if (death->code <= 0)
		return NULL;
	switch (death->signal) {
	case SIGSEGV:
		if (death->stack_overflow)
			return "stack overflow";
		if (death->code == SI_KERNEL)
			return "an address that no process can have";
		if (death->address < NULL_AREA)
			return "null pointer";
		return death->code == SEGV_MAPERR   ? "nothing is at the address"
		       : death->code == SEGV_ACCERR ? "no right to use the address so"
						    : NULL;
	case SIGBUS:
		if (death->code == BUS_ADRALN)
			return "misaligned address";
		if (death->code != BUS_ADRERR || !death->file)
			return NULL;
		if (!death->in_file)
			return "beyond the end of a mapped file";
		return death->refused_by ? "no room for a page of a mapped file"
					 : "no page of a mapped file";
	case SIGFPE:
		return death->code == FPE_INTDIV ? "division by zero" : NULL;
	case SIGILL:
		return "illegal instruction";
	default:
		return NULL;
	}
}

static const char *how_name(const struct profile_death *death)
{
	switch (death->how) {
	case PROFILE_BY_SIGNAL:
		return "signal";
	case PROFILE_BY_REFUSAL:
		return "refused";
	case PROFILE_BY_EXCEPTION:
		return death->refused_by ? "refused" : "exception";
	case PROFILE_BY_OOM:
		break;
	}
	return "oom";
}

struct filling {
	struct recording_death *into;
	struct arena *arena;
	int err;
};

/* Sets the field of that key to a copy of text, if that is not NULL. */
static void put(struct filling *f, const char *key, char **at, const char *text)
{
	*at = text ? arena_text(f->arena, text, strlen(text)) : NULL;
	field_put(&record_death, f->into, key, *at);
	if (text && !*at)
		f->err = -ENOMEM;
}

static void put_signal(struct filling *f, const struct profile_death *death)
{
	const bool has_address = death->code > 0 && death->code != SI_KERNEL &&
				 (death->signal == SIGSEGV || death->signal == SIGBUS);
	const char *name = death->signal ? sigabbrev_np((int)death->signal) : NULL;
	char signal[32], address[32];

	if (name)
		snprintf(signal, sizeof(signal), "SIG%s", name);
	else
		snprintf(signal, sizeof(signal), "signal %" PRIu32, death->signal);
	snprintf(address, sizeof(address), "0x%" PRIx64, death->address);
	put(f, "signal", &f->into->signal, death->signal ? signal : NULL);
	put(f, "fault", &f->into->fault, fault_words(death));
	put(f, "address", &f->into->address, has_address ? address : NULL);
	put(f, "mapped_file", &f->into->mapped_file, death->file);
	put(f, "sent_by", &f->into->sender_comm, death->sender_comm[0] ? death->sender_comm : NULL);
	put(f, "refused_by", &f->into->refused_by, profile_limit_name(death->refused_by));
}

static void put_quota(struct filling *f, const struct profile_death *death)
{
	const bool of_user = death->refused_by == PROFILE_QUOTA_OF_USER;
	const bool of_group = death->refused_by == PROFILE_QUOTA_OF_GROUP;
	char whose[32];

	snprintf(whose, sizeof(whose), "%s %" PRIu32, of_user ? "user" : "group", death->quota_id);
	put(f, "quota_of", &f->into->quota_of, of_user || of_group ? whose : NULL);
}

static void put_oom(struct filling *f, const struct profile_death *death)
{
	const bool oom = death->how == PROFILE_BY_OOM;
	const char *scope = death->scope == WIRE_SCOPE_CGROUP ? "cgroup" : "machine";

	put(f, "scope", &f->into->scope, oom ? scope : NULL);
	put(f, "path", &f->into->path, death->path);
	put(f, "asked_by", &f->into->asked_by_comm, oom ? death->asked_by_comm : NULL);
}

int recorded_death(const struct profile *p, const struct profile_death *death, struct arena *arena,
		   struct recording_death *into)
{
	const bool by_mappings = death->refused_by == PROFILE_MAPPINGS;
	const bool by_quota = death->refused_by == PROFILE_QUOTA_OF_USER ||
			      death->refused_by == PROFILE_QUOTA_OF_GROUP;
	const bool by_disk = by_quota || death->refused_by == PROFILE_FILE_SYSTEM;
	const bool by_gpu = death->refused_by == PROFILE_GPU;
	const bool by_size = death->path || by_quota ||
			     (death->refused_by && !by_mappings && !by_disk && !by_gpu);
	static const char *const of_memory[] = {"file_mb", "anon_mb", "shmem_mb", "swap_mb",
						"tree_memory_mb"};
	struct filling filling = {.into = into, .arena = arena};

	*into = (struct recording_death){
		.has = field_all(&record_death),
		.time_ns = profile_rel_ns(p, death->time_ns),
		.pid = death->tgid,
		.limit = death->limit,
		.usage = death->usage,
		.with_swap = death->with_swap,
		.asked_by = death->asked_by,
		.sender = death->sender,
		.exit_code = death->exit_code,
		.mappings = death->mappings,
		.mappings_max = death->mappings_max,
		.left = death->left_bytes,
		.file_system_size = death->file_system_bytes,
		.in_thread = death->in_thread,
		.file = death->own.file,
		.anon = death->own.anon,
		.shmem = death->own.shmem,
		.swap = death->own.swap,
		.tree_rss = death->tree.rss,
	};
	field_put(&record_death, into, "limit_mb", by_size);
	field_put(&record_death, into, "usage_mb", by_size);
	field_put(&record_death, into, "with_swap", death->with_swap);
	field_put(&record_death, into, "asked_by_pid", death->asked_by);
	field_put(&record_death, into, "sent_by_pid", death->sender);
	field_put(&record_death, into, "exit_code", death->exit_code);
	field_put(&record_death, into, "mappings", by_mappings);
	field_put(&record_death, into, "max_mappings", by_mappings);
	field_put(&record_death, into, "left_mb", by_disk);
	field_put(&record_death, into, "file_system_size_mb", by_disk && death->file_system_bytes);
	field_put(&record_death, into, "thread", death->in_thread);
	field_put(&record_death, into, "gpu_refusal", by_gpu);
	for (size_t i = 0; i < sizeof(of_memory) / sizeof(*of_memory); i++)
		field_put(&record_death, into, of_memory[i], !death->has_no_memory);
	if (by_gpu)
		filling.err = recorded_gpu_refusal(p, &death->gpu, arena, &into->gpu);
	put(&filling, "how", &into->how, how_name(death));
	put(&filling, "phase", &into->phase, death->left ? death->left : death->phase);
	put(&filling, "exception", &into->exception, death->exception);
	put(&filling, "file_system", &into->file_system, death->file_system);
	put(&filling, "written_file", &into->written_file, by_disk ? death->written_file : NULL);
	put_quota(&filling, death);
	put_oom(&filling, death);
	put_signal(&filling, death);
	return filling.err;
}
