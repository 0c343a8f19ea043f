/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/listener.h"

#include <stddef.h>

void listener_append(struct listener **list, struct listener *l)
{
	while (*list)
		list = &(*list)->next;
	*list = l;
}

void listeners_close(struct listener **list)
{
	while (*list) {
		struct listener *l = *list;

		*list = l->next;
		l->close(l);
	}
}
