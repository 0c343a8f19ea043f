/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/load.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int load_recording(struct recording *r, const char *path, struct error *err)
{
	const bool is_stdin = !strcmp(path, "-");
	FILE *in = is_stdin ? stdin : fopen(path, "re");
	struct stat st;
	int failed;

	if (!in)
		return error_set(err, "cannot read '%s': %s", path, strerror(errno));
	if (!fstat(fileno(in), &st) && S_ISDIR(st.st_mode))
		failed = error_set(err, "cannot read '%s': it is a directory", path);
	else
		failed = recording_read(r, in, is_stdin ? "stdin" : path, err);
	if (!is_stdin)
		fclose(in);
	return failed;
}
