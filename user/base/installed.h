/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * installed.h - finds the files that were installed with the executable, wherever that is; a static
 * one that lies alone unpacks its own (unpacked.h).
 */
#ifndef QPROF_INSTALLED_H
#define QPROF_INSTALLED_H

/* Returns the path of one of our files below share/, to be freed; or NULL if there is none. */
char *installed_data(const char *file);
/* Returns the path of one of our libraries, to be freed; or NULL if there is none. */
char *installed_library(const char *file);

#endif
