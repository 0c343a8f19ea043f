/* SPDX-License-Identifier: GPL-2.0-only */
/* touches.c - a library with one function, whose name is given as it is built. */
#include "truth.h"

void FUNCTION(char *at, size_t size);

void FUNCTION(char *at, size_t size)
{
	touch(at, size);
	__asm__ volatile("" ::: "memory"); /* or the call becomes a jump */
}
