/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ncurses draws on a file in memory, whose bytes go to the terminal as fast as that takes them. The
 * modes of the terminal are set here. Handlers of signals are restored after ncurses changes them.
 */
#include "audit/view/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <curses.h>

#include "base/array.h"
#include "base/log.h"
#include "audit/view/terminfo.h"
#include "base/text.h"

enum {
	MAX_LINES = 512,
	MAX_COLUMNS = 512,
	ESCAPE_MS = 25,	    /* a key that begins with Escape is complete within that */
	LAST_WAIT_MS = 500, /* for a terminal that takes nothing, at the end */
	REPLACEMENT = 0xfffd,
	ELLIPSIS = 0x2026,
};

struct terminal {
	int out;    /* writes never wait */
	int canvas; /* what ncurses writes to */
	FILE *keys_file, *canvas_file;
	SCREEN *screen; /* NULL until the first terminal_show() */
	WINDOW *keys;
	struct termios before;
	bool shown, colour, is_utf8, lost;
	char *rest; /* what is yet to be written, from rest_at on */
	size_t rest_len, rest_at, rest_cap;
};

/* ---- Dying ------------------------------------------------------------------------------------
 */

static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS,	SIGFPE,	 SIGILL,  SIGQUIT,
			     SIGHUP,  SIGTRAP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM,
			     SIGPROF, SIGXCPU, SIGXFSZ, SIGSYS,	 SIGIO,	  SIGPWR};
enum { N_DEADLY = sizeof(deadly) / sizeof(*deadly) };

/* What the handler of a deadly signal needs to restore the terminal. */
static struct {
	volatile sig_atomic_t shown;
	int fd;
	struct termios before;
	char text[256];
	size_t len;
	struct sigaction old[N_DEADLY];
} rescue;

static void die(int number)
{
	if (rescue.shown) {
		rescue.shown = 0;
		/* The text is tried once: a stopped terminal takes none. The modes are restored in
		 * any case. */
		const ssize_t written = write(rescue.fd, rescue.text, rescue.len);

		(void)written;
		tcsetattr(rescue.fd, TCSANOW, &rescue.before);
	}
	for (size_t i = 0; i < N_DEADLY; i++)
		sigaction(deadly[i], &rescue.old[i], NULL);
	raise(number);
}

static void catch_deadly(void)
{
	struct sigaction action = {.sa_handler = die, .sa_flags = SA_NODEFER};

	for (size_t i = 0; i < N_DEADLY; i++) {
		sigaction(deadly[i], NULL, &rescue.old[i]);
		if (rescue.old[i].sa_handler != SIG_IGN)
			sigaction(deadly[i], &action, NULL);
	}
}

static void release_deadly(void)
{
	for (size_t i = 0; i < N_DEADLY; i++)
		sigaction(deadly[i], &rescue.old[i], NULL);
}

/* ---- Writing ----------------------------------------------------------------------------------
 */

static void lose(struct terminal *t)
{
	t->lost = true;
	t->rest_len = t->rest_at = 0;
}

void terminal_catch_up(struct terminal *t)
{
	while (t->rest_at < t->rest_len) {
		ssize_t n = write(t->out, t->rest + t->rest_at, t->rest_len - t->rest_at);

		if (n > 0)
			t->rest_at += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return;
		else if (n == 0 || errno != EINTR) {
			lose(t);
			return;
		}
	}
	t->rest_len = t->rest_at = 0;
}

bool terminal_is_behind(const struct terminal *t)
{
	return t->rest_len;
}

/* Fetches what ncurses has drawn since. */
static void fetch_canvas(struct terminal *t)
{
	const off_t size = lseek(t->canvas, 0, SEEK_CUR);
	char *rest;
	ssize_t n;

	if (size <= 0)
		return;
	rest = array_reserve(t->rest, t->rest_len + (size_t)size, &t->rest_cap, 1);
	if (!rest) {
		lose(t);
		return;
	}
	t->rest = rest;
	n = pread(t->canvas, t->rest + t->rest_len, (size_t)size, 0);
	if (n > 0)
		t->rest_len += (size_t)n;
	lseek(t->canvas, 0, SEEK_SET);
	terminal_catch_up(t);
}

/* Writes the rest before the terminal is restored. Waits, but not for long if it is stopped. */
static void write_rest(struct terminal *t)
{
	struct pollfd out = {.fd = t->out, .events = POLLOUT};

	while (t->rest_len && poll(&out, 1, LAST_WAIT_MS) > 0 && !(out.revents & POLLHUP))
		terminal_catch_up(t);
}

/* ---- Life -------------------------------------------------------------------------------------
 */

bool terminal_is_there(void)
{
	const int fd = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const bool ours = fd >= 0 && tcgetpgrp(fd) == getpgrp();

	if (fd >= 0)
		close(fd);
	return ours;
}

static int open_files(struct terminal *t, struct error *err)
{
	const int keys = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (keys < 0)
		return error_set(err, "--live: there is no terminal: cannot open /dev/tty: %s",
				 strerror(errno));
	t->keys_file = fdopen(keys, "r");
	if (!t->keys_file) {
		close(keys);
		return error_set(err, "out of memory");
	}
	/* Two descriptors of one open file: epoll waits for each in another way. */
	t->out = fcntl(keys, F_DUPFD_CLOEXEC, 3);
	t->canvas = memfd_create("qprof-bpf screen", MFD_CLOEXEC);
	t->canvas_file = t->canvas < 0 ? NULL : fdopen(t->canvas, "w");
	if (t->out < 0 || !t->canvas_file || tcgetattr(keys, &t->before))
		return error_set(err, "--live: cannot use /dev/tty: %s", strerror(errno));
	return 0;
}

struct terminal *terminal_open(bool colour, struct error *err)
{
	struct terminal *t = calloc(1, sizeof(*t));

	if (!t) {
		error_set(err, "out of memory");
		return NULL;
	}
	t->out = t->canvas = -1;
	t->colour = colour;
	setlocale(LC_CTYPE, "");
	t->is_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	rescue.shown = 0;
	if (!open_files(t, err) &&
	    !terminfo_restore(t->out, rescue.text, sizeof(rescue.text), &rescue.len, err)) {
		rescue.fd = t->out;
		return t;
	}
	terminal_close(t);
	return NULL;
}

static void close_files(struct terminal *t)
{
	if (t->canvas_file)
		fclose(t->canvas_file);
	else if (t->canvas >= 0)
		close(t->canvas);
	if (t->keys_file)
		fclose(t->keys_file);
	if (t->out >= 0)
		close(t->out);
}

void terminal_close(struct terminal *t)
{
	if (!t)
		return;
	terminal_hide(t);
	write_rest(t); /* it may take more by now */
	if (t->screen) {
		log_set_hook(NULL, NULL);
		release_deadly();
		delwin(t->keys);
		delscreen(t->screen);
	}
	close_files(t);
	free(t->rest);
	free(t);
}

static int within(int value, int most)
{
	return value < 1 ? 1 : value > most ? most : value;
}

/* Returns lines and columns of the terminal, as far as they are used. */
static struct winsize size_of(const struct terminal *t)
{
	struct winsize size = {0};

	if (ioctl(t->out, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		return (struct winsize){.ws_row = 24, .ws_col = 80};
	size.ws_row = (unsigned short)within(size.ws_row, MAX_LINES);
	size.ws_col = (unsigned short)within(size.ws_col, MAX_COLUMNS);
	return size;
}

/* ncurses asks its output for the size, which is no terminal here, and then the environment: in
 * newterm(), and again whenever it takes the screen. */
static void tell_size(struct winsize size)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", size.ws_row);
	setenv("LINES", number, 1);
	snprintf(number, sizeof(number), "%d", size.ws_col);
	setenv("COLUMNS", number, 1);
}

static void fit(const struct terminal *t)
{
	const struct winsize size = size_of(t);

	tell_size(size);
	if (t->screen)
		resize_term(size.ws_row, size.ws_col);
}

/* ncurses catches some signals. Here they are blocked, and read from a descriptor. */
static SCREEN *new_screen(struct terminal *t)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
	struct sigaction old[sizeof(caught) / sizeof(*caught)];
	SCREEN *screen;

	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++)
		sigaction(caught[i], NULL, &old[i]);
	fit(t);
	screen = newterm(NULL, t->canvas_file, t->keys_file);
	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++)
		sigaction(caught[i], &old[i], NULL);
	return screen;
}

static void prepare_colours(const struct terminal *t)
{
	if (!t->colour || start_color() == ERR || use_default_colors() == ERR)
		return;
	init_pair(1 + TERMINAL_WARNING, COLOR_YELLOW, -1);
	init_pair(1 + TERMINAL_PHASE, COLOR_CYAN, -1);
	init_pair(1 + TERMINAL_MORE, COLOR_RED, -1);
}

static void hide_before_line(void *context)
{
	terminal_hide(context);
}

/* Runs at the first terminal_show(). */
static int begin_screen(struct terminal *t)
{
	t->screen = new_screen(t);
	if (!t->screen)
		return -1;
	t->keys = newpad(1, 1); /* reading a key refreshes its window, but not a pad */
	if (!t->keys)
		return -1;
	nodelay(t->keys, TRUE);
	set_escdelay(ESCAPE_MS);
	typeahead(-1);
	prepare_colours(t);
	catch_deadly();
	/* Messages go to the screen from before. */
	log_set_hook(hide_before_line, t);
	return 0;
}

static void set_modes(const struct terminal *t)
{
	struct termios now = t->before;

	now.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | ISTRIP);
	now.c_oflag &= ~(tcflag_t)(ONLCR | TABDLY);
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | IEXTEN);
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	tcsetattr(t->out, TCSANOW, &now);
}

int terminal_show(struct terminal *t)
{
	if (!t->screen && begin_screen(t))
		return -1;
	if (!t->shown && !tcgetattr(t->out, &t->before)) /* it may have changed */
		rescue.before = t->before;
	rescue.shown = 1;
	t->shown = true;
	set_modes(t);
	fit(t);
	curs_set(0);
	werase(stdscr);
	terminal_end(t, true);
	return 0;
}

void terminal_hide(struct terminal *t)
{
	if (!t->shown)
		return;
	t->shown = false;
	endwin();
	fetch_canvas(t);
	write_rest(t);
	tcsetattr(t->out, TCSANOW, &t->before);
	rescue.shown = 0;
}

bool terminal_is_ours(const struct terminal *t)
{
	return tcgetpgrp(t->out) == getpgrp();
}

bool terminal_is_shown(const struct terminal *t)
{
	return t->shown;
}

bool terminal_is_lost(const struct terminal *t)
{
	return t->lost;
}

int terminal_keys_fd(const struct terminal *t)
{
	return fileno(t->keys_file);
}

int terminal_out_fd(const struct terminal *t)
{
	return t->out;
}

/* ---- Keys -------------------------------------------------------------------------------------
 */

static int special_key(wint_t code)
{
	switch (code) {
	case KEY_UP:
		return TERMINAL_KEY_UP;
	case KEY_DOWN:
		return TERMINAL_KEY_DOWN;
	case KEY_PPAGE:
		return TERMINAL_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TERMINAL_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TERMINAL_KEY_HOME;
	case KEY_END:
		return TERMINAL_KEY_END;
	case KEY_BACKSPACE:
	case KEY_DC:
		return TERMINAL_KEY_BACKSPACE;
	case KEY_ENTER:
		return TERMINAL_KEY_ENTER;
	default:
		return TERMINAL_KEY_OTHER;
	}
}

int terminal_key(struct terminal *t)
{
	struct pollfd keys = {.fd = terminal_keys_fd(t), .events = POLLIN};
	wint_t code;

	if (!t->screen)
		return TERMINAL_KEY_NONE;
	switch (wget_wch(t->keys, &code)) {
	case OK:
		return (int)code;
	case KEY_CODE_YES:
		return special_key(code);
	}
	if (poll(&keys, 1, 0) > 0 && keys.revents & (POLLHUP | POLLERR | POLLNVAL))
		lose(t);
	return TERMINAL_KEY_NONE;
}

/* ---- Frames -----------------------------------------------------------------------------------
 */

void terminal_resize(struct terminal *t)
{
	const struct winsize size = size_of(t);

	/* ncurses relies on the scroll region, which it sets when it takes the screen again. */
	if (t->shown && (size.ws_col != terminal_columns(t) || size.ws_row != terminal_lines(t)))
		endwin();
	fit(t);
}

unsigned int terminal_columns(const struct terminal *t)
{
	return t->screen ? (unsigned int)getmaxx(stdscr) : 0;
}

unsigned int terminal_lines(const struct terminal *t)
{
	return t->screen ? (unsigned int)getmaxy(stdscr) : 0;
}

void terminal_begin(struct terminal *t)
{
	(void)t;
	werase(stdscr);
}

static attr_t attributes(const struct terminal *t, enum terminal_tone tone)
{
	static const attr_t tones[TERMINAL_TONES] = {
		[TERMINAL_STRONG] = A_BOLD,   [TERMINAL_FAINT] = A_DIM,
		[TERMINAL_TITLE] = A_REVERSE, [TERMINAL_CHOSEN] = A_REVERSE | A_BOLD | A_UNDERLINE,
		[TERMINAL_WARNING] = A_BOLD,
	};
	const bool coloured =
		tone == TERMINAL_WARNING || tone == TERMINAL_PHASE || tone == TERMINAL_MORE;

	return tones[tone] | (t->colour && coloured ? COLOR_PAIR(1 + tone) : 0);
}

/* Converts to wide characters of at most width columns. Returns how many, and sets *used to their
 * columns. */
static int widen(const struct terminal *t, const char *text, unsigned int width, wchar_t *out,
		 unsigned int *used)
{
	const size_t len = strlen(text);
	size_t n;
	uint32_t code;
	int count = 0;

	*used = 0;
	for (size_t i = 0; i < len; i += n) {
		int columns;

		n = text_char(text + i, len - i, &code);
		if (!n)
			break;
		if (!t->is_utf8 && code >= 0x80)
			code = code == ELLIPSIS ? '.' : '?';
		columns = wcwidth((wchar_t)code);
		if (columns < 0) {
			code = t->is_utf8 ? REPLACEMENT : '?';
			columns = 1;
		}
		if (*used + (unsigned int)columns > width)
			break;
		out[count++] = (wchar_t)code;
		*used += (unsigned int)columns;
	}
	return count;
}

/* Returns how many columns there are for a text, at most width. */
static unsigned int room(const struct terminal *t, unsigned int line, unsigned int column,
			 unsigned int width)
{
	const unsigned int columns = terminal_columns(t);

	if (line >= terminal_lines(t) || column >= columns)
		return 0;
	return width < columns - column ? width : columns - column;
}

static unsigned int put(const struct terminal *t, unsigned int line, unsigned int column,
			unsigned int width, enum terminal_tone tone, const char *safe)
{
	wchar_t wide[MAX_COLUMNS * TEXT_TERMINAL_GROWTH];
	unsigned int used;
	const int n = widen(t, safe, width, wide, &used);

	wattrset(stdscr, (int)attributes(t, tone));
	mvwaddnwstr(stdscr, (int)line, (int)column, wide, n);
	wattrset(stdscr, 0);
	return used;
}

unsigned int terminal_text(struct terminal *t, unsigned int line, unsigned int column,
			   unsigned int width, enum terminal_tone tone, const char *text)
{
	char safe[MAX_COLUMNS * TEXT_TERMINAL_GROWTH + 1];

	width = room(t, line, column, width);
	text_for_terminal(safe, sizeof(safe), text, width);
	return width ? put(t, line, column, width, tone, safe) : 0;
}

unsigned int terminal_name(struct terminal *t, unsigned int line, unsigned int column,
			   unsigned int width, enum terminal_tone tone, const char *name)
{
	char safe[MAX_COLUMNS * TEXT_TERMINAL_GROWTH + 1];

	width = room(t, line, column, width);
	text_cut_middle(safe, name, width);
	return width ? put(t, line, column, width, tone, safe) : 0;
}

void terminal_end(struct terminal *t, bool afresh)
{
	if (afresh) {
		clearok(curscr, TRUE);
		keypad(t->keys, TRUE);
	}
	wnoutrefresh(stdscr);
	doupdate();
	fetch_canvas(t);
}
