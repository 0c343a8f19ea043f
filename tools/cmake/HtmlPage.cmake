# SPDX-License-Identifier: GPL-2.0-only
#
# qprof_html_page(OUTPUT <source.c> PAGE <page.html> LICENSE <file> STYLES <file.css>...
#   SCRIPTS <file.js>... LIBRARY <dir>)
#
# Puts the page, its styles and scripts, the library for charts and the licences of both into one
# text, as the C array html_page. The page's Content-Security-Policy allows these styles and scripts
# by their hashes and nothing else. The library's SHA256SUMS must hold for its files.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(QPROF_HTML_PAGE_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(qprof_html_page)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUTPUT;PAGE;LICENSE;LIBRARY" "STYLES;SCRIPTS")
    file(GLOB library CONFIGURE_DEPENDS ${arg_LIBRARY}/*)
    file(RELATIVE_PATH shown ${CMAKE_SOURCE_DIR} ${arg_PAGE})
    add_custom_command(OUTPUT ${arg_OUTPUT}
      COMMAND ${CMAKE_COMMAND} -DOUTPUT=${arg_OUTPUT} -DPAGE=${arg_PAGE}
        -DPAGE_LICENSE=${arg_LICENSE} -DLIBRARY=${arg_LIBRARY}
        "-DSTYLES=${arg_STYLES}" "-DSCRIPTS=${arg_SCRIPTS}" -P ${QPROF_HTML_PAGE_SCRIPT}
      DEPENDS ${QPROF_HTML_PAGE_SCRIPT} ${arg_PAGE} ${arg_LICENSE} ${arg_STYLES} ${arg_SCRIPTS}
        ${library}
      COMMENT "Embedding ${shown}"
      VERBATIM)
  endfunction()
  return()
endif()

# ---- At build time

cmake_minimum_required(VERSION 3.22)

# The text of all these files. Variables are given by name here: a ; would make a list of a text.
function(read_all out)
  set(all)
  foreach(file IN LISTS ARGN)
    file(READ ${file} text)
    string(APPEND all "${text}")
  endforeach()
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

function(base64 out hex)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  # 256 bits are 42 times 6 and 4 more.
  string(APPEND hex 00)
  set(text)
  foreach(i RANGE 10)
    math(EXPR at "${i} * 6")
    string(SUBSTRING ${hex} ${at} 6 three)
    foreach(shift IN ITEMS 18 12 6 0)
      math(EXPR digit "(0x${three} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 letter)
      string(APPEND text ${letter})
    endforeach()
  endforeach()
  string(SUBSTRING ${text} 0 43 text)
  set(${out} "${text}=" PARENT_SCOPE)
endfunction()

# What a policy allows this text by.
function(hash_of out text_name)
  string(SHA256 hex "${${text_name}}")
  base64(hash ${hex})
  set(${out} "'sha256-${hash}'" PARENT_SCOPE)
endfunction()

file(STRINGS ${LIBRARY}/SHA256SUMS sums)
foreach(line IN LISTS sums)
  string(REGEX MATCH "^([0-9a-f]+)  (.+)$" line ${line})
  set(expected ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  file(SHA256 ${LIBRARY}/${name} sum)
  if(NOT sum STREQUAL expected)
    message(FATAL_ERROR "${LIBRARY}/${name} is not the one of SHA256SUMS: its sum is ${sum}")
  endif()
endforeach()

read_all(PAGE_TEXT ${PAGE})
read_all(LICENSE ${PAGE_LICENSE})
read_all(LIBRARY_LICENSE ${LIBRARY}/LICENSE)
read_all(LIBRARY_STYLE ${LIBRARY}/uPlot.min.css)
read_all(LIBRARY_SCRIPT ${LIBRARY}/uPlot.iife.min.js)
read_all(STYLE ${STYLES})
read_all(SCRIPT ${SCRIPTS})
set(POLICY)
foreach(part IN ITEMS STYLE LIBRARY_STYLE SCRIPT LIBRARY_SCRIPT)
  hash_of(${part}_HASH ${part})
endforeach()
set(POLICY "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src ${STYLE_HASH} ${LIBRARY_STYLE_HASH}; script-src ${SCRIPT_HASH} ${LIBRARY_SCRIPT_HASH}")
foreach(part IN ITEMS POLICY LICENSE LIBRARY_LICENSE LIBRARY_STYLE LIBRARY_SCRIPT STYLE SCRIPT)
  string(REPLACE "@${part}@" "${${part}}" PAGE_TEXT "${PAGE_TEXT}")
endforeach()

file(WRITE ${OUTPUT}.html "${PAGE_TEXT}")
file(READ ${OUTPUT}.html hex HEX)
string(REGEX REPLACE "(................................................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
file(WRITE ${OUTPUT} "#include \"report/html/page.h\"\n\nconst char html_page[] = {\n${hex}0};\n")
file(REMOVE ${OUTPUT}.html)
