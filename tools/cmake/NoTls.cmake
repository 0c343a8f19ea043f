# SPDX-License-Identifier: GPL-2.0-only
#
# qprof_no_tls(<target> <archive>)
#
# An archive of Debian's libmicrohttpd, which can speak TLS, is to be linked where there is no static
# library of gnutls. Nobody asks it for TLS, so none of what it would call there is ever called but
# what begins and ends gnutls. Makes a library of these functions: each fails.
function(qprof_no_tls target archive)
  execute_process(COMMAND ${CMAKE_NM} --undefined-only ${archive}
    OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "gnutls_[a-z0-9_]+" names "${symbols}")
  list(REMOVE_DUPLICATES names)
  set(source ${CMAKE_BINARY_DIR}/gen/${target}.c)
  list(TRANSFORM names REPLACE "(.+)" "REFUSE(\\1)")
  list(JOIN names "\n" functions)
  # GNUTLS_E_UNIMPLEMENTED_FEATURE
  file(CONFIGURE OUTPUT ${source} @ONLY
    CONTENT "#define REFUSE(f) long f(void); long f(void) { return -1250; }\n@functions@\n")
  add_library(${target} STATIC ${source})
endfunction()
