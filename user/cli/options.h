/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * options.h - the options of a command, each stated once: parsing, --help and the completions of
 * shells come from the same row.
 *
 * A command fills in a struct of its own. A row names the member that takes its value:
 *
 *	{'d', "duration", "TIME", "Stop after TIME", OPT_DURATION, INTO(struct run, duration_ns)},
 *
 * Members hold their defaults before. An option that is given again replaces its value, unless the
 * type says that it adds to it. Every command has -h, --help and --usage besides.
 */
#ifndef QPROF_OPTIONS_H
#define QPROF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct command;

/* What an option takes, and the type of the member for it. */
enum option_type {
	OPT_HEADING, /* no option: its help stands above the rows that follow */

	/* Without a value. */
	OPT_NOTHING, /* has been understood before */
	OPT_FLAG,    /* bool: true */
	OPT_NO_FLAG, /* bool: false */
	OPT_SET,     /* unsigned int or an enum: .set */
	OPT_VERSION, /* prints the version and exits */
	OPT_COMMAND, /* the whole line belongs to .command, which runs instead */

	/* With a value. */
	OPT_COUNT,    /* unsigned int: from .least to .most (0: UINT32_MAX) */
	OPT_DURATION, /* uint64_t: nanoseconds, at least .least */
	OPT_SIZE,     /* uint64_t: bytes, at least .least, or 0 */
	OPT_TEXT,     /* const char * */
	OPT_PATH,     /* const char *: not empty */
	OPT_TEXTS,    /* struct texts: adds to it */
	OPT_PATHS,    /* struct texts: adds to it; not empty */
	OPT_CHOICE,   /* unsigned int or an enum: one of the choices */
	OPT_CHOICES,  /* unsigned int: some of the choices or'ed, with commas between, each once */
	OPT_PIDS,     /* struct pids: adds to it; at most .most (0: any number) */
	OPT_OWN,      /* what .parse() makes of it */
	OPT_SEVERAL,  /* .n_values words, what .take() makes of them */
};

struct texts {
	const char **items; /* malloc'ed; the texts are argv's */
	size_t n;
};

struct pids {
	uint32_t *items; /* malloc'ed */
	size_t n;
};

/* A word that an option takes; a list ends with one without a name. */
struct choice {
	const char *name;
	unsigned int value;
};

/* In the order in which rows give them.
 * NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct command_option {
	char letter;	   /* 0: none */
	const char *name;  /* without dashes */
	const char *value; /* what --help calls the value; NULL: takes none */
	const char *help;  /* NULL ends a table */
	enum option_type type;
	size_t at, size; /* of the member: INTO() */
	uint64_t least, most;
	unsigned int set;
	const char *if_none;	 /* the value if none is given; NULL: one has to be */
	bool replaces_arguments; /* the command takes this option or arguments, not both */
	const char *wrong;	 /* why a value is refused; NULL: as its type has it */
	const struct choice *choices;
	struct choice (*choice)(size_t i);    /* in place of a list */
	const char *(*choice_help)(size_t i); /* for --help; NULL: help names the choices */
	bool (*accepts)(const char *text);    /* of OPT_TEXTS; NULL: any text */
	/* Returns 0, -EINVAL if the text is refused, or -ENOMEM. */
	int (*parse)(const struct command_option *option, const char *text, void *member);
	unsigned int n_values; /* of OPT_SEVERAL: up to 3 */
	/* Returns 0, or -1 and *err. */
	int (*take)(const struct command_option *option, char *const *values, void *member,
		    struct error *err);
	const struct command *command;
};

#define INTO(type, member) .at = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

#define HEADING(text)                                                                              \
	{                                                                                          \
		.help = (text), .type = OPT_HEADING                                                \
	}

/* Rows, and where the command's struct has the struct that they are of. */
struct option_table {
	const struct command_option *options;
	size_t at;
};

/* What a command takes beside options. */
struct arguments {
	enum { ARGUMENTS_NONE, ARGUMENTS_FILES, ARGUMENTS_SHELL, ARGUMENTS_COMMAND } type;
	unsigned int least, most;
	size_t at; /* of const char *[most]; ARGUMENTS_COMMAND: of a char *const *, an argv */
	const char *too_few, *too_many;
};

struct command {
	const char *name;
	const char *title;		   /* what --help and errors call it */
	const char *what;		   /* in a few words, for completions */
	const char *usage, *doc;	   /* argp's args_doc and doc */
	const struct option_table *tables; /* ended by one without options */
	struct arguments arguments;
	int (*run)(int argc, char **argv); /* returns the exit status */
};

/*
 * Fills in the command's struct. Exits with 0 after --help and such, and with 125 after a line on
 * stderr about what it cannot accept.
 */
void options_parse(const struct command *command, int argc, char **argv, void *into);

/* Sets the member of one option; text is NULL without a value. Returns 0, or -1 and *err. */
int option_set(const struct command_option *option, const char *text, void *into,
	       struct error *err);

/* Returns the choice at index i, without a name if there are no more. */
struct choice option_choice(const struct command_option *option, size_t i);

/*
 * Returns the row at index i of all tables of a command, headings included, and in *at where the
 * struct of its table is; NULL: there are no more.
 */
const struct command_option *command_option(const struct command *command, size_t i, size_t *at);

#endif
