/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * page.h - the page of the HTML report without the profile. The build (tools/cmake/HtmlPage.cmake)
 * puts the files of this folder and the library for charts into one text.
 */
#ifndef QPROF_HTML_PAGE_H
#define QPROF_HTML_PAGE_H

/* Ended by NUL. What a report fills in is marked by @TITLE@, @SUMMARY@ and @PROFILE@. */
extern const char html_page[];

#endif
