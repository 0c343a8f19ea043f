/* SPDX-License-Identifier: GPL-2.0-only */
/* descriptors.h - which of its descriptors a child process goes on with. */
#ifndef QPROF_DESCRIPTORS_H
#define QPROF_DESCRIPTORS_H

#include <stddef.h>

/* Closes all descriptors of this process but those n, which it sorts; those below 0 are none. */
void descriptors_close_all_but(int *kept, size_t n);

#endif
