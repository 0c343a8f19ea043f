/* SPDX-License-Identifier: GPL-2.0-only */
/* option_values.c - a value as a user types it, for the member that an option names. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/parse.h"

struct choice option_choice(const struct command_option *option, size_t i)
{
	return option->choice ? option->choice(i) : option->choices[i];
}

static uint64_t most(const struct command_option *option)
{
	return option->most ? option->most : UINT32_MAX;
}

static int set_duration(const struct command_option *option, const char *text, uint64_t *ns)
{
	return parse_duration(text, ns) || *ns < option->least ? -EINVAL : 0;
}

static int set_size(const struct command_option *option, const char *text, uint64_t *bytes)
{
	return parse_bytes(text, bytes) || (*bytes && *bytes < option->least) ? -EINVAL : 0;
}

static int add_text(const struct command_option *option, const char *text, struct texts *texts)
{
	const char **more;

	if (option->accepts && !option->accepts(text))
		return -EINVAL;
	more = reallocarray(texts->items, texts->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	texts->items = more;
	more[texts->n++] = text;
	return 0;
}

static int add_pids(const struct command_option *option, const char *text, struct pids *pids)
{
	int failed = parse_pids(text, &pids->items, &pids->n);

	return !failed && option->most && pids->n > option->most ? -EINVAL : failed;
}

/* The choice that the first len bytes of a text name. Returns false for none. */
static bool find_choice(const struct command_option *option, const char *text, size_t len,
			unsigned int *value)
{
	struct choice choice;

	for (size_t i = 0; (choice = option_choice(option, i)).name; i++) {
		if (strlen(choice.name) != len || memcmp(choice.name, text, len))
			continue;
		*value = choice.value;
		return true;
	}
	return false;
}

static int set_choices(const struct command_option *option, const char *text, unsigned int *values)
{
	unsigned int value;

	for (*values = 0;; text++) {
		const size_t len = strcspn(text, ",");

		if (!find_choice(option, text, len, &value) || *values & value)
			return -EINVAL;
		*values |= value;
		text += len;
		if (!*text)
			return 0;
	}
}

/* Returns 0, -EINVAL if the text is refused, or -ENOMEM. */
static int set_member(const struct command_option *option, const char *text, void *member)
{
	switch (option->type) {
	case OPT_NOTHING:
		return 0;
	case OPT_FLAG:
	case OPT_NO_FLAG:
		*(bool *)member = option->type == OPT_FLAG;
		return 0;
	case OPT_SET:
		*(unsigned int *)member = option->set;
		return 0;
	case OPT_COUNT:
		return parse_count(text, option->least, most(option), member);
	case OPT_DURATION:
		return set_duration(option, text, member);
	case OPT_SIZE:
		return set_size(option, text, member);
	case OPT_PATH:
	case OPT_TEXT:
		*(const char **)member = text;
		return option->type == OPT_PATH && !*text ? -EINVAL : 0;
	case OPT_PATHS:
	case OPT_TEXTS:
		return option->type == OPT_PATHS && !*text ? -EINVAL
							   : add_text(option, text, member);
	case OPT_CHOICE:
		return find_choice(option, text, strlen(text), member) ? 0 : -EINVAL;
	case OPT_CHOICES:
		return set_choices(option, text, member);
	case OPT_PIDS:
		return add_pids(option, text, member);
	case OPT_OWN:
		return option->parse(option, text, member);
	default:
		return -EINVAL;
	}
}

static void list_choices(const struct command_option *option, const char *between, char *list,
			 size_t size)
{
	const char *name;
	size_t len = 0;

	for (size_t i = 0; (name = option_choice(option, i).name) && len < size; i++)
		len += (size_t)snprintf(list + len, size - len, "%s%s", i ? between : "", name);
}

/* Why a value is refused: what it is not. */
static void say_why(const struct command_option *option, char *why, size_t size)
{
	char list[256] = "";

	if (option->wrong) {
		snprintf(why, size, "%s", option->wrong);
		return;
	}
	switch (option->type) {
	case OPT_COUNT:
		snprintf(why, size, "not a number from %" PRIu64 " to %" PRIu64, option->least,
			 most(option));
		break;
	case OPT_DURATION:
		snprintf(why, size, "not a time such as 10s, 5m or 500ms");
		break;
	case OPT_SIZE:
		snprintf(why, size, "not a size such as 64M or 1.5G");
		break;
	case OPT_CHOICE:
		list_choices(option, ", ", list, sizeof(list));
		snprintf(why, size, "not one of %s", list);
		break;
	case OPT_CHOICES:
		list_choices(option, ",", list, sizeof(list));
		snprintf(why, size, "not some of %s", list);
		break;
	case OPT_PIDS:
		snprintf(why, size, "not a process id, or several with commas between");
		break;
	case OPT_PATH:
	case OPT_PATHS:
		snprintf(why, size, "not the name of a file");
		break;
	default:
		snprintf(why, size, "cannot be understood");
	}
}

int option_set(const struct command_option *option, const char *text, void *into, struct error *err)
{
	const char *value = text ? text : option->if_none;
	char name[64], why[320];
	int failed = set_member(option, value, (char *)into + option->at);

	if (!failed)
		return 0;
	if (option->letter)
		snprintf(name, sizeof(name), "-%c", option->letter);
	else
		snprintf(name, sizeof(name), "--%s", option->name);
	if (failed == -ENOMEM)
		return error_set(err, "%s: out of memory", name);
	say_why(option, why, sizeof(why));
	return error_set(err, "%s%s%.100s: %s", name, option->if_none ? "=" : " ",
			 value && *value ? value : "''", why);
}
