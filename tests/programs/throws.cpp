/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * throws.cpp - takes 16 MiB in "Layer 3", and throws:
 *
 *   throws bad_alloc       as new[] does beyond RLIMIT_AS of 256 MiB
 *   throws huge            as new[] does for more than any address space has
 *   throws own             an exception of its own, from a function further down
 *   throws hidden          one that only this file knows
 *   throws thread          the same in a thread
 *   throws noexcept        within a function that lets none pass
 *   throws caught          catches that, and then aborts for another reason
 *   throws caught_deeper   the same, and aborts further down
 *   throws caught_above    the same, below a buffer that nobody writes to
 *
 * Nobody catches the first six. g++ -O1 throws.cpp -o throws -pthread
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/resource.h>
#include <sys/sdt.h>

namespace model {
namespace {
struct hidden {};
}
struct broken : std::runtime_error {
	using std::runtime_error::runtime_error;
};
}

static volatile int sink;
static char *volatile kept;

static __attribute__((noinline)) void go_down(int depth, void (*then)())
{
	volatile char frame[64];

	memset(const_cast<char *>(frame), depth, sizeof(frame));
	if (depth)
		go_down(depth - 1, then);
	else
		then();
	sink = frame[0];
}

static void throw_own()
{
	throw model::broken("this text is longer than what a string has room for in itself");
}

static void use_up()
{
	const rlimit limit = {256 << 20, 256 << 20};

	setrlimit(RLIMIT_AS, &limit);
	for (;;)
		kept = new char[1 << 20];
}

static void let_none_pass() noexcept
{
	const std::string has_destructor(100, 'x');

	go_down(3, throw_own);
	sink = (int)has_destructor.size();
}

static void catch_it(int depth)
{
	try {
		go_down(depth, throw_own);
	} catch (const std::exception &error) {
		sink = (int)strlen(error.what());
	}
}

/* What was on the stack stays as it was. */
static __attribute__((noinline)) void abort_below_a_buffer()
{
	volatile char unused[8192];

	sink = (int)(reinterpret_cast<std::size_t>(unused) & 1);
	abort();
}

int main(int argc, char **argv)
{
	const std::string how = argc > 1 ? argv[1] : "";
	volatile std::size_t huge = ~std::size_t(0) >> 2;
	char *held = static_cast<char *>(malloc(16 << 20));

	DTRACE_PROBE1(qprof, begin, "Layer 3");
	memset(held, 1, 16 << 20);
	if (how == "bad_alloc")
		use_up();
	if (how == "huge")
		kept = new char[huge];
	if (how == "own")
		go_down(3, throw_own);
	if (how == "hidden")
		throw model::hidden();
	if (how == "thread")
		std::thread(go_down, 3, throw_own).join();
	if (how == "noexcept")
		let_none_pass();
	catch_it(how == "caught_above" ? 20 : 3);
	if (how == "caught_above")
		abort_below_a_buffer();
	if (how == "caught_deeper")
		go_down(30, abort);
	if (how == "caught")
		abort();
	return 0;
}
