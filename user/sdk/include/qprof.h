/* SPDX-License-Identifier: MIT */
/*
 * qprof.h - marks the steps of a C or C++ program for qprof-bpf. Nothing is linked.
 *
 *	QPROF_BEGIN("Quantize");                 the row "Quantize Start"; a phase begins
 *	QPROF_END("Quantize");                   the row "Quantize End"; the phase ends
 *	QPROF_MARK("Model Loaded");              the row "Model Loaded"
 *	QPROF_METRIC("loss", 0.12);              joins the next row
 *	QPROF_SUMMARY("model_size_mb", size);    a key of the whole profile
 *	QPROF_DEFINE("loss: cross entropy");     says what a metric is, in the profile's last
 *comments QPROF_SCOPE("Layer 0");                  begin here, end where the block is left (C: by
 *the attribute cleanup; C++: also by an exception) if (QPROF_ENABLED()) ... somebody listens: for
 *what is costly to prepare
 *
 * Names are NUL-terminated strings of up to 255 bytes of UTF-8; what is longer is cut. The name of
 * a scope must stay valid until its end. Values are integers of up to 8 bytes, bool, float and
 * double. There are no errors to handle.
 *
 * Each is a USDT probe of <sys/sdt.h> (Debian: systemtap-sdt-dev) with a semaphore: while nobody
 * listens it costs one load and a branch, and its arguments are not evaluated. Do not rely on their
 * side effects. Without that header, with another kind of compiler, or with QPROF_DISABLE defined,
 * everything here does nothing.
 *
 * Include this file before <sys/sdt.h>. If your file has probes of its own without semaphores,
 * include <sys/sdt.h> first: then these have none either, and arguments are always evaluated.
 *
 * C99 and C++11 and later; gcc and clang. In a static inline function of your own header, all is
 * well, too: each shared library or program has its own semaphores.
 */
#ifndef QPROF_H
#define QPROF_H

#if !defined(QPROF_DISABLE) && defined(__GNUC__) && defined(__ELF__)
#if !defined(__has_include)
#define QPROF_USABLE_ 1
#elif __has_include(<sys/sdt.h>)
#define QPROF_USABLE_ 1
#endif
#endif

#define QPROF_JOIN2_(a, b) a##b
#define QPROF_JOIN_(a, b)  QPROF_JOIN2_(a, b)

#ifdef QPROF_USABLE_

#if defined(_SYS_SDT_H) && !defined(_SDT_HAS_SEMAPHORES)
#define QPROF_LISTENING_(probe) 1
#define QPROF_ENABLED()		1
#else
#ifndef _SDT_HAS_SEMAPHORES
#define _SDT_HAS_SEMAPHORES 1
#endif
#define QPROF_LISTENING_(probe) __builtin_expect(qprof_##probe##_semaphore != 0, 0)
#define QPROF_ENABLED()                                                                            \
	(qprof_mark_semaphore || qprof_begin_semaphore || qprof_end_semaphore ||                   \
	 qprof_metric_semaphore)

/*
 * The kernel counts the listeners in there, for each program or library in one place. That is found
 * by its offset in the file, so its page of the file must not be mapped a second time: lld lets the
 * segment before it end in the page where it begins. Hence the alignment, and hence the assembler:
 * a section that is kept once, however many files include this one.
 */
#define QPROF_SEMAPHORE_(probe)                                                                    \
	".weak qprof_" #probe "_semaphore\n"                                                       \
	".hidden qprof_" #probe "_semaphore\n"                                                     \
	".type qprof_" #probe "_semaphore, \"object\"\n"                                           \
	".size qprof_" #probe "_semaphore, 2\n"                                                    \
	"qprof_" #probe "_semaphore: .2byte 0\n"

#ifndef QPROF_SEMAPHORES_ELSEWHERE_
#ifdef __cplusplus
extern "C" {
#endif
#define QPROF_HIDDEN_ __attribute__((visibility("hidden")))
extern volatile unsigned short qprof_begin_semaphore QPROF_HIDDEN_;
extern volatile unsigned short qprof_end_semaphore QPROF_HIDDEN_;
extern volatile unsigned short qprof_mark_semaphore QPROF_HIDDEN_;
extern volatile unsigned short qprof_metric_semaphore QPROF_HIDDEN_;
extern volatile unsigned short qprof_summary_semaphore QPROF_HIDDEN_;
extern volatile unsigned short qprof_define_semaphore QPROF_HIDDEN_;
#ifdef __cplusplus
}
#endif
__asm__(".ifndef qprof_mark_semaphore\n"
	".pushsection .probes, \"awG\", \"progbits\", qprof.semaphores, comdat\n"
	".balign 4096\n" QPROF_SEMAPHORE_(begin) QPROF_SEMAPHORE_(end) QPROF_SEMAPHORE_(mark)
		QPROF_SEMAPHORE_(metric) QPROF_SEMAPHORE_(summary)
			QPROF_SEMAPHORE_(define) ".popsection\n"
						 ".endif\n");
#endif
#endif

#include <sys/sdt.h>

/*
 * On arm64 a value in memory may get an address that only the linker knows, as in
 * "8f@[x1, #:lo12:.LANCHOR0]": it stays so in the note, and nobody can read it. So values are in
 * registers there, those of the file's own probes, too.
 */
#ifdef __aarch64__
#undef STAP_SDT_ARG_CONSTRAINT
#define STAP_SDT_ARG_CONSTRAINT nr
#endif

#define QPROF_INLINE_ static inline __attribute__((always_inline, unused))

/* A literal that nothing has read yet is on a page that may not be there when the probe looks. */
QPROF_INLINE_ const char *qprof_touch_(const char *name)
{
	if (name) {
		char first = *(const volatile char *)name;

		(void)first;
	}
	return name;
}

#define QPROF_NAMED_(probe, name)                                                                  \
	do {                                                                                       \
		if (QPROF_LISTENING_(probe)) {                                                     \
			const char *qprof_name_ = qprof_touch_(name);                              \
                                                                                                   \
			STAP_PROBE1(qprof, probe, qprof_name_);                                    \
		}                                                                                  \
	} while (0)

/* The empty asm makes the compiler forget that it knows the value: of a literal double there would
 * be no address that the probe could tell. "+ 0" makes a plain number of whatever it is. */
#define QPROF_VALUED_(probe, name, value)                                                          \
	do {                                                                                       \
		if (QPROF_LISTENING_(probe)) {                                                     \
			const char *qprof_name_ = qprof_touch_(name);                              \
			__typeof__((value) + 0) qprof_value_ = (value);                            \
			typedef char qprof_at_most_8_bytes_[sizeof(qprof_value_) <= 8 ? 1 : -1]    \
				__attribute__((unused));                                           \
                                                                                                   \
			__asm__ volatile("" : "+m"(qprof_value_));                                 \
			STAP_PROBE2(qprof, probe, qprof_name_, qprof_value_);                      \
		}                                                                                  \
	} while (0)

#define QPROF_BEGIN(name)	   QPROF_NAMED_(begin, name)
#define QPROF_END(name)		   QPROF_NAMED_(end, name)
#define QPROF_MARK(name)	   QPROF_NAMED_(mark, name)
#define QPROF_DEFINE(text)	   QPROF_NAMED_(define, text)
#define QPROF_METRIC(name, value)  QPROF_VALUED_(metric, name, value)
#define QPROF_SUMMARY(name, value) QPROF_VALUED_(summary, name, value)

#ifdef __cplusplus

#include <cstdio>
#include <exception>

namespace qprof
{

/*
 * From its construction to its end is a phase. If an exception ends it, the row of its end has the
 * metric "NAME raised": 1. Begun while nobody listened, it says nothing.
 */
class scope
{
      public:
	explicit scope(const char *name)
	    : name_(QPROF_LISTENING_(begin) ? qprof_touch_(name) : nullptr),
	      exceptions_(exceptions())
	{
		if (name_)
			QPROF_BEGIN(name_);
	}

	~scope()
	{
		if (!name_)
			return;
		if (exceptions() > exceptions_)
			tell_raised();
		QPROF_END(name_);
	}

	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;

      private:
	static int exceptions()
	{
#if defined(__cpp_lib_uncaught_exceptions) || __cplusplus >= 201703L
		return std::uncaught_exceptions();
#else
		return std::uncaught_exception();
#endif
	}

	void tell_raised() const
	{
		char text[256];

		std::snprintf(text, sizeof(text), "%.240s raised", name_);
		QPROF_METRIC(text, 1);
	}

	const char *name_;
	int exceptions_;
};

} // namespace qprof

#define QPROF_SCOPE(name) const qprof::scope QPROF_JOIN_(qprof_scope_, __LINE__)(name)

#else

QPROF_INLINE_ const char *qprof_scope_begin_(const char *name)
{
	QPROF_BEGIN(name);
	return name;
}

QPROF_INLINE_ void qprof_scope_end_(const char *const *name)
{
	if (*name)
		QPROF_END(*name);
}

/* Begun while nobody listened, it says nothing. */
#define QPROF_SCOPE(name)                                                                          \
	const char *const QPROF_JOIN_(qprof_scope_, __LINE__)                                      \
		__attribute__((cleanup(qprof_scope_end_), unused)) =                               \
			QPROF_LISTENING_(begin) ? qprof_scope_begin_(name) : (const char *)0

#endif

#else /* everything does nothing, and is compiled all the same */

#define QPROF_ENABLED() 0
#define QPROF_NONE_(expression)                                                                    \
	do {                                                                                       \
		if (0)                                                                             \
			(void)(expression);                                                        \
	} while (0)
#define QPROF_NONE2_(name, value)                                                                  \
	do {                                                                                       \
		if (0) {                                                                           \
			(void)(name);                                                              \
			(void)(value);                                                             \
		}                                                                                  \
	} while (0)

#define QPROF_BEGIN(name)	   QPROF_NONE_(name)
#define QPROF_END(name)		   QPROF_NONE_(name)
#define QPROF_MARK(name)	   QPROF_NONE_(name)
#define QPROF_DEFINE(text)	   QPROF_NONE_(text)
#define QPROF_METRIC(name, value)  QPROF_NONE2_(name, value)
#define QPROF_SUMMARY(name, value) QPROF_NONE2_(name, value)
#define QPROF_SCOPE(name)	   QPROF_NONE_(name)

#endif

#endif
