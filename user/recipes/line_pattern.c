/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/line_pattern.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Some milliseconds at most; the patterns that come with qprof-bpf take some hundred steps. */
enum { MAX_STEPS = 50000, MAX_DEPTH = 1000, MAX_HEAP_KB = 1024 };

struct line_pattern {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
	size_t groups;
};

static int compile(struct line_pattern *p, const char *text, struct error *err)
{
	PCRE2_UCHAR why[128] = "";
	PCRE2_SIZE at;
	uint32_t groups;
	int code;

	p->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
				PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
				&code, &at, NULL);
	if (!p->code) {
		pcre2_get_error_message(code, why, sizeof(why));
		return error_set(err, "%s, at byte %zu of the pattern", (const char *)why, at + 1);
	}
	pcre2_pattern_info(p->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	if (groups > LINE_MAX_GROUPS)
		return error_set(err, "more than %d groups: write (?:...) where no $N needs one",
				 LINE_MAX_GROUPS);
	p->groups = groups;
	p->data = pcre2_match_data_create_from_pattern(p->code, NULL);
	p->context = pcre2_match_context_create(NULL);
	if (!p->data || !p->context)
		return error_set(err, "out of memory");
	pcre2_set_match_limit(p->context, MAX_STEPS);
	pcre2_set_depth_limit(p->context, MAX_DEPTH);
	pcre2_set_heap_limit(p->context, MAX_HEAP_KB);
	return 0;
}

struct line_pattern *line_pattern_new(const char *text, struct error *err)
{
	struct line_pattern *p = calloc(1, sizeof(*p));

	if (!p) {
		error_set(err, "out of memory");
		return NULL;
	}
	if (!compile(p, text, err))
		return p;
	line_pattern_free(p);
	return NULL;
}

void line_pattern_free(struct line_pattern *p)
{
	if (!p)
		return;
	pcre2_match_context_free(p->context);
	pcre2_match_data_free(p->data);
	pcre2_code_free(p->code);
	free(p);
}

size_t line_pattern_groups(const struct line_pattern *p)
{
	return p->groups;
}

static void copy_groups(const struct line_pattern *p, size_t n, struct line_match *match)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(p->data);

	*match = (struct line_match){.n = p->groups + 1};
	for (size_t i = 0; i < n; i++) {
		if (at[2 * i] == PCRE2_UNSET || at[2 * i] > at[2 * i + 1])
			continue;
		match->groups[i] = (struct line_span){at[2 * i], at[2 * i + 1]};
	}
}

enum line_result line_pattern_match(const struct line_pattern *p, const char *line, size_t len,
				    bool unfinished, bool headless, struct line_match *match)
{
	/* PARTIAL_HARD: no match as long as the text that follows could change it. */
	const uint32_t options =
		(unfinished ? PCRE2_PARTIAL_HARD : 0) | (headless ? PCRE2_NOTBOL : 0);
	const int n = pcre2_match(p->code, (PCRE2_SPTR)line, len, 0, options, p->data, p->context);

	if (n == PCRE2_ERROR_NOMATCH)
		return LINE_DIFFERS;
	if (n == PCRE2_ERROR_PARTIAL)
		return LINE_MAY_MATCH;
	if (n <= 0)
		return LINE_TOO_COSTLY;
	copy_groups(p, (size_t)n, match);
	return LINE_MATCHES;
}
