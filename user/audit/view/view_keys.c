/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/view/view_keys.h"

#include <ctype.h>
#include <string.h>

#include "audit/view/terminal.h"
#include "base/text.h"

enum { CTRL_H = 8, CTRL_L = 12, CTRL_U = 21, ESCAPE = 27, DELETE = 127 };

/* ---- The filter -------------------------------------------------------------------------------
 */

/* Writes a character as UTF-8. Returns its bytes. */
static size_t encode(char out[4], uint32_t code)
{
	static const unsigned char firsts[] = {0, 0, 0xc0, 0xe0, 0xf0};
	const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = n; i > 1; i--, code >>= 6)
		out[i - 1] = (char)(0x80 | (code & 0x3f));
	out[0] = (char)(firsts[n] | code);
	return n;
}

static void add_to_filter(struct view_state *state, uint32_t code)
{
	const size_t len = strlen(state->filter);
	char bytes[4];
	const size_t n = encode(bytes, code);

	if (len + n >= sizeof(state->filter) || text_char(bytes, n, &code) != n)
		return;
	memcpy(state->filter + len, bytes, n);
	state->filter[len + n] = '\0';
}

static void cut_filter(struct view_state *state)
{
	size_t len = strlen(state->filter);

	while (len && (state->filter[len - 1] & 0xc0) == 0x80)
		len--;
	state->filter[len ? len - 1 : 0] = '\0';
}

static void begin_typing(struct view_state *state)
{
	memcpy(state->previous, state->filter, sizeof(state->previous));
	state->filter[0] = '\0';
	state->typing = true;
}

static enum view_answer type(struct view_state *state, int key)
{
	switch (key) {
	case '\n':
	case '\r':
	case TERMINAL_KEY_ENTER:
		state->typing = false;
		break;
	case ESCAPE:
		memcpy(state->filter, state->previous, sizeof(state->filter));
		state->typing = false;
		break;
	case CTRL_H:
	case DELETE:
	case TERMINAL_KEY_BACKSPACE:
		cut_filter(state);
		break;
	case CTRL_U:
		state->filter[0] = '\0';
		break;
	default:
		if (key < ' ' || key >= TERMINAL_KEY_UP)
			return VIEW_SAME;
		add_to_filter(state, (uint32_t)key);
	}
	state->first = 0;
	return VIEW_CHANGED;
}

/* ---- Everything else --------------------------------------------------------------------------
 */

static size_t last_page(const struct view_state *state)
{
	return state->lines > state->page ? state->lines - state->page : 0;
}

static enum view_answer scroll_to(struct view_state *state, size_t first)
{
	const size_t last = last_page(state);

	first = first < last ? first : last;
	if (first == state->first)
		return VIEW_SAME;
	state->first = first;
	return VIEW_CHANGED;
}

static size_t less(size_t a, size_t b)
{
	return a > b ? a - b : 0;
}

/* A key that is pressed again sorts by what there is per second. */
static enum view_answer sort_by(struct view_state *state, enum view_sort sort, enum view_sort again)
{
	state->sort = state->sort == sort ? again : sort;
	state->first = 0;
	return VIEW_CHANGED;
}

static enum view_answer scroll(struct view_state *state, int key)
{
	/* One line of the page before stays in sight. */
	const size_t page = state->page > 1 ? state->page - 1 : 1;

	switch (key) {
	case TERMINAL_KEY_UP:
		return scroll_to(state, less(state->first, 1));
	case TERMINAL_KEY_DOWN:
		return scroll_to(state, state->first + 1);
	case TERMINAL_KEY_PAGE_UP:
		return scroll_to(state, less(state->first, page));
	case TERMINAL_KEY_PAGE_DOWN:
		return scroll_to(state, state->first + page);
	case TERMINAL_KEY_HOME:
		return scroll_to(state, 0);
	case TERMINAL_KEY_END:
		return scroll_to(state, last_page(state));
	default:
		return VIEW_SAME;
	}
}

static enum view_answer command(struct view_state *state, int key)
{
	switch (key) {
	case 'm':
		return sort_by(state, VIEW_BY_RSS, VIEW_BY_RSS);
	case 'g':
		return sort_by(state, VIEW_BY_GROWTH, VIEW_BY_GROWTH);
	case 'p':
		return sort_by(state, VIEW_BY_PEAK, VIEW_BY_PEAK);
	case 'i':
		return sort_by(state, VIEW_BY_CALLS, VIEW_BY_CALLS_NOW);
	case 'd':
		return sort_by(state, VIEW_BY_STORAGE, VIEW_BY_STORAGE_NOW);
	case 'c':
		return sort_by(state, VIEW_BY_CPU, VIEW_BY_CPU_NOW);
	case 't':
		state->tree = !state->tree;
		break;
	case 'j':
		state->lists = (state->lists + 1) % VIEW_LISTS;
		break;
	case '/':
		begin_typing(state);
		break;
	case ESCAPE:
		state->filter[0] = '\0';
		break;
	case 'h':
	case '?':
		state->help = true;
		return VIEW_CHANGED;
	case 'q':
		return VIEW_QUIT;
	case ' ':
		return VIEW_CHANGED;
	case CTRL_L:
		return VIEW_AFRESH;
	default:
		return VIEW_SAME;
	}
	state->first = 0;
	return VIEW_CHANGED;
}

enum view_answer view_key(struct view_state *state, int key)
{
	if (key == TERMINAL_KEY_NONE)
		return VIEW_SAME;
	if (state->help) { /* every key closes the help */
		state->help = false;
		return VIEW_CHANGED;
	}
	if (key >= TERMINAL_KEY_UP && key <= TERMINAL_KEY_END)
		return scroll(state, key);
	if (state->typing)
		return type(state, key);
	return command(state, key >= 0 && key < 0x80 ? tolower(key) : key);
}
