/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usdt.h - the USDT probes of an ELF file, read from its .note.stapsdt notes.
 *
 * Files come from untrusted processes, so nothing in them is believed. What does not fit is an
 * error of the file or of that one probe, never a crash, and USDT_MAX_PROBES bounds the memory. The
 * format of notes comes from <sys/sdt.h> (SystemTap wiki, UserSpaceProbeImplementation).
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
	unsigned int nargs;	  /* arguments written; the first WIRE_HIT_ARGS are kept */
	struct wire_arg arg[WIRE_HIT_ARGS];
	/* NULL, or a static text: why one of the first WIRE_SITE_ARGS cannot be evaluated
	 * (WIRE_ARG_REFUSED). */
	const char *refused;
};

struct usdt_file {
	struct usdt_probe *probes;
	size_t count;
	size_t bad_notes; /* notes skipped because they make no sense */
	int truncated;	  /* 1: there were more than USDT_MAX_PROBES */
};

/*
 * Reads the probes of the ELF file that is open at fd, which stays the caller's, with its offset.
 * Returns 0, and the caller frees *file with usdt_file_free(), even without probes; -ENOEXEC: no
 * ELF file, or not for this machine (x86-64 runs files of i386, too); -EINVAL: a broken structure,
 * and *why (if not NULL) is a static text; -ENOMEM; or -errno of reading.
 */
int usdt_file_read(int fd, struct usdt_file *file, const char **why);

/* Frees what usdt_file_read allocated and empties *file. */
void usdt_file_free(struct usdt_file *file);

/* Finds where in the ELF file at fd a function begins. Returns 0, -ENOENT, or an error as above. */
int usdt_find_function(int fd, const char *name, uint64_t *offset);

/* Returns true if the file that is open at fd claims to be an ELF file of 32 bits. */
bool usdt_is_narrow(int fd);

/*
 * Finds the virtual address in the file of a symbol that an argument names ("8@counter(%rip)").
 * absolute: the argument uses it as the address in the process ("8@table(,%rax,8)"). Returns 0;
 * -ENOENT; -ENOTUNIQ: several have that name; -EOPNOTSUPP: absolute, and the file is position
 * independent; or another -errno: its symbols cannot be read.
 */
typedef int (*usdt_symbol_fn)(void *context, const char *name, size_t len, bool absolute,
			      uint64_t *address);

/*
 * Parses one argument of a probe at virtual address pc, such as "-4@-20(%rbp)", "8@%rax", "4@$7",
 * "8f@(%rsi,%rdi,8)" or "8@counter+8(%rip)". Moves *text behind it and the blanks that follow.
 * Always fills *arg: an unused register is WIRE_NO_REG, like the base in "8@(,%rdi,8)"; a constant
 * is cut to its size and extended. If symbol is NULL, symbols are refused. Returns NULL; or a
 * static text that says why the argument cannot be evaluated, and its kind is WIRE_ARG_REFUSED.
 *
 * Example: "-4@-20(%rbp)" is 4 signed bytes at the address in rbp less 20: kind WIRE_ARG_MEM, size
 * 4, is_signed 1, reg the offset of rbp, index WIRE_NO_REG, disp -20.
 */
const char *usdt_parse_arg(const char **text, uint64_t pc, usdt_symbol_fn symbol, void *context,
			   struct wire_arg *arg);

/* The same for a program of 32 bits: "4@-60(%ebp)". Only on x86-64; elsewhere all is refused. */
const char *usdt_parse_narrow_arg(const char **text, uint64_t pc, usdt_symbol_fn symbol,
				  void *context, struct wire_arg *arg);

#endif
