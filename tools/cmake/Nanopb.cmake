# SPDX-License-Identifier: GPL-2.0-only
#
# qprof_nanopb(TARGET <file.proto>)
#
# Makes C of messages of Protocol Buffers, with the .options that stand beside them, and a library of
# that: whoever links it can include <file.pb.h> and encode.

find_package(nanopb CONFIG REQUIRED)
find_program(QPROF_NANOPB_GENERATOR NAMES nanopb_generator.py nanopb_generator
  DOC "nanopb's generator: tools/setup installs it" REQUIRED)
mark_as_advanced(QPROF_NANOPB_GENERATOR)

function(qprof_nanopb target proto)
  get_filename_component(stem ${proto} NAME_WE)
  get_filename_component(source_dir ${proto} DIRECTORY)
  file(RELATIVE_PATH shown ${CMAKE_SOURCE_DIR} ${proto})
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/gen/proto)
  file(MAKE_DIRECTORY ${dir})
  add_custom_command(OUTPUT ${dir}/${stem}.pb.c ${dir}/${stem}.pb.h
    COMMAND ${QPROF_NANOPB_GENERATOR} --quiet -I ${source_dir} -D ${dir} ${proto}
    DEPENDS ${proto} ${source_dir}/${stem}.options
    COMMENT "Generating C from ${shown}"
    VERBATIM)
  add_library(${target} STATIC ${dir}/${stem}.pb.c ${dir}/${stem}.pb.h)
  target_include_directories(${target} SYSTEM PUBLIC ${dir})
  target_link_libraries(${target} PUBLIC nanopb::protobuf-nanopb-static)
endfunction()
