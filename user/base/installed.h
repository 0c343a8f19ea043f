/* SPDX-License-Identifier: GPL-2.0-only */
/* installed.h - the files that come with the executable: found beside it, wherever all was put. */
#ifndef QPROF_INSTALLED_H
#define QPROF_INSTALLED_H

/* The path of a file of ours below share/, malloc'ed; NULL: it is not there. */
char *installed_data(const char *file);
/* Likewise of a library. */
char *installed_library(const char *file);

#endif
