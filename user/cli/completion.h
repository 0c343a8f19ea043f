/* SPDX-License-Identifier: GPL-2.0-only */
/* completion.h - scripts that complete command lines of qprof-bpf, made of the option tables. */
#ifndef QPROF_COMPLETION_H
#define QPROF_COMPLETION_H

/* Each prints a script to stdout. It needs no other files. */
void completion_bash(void);
void completion_zsh(void);

/* The same for all tables, printed behind them: completion.bash and completion.zsh. */
extern const char bash_script[], zsh_script[];

#endif
