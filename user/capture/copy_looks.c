/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/copy_looks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/capture.h"

enum { REST = 9, MAX_AGE_NS = 20000000, END_MS = 2000 };

/* ---- Asking -----------------------------------------------------------------------------------
 */

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The age that an end may have: while a long look is on its way, nothing can be done for it. */
static uint64_t oldest(const struct copy_looks *l)
{
	return most(MAX_AGE_NS, l->is_again ? l->took_ns : 0);
}

static int ask(struct copy_looks *l)
{
	size_t n_all, n = 0;
	const struct profile_process *const *all = profile_processes(l->profile, &n_all);
	struct copies_process *running = calloc(n_all + 1, sizeof(*running));
	int err;

	if (!running)
		return -ENOMEM;
	for (size_t i = 0; i < n_all; i++)
		if (profile_process_runs(all[i]))
			running[n++] = (struct copies_process){all[i]->tgid, all[i]->started_ns};
	err = n ? copies_ask(&l->helper, l->capture->engine, running, n) : -ESRCH;
	free(running);
	return err;
}

/* Who ends while he is looked at is nothing to warn of. */
static void warn(struct copy_looks *l, int err)
{
	if (!err || err == -ESRCH || err == -EAGAIN || l->has_warned)
		return;
	l->has_warned = true;
	capture_warn(l->capture, "--file-copies: a look at the pages of the processes failed",
		     err == -ETIMEDOUT ? "it took too long" : strerror(-err));
}

/* The child may be another than at the last look. */
static void await(struct copy_looks *l, uint64_t now)
{
	const int fd = copies_fd(&l->helper);

	if (l->answer.fd != fd) {
		l->answer.fd = fd;
		if (capture_add(l->capture, &l->answer)) {
			warn(l, -errno);
			copies_give_up(&l->helper);
			l->answer.fd = -1;
			return;
		}
	}
	l->is_asked = true;
	l->asked_ns = now;
	timer_set(l->timer.fd, COPIES_PATIENCE_MS * 1000000ull);
}

static void begin_due(struct copy_looks *l)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int err;

	if (l->is_asked || !l->is_due)
		return;
	if (now < l->rest_ns && !l->is_again) {
		timer_set(l->timer.fd, l->rest_ns - now);
		return;
	}
	l->is_due = false;
	if (now > l->due_ns + oldest(l))
		return;
	err = ask(l);
	warn(l, err);
	if (copies_fd(&l->helper) < 0) /* the child is gone, and its descriptor with it */
		l->answer.fd = -1;
	if (!err)
		await(l, now);
}

/* ---- Answers ----------------------------------------------------------------------------------
 */

static void tell(struct copy_looks *l)
{
	const struct copies_look *look = &l->helper.look;
	struct profile_copies copies = {.began_ns = look->began_ns,
					.ended_ns = look->ended_ns,
					.age_ns = oldest(l),
					.mapped_unknown = look->mapped_unknown,
					.n = look->n};

	copies.list = calloc(look->n + 1, sizeof(*copies.list));
	if (!copies.list) {
		warn(l, -ENOMEM);
		return;
	}
	for (size_t i = 0; i < look->n; i++)
		copies.list[i] = (struct profile_copied){.file = look->list[i].file,
							 .size = look->list[i].size,
							 .mapped = look->list[i].mapped,
							 .copied = look->list[i].copied,
							 .path = look->list[i].path,
							 .is_deleted = look->list[i].is_deleted};
	warn(l, profile_copies_seen(l->profile, &copies));
	free(copies.list);
}

static void ended(struct copy_looks *l)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const bool was_again = l->is_again;

	timer_set(l->timer.fd, 0);
	if (copies_fd(&l->helper) < 0)
		l->answer.fd = -1;
	if (l->helper.look.err)
		warn(l, l->helper.look.err);
	else
		tell(l);
	l->is_asked = false;
	l->took_ns = now - l->asked_ns;
	l->rest_ns = most(l->rest_ns, now) + REST * l->took_ns;
	l->is_again = l->is_due && !was_again;
	begin_due(l);
	l->is_again &= l->is_asked;
}

static void has_answered(struct wake *wake)
{
	struct copy_looks *l = wake->context;

	if (!l->is_asked) { /* it was killed between two looks */
		copies_give_up(&l->helper);
		l->answer.fd = -1;
	} else if (copies_take(&l->helper)) {
		ended(l);
	}
}

static void timer_fires(struct wake *wake)
{
	struct copy_looks *l = wake->context;

	timer_clear(wake->fd);
	if (l->is_asked) {
		copies_give_up(&l->helper);
		ended(l);
	} else {
		begin_due(l);
	}
}

/* ---- From the begin to the end -----------------------------------------------------------------
 */

int copy_looks_open(struct copy_looks *l, struct capture *c, struct profile *profile)
{
	l->capture = c;
	l->profile = profile;
	l->answer = (struct wake){-1, has_answered, l};
	l->timer = (struct wake){timer_new(), timer_fires, l};
	return l->timer.fd < 0 ? -1 : capture_add(c, &l->timer);
}

void copy_looks_close(struct copy_looks *l)
{
	copies_end(&l->helper);
	if (l->profile && l->timer.fd >= 0)
		close(l->timer.fd);
}

void copy_looks_checkpoint(struct copy_looks *l, const struct wire_checkpoint *checkpoint)
{
	const bool ends = checkpoint->what == WIRE_END || checkpoint->what == WIRE_MARK ||
			  checkpoint->what == WIRE_FINISH;

	if (!l->profile || !ends)
		return;
	l->is_due = true;
	l->due_ns = checkpoint->h.time_ns;
	begin_due(l);
}

void copy_looks_finish(struct copy_looks *l)
{
	const uint64_t until = clock_ms() + END_MS;

	while (l->profile && l->is_asked) {
		const uint64_t now = clock_ms();

		if (now >= until || !aside_has_answered(&l->helper.aside, (int)(until - now))) {
			l->is_due = false;
			copies_give_up(&l->helper);
			ended(l);
		} else if (copies_take(&l->helper)) {
			ended(l);
		}
	}
}
