# SPDX-License-Identifier: GPL-2.0-only
# The first word that is no option: a command of qprof-bpf, or one to be profiled.
_qprof-bpf-first() {
	local -a commands
	if (( first_word )); then
		_qprof-bpf-commands
		_describe -t commands command commands
	fi
	_command_names -e
}

_qprof-bpf() {
	local -a specs commands
	local command=run word
	integer first_word=$(( CURRENT == 2 ))
	_qprof-bpf-commands
	if (( CURRENT > 2 && $commands[(I)${(b)words[2]}:*] )); then
		command=$words[2]
		shift words
		(( CURRENT-- ))
	elif [[ $words[2] == -* ]]; then
		for word in $words[2,CURRENT-1]; do
			[[ $word == -- ]] && break
			[[ $word == (-a|--all) ]] && command=audit
		done
	fi
	_qprof-bpf-specs $command
	_arguments -s -S $specs
}

# Loaded by compinit, this is the function's own first call; sourced, it is not.
if [[ $funcstack[1] == _qprof-bpf ]]; then
	_qprof-bpf "$@"
else
	compdef _qprof-bpf qprof-bpf
fi
