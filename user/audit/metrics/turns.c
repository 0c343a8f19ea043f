/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/turns.h"

#include <string.h>

void turns_begin(struct turns *t)
{
	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < TURNS_ALL; i++)
		t->all[i].fd = -1;
}

void turns_end(struct turn *turn)
{
	*turn = (struct turn){.fd = -1};
}

/* How many calls of the peer are being served, or wait. */
static unsigned int count(const struct turns *t, const struct peer *peer, bool served)
{
	unsigned int n = 0;

	for (size_t i = 0; i < TURNS_ALL; i++) {
		const struct turn *turn = &t->all[i];

		n += turn->fd >= 0 && turn->served == served && !turn->ends &&
		     peer_is(&turn->peer, peer);
	}
	return n;
}

/* Of the caller who has most of these calls: the newest or the oldest. Sets *most. */
static struct turn *of_most(struct turns *t, bool served, unsigned int *most)
{
	struct turn *found = NULL;

	*most = 0;
	for (size_t i = 0; i < TURNS_ALL; i++) {
		struct turn *turn = &t->all[i];
		unsigned int n;

		if (turn->fd < 0 || turn->served != served || turn->ends)
			continue;
		n = count(t, &turn->peer, served);
		if (n < *most)
			continue;
		if (!found || n > *most || (turn->number < found->number) == served)
			found = turn;
		*most = n;
	}
	return found;
}

static void note_cut_short(struct turns *t, const struct peer *peer)
{
	t->n_cut_short++;
	for (size_t i = 0; i < TURNS_CUT_SHORT; i++) {
		if (t->cut_short[i].calls && !peer_is(&t->cut_short[i].peer, peer))
			continue;
		t->cut_short[i].peer = *peer;
		t->cut_short[i].calls++;
		return;
	}
}

static struct turn *free_place(struct turns *t)
{
	for (size_t i = 0; i < TURNS_ALL; i++)
		if (t->all[i].fd < 0)
			return &t->all[i];
	return NULL;
}

int turns_come(struct turns *t, int fd, const struct peer *peer)
{
	struct turn *place = free_place(t), *last;
	unsigned int most;
	int gone = -1;

	if (!place) {
		last = of_most(t, false, &most);
		if (!last || count(t, peer, false) + 1 >= most) {
			note_cut_short(t, peer);
			return fd;
		}
		note_cut_short(t, &last->peer);
		gone = last->fd;
		place = last;
	}
	*place = (struct turn){.fd = fd, .number = ++t->calls, .peer = *peer};
	return gone;
}

/* Of those that wait: the one that came first, of the caller who is served least. */
static struct turn *first_in_line(struct turns *t, unsigned int *served)
{
	struct turn *first = NULL;

	for (size_t i = 0; i < TURNS_ALL; i++) {
		struct turn *turn = &t->all[i];
		unsigned int n;

		if (turn->fd < 0 || turn->served)
			continue;
		n = count(t, &turn->peer, true);
		if (first && (n > *served || (n == *served && turn->number > first->number)))
			continue;
		first = turn;
		*served = n;
	}
	return first;
}

struct turn *turns_next(struct turns *t, struct turn **ends)
{
	unsigned int served = 0, most, places = TURNS_PLACES;
	struct turn *next = first_in_line(t, &served);
	bool makes_room = false;

	*ends = NULL;
	for (size_t i = 0; i < TURNS_ALL; i++) {
		places -= t->all[i].fd >= 0 && t->all[i].served;
		makes_room |= t->all[i].fd >= 0 && t->all[i].ends;
	}
	if (!next || (!places && makes_room))
		return NULL;
	if (places) {
		next->served = true;
		return next;
	}
	*ends = of_most(t, true, &most);
	if (!*ends || served + 1 >= most) {
		*ends = NULL;
		return NULL;
	}
	note_cut_short(t, &(*ends)->peer);
	(*ends)->ends = true;
	return NULL;
}
