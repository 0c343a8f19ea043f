# SPDX-License-Identifier: GPL-2.0-only
#
# qprof_carry_files(<target> <name> <file> [<name> <file>...])
#
# Has the target carry these files as the table unpacked_files (base/unpacked.h), by these names.
function(qprof_carry_files target)
  set(source ${CMAKE_BINARY_DIR}/gen/unpacked_files.c)
  set(number 0)
  set(carried)
  set(table)
  while(ARGN)
    list(POP_FRONT ARGN name file)
    string(APPEND carried "CARRY(${number}, \"${file}\")\n")
    string(APPEND table "\t{\"${name}\", carried_${number}, carried_${number}_end},\n")
    list(APPEND files ${file})
    math(EXPR number "${number} + 1")
  endwhile()
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#include \"base/unpacked.h\"

#define CARRY(n, path) \\
	__asm__(\".pushsection .rodata\\ncarried_\" #n \": .incbin \\\"\" path \"\\\"\\n\" \\
		\"carried_\" #n \"_end: .byte 0\\n.popsection\"); \\
	extern const char carried_##n[] __attribute__((visibility(\"hidden\"))), \\
		carried_##n##_end[] __attribute__((visibility(\"hidden\")));

${carried}
const struct unpacked_file unpacked_files[] = {
${table}	{NULL, NULL, NULL},
};
")
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}")
endfunction()
