/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/ending.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "base/names.h"
#include "base/units.h"
#include "format/fields.h"
#include "format/gpus.h"

enum { SHELL_SIGNAL = 128 }; /* a shell whose command ends by signal n exits with 128 + n */

/* Returns what a SIGKILL means. Of who uses another's memory the OOM killer's choice is not told.
 */
static const char *kill_words(const struct recording *r, const struct recording_process *process)
{
	if (!r->run.backends.oom_kills || !process || process->flags & WIRE_PROCESS_SHARES_MM)
		return " (out of memory, or kill -9)";
	return " (kill -9, not out of memory)";
}

/* "Ended by SIGSEGV", "Interrupted", "Failed with exit status 3". */
static void ending_words(char *out, size_t size, const struct recording *r,
			 const struct recording_process *process)
{
	const uint32_t signal = process->exit_signal;
	const char *name = signal ? sigabbrev_np((int)signal) : NULL;

	if (signal == SIGINT)
		snprintf(out, size, "Interrupted");
	else if (!signal)
		snprintf(out, size, "Failed with exit status %u", process->exit_code);
	else if (name)
		snprintf(out, size, "Ended by SIG%s%s", name,
			 signal == SIGKILL ? kill_words(r, process) : "");
	else
		snprintf(out, size, "Ended by signal %u", signal);
}

/* Of several processes, the one that says most of how the run ended: what a signal did says more
 * than what a process did by itself, and an interrupt (^C) says that its user wanted it. */
static unsigned int badness(const struct recording_process *process)
{
	enum { GOOD, INTERRUPTED, FAILED, SIGNALLED, KILLED };

	if (!process->ended || !(process->exit_signal || process->exit_code))
		return GOOD;
	switch (process->exit_signal) {
	case 0:
		return FAILED;
	case SIGINT:
		return INTERRUPTED;
	case SIGKILL:
		return KILLED;
	default:
		return SIGNALLED;
	}
}

static const struct recording_process *bad_target(const struct recording *r)
{
	const struct recording_process *found = NULL;

	for (size_t i = 0; i < r->n_processes; i++) {
		const struct recording_process *process = &r->processes[i];

		if (process->flags & WIRE_PROCESS_TARGET &&
		    badness(process) > (found ? badness(found) : 0))
			found = process;
	}
	return found;
}

/* Returns the process whose signal a shell passes on as its exit status: the last such, or NULL. */
static const struct recording_process *behind_shell(const struct recording *r,
						    const struct recording_process *target)
{
	const struct recording_process *found = NULL;

	if (target->exit_signal || target->exit_code <= SHELL_SIGNAL)
		return NULL;
	for (size_t i = 0; i < r->n_processes; i++) {
		const struct recording_process *process = &r->processes[i];

		if (process->ended && process->exit_signal == target->exit_code - SHELL_SIGNAL &&
		    process->end_ns <= target->end_ns &&
		    (!found || process->end_ns >= found->end_ns))
			found = process;
	}
	return found;
}

/* Of the phases that went on at that time, the process's own come first. process may be NULL. */
static const struct recording_phase *phase_of(const struct recording *r, uint64_t ns,
					      const struct recording_process *process)
{
	const struct recording_phase *found = NULL;

	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (phase->kind == PROFILE_PHASE_PAIR && phase->start_ns <= ns &&
		    (!phase->closed || ns <= phase->start_ns + phase->duration_ns) &&
		    (process ? phase->pid == process->pid : !phase->closed))
			found = phase;
	}
	return found ? found : recording_phase_at(r, ns);
}

/* ---- In words ---------------------------------------------------------------------------------
 */

static void __attribute__((format(printf, 2, 3)))
say(struct ending *ending, const char *format, ...)
{
	const size_t len = strlen(ending->text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(ending->text + len, sizeof(ending->text) - len, format, arguments);
	va_end(arguments);
}

static void add_where(struct ending *ending, const struct recording *r, uint64_t ns,
		      const struct recording_process *process)
{
	char when[UNITS_TEXT_MAX];
	const char *words;
	const struct recording_phase *phase =
		recording_where(r, ns, phase_of(r, ns, process), &words);

	say(ending, " at %s%s%.300s", units_time_for_people(when, ns), words,
	    phase ? phase->shown : "");
}

/* Returns the process that had the pid at that time, or NULL. */
static const struct recording_process *process_at(const struct recording *r, uint32_t pid,
						  uint64_t ns)
{
	const struct recording_process *found = NULL;

	for (size_t i = 0; i < r->n_processes; i++)
		if (r->processes[i].pid == pid && r->processes[i].start_ns <= ns)
			found = &r->processes[i];
	return found;
}

static const struct recording_death *death_of(const struct recording *r,
					      const struct recording_process *process)
{
	for (size_t i = 0; i < r->n_deaths; i++) {
		const struct recording_death *death = &r->deaths[i];

		if (process_at(r, death->pid, death->time_ns) == process)
			return death;
	}
	return NULL;
}

/* goes_on: more follows. */
static void say_held(struct ending *ending, const struct recording_death *death, bool goes_on)
{
	const uint64_t rss = death->file + death->anon + death->shmem;
	char all[UNITS_TEXT_MAX], file[UNITS_TEXT_MAX], anon[UNITS_TEXT_MAX], other[UNITS_TEXT_MAX];

	say(ending, " held %s (anon %s, file %s", units_bytes_for_people(all, rss),
	    units_bytes_for_people(anon, death->anon), units_bytes_for_people(file, death->file));
	if (death->shmem)
		say(ending, ", shmem %s", units_bytes_for_people(other, death->shmem));
	say(ending, ")");
	if (death->swap)
		say(ending, " and %s in swap", units_bytes_for_people(other, death->swap));
	if (death->tree_rss > rss)
		say(ending, ", the whole tree %s%s", units_bytes_for_people(other, death->tree_rss),
		    goes_on ? "," : "");
}

static void say_limit(struct ending *ending, const struct recording_death *death)
{
	char limit[UNITS_TEXT_MAX], usage[UNITS_TEXT_MAX];

	if (!death->path) {
		say(ending, "the machine had");
		return;
	}
	say(ending, "cgroup %.200s may have: %s%s, of which %s were in use", death->path,
	    units_bytes_for_people(limit, death->limit), death->with_swap ? " with swap" : "",
	    units_bytes_for_people(usage, death->usage));
}

static bool is_how(const struct recording_death *death, const char *how)
{
	return death->how && !strcmp(death->how, how);
}

static bool has(const struct recording_death *death, const char *key)
{
	return field_has_key(&record_death, death, key);
}

static void say_asker(struct ending *ending, const struct recording_death *death)
{
	if (death->asked_by == death->pid)
		say(ending, " when it asked for more than ");
	else if (death->asked_by)
		say(ending, " when process %u %.48s asked for more than ", death->asked_by,
		    death->asked_by_comm ? death->asked_by_comm : "");
	else
		say(ending, " when another process asked for more than ");
}

/* Charges that may not fail go a little beyond a limit. What is far beyond was there before:
 * whoever lowered it (memory.max of cgroup v2) had the kernel look for a victim. */
static bool was_lowered(const struct recording_death *death)
{
	return death->path && death->usage > death->limit + death->limit / 16;
}

static void say_lowered(struct ending *ending, const struct recording_death *death)
{
	char limit[UNITS_TEXT_MAX], usage[UNITS_TEXT_MAX];

	say(ending, " when the limit of cgroup %.200s, with %s in use, was lowered to %s%s",
	    death->path, units_bytes_for_people(usage, death->usage),
	    units_bytes_for_people(limit, death->limit), death->with_swap ? " with swap" : "");
	if (death->asked_by && death->asked_by != death->pid)
		say(ending, " (process %u %.48s)", death->asked_by,
		    death->asked_by_comm ? death->asked_by_comm : "");
}

static void say_full(struct ending *ending, const struct recording_death *death)
{
	char left[UNITS_TEXT_MAX], size[UNITS_TEXT_MAX];

	say(ending, " while %s were left of ", units_bytes_for_people(left, death->left));
	if (death->quota_of)
		say(ending, "the quota of %.32s, %s, on ", death->quota_of,
		    units_bytes_for_people(size, death->limit));
	say(ending, "the file system at %.200s", death->file_system);
	if (!death->quota_of && death->file_system_size)
		say(ending, " (%s)", units_bytes_for_people(size, death->file_system_size));
	if (death->written_file)
		say(ending, ", for %.300s", death->written_file);
}

static void say_refusal(struct ending *ending, const struct recording *r,
			const struct recording_death *death)
{
	char usage[UNITS_TEXT_MAX], limit[UNITS_TEXT_MAX], refused[GPUS_REFUSED_MAX];

	if (has(death, "gpu_refusal")) {
		gpus_refused_words(refused, r, &death->gpu);
		say(ending, "%s had been refused %s", has(death, "anon_mb") ? " and" : "", refused);
	} else if (death->file_system) {
		say_full(ending, death);
	} else if (death->mappings_max) {
		say(ending, " and had %" PRIu64 " mappings, where %.32s allows %" PRIu64,
		    death->mappings, death->refused_by, death->mappings_max);
	} else {
		say(ending, " and had %s of %s, where %.32s allows %s",
		    units_bytes_for_people(usage, death->usage),
		    !strcmp(death->refused_by, "RLIMIT_AS")	   ? "address space"
		    : !strcmp(death->refused_by, "RLIMIT_DATA")	   ? "data"
		    : !strcmp(death->refused_by, "RLIMIT_MEMLOCK") ? "locked memory"
								   : "memory promised to all",
		    death->refused_by, units_bytes_for_people(limit, death->limit));
	}
}

/* " (stack overflow)", " (kill -9 by process 12 bash, not out of memory)". */
static void say_cause(struct ending *ending, const struct recording *r,
		      const struct recording_death *death)
{
	const bool is_kill = death->signal && !strcmp(death->signal, "SIGKILL");

	if (death->fault && death->mapped_file)
		say(ending, " (%.64s: %.300s)", death->fault, death->mapped_file);
	else if (death->fault)
		say(ending, " (%.64s)", death->fault);
	else if (death->sender && death->sender != death->pid)
		say(ending, " (%s by process %u %.48s%s)", is_kill ? "kill -9" : "sent",
		    death->sender, death->sender_comm ? death->sender_comm : "",
		    is_kill ? ", not out of memory" : "");
	else if (is_kill)
		say(ending, "%s", kill_words(r, process_at(r, death->pid, death->time_ns)));
}

/*
 * "Killed by the OOM killer at 1.3 s, in Layer 22: process 700 python3 held 245 MiB (anon 240 MiB,
 * file 5 MiB) when it asked for more than cgroup /job may have: 300 MiB, of which 300 MiB were in
 * use"
 * "Ended by SIGSEGV (stack overflow) at 1.3 s, in Layer 22: process 700 python3 held 245 MiB (...)"
 */
static void say_death(struct ending *ending, const struct recording *r,
		      const struct recording_death *death)
{
	const struct recording_process *process = process_at(r, death->pid, death->time_ns);
	const bool is_oom = is_how(death, "oom");
	char when[UNITS_TEXT_MAX];

	if (is_oom)
		say(ending, "Killed by the OOM killer");
	else if (death->exception)
		say(ending, "%s by %.600s", death->in_thread ? "A thread was ended" : "Ended",
		    death->exception);
	else if (death->signal)
		say(ending, "Ended by %.32s", death->signal);
	else
		say(ending, "Failed with exit status %u", death->exit_code);
	if (!is_oom)
		say_cause(ending, r, death);
	if (death->refused_by && !death->file_system)
		say(ending, ", refused more memory,");
	if (death->exception && death->phase) /* as it was raised, which was a little before */
		say(ending, " at %s, in %.300s", units_time_for_people(when, death->time_ns),
		    death->phase);
	else
		add_where(ending, r, death->time_ns, process);
	say(ending, ": process %u %.100s", death->pid,
	    process ? short_command(process->cmdline, process->comm) : "");
	if (has(death, "anon_mb"))
		say_held(ending, death, is_oom || death->refused_by);
	if (is_oom && was_lowered(death)) {
		say_lowered(ending, death);
	} else if (is_oom) {
		say_asker(ending, death);
		say_limit(ending, death);
	} else if (death->refused_by) {
		say_refusal(ending, r, death);
	}
	if (r->n_deaths > 1)
		say(ending, " (%zu processes ended badly)", r->n_deaths);
}

/* For want of memory. */
static bool was_starved(const struct recording *r)
{
	for (size_t i = 0; i < r->n_deaths; i++)
		if (is_how(&r->deaths[i], "oom") || is_how(&r->deaths[i], "refused"))
			return true;
	return false;
}

/* Returns whether the death of the process was told. */
static bool by_target(struct ending *ending, const struct recording *r,
		      const struct recording_process *target)
{
	const struct recording_process *behind = behind_shell(r, target);
	const struct recording_process *last = behind ? behind : target;
	const struct recording_death *death = death_of(r, last);
	char how[64];

	ending->is_killed = last->exit_signal == SIGKILL;
	ending->is_failed = last->exit_signal != SIGINT;
	if (death) {
		say_death(ending, r, death);
		return true;
	}
	ending_words(how, sizeof(how), r, last);
	say(ending, "%s", how);
	if (behind)
		say(ending, ": process %u %.100s", behind->pid,
		    short_command(behind->cmdline, behind->comm));
	add_where(ending, r, last->end_ns, last);
	return false;
}

void recording_ending(const struct recording *r, struct ending *ending)
{
	const struct recording_process *target = bad_target(r);
	bool told = false;

	*ending = (struct ending){.is_bad = target || r->partial || r->n_deaths};
	if (target) {
		told = by_target(ending, r, target);
	} else if (r->partial) {
		say(ending, "Cut off, or still running,");
		add_where(ending, r, r->totals.duration_ns, NULL);
	}
	/* The run went on, but what that process would have needed is missing. */
	if (r->n_deaths && !told) {
		say(ending, "%s", ending->text[0] ? ". " : "");
		say_death(ending, r, &r->deaths[r->n_deaths - 1]);
	}
	ending->is_killed |= r->partial || was_starved(r);
	ending->is_failed |= r->partial || was_starved(r);
}
