/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/ending.h"

#include <signal.h>
#include <string.h>

#include "base/names.h"
#include "base/units.h"

enum { SHELL_SIGNAL = 128 }; /* a shell whose command ends by signal n exits with 128 + n */

void ending_words(char *out, size_t size, uint32_t signal, uint32_t exit_code)
{
	const char *name = signal ? sigabbrev_np((int)signal) : NULL;

	if (signal == SIGINT)
		snprintf(out, size, "Interrupted");
	else if (!signal)
		snprintf(out, size, "Failed with exit status %u", exit_code);
	else if (name)
		snprintf(out, size, "Ended by SIG%s%s", name,
			 signal == SIGKILL ? " (out of memory, or kill -9)" : "");
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

		if (!phase->closed && phase->kind == PROFILE_PHASE_PAIR && phase->start_ns <= ns &&
		    (!process || phase->pid == process->pid))
			found = phase;
	}
	return found ? found : recording_phase_at(r, ns);
}

static void add_where(struct ending *ending, const struct recording *r, uint64_t ns,
		      const struct recording_process *process)
{
	const size_t len = strlen(ending->text);
	char when[UNITS_TEXT_MAX];
	const char *words;
	const struct recording_phase *phase =
		recording_where(r, ns, phase_of(r, ns, process), &words);

	snprintf(ending->text + len, sizeof(ending->text) - len, " at %s%s%.300s",
		 units_time_for_people(when, ns), words, phase ? phase->shown : "");
}

static void by_target(struct ending *ending, const struct recording *r,
		      const struct recording_process *target)
{
	const struct recording_process *behind = behind_shell(r, target);
	const struct recording_process *last = behind ? behind : target;
	char how[64];

	ending_words(how, sizeof(how), last->exit_signal, last->exit_code);
	if (behind)
		snprintf(ending->text, sizeof(ending->text), "%s: process %u %.100s", how,
			 behind->pid, short_command(behind->cmdline, behind->comm));
	else
		snprintf(ending->text, sizeof(ending->text), "%s", how);
	ending->is_killed = last->exit_signal == SIGKILL;
	ending->is_failed = last->exit_signal != SIGINT;
	add_where(ending, r, last->end_ns, last);
}

void recording_ending(const struct recording *r, struct ending *ending)
{
	const struct recording_process *target = bad_target(r);

	*ending = (struct ending){.is_bad = target || r->partial};
	if (target) {
		by_target(ending, r, target);
	} else if (r->partial) {
		snprintf(ending->text, sizeof(ending->text), "Cut off, or still running,");
		add_where(ending, r, r->totals.duration_ns, NULL);
	}
	ending->is_killed |= r->partial;
	ending->is_failed |= r->partial;
}
