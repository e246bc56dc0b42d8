# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bash completion of 'anywarp'. It repeats nothing: subcommands, options and values are those that the command
# names itself, in 'anywarp help' and when an option has no value.

# The words up to the one being completed, in 'words', and where in COMP_WORDS each begins, in 'places': bash parts
# them at '='.
_anywarp_join() {
	local at
	for ((at = 0; at <= COMP_CWORD; at++)); do
		if ((at)) && [[ ${COMP_WORDS[at]} == = || ${words[-1]} == *= ]]; then
			words[-1]+=${COMP_WORDS[at]}
		else
			words+=("${COMP_WORDS[at]}")
			places+=("$at")
		fi
	done
}

_anywarp_subcommands() {
	"${words[0]}" help 2>/dev/null | sed -n '/^  --version/q; s/^  \([a-z][a-z]*\) .*/\1/p'
	printf '%s\n' --help --version
}

# One line for each option of the subcommand: its name, and what the help calls its value.
_anywarp_options() {
	"${words[0]}" help "${words[1]}" 2>/dev/null | sed -nE 's/^  (--[a-z-]+)( ([^ ]+))?  .*/\1 \3/p'
	echo '--help '
}

# What the help calls the value of an option; nothing for an option that has none. The one short option is -w.
_anywarp_metavar() {
	local name=$1
	[[ $name != -w ]] || name=--write
	_anywarp_options | sed -n "s/^$name //p"
}

# Every key=value of a LIST, behind those that are typed.
_anywarp_list() {
	local typed=$1 key values value
	"${words[0]}" help run 2>/dev/null | sed -nE 's/^ {10,}([a-z0-9_]+)=([a-z0-9|+]+)  .*/\1 \2/p' |
		while read -r key values; do
			for value in ${values//|/ }; do
				echo "${typed%"${typed##*,}"}$key=$value"
			done
		done
}

# Only 'run', 'check' and 'sockets' are asked: an option without its value is wrong there, so that nothing is run.
_anywarp_choice() {
	case ${words[1]} in
	run | check | sockets) "${words[0]}" "${words[1]}" "$1=" 2>&1 | sed -n 's/.* needs one of: //p' ;;
	esac
}

# The values of the option $1 of which $2 is typed.
_anywarp_values() {
	local metavar
	metavar=$(_anywarp_metavar "$1")
	case $metavar in
	*'|'*) echo "${metavar//|/ }" ;;
	DIR | FILE | results.json) ;; # readline offers files by itself, and quotes their names
	LIST) _anywarp_list "$2" ;;
	PID) find /proc -maxdepth 1 -name '[0-9]*' -printf '%f ' 2>/dev/null ;;
	TEXT) echo on auto off rsockets tls-plain ;;
	*) _anywarp_choice "$1" ;;
	esac
}

# The values of the option that stands before the word $1; without one, the processes into which
# 'anywarp stat' and 'anywarp capture' may look.
_anywarp_argument() {
	if [[ ${words[1]} == @(stat|capture) && -z $(_anywarp_metavar "${words[-2]}") ]]; then
		find /proc -maxdepth 1 -name '[0-9]*' -printf '%f ' 2>/dev/null
	else
		_anywarp_values "${words[-2]}" "$1"
	fi
}

# Prints where in 'words' the program begins, of run, check and sockets, or would begin.
_anywarp_program() {
	local at=2
	while ((at < ${#words[@]} - 1)); do
		case ${words[at]} in
		--) echo $((at + 1)) && return ;;
		-*=*) at=$((at + 1)) ;;
		-*) [[ $(_anywarp_metavar "${words[at]}") ]] && at=$((at + 2)) || at=$((at + 1)) ;;
		*) break ;;
		esac
	done
	echo "$at"
}

# Offers what begins as the word does, without what bash takes for a word of its own. 'compgen -W' would expand what is
# typed, and run the commands in it.
_anywarp_offer() {
	local word=$1 typed=$2 before="" each
	local -a values=()
	[[ $COMP_WORDBREAKS != *=* ]] || before=${word%"${word##*=}"}
	read -r -d '' -a values <<<"$3" || true
	COMPREPLY=()
	for each in "${values[@]}"; do
		[[ $each != "$typed"* ]] || COMPREPLY+=("${word%"$typed"}$each")
	done
	COMPREPLY=("${COMPREPLY[@]#"$before"}")
}

_anywarp_offer_program() {
	if declare -F _command_offset >/dev/null; then
		_command_offset "${places[$1]}"
	elif (($1 == ${#words[@]} - 1)); then
		mapfile -t COMPREPLY < <(compgen -c -- "${words[-1]}")
	fi
}

_anywarp() {
	local -a words=() places=()
	local word last program
	_anywarp_join
	word=${words[-1]} last=$((${#words[@]} - 1))
	if ((last == 1)); then
		_anywarp_offer "$word" "$word" "$(_anywarp_subcommands)"
		return
	elif ((last == 2)) && [[ ${words[1]} == help ]]; then
		_anywarp_offer "$word" "$word" "environment $(_anywarp_subcommands)"
		return
	fi
	program=$(_anywarp_program)
	if [[ ${words[1]} != @(stat|capture) ]] && ((last >= program)) && [[ ${words[last - 1]} == -- || $word != -* ]]; then
		[[ ${words[1]} != @(run|check|sockets) ]] || _anywarp_offer_program "$program"
	elif [[ $word == --*=* ]]; then
		_anywarp_offer "$word" "${word#*=}" "$(_anywarp_values "${word%%=*}" "${word#*=}")"
	elif [[ $word == -* ]]; then
		_anywarp_offer "$word" "$word" "$(_anywarp_options | cut -d ' ' -f 1)"
	else
		_anywarp_offer "$word" "$word" "$(_anywarp_argument "$word")"
	fi
}

complete -o default -F _anywarp anywarp
