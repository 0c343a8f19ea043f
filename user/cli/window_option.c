/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/window_option.h"

#include <errno.h>
#include <string.h>

#include "cli/parse.h"
#include "model/windows.h"

enum { PART_MAX = 32 };

struct key {
	const char *name;
	size_t at;
	unsigned int least;
	bool given;
};

/* One "key=number". */
static int parse_part(struct key *keys, size_t n, const char *part, struct window_schedule *into)
{
	for (size_t i = 0; i < n; i++) {
		const size_t len = strlen(keys[i].name);

		if (strncmp(part, keys[i].name, len) != 0 || part[len] != '=')
			continue;
		if (keys[i].given)
			return -EINVAL;
		keys[i].given = true;
		return parse_count(part + len + 1, keys[i].least, WINDOWS_MAX_TURNS,
				   (unsigned int *)((char *)into + keys[i].at));
	}
	return -EINVAL;
}

int window_parse(const struct command_option *option, const char *text, void *member)
{
	struct window_schedule schedule = {0};
	struct key keys[] = {
		{"skip", offsetof(struct window_schedule, skip), 0, false},
		{"warmup", offsetof(struct window_schedule, warmup), 0, false},
		{"active", offsetof(struct window_schedule, active), 1, false},
		{"repeat", offsetof(struct window_schedule, repeat), 1, false},
	};

	(void)option;
	for (;; text++) {
		const size_t len = strcspn(text, ",");
		char part[PART_MAX];

		if (len >= sizeof(part))
			return -EINVAL;
		memcpy(part, text, len);
		part[len] = '\0';
		if (parse_part(keys, sizeof(keys) / sizeof(*keys), part, &schedule))
			return -EINVAL;
		text += len;
		if (!*text)
			break;
	}
	if (!schedule.active)
		return -EINVAL;
	*(struct window_schedule *)member = schedule;
	return 0;
}
