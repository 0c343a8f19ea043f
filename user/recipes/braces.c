/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/braces.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

enum { FILLED_MAX = 1024 /* bytes of a filled text that are looked at */ };

/* A piece of a text: a word in braces, or bytes that stand for themselves. */
struct piece {
	const char *at;
	size_t len;
	bool word;
};

/* Takes the next piece off *text. Returns NULL, or what is wrong. */
static const char *next_piece(const char **text, struct piece *piece)
{
	const char *at = *text, *end;

	*piece = (struct piece){.at = at};
	if (*at != '{' && *at != '}') {
		piece->len = strcspn(at, "{}");
		*text = at + piece->len;
		return NULL;
	}
	if (at[1] == at[0]) {
		piece->len = 1;
		*text = at + 2;
		return NULL;
	}
	if (*at == '}')
		return "a '}' without its '{': write }} for a brace";
	end = at + 1 + strcspn(at + 1, "{}");
	if (*end != '}')
		return "a '{' without its '}': write {{ for a brace";
	*piece = (struct piece){.at = at + 1, .len = (size_t)(end - at - 1), .word = true};
	*text = end + 1;
	return piece->len ? NULL : "nothing between '{' and '}': write {{}} for braces";
}

const char *braces_check(const char *text, braces_check_fn check, void *context)
{
	struct piece piece;

	while (*text) {
		const char *why = next_piece(&text, &piece);

		if (!why && piece.word)
			why = check(context, piece.at, piece.len);
		if (why)
			return why;
	}
	return NULL;
}

void braces_fill(const char *text, braces_word_fn word, const void *context, char *out, size_t size)
{
	char bytes[FILLED_MAX];
	struct piece piece;
	size_t len = 0;

	while (*text && len < sizeof(bytes) && !next_piece(&text, &piece)) {
		const size_t room = sizeof(bytes) - len;

		if (piece.word) {
			len += word(context, piece.at, piece.len, bytes + len, room);
			continue;
		}
		if (piece.len > room)
			piece.len = room;
		memcpy(bytes + len, piece.at, piece.len);
		len += piece.len;
	}
	text_repair(out, size, bytes, text_whole(bytes, len), NULL);
}
