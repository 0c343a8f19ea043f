/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usdt.h - the USDT probes of an ELF file, read from its .note.stapsdt notes.
 *
 * Files come from untrusted processes: nothing in them is believed. Whatever does not fit is an
 * error of the file or of that one probe, never a crash, and memory is bounded by USDT_MAX_PROBES.
 * The note format is that of <sys/sdt.h> (SystemTap wiki, UserSpaceProbeImplementation).
 */
#ifndef QPROF_USDT_H
#define QPROF_USDT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

enum {
	USDT_MAX_PROBES = 65536, /* notes read of one file */
	USDT_NAME_LEN = 128,	 /* provider and name, with NUL; longer ones are refused */
	USDT_ARGS_LEN = 256,	 /* text of the arguments, cut for display */
};

struct usdt_probe {
	char provider[USDT_NAME_LEN];
	char name[USDT_NAME_LEN];
	char args[USDT_ARGS_LEN]; /* as written in the note: "8@%rax -4@$5" */
	uint64_t pc;		  /* virtual address in the file, after the prelink adjustment */
	uint64_t offset;	  /* of the probe's instruction in the file */
	uint64_t semaphore;	  /* offset of its semaphore in the file, 0 for none */
	unsigned int nargs;	  /* as written, which may be more than are kept */
	struct wire_arg arg[WIRE_SITE_ARGS];
	const char *refused; /* NULL, or a static text: why an argument among the kept ones
			      * cannot be evaluated (its kind is WIRE_ARG_REFUSED) */
};

struct usdt_file {
	struct usdt_probe *probes;
	size_t count;
	size_t bad_notes; /* notes skipped because they make no sense */
	int truncated;	  /* 1: there were more than USDT_MAX_PROBES */
};

/*
 * Reads the probes of the ELF file open at fd (which stays the caller's, its offset untouched).
 * 0, and *file is to be freed with usdt_file_free, also when there are none.
 * -ENOEXEC: no ELF file, or not of this machine (x86-64 runs i386's as well). -EINVAL: an ELF file
 * whose structure is broken, with *why (if not NULL) set to a static text. -ENOMEM. -errno of
 * reading.
 */
int usdt_file_read(int fd, struct usdt_file *file, const char **why);

/* Frees what usdt_file_read allocated and empties *file. */
void usdt_file_free(struct usdt_file *file);

/*
 * Where in the ELF file open at fd a function of that name begins. 0, -ENOENT, or an error as
 * above.
 */
int usdt_find_function(int fd, const char *name, uint64_t *offset);

/* Whether the file open at fd says of itself that it is an ELF file of 32 bits. */
bool usdt_is_narrow(int fd);

/*
 * How to find a symbol that an argument names ("8@counter(%rip)"): its virtual address in the file.
 * absolute says that this is going to be used as the address in the process ("8@table(,%rax,8)").
 * 0; -ENOENT; -ENOTUNIQ where there are several of that name; -EOPNOTSUPP where absolute is asked
 * for and the file is position independent; another -errno where symbols cannot be read.
 */
typedef int (*usdt_symbol_fn)(void *context, const char *name, size_t len, bool absolute,
			      uint64_t *address);

/*
 * Parses one argument of a probe at virtual address pc, such as "-4@-20(%rbp)", "8@%rax", "4@$7",
 * "8f@(%rsi,%rdi,8)" or "8@counter+8(%rip)", from *text on, and moves *text behind it and the
 * blanks that follow. Always fills *arg: registers that it does not use are WIRE_NO_REG, also the
 * base in "8@(,%rdi,8)"; a constant is cut to its size and extended. Where the argument cannot be
 * evaluated its kind is WIRE_ARG_REFUSED and the answer is a static text that says why, else NULL.
 * symbol may be NULL: then symbols are refused.
 */
const char *usdt_parse_arg(const char **text, uint64_t pc, usdt_symbol_fn symbol, void *context,
			   struct wire_arg *arg);

/* The same of a probe of a program of 32 bits: "4@-60(%ebp)". On x86-64 only, refused elsewhere. */
const char *usdt_parse_narrow_arg(const char **text, uint64_t pc, usdt_symbol_fn symbol,
				  void *context, struct wire_arg *arg);

#endif
