# SPDX-License-Identifier: GPL-2.0-only
#
# qprof_bpf_skeleton(TARGET NAME <name> OUTPUT <header> INCLUDES <dir>... SOURCES <file.bpf.c>...)
#
# Compiles each source for BPF, links them into one object and turns it into a libbpf skeleton, a C
# header that carries the object and the functions <name>__open, __load and so on. TARGET becomes an
# interface library: whoever links it can include the header and is rebuilt when a source, or
# anything a source includes, has changed.

find_program(QPROF_BPF_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14
  DOC "The compiler of the BPF side: clang 12 or later")
find_program(QPROF_BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin
  DOC "Links BPF objects and writes the skeleton")
mark_as_advanced(QPROF_BPF_CLANG QPROF_BPFTOOL)

# The name libbpf's headers have for the processor.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(QPROF_BPF_ARCH x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(QPROF_BPF_ARCH arm64)
else()
  message(FATAL_ERROR "${CMAKE_SYSTEM_PROCESSOR} is not supported: x86_64 and aarch64 are")
endif()

function(qprof_bpf_skeleton target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;OUTPUT" "INCLUDES;SOURCES")
  if(NOT QPROF_BPF_CLANG OR NOT QPROF_BPFTOOL)
    message(FATAL_ERROR "clang and bpftool are needed: tools/setup installs them")
  endif()

  set(dir ${CMAKE_CURRENT_BINARY_DIR}/bpf)
  get_filename_component(header_dir ${arg_OUTPUT} DIRECTORY)
  file(MAKE_DIRECTORY ${dir} ${header_dir})
  list(TRANSFORM arg_INCLUDES PREPEND -I)

  # Parameters of a tracepoint come by position, so those not needed are there as well.
  set(flags -target bpf -mcpu=v3 -O2 -g -std=gnu17
    -D__TARGET_ARCH_${QPROF_BPF_ARCH} -Wall -Wextra -Wno-unused-parameter
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= ${arg_INCLUDES})
  if(QPROF_WERROR)
    list(APPEND flags -Werror)
  endif()
  if(CMAKE_LIBRARY_ARCHITECTURE) # asm/*.h on Debian: not on the path of a foreign target
    list(APPEND flags -idirafter ${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  endif()

  set(objects)
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(stem ${source} NAME_WE)
    set(object ${dir}/${stem}.o)
    file(RELATIVE_PATH shown ${CMAKE_SOURCE_DIR} ${source})
    add_custom_command(OUTPUT ${object}
      COMMAND ${QPROF_BPF_CLANG} ${flags} -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
      DEPENDS ${source}
      DEPFILE ${object}.d
      COMMENT "Building BPF object ${shown}"
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()

  set(linked ${dir}/${arg_NAME}.bpf.o)
  add_custom_command(OUTPUT ${linked}
    COMMAND ${QPROF_BPFTOOL} gen object ${linked} ${objects}
    DEPENDS ${objects}
    COMMENT "Linking BPF object ${arg_NAME}.bpf.o"
    VERBATIM)

  # Through a second name, so that a bpftool that fails leaves no half of a header. Not our code, so
  # not for clang-tidy.
  add_custom_command(OUTPUT ${arg_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -E echo "/* NOLINTBEGIN */" > ${arg_OUTPUT}.new
    COMMAND ${QPROF_BPFTOOL} gen skeleton ${linked} name ${arg_NAME} >> ${arg_OUTPUT}.new
    COMMAND ${CMAKE_COMMAND} -E echo "/* NOLINTEND */" >> ${arg_OUTPUT}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${arg_OUTPUT}.new ${arg_OUTPUT}
    DEPENDS ${linked}
    COMMENT "Generating BPF skeleton ${arg_NAME}"
    VERBATIM)

  add_custom_target(${target}_header DEPENDS ${arg_OUTPUT})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_header)
  target_include_directories(${target} SYSTEM INTERFACE ${header_dir})
endfunction()
