# SPDX-License-Identifier: GPL-2.0-only
#
# qprof_embed_text(<file> <source.c> <header> <name>)
#
# Writes a C source with the text of a file as the array that the header declares.
function(qprof_embed_text file source header name)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
  file(CONFIGURE OUTPUT ${source} @ONLY
    CONTENT "#include \"${header}\"\n\nconst char ${name}[] = {\n${bytes}0};\n")
endfunction()
