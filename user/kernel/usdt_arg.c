// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt_arg.c - parses one argument of a USDT probe: an operand as the assembler of this machine
 * writes it, with its size in front.
 *
 * An operand that is not understood to its last character is refused: nobody could tell a wrong
 * value from a right one.
 */
#include "kernel/usdt.h"

#include <asm/ptrace.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct wire_arg no_arg = {.reg = WIRE_NO_REG, .index = WIRE_NO_REG};

struct parser {
	const char *at, *end; /* what is left of this argument */
	uint64_t pc;
	usdt_symbol_fn symbol;
	void *context;
	bool narrow; /* of a program of 32 bits */
};

static const char malformed[] = "not written as an operand of this machine";
static const char vector_register[] = "in a vector register, which a uprobe does not see";
static const char unknown_register[] = "in a register that is not known";

static char peek(const struct parser *p)
{
	return p->at < p->end ? *p->at : '\0';
}

static bool accept(struct parser *p, char c)
{
	if (peek(p) != c || c == '\0')
		return false;
	p->at++;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *s)
{
	while (is_blank(*s))
		s++;
	return s;
}

/* What gas allows in a symbol, as far as compilers use it. */
static bool is_symbol_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$' || (c & 0x80);
}

/* Returns the length of the "-4@" or "8f@" at s, 0 if there is none. */
static size_t size_prefix(const char *s)
{
	const char *at = s;

	if (*at == '-')
		at++;
	if (!isdigit((unsigned char)*at))
		return 0;
	while (isdigit((unsigned char)*at))
		at++;
	if (*at == 'f')
		at++;
	return *at == '@' ? (size_t)(at + 1 - s) : 0;
}

/*
 * Returns where the argument at s ends. An operand may have blanks inside brackets. But a size ends
 * it in any case, so that an unclosed bracket does not swallow the next arguments.
 */
static const char *argument_end(const char *s)
{
	int depth = 0;

	for (; *s; s++) {
		if (*s == '(' || *s == '[')
			depth++;
		else if (*s == ')' || *s == ']')
			depth--;
		else if (is_blank(*s) && (depth <= 0 || size_prefix(s + 1)))
			break;
	}
	return s;
}

/* Cuts a value to the argument's size and extends it again: compilers write 0xffffffffU as $-1. */
static int64_t fit(uint64_t value, const struct wire_arg *arg)
{
	unsigned int unused = 64 - 8 * arg->size;

	value <<= unused;
	return arg->is_signed ? (int64_t)value >> unused : (int64_t)(value >> unused);
}

static void set_constant(struct wire_arg *arg, uint64_t value)
{
	arg->kind = WIRE_ARG_CONST;
	arg->disp = fit(value, arg);
}

static void set_register(struct wire_arg *arg, uint16_t reg)
{
	arg->kind = WIRE_ARG_REG;
	arg->reg = reg;
}

static const char *parse_size(struct parser *p, struct wire_arg *arg)
{
	size_t len = size_prefix(p->at);
	bool is_signed = *p->at == '-';
	unsigned long size;
	char *end;

	if (!len)
		return "without a size";
	size = strtoul(p->at + is_signed, &end, 10);
	p->at += len;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return "of a size that is not 1, 2, 4 or 8";
	if (*end == 'f' && size < 4)
		return "a float of a size that is neither 4 nor 8";
	arg->size = size;
	arg->is_float = *end == 'f';
	arg->is_signed = is_signed && !arg->is_float;
	return NULL;
}

static const char *parse_number(struct parser *p, uint64_t *value)
{
	char *end;

	/* strtoull would take blanks and signs */
	if (!isdigit((unsigned char)peek(p)))
		return malformed;
	errno = 0;
	*value = strtoull(p->at, &end, 0);
	if (errno)
		return "with a number of more than 64 bits";
	p->at = end;
	return is_symbol_char(peek(p)) ? malformed : NULL;
}

static size_t word_length(const struct parser *p)
{
	size_t len = 0;

	while (p->at + len < p->end && isalnum((unsigned char)p->at[len]))
		len++;
	return len;
}

static void accept_blanks(struct parser *p)
{
	while (is_blank(peek(p)))
		p->at++;
}

static bool accept_comma(struct parser *p)
{
	if (!accept(p, ','))
		return false;
	accept_blanks(p);
	return true;
}

#if defined(__x86_64__)

static const struct {
	uint16_t offset;
	const char *name[4]; /* all 8 bytes, low 4, low 2, low 1 */
} registers[] = {
	{offsetof(struct pt_regs, rax), {"rax", "eax", "ax", "al"}},
	{offsetof(struct pt_regs, rbx), {"rbx", "ebx", "bx", "bl"}},
	{offsetof(struct pt_regs, rcx), {"rcx", "ecx", "cx", "cl"}},
	{offsetof(struct pt_regs, rdx), {"rdx", "edx", "dx", "dl"}},
	{offsetof(struct pt_regs, rsi), {"rsi", "esi", "si", "sil"}},
	{offsetof(struct pt_regs, rdi), {"rdi", "edi", "di", "dil"}},
	{offsetof(struct pt_regs, rbp), {"rbp", "ebp", "bp", "bpl"}},
	{offsetof(struct pt_regs, rsp), {"rsp", "esp", "sp", "spl"}},
	{offsetof(struct pt_regs, r8), {"r8", "r8d", "r8w", "r8b"}},
	{offsetof(struct pt_regs, r9), {"r9", "r9d", "r9w", "r9b"}},
	{offsetof(struct pt_regs, r10), {"r10", "r10d", "r10w", "r10b"}},
	{offsetof(struct pt_regs, r11), {"r11", "r11d", "r11w", "r11b"}},
	{offsetof(struct pt_regs, r12), {"r12", "r12d", "r12w", "r12b"}},
	{offsetof(struct pt_regs, r13), {"r13", "r13d", "r13w", "r13b"}},
	{offsetof(struct pt_regs, r14), {"r14", "r14d", "r14w", "r14b"}},
	{offsetof(struct pt_regs, r15), {"r15", "r15d", "r15w", "r15b"}},
};

static bool starts_with(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && !memcmp(s, prefix, n);
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(s, word, len);
}

static const char *why_no_register(const char *s, size_t len)
{
	static const char *const vectors[] = {"xmm", "ymm", "zmm", "mm", "st"};
	size_t i;

	for (i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		if (starts_with(s, len, vectors[i]))
			return vector_register;
	}
	if (len == 2 && s[0] >= 'a' && s[0] <= 'd' && s[1] == 'h')
		return "in the second byte of a register";
	return unknown_register;
}

/* i386 has the first eight registers, without their upper halves, and low bytes of the first four
 * only. */
static bool has_register(const struct parser *p, size_t i, size_t width)
{
	return !p->narrow || (i < 8 && width > 0 && (width < 3 || i < 4));
}

/* Reads the name of a register, without its %. Sets *whole to whether it names the whole register.
 */
static const char *parse_register(struct parser *p, uint16_t *reg, bool *whole)
{
	size_t len = word_length(p), i, width;

	for (i = 0; i < sizeof(registers) / sizeof(*registers); i++) {
		for (width = 0; width < 4; width++) {
			if (!has_register(p, i, width) ||
			    !is_word(p->at, len, registers[i].name[width]))
				continue;
			p->at += len;
			*reg = registers[i].offset;
			*whole = width == (p->narrow ? 1 : 0);
			return NULL;
		}
	}
	return why_no_register(p->at, len);
}

/* A sum of numbers and at most one symbol: "8", "-16+table", "counter+8". */
struct expression {
	uint64_t value; /* of the numbers, modulo 2^64 as gas has it */
	const char *symbol;
	size_t symbol_len;
	bool from_got; /* symbol@GOTOFF: the distance from the GOT; the base register has the GOT */
};

/* Position independent code of 32 bits finds its data this way: it cannot add to %eip. */
static bool accept_got_offset(struct parser *p)
{
	static const char got_offset[] = "@GOTOFF";

	if (!p->narrow || (size_t)(p->end - p->at) < sizeof(got_offset) - 1 ||
	    memcmp(p->at, got_offset, sizeof(got_offset) - 1))
		return false;
	p->at += sizeof(got_offset) - 1;
	return true;
}

static const char *parse_symbol(struct parser *p, struct expression *e)
{
	e->symbol = p->at;
	while (is_symbol_char(peek(p)))
		p->at++;
	e->symbol_len = p->at - e->symbol;
	if (!e->symbol_len)
		return malformed;
	e->from_got = accept_got_offset(p);
	if (peek(p) == '@')
		return "with a relocation operator (thread-local, or through the GOT)";
	return NULL;
}

static const char *parse_term(struct parser *p, bool negative, struct expression *e)
{
	const char *why;
	uint64_t number;

	if (isdigit((unsigned char)peek(p))) {
		why = parse_number(p, &number);
		if (!why)
			e->value += negative ? -number : number;
		return why;
	}
	if (negative || e->symbol)
		return malformed;
	return parse_symbol(p, e);
}

static const char *parse_expression(struct parser *p, struct expression *e)
{
	bool negative = accept(p, '-');
	const char *why;

	for (;;) {
		why = parse_term(p, negative, e);
		if (why)
			return why;
		if (accept(p, '+'))
			negative = false;
		else if (accept(p, '-'))
			negative = true;
		else
			return NULL;
	}
}

static const char *find_address(struct parser *p, const struct expression *e, bool absolute,
				uint64_t *address)
{
	if (e->symbol_len >= 2 && !memcmp(e->symbol, ".L", 2))
		return "at a label of the compiler's own, such as a literal's: no symbol table has "
		       "it";
	if (!p->symbol)
		return "at a symbol";
	switch (p->symbol(p->context, e->symbol, e->symbol_len, absolute, address)) {
	case 0:
		*address += e->value;
		return NULL;
	case -ENOENT:
		return "at a symbol that the file's symbol tables do not have";
	case -ENOTUNIQ:
		return "at a symbol that the file has more than once";
	case -EOPNOTSUPP:
		return "at the absolute address of a symbol in a position independent file";
	default:
		return "at a symbol, and the file's symbol tables cannot be read";
	}
}

static const char *parse_immediate(struct parser *p, struct wire_arg *arg)
{
	struct expression e = {0};
	const char *why = parse_expression(p, &e);
	uint64_t value = e.value;

	if (!why && e.from_got)
		why = malformed;
	if (!why && e.symbol)
		why = find_address(p, &e, true, &value);
	if (!why)
		set_constant(arg, value);
	return why;
}

/* The distance from the probe is the same in memory as in the file, wherever the file is loaded. */
static const char *set_near_probe(struct parser *p, const struct expression *e,
				  struct wire_arg *arg)
{
	uint64_t address;
	const char *why;

	if (!e->symbol)
		return "at a bare number: an absolute address, or relative to no known instruction";
	why = find_address(p, e, false, &address);
	if (why)
		return why;
	arg->kind = WIRE_ARG_MEM;
	arg->reg = offsetof(struct pt_regs, rip);
	arg->disp = (int64_t)(address - p->pc);
	return NULL;
}

static const char *parse_address_register(struct parser *p, uint16_t *reg)
{
	bool whole;
	const char *why;

	if (!accept(p, '%'))
		return malformed;
	why = parse_register(p, reg, &whole);
	if (!why && !whole)
		why = p->narrow ? "at an address of less than 32 bits"
				: "at an address of less than 64 bits";
	return why;
}

static const char *parse_scale(struct parser *p, struct wire_arg *arg)
{
	switch (peek(p)) {
	case '1':
		arg->scale_shift = 0;
		break;
	case '2':
		arg->scale_shift = 1;
		break;
	case '4':
		arg->scale_shift = 2;
		break;
	case '8':
		arg->scale_shift = 3;
		break;
	default:
		return malformed;
	}
	p->at++;
	return NULL;
}

/* "%base", "%base,%index", "%base,%index,scale" or ",%index,scale", and the ")" */
static const char *parse_base_and_index(struct parser *p, struct wire_arg *arg)
{
	const char *why = NULL;

	if (peek(p) != ',')
		why = parse_address_register(p, &arg->reg);
	if (!why && accept_comma(p)) {
		why = parse_address_register(p, &arg->index);
		if (!why && accept_comma(p))
			why = parse_scale(p, arg);
	}
	if (!why && !accept(p, ')'))
		why = malformed;
	return why;
}

static bool accept_ip(struct parser *p)
{
	static const char ip[] = "%rip)";

	if (p->narrow || (size_t)(p->end - p->at) < sizeof(ip) - 1 ||
	    memcmp(p->at, ip, sizeof(ip) - 1))
		return false;
	p->at += sizeof(ip) - 1;
	return true;
}

static const char *parse_memory(struct parser *p, struct wire_arg *arg)
{
	struct expression e = {0};
	uint64_t disp;
	const char *why;

	if (peek(p) != '(') {
		why = parse_expression(p, &e);
		if (why)
			return why;
	}
	if (!accept(p, '(') || accept_ip(p))
		return e.from_got ? malformed : set_near_probe(p, &e, arg);
	why = parse_base_and_index(p, arg);
	if (why)
		return why;
	if (e.from_got) /* set_near_probe() keeps an index */
		return arg->reg == WIRE_NO_REG ? malformed : set_near_probe(p, &e, arg);
	disp = e.value;
	if (e.symbol) {
		why = find_address(p, &e, true, &disp);
		if (why)
			return why;
	}
	arg->kind = WIRE_ARG_MEM;
	arg->disp = (int64_t)disp;
	return NULL;
}

static const char *parse_operand(struct parser *p, struct wire_arg *arg)
{
	const char *why;
	uint16_t reg;
	bool whole;

	if (accept(p, '$'))
		return parse_immediate(p, arg);
	if (!accept(p, '%'))
		return parse_memory(p, arg);
	if (word_length(p) == 2 && p->at[1] == 's' && p->at + 2 < p->end && p->at[2] == ':')
		return "in a segment (thread-local)";
	why = parse_register(p, &reg, &whole);
	if (!why && p->narrow && arg->size == 8)
		why = "of 8 bytes in a register of 4: the note does not say where the others are";
	if (!why)
		set_register(arg, reg);
	return why;
}

#elif defined(__aarch64__)

static const struct {
	uint16_t offset;
	const char *name;
} named_registers[] = {
	{offsetof(struct user_pt_regs, sp), "sp"},
	{offsetof(struct user_pt_regs, regs[29]), "fp"},
	{offsetof(struct user_pt_regs, regs[30]), "lr"},
};

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(s, word, len);
}

/* Returns the number in a name such as x7 or w12, or -1. */
static int register_number(const char *s, size_t len)
{
	int n;

	if (len < 2 || len > 3 || !isdigit((unsigned char)s[1]) ||
	    (len == 3 && (s[1] == '0' || !isdigit((unsigned char)s[2]))))
		return -1;
	n = s[1] - '0';
	if (len == 3)
		n = 10 * n + s[2] - '0';
	return n;
}

/* Reads the name of a register. Sets *whole to whether it names all 8 bytes. */
static const char *parse_register(struct parser *p, uint16_t *reg, bool *whole)
{
	size_t len = word_length(p), i;
	const char *name = p->at;
	int n;

	p->at += len;
	*whole = true;
	for (i = 0; i < sizeof(named_registers) / sizeof(*named_registers); i++) {
		if (is_word(name, len, named_registers[i].name)) {
			*reg = named_registers[i].offset;
			return NULL;
		}
	}
	n = register_number(name, len);
	if (n >= 0 && n <= 31 && strchr("bhsdqv", name[0]))
		return vector_register;
	if (n < 0 || n > 30 || (name[0] != 'x' && name[0] != 'w'))
		return unknown_register;
	*reg = offsetof(struct user_pt_regs, regs) + 8 * n;
	*whole = name[0] == 'x';
	return NULL;
}

static const char *parse_address_register(struct parser *p, uint16_t *reg)
{
	bool whole;
	const char *why = parse_register(p, reg, &whole);

	if (!why && !whole)
		why = "at an address of less than 64 bits";
	return why;
}

static bool at_number(const struct parser *p)
{
	return isdigit((unsigned char)peek(p)) || peek(p) == '-' || peek(p) == '#';
}

static const char *parse_signed_number(struct parser *p, uint64_t *value)
{
	const char *why;
	bool negative;

	accept(p, '#');
	negative = accept(p, '-');
	why = parse_number(p, value);
	if (!why && negative)
		*value = -*value;
	return why;
}

/* Reads the "lsl 3" behind an index. */
static const char *parse_shift(struct parser *p, struct wire_arg *arg)
{
	uint64_t shift;
	const char *why;

	if (!is_word(p->at, word_length(p), "lsl"))
		return "at an address with an extended index";
	p->at += 3;
	accept_blanks(p);
	why = parse_signed_number(p, &shift);
	if (!why && shift > 4)
		why = malformed;
	if (!why)
		arg->scale_shift = shift;
	return why;
}

/* "x1]", "sp, 16]", "x0, x1]" or "x0, x1, lsl 3]" */
static const char *parse_memory(struct parser *p, struct wire_arg *arg)
{
	const char *why = parse_address_register(p, &arg->reg);
	uint64_t disp = 0;

	if (!why && accept_comma(p)) {
		if (at_number(p)) {
			why = parse_signed_number(p, &disp);
		} else {
			why = parse_address_register(p, &arg->index);
			if (!why && accept_comma(p))
				why = parse_shift(p, arg);
		}
	}
	if (!why && !accept(p, ']'))
		why = malformed;
	arg->kind = WIRE_ARG_MEM;
	arg->disp = (int64_t)disp;
	return why;
}

static const char *parse_operand(struct parser *p, struct wire_arg *arg)
{
	uint64_t value = 0;
	const char *why;
	uint16_t reg;
	bool whole;

	if (accept(p, '['))
		return parse_memory(p, arg);
	if (at_number(p)) {
		why = parse_signed_number(p, &value);
		if (!why)
			set_constant(arg, value);
		return why;
	}
	if (is_word(p->at, word_length(p), "xzr") || is_word(p->at, word_length(p), "wzr")) {
		p->at += 3;
		set_constant(arg, 0);
		return NULL;
	}
	why = parse_register(p, &reg, &whole);
	if (!why)
		set_register(arg, reg);
	return why;
}

#endif

/* Keeps the size and the type of an argument that cannot be evaluated, and nothing else. */
static void refuse(struct wire_arg *arg)
{
	struct wire_arg refused = no_arg;

	refused.kind = WIRE_ARG_REFUSED;
	refused.size = arg->size;
	refused.is_signed = arg->is_signed;
	refused.is_float = arg->is_float;
	*arg = refused;
}

static const char *parse_arg(struct parser *p, const char **text, struct wire_arg *arg)
{
	const char *why;

	p->at = skip_blanks(*text);
	p->end = argument_end(p->at);
	*text = skip_blanks(p->end);
	*arg = no_arg;
	arg->narrow = p->narrow;
	why = parse_size(p, arg);
	if (!why)
		why = parse_operand(p, arg);
	if (!why && p->at != p->end)
		why = malformed;
	if (why)
		refuse(arg);
	return why;
}

const char *usdt_parse_arg(const char **text, uint64_t pc, usdt_symbol_fn symbol, void *context,
			   struct wire_arg *arg)
{
	struct parser p = {.pc = pc, .symbol = symbol, .context = context};

	return parse_arg(&p, text, arg);
}

const char *usdt_parse_narrow_arg(const char **text, uint64_t pc, usdt_symbol_fn symbol,
				  void *context, struct wire_arg *arg)
{
	struct parser p = {.pc = pc, .symbol = symbol, .context = context, .narrow = true};

	return parse_arg(&p, text, arg);
}
