# shellcheck shell=bash
# Evaluates the lines of recipes, one an argument: PLACE LINE PLACE LINE... PATH leads nowhere, so it runs no program. For each call of
# go and make it writes one line to descriptor 3: place, directory and words, each followed by the character 0x1f. So bash itself applies
# its rules of quotes and expansions, and a line that bash reads otherwise than its author meant shows.
# One write, because both sides of a pipe may call at once.
note() {
	local record
	printf -v record '%s\x1f' "$place" "$dir" "$@"
	printf '%s\n' "$record" >&3
}
make() { note make "$@"; }
go() {
	note go "$@"
	[ "$1" != list ] || printf '%s\n' "${@:2}" # the packages of a later command
}
# What filters the output of go list passes everything here.
grep() { while read -r word; do printf '%s\n' "$word"; done; }
cd() { dir=$dir/$1; }

while [ $# -gt 1 ]; do
	place=$1 dir=.
	(eval "$2") >/dev/null 2>&1 </dev/null
	shift 2
done
