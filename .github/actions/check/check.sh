#!/usr/bin/env bash
# Runs `tq check` on what the inputs of the action name, with annotations and a summary; its exit status is that of the check.
set -euo pipefail
shopt -s nullglob

# Sets `found` to the paths that a list names, a path or pattern a line.
find_paths() {
  local line IFS=
  found=()
  while read -r line; do
    [ -n "$line" ] || continue
    # Without quotes a pattern becomes the files that fit; blanks stay, since IFS is empty.
    # shellcheck disable=SC2206
    local fitting=($line)
    # What fits nothing is named by tq.
    [ "${#fitting[@]}" -gt 0 ] || fitting=("$line")
    found+=("${fitting[@]}")
  done <<<"$1"
}

find_paths "$TRACES"
if [ "${#found[@]}" -eq 0 ]; then
  echo "::error::the input traces names no recording"
  exit 2
fi
new="${found[0]}"
arguments=("${found[@]}")
find_paths "$QUERY"
[ "${#found[@]}" -eq 0 ] || arguments+=(--query "${found[@]}")
base=
find_paths "$BASELINE"
if [ "${#found[@]}" -gt 0 ]; then
  base="${found[0]}"
  arguments+=(--baseline "${found[@]}")
fi
[ -z "$TOLERANCE" ] || arguments+=(--tolerance "$TOLERANCE")

status=0
tq check "${arguments[@]}" --github --markdown="$GITHUB_STEP_SUMMARY" || status=$?
if [ -n "$REPORT" ]; then
  sides=("$new")
  [ -z "$base" ] || sides=("base=$base" "new=$new")
  tq report "${sides[@]}" --html -o "$REPORT" || echo "::warning::tq wrote no report"
fi
exit "$status"
