// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt_fixture.c - a program with probes that usdt_test.c knows: their order, names and values.
 * Each is hit once, in the order of main().
 */
#include <stdint.h>
#include <sys/sdt.h>

/* Not static: written operands below name them. */
extern int32_t fixture_counter;
extern uint64_t fixture_table[3];
extern const char fixture_text[];

int32_t fixture_counter = -77;
uint64_t fixture_table[3] = {1, UINT64_C(0x123456789abcdef0), 3};
const char fixture_text[] = "by symbol";

/* Volatile, so that the compiler has to read them and cannot make constants of them. */
static volatile double loss = 0.125;
static volatile float temperature = -2.5F;
static volatile int tokens = -5;
static volatile uint64_t bytes = UINT64_C(0xfedcba9876543210);
static volatile int16_t small = -300;
static volatile uint8_t byte = 200;

static void report(void)
{
	double d = loss;
	float f = temperature;
	int i = tokens;
	uint64_t u = bytes;
	int16_t s = small;
	uint8_t b = byte;

	DTRACE_PROBE2(qprof, metric, "loss", d);
	DTRACE_PROBE2(qprof, metric, "temperature", f);
	DTRACE_PROBE2(qprof, metric, "tokens", i);
	DTRACE_PROBE2(qprof, metric, "layers", 32);
	DTRACE_PROBE2(qprof, metric, "all", 0xffffffffU);
	DTRACE_PROBE2(qprof, metric, "bytes", u);
	DTRACE_PROBE2(qprof, metric, "small", s);
	DTRACE_PROBE2(qprof, metric, "byte", b);
}

/*
 * Operands as an assembler programmer would write them, and no compiler does every time. Formatting
 * would put blanks into them.
 */
/* clang-format off */
static void written(void)
{
#if defined(__x86_64__)
	uint64_t index = 2;

	__asm__ volatile(STAP_PROBE_ASM(fixture, symbols,
		-4@fixture_counter(%%rip) 8@8+fixture_table(%%rip))::);
	__asm__ volatile("lea fixture_table(%%rip), %%rcx\n"
		STAP_PROBE_ASM(fixture, index, 8@(%%rcx,%0,8) 4@-8(%%rcx, %0, 8))
		: : "d"(index) : "rcx");
	__asm__ volatile(STAP_PROBE_ASM(fixture, refused, 8@%%rax 8f@%%xmm0)::);
#elif defined(__aarch64__)
	__asm__ volatile(STAP_PROBE_ASM(fixture, refused, 8@x0 8f@d0)::);
#endif
}
/* clang-format on */

/*
 * From here on probes have semaphores. _SDT_HAS_SEMAPHORES would give one to every probe of this
 * file. Their first value tells the test that it has found the right one.
 */
#undef _SDT_SEMAPHORE
#define _SDT_SEMAPHORE(p, n) _SDT_ASM_1(_SDT_ASM_ADDR p##_##n##_semaphore)
#define SEMAPHORE	     __attribute__((used, section(".probes")))

extern unsigned short qprof_watched_semaphore, qprof_guarded_semaphore;
unsigned short qprof_watched_semaphore SEMAPHORE = 0x5150;
unsigned short qprof_guarded_semaphore SEMAPHORE = 0x6160;

static void watched(void)
{
	DTRACE_PROBE1(qprof, watched, "seen");
	DTRACE_PROBE1(qprof, guarded, fixture_text);
}

#undef _SDT_SEMAPHORE
#define _SDT_SEMAPHORE(p, n) _SDT_ASM_1(_SDT_ASM_ADDR 0)

int main(int argc, char **argv)
{
	(void)argv;
	DTRACE_PROBE1(qprof, begin, "load");
	DTRACE_PROBE1(qprof, mark, "Model Loaded");
	report();
	DTRACE_PROBE1(qprof, end, "load");
	watched();
	DTRACE_PROBE(fixture, bare);
	DTRACE_PROBE4(fixture, many, argc, 2, 3, 4);
	written();
	return 0;
}
