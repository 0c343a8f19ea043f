/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/python_source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/array.h"
#include "base/hash.h"
#include "kernel/elf_symbols.h"
#include "kernel/engine_state.h"
#include "kernel/procfs.h"
#include "kernel/stack_mappings.h"

enum {
	OLDEST_MINOR = 9,
	NO = WIRE_PYTHON_NO_FIELD,
	MOST_FILES = 1024, /* that are looked at: a program may make any number of them */
	/* That are read of a file of others, in all: its symbols and their names, mostly. Debian's
	 * interpreters have 0.1 MiB of them. The worst that such a file can be takes 0.15 s. */
	MOST_BYTES = 4 << 20,
};

/*
 * By minor version, from 3.9 on, as its headers have it for x86-64: _PyRuntimeState,
 * PyInterpreterState, PyThreadState, PyFrameObject or _PyInterpreterFrame, PyCodeObject,
 * PyASCIIObject, PyCompactUnicodeObject. They do not change within a minor version.
 */
static const struct wire_python layouts[] = {
	{/* 3.9 */
	 .first_interpreter = 32,
	 .next_interpreter = 0,
	 .first_thread = 8,
	 .next_thread = 8,
	 .thread_id = 176,
	 .frame = 24,
	 .frame_in = NO,
	 .frame_back = 24,
	 .frame_code = 32,
	 .frame_at = 104,
	 .at_unit = 1,
	 .frame_owner = NO,
	 .frame_entered = NO,
	 .code_path = 104,
	 .code_name = 112,
	 .code_line = 40,
	 .code_lines = 120,
	 .code_bytes = NO,
	 .lines_kind = WIRE_PYTHON_LNOTAB,
	 .text_ascii = 48,
	 .text_other = 72},
	{/* 3.10 */
	 .first_interpreter = 32,
	 .next_interpreter = 0,
	 .first_thread = 8,
	 .next_thread = 8,
	 .thread_id = 176,
	 .frame = 24,
	 .frame_in = NO,
	 .frame_back = 24,
	 .frame_code = 32,
	 .frame_at = 96,
	 .at_unit = 2,
	 .frame_owner = NO,
	 .frame_entered = NO,
	 .code_path = 104,
	 .code_name = 112,
	 .code_line = 40,
	 .code_lines = 120,
	 .code_bytes = NO,
	 .lines_kind = WIRE_PYTHON_LINETABLE,
	 .text_ascii = 48,
	 .text_other = 72},
	{/* 3.11 */
	 .first_interpreter = 40, .next_interpreter = 0, .first_thread = 16,
	 .next_thread = 8,	  .thread_id = 152,	 .frame = 56,
	 .frame_in = 8,		  .frame_back = 48,	 .frame_code = 32,
	 .frame_at = 56,	  .frame_owner = 69,	 .frame_entered = 68,
	 .code_path = 112,	  .code_name = 128,	 .code_line = 72,
	 .code_lines = 136,	  .code_bytes = 184,	 .lines_kind = WIRE_PYTHON_LOCATIONS,
	 .text_ascii = 48,	  .text_other = 72},
	{/* 3.12 */
	 .first_interpreter = 40, .next_interpreter = 0, .first_thread = 72,
	 .next_thread = 8,	  .thread_id = 136,	 .frame = 56,
	 .frame_in = 0,		  .frame_back = 8,	 .frame_code = 0,
	 .frame_at = 56,	  .frame_owner = 70,	 .frame_entered = NO,
	 .code_path = 112,	  .code_name = 128,	 .code_line = 68,
	 .code_lines = 136,	  .code_bytes = 192,	 .lines_kind = WIRE_PYTHON_LOCATIONS,
	 .text_ascii = 40,	  .text_other = 56},
	{/* 3.13 */
	 .first_interpreter = 632, .next_interpreter = 7264, .first_thread = 7344,
	 .next_thread = 8,	   .thread_id = 152,	     .frame = 72,
	 .frame_in = NO,	   .frame_back = 8,	     .frame_code = 0,
	 .frame_at = 56,	   .frame_owner = 70,	     .frame_entered = NO,
	 .code_path = 112,	   .code_name = 128,	     .code_line = 68,
	 .code_lines = 136,	   .code_bytes = 200,	     .lines_kind = WIRE_PYTHON_LOCATIONS,
	 .text_ascii = 40,	   .text_other = 56},
};

/* A file that was looked at. */
struct looked {
	UT_hash_handle hh;
	struct {
		uint64_t device, inode;
	} key;
	bool has; /* an interpreter */
	struct wire_python python;
	uint64_t to_code; /* from an offset in the mapped code to its address in the file */
};

struct python_source {
	int map;
	struct looked *files;
};

/* ---- Files -------------------------------------------------------------------------------------
 */

static bool find_symbol(struct elf_file *f, struct elf_symbols *symbols, const char *name,
			uint64_t *address)
{
	return !elf_symbols_find(symbols, f, name, strlen(name), address);
}

/* Py_Version, since 3.11: 0x030b02f0 is 3.11.2. Returns the minor version, or -1. */
static int minor_of_symbol(struct elf_file *f, struct elf_symbols *symbols)
{
	uint64_t address, offset;
	uint32_t version;

	if (!find_symbol(f, symbols, "Py_Version", &address) ||
	    !elf_file_offset(f, address, sizeof(version), PF_R, &offset) ||
	    pread(f->fd, &version, sizeof(version), (off_t)offset) != sizeof(version) ||
	    version >> 24 != 3)
		return -1;
	return (int)(version >> 16 & 0xff);
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "libpython3.9.so.1.0" and "python3.9" are 3.9. */
static int minor_of_name(const char *path)
{
	const char *found = strstr(file_name(path), "python3.");

	return found ? atoi(found + strlen("python3.")) : -1;
}

static int find_layout(struct elf_file *f, struct elf_symbols *symbols, const char *path,
		       struct wire_python *python)
{
	uint64_t runtime, code_type;
	int minor;

	if (!find_symbol(f, symbols, "_PyRuntime", &runtime) ||
	    !find_symbol(f, symbols, "PyCode_Type", &code_type))
		return -ENOENT;
	minor = minor_of_symbol(f, symbols);
	if (minor < 0)
		minor = minor_of_name(path);
	if (minor < OLDEST_MINOR ||
	    minor - OLDEST_MINOR >= (int)(sizeof(layouts) / sizeof(*layouts)))
		return -ENOENT;
	*python = layouts[minor - OLDEST_MINOR];
	python->runtime = runtime;
	python->code_type = code_type;
	return 0;
}

/* Mappings begin at a page, segments may begin within one. */
static bool find_code(const struct elf_file *f, uint64_t offset, uint64_t *to_code)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < f->segments; i++) {
		const struct elf_segment *s = &f->segment[i];

		if (!(s->flags & PF_X) || offset < (s->offset & ~(page - 1)) ||
		    offset >= s->offset + s->size)
			continue;
		*to_code = s->vaddr - s->offset;
		return true;
	}
	return false;
}

static bool look_at_file(struct looked *file, int fd, const struct stack_mapping *m)
{
	struct elf_symbols symbols = {0};
	struct elf_file f;
	const int err = elf_file_open(&f, fd);
	const bool has = !err && !f.narrow && f.header.e_machine == EM_X86_64 &&
			 find_code(&f, m->offset, &file->to_code) &&
			 !find_layout(&f, &symbols, m->path, &file->python);

	elf_symbols_free(&symbols);
	elf_file_close(&f);
	return has;
}

/* ---- Processes ---------------------------------------------------------------------------------
 */

static bool may_be_python(const char *path)
{
	const char *name = file_name(path);

	return !strncmp(name, "python", 6) || !strncmp(name, "libpython", 9);
}

static void forget_files(struct python_source *source)
{
	struct looked *file = source->files, *next;

	HASH_CLEAR(hh, source->files);
	for (; file; file = next) {
		next = file->hh.next;
		free(file);
	}
}

static struct looked *find_file(const struct python_source *source, const struct stack_mapping *m)
{
	const struct looked wanted = {.key = {m->device, m->inode}};
	struct looked *file;

	HASH_FIND(hh, source->files, &wanted.key, sizeof(wanted.key), file);
	return file;
}

/* Returns NULL if it cannot be opened, and so is tried again; or if there are too many. Of others
 * there never are: they would be left without, as somebody among them has many. */
static struct looked *look(struct python_source *source, pid_t pid,
			   const struct stack_mappings *mappings, size_t at)
{
	const struct stack_mapping *m = &mappings->list[at];
	struct looked *file;
	int fd;

	if (HASH_COUNT(source->files) >= MOST_FILES && mappings->is_others)
		forget_files(source);
	if (HASH_COUNT(source->files) >= MOST_FILES)
		return NULL;
	fd = stack_mappings_open(mappings, at, pid);
	file = fd < 0 ? NULL : calloc(1, sizeof(*file));
	if (file) {
		file->key.device = m->device;
		file->key.inode = m->inode;
		elf_allow(mappings->is_others ? MOST_BYTES : UINT64_MAX);
		file->has = look_at_file(file, fd, m);
		elf_allow(UINT64_MAX);
		HASH_ADD(hh, source->files, key, sizeof(file->key), file);
		if (!file->hh.tbl) {
			free(file);
			file = NULL;
		}
	}
	if (fd >= 0)
		close(fd);
	return file;
}

static void tell(const struct python_source *source, uint64_t memory, const struct looked *file,
		 const struct stack_mapping *m)
{
	const uint64_t bias = m->start - m->offset - file->to_code;
	struct wire_python python = file->python;

	python.runtime += bias;
	python.code_type += bias;
	bpf_map_update_elem(source->map, &memory, &python, BPF_ANY);
}

bool python_source_look(struct python_source *source, pid_t pid, uint64_t memory,
			const struct stack_mappings *mappings)
{
	bool had_one = false;

	for (size_t i = 0; i < mappings->n; i++) {
		const struct stack_mapping *m = &mappings->list[i];
		const struct looked *file;
		bool is_new;

		if (!may_be_python(m->path))
			continue;
		file = find_file(source, m);
		is_new = !file && m->is_local && mappings->is_others;
		if (is_new && had_one)
			return true;
		had_one |= is_new;
		if (!file)
			file = look(source, pid, mappings, i);
		if (is_new && !file) /* not to be tried again and again */
			return false;
		if (file && file->has) {
			tell(source, memory, file, m);
			return false;
		}
	}
	return false;
}

/* ---- Life --------------------------------------------------------------------------------------
 */

struct python_source *python_source_new(const struct engine *e)
{
	struct python_source *source = calloc(1, sizeof(*source));

	if (source)
		source->map = bpf_map__fd(e->bpf->maps.pythons);
	return source;
}

void python_source_free(struct python_source *source)
{
	if (!source)
		return;
	forget_files(source);
	free(source);
}
