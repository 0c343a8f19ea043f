/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/httpd.h"

#ifdef QPROF_STATIC

const struct httpd *httpd_load(struct error *err)
{
#define HTTPD_FUNCTION(name) .name = MHD_##name,
	static const struct httpd httpd = {HTTPD_FUNCTIONS(HTTPD_FUNCTION)};

	(void)err;
	return &httpd;
}

#else

#include <dlfcn.h>
#include <stddef.h>

const struct httpd *httpd_load(struct error *err)
{
	static struct httpd httpd;
	void *library = dlopen(QPROF_HTTPD, RTLD_NOW | RTLD_LOCAL);

#define HTTPD_FUNCTION(name)                                                                       \
	if (library)                                                                               \
		*(void **)&httpd.name = dlsym(library, "MHD_" #name);                              \
	if (!library || !httpd.name) {                                                             \
		error_set(err, "cannot serve metrics: %s; install " QPROF_HTTPD, dlerror());       \
		return NULL;                                                                       \
	}
	HTTPD_FUNCTIONS(HTTPD_FUNCTION)
	return &httpd;
}

#endif
