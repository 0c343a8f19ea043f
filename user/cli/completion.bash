# SPDX-License-Identifier: GPL-2.0-only
# Completes $1, of the kind $reply, which is behind $2 in its word.
_qprof_bpf_complete()
{
	local value=$1 before=$2 done=
	# Readline replaces only what is behind the last break of a word.
	[[ $COMP_WORDBREAKS == *=* ]] && before=
	[[ $value == *,* ]] && done=${value%,*},
	case $reply in
	files)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -P "$before" -f -- "$value")
		;;
	words*)
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "${reply#words}" -- "$value")
		;;
	pids | list*)
		[[ $reply == pids ]] && reply="list $(cd /proc && echo [0-9]*)"
		mapfile -t COMPREPLY < <(compgen -P "$before$done" -W "${reply#list}" -- "${value##*,}")
		;;
	esac
}

# Completes the command line of another command, which begins at word $1 and byte $2.
_qprof_bpf_delegate()
{
	local first=$1 name spec
	if ((COMP_CWORD == first)); then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[first]}")
		return
	fi
	if declare -F _command_offset >/dev/null; then # bash-completion
		_command_offset "$first"
		return
	fi
	name=${COMP_WORDS[first]}
	COMP_WORDS=("${COMP_WORDS[@]:first}")
	((COMP_CWORD -= first, COMP_POINT -= $2))
	COMP_LINE=${COMP_LINE:$2}
	spec=$(complete -p -- "${name##*/}" 2>/dev/null)
	if [[ $spec =~ \ -F\ ([^ ]+) ]]; then
		"${BASH_REMATCH[1]}" "${name##*/}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
	fi
}

# Bash breaks words at "=" and ":", too: puts them together again, up to the cursor. Fills in words,
# and for each the index of its first part in COMP_WORDS and its byte in COMP_LINE.
_qprof_bpf_split()
{
	local rest=${COMP_LINE:0:COMP_POINT} word i
	for ((i = 0; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if ((i == 0)) || [[ $rest == [[:blank:]]* || -z $rest ]]; then
			rest=${rest#"${rest%%[![:blank:]]*}"}
			((i == COMP_CWORD)) && word=$rest
			words+=("$word")
			parts+=("$i")
			bytes+=("$((COMP_POINT - ${#rest}))")
		else
			((i == COMP_CWORD)) && word=$rest
			words[-1]+=$word
		fi
		rest=${rest#"$word"}
	done
}

_qprof_bpf()
{
	local words=() parts=() bytes=() command=run option='' first='' reply i j n word
	COMPREPLY=()
	_qprof_bpf_split
	n=$((${#words[@]} - 1))
	# Before the cursor: a command, options, one that still wants its value, another command line.
	for ((i = 1; i < n; i++)); do
		word=${words[i]}
		if [[ -n $option ]]; then
			option=
			continue
		fi
		case $word in
		--)
			first=$((i + 1))
			break
			;;
		--*)
			[[ $command$word == run--all ]] && command=audit
			_qprof_bpf_value "$command" "$word"
			[[ -n $reply ]] && option=$word
			;;
		-?*)
			for ((j = 1; j < ${#word}; j++)); do
				[[ $command${word:j:1} == runa ]] && command=audit
				_qprof_bpf_value "$command" "-${word:j:1}"
				[[ -n $reply ]] || continue
				((j == ${#word} - 1)) && option=-${word:j:1}
				break
			done
			;;
		*)
			if ((i == 1)) && [[ " $_qprof_bpf_commands " == *" $word "* ]]; then
				command=$word
			elif [[ $command == run ]]; then
				first=$i
				break
			fi
			;;
		esac
	done
	word=${words[n]}
	if [[ $command == run && -n $first ]]; then
		_qprof_bpf_delegate "${parts[first]}" "${bytes[first]}"
	elif [[ -n $option ]]; then
		_qprof_bpf_value "$command" "$option"
		_qprof_bpf_complete "$word" ""
	elif [[ $word == --*=* ]]; then
		_qprof_bpf_value "$command" "${word%%=*}"
		[[ -n $reply ]] || _qprof_bpf_value "$command" "${word%%=*}="
		_qprof_bpf_complete "${word#*=}" "${word%%=*}="
	elif [[ $word == -* ]]; then
		_qprof_bpf_options "$command"
		mapfile -t COMPREPLY < <(compgen -W "$reply" -- "$word")
		[[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace 2>/dev/null
	elif [[ $command == run ]]; then
		((n == 1)) && reply=$_qprof_bpf_commands || reply=
		mapfile -t COMPREPLY < <(compgen -W "$reply" -- "$word"; compgen -c -- "$word")
	else
		_qprof_bpf_value "$command" argument
		_qprof_bpf_complete "$word" ""
	fi
}

complete -F _qprof_bpf qprof-bpf
