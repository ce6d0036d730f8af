#!/usr/bin/env bash
# Judges the requirement, lock, configuration and Docker files that a push or a pull request changes.
set -euo pipefail
pattern='(^|/)((requirements|constraints)[^/]*\.(txt|in)|pyproject\.toml|pylock[^/]*\.toml|Pipfile(\.lock)?|(uv|poetry|pdm|pixi)\.lock|([^/]*\.)?([Dd]ocker|[Cc]ontainer)file([.-][^/]*)?|[^/]*\.(ya?ml|json|jsonc))$'
apart='^\.github/|(^|/)package(-lock)?\.json$|(^|/)node_modules/'
git config --global --add safe.directory "$PWD" 2> /dev/null || true
base=${BASE_SHA:-}
if [ -n "$base" ] && ! git cat-file -e "$base^{commit}" 2> /dev/null; then
  git fetch -q --depth=1 origin "$base" 2> /dev/null || base=
fi
if [ -n "${FILES:-}" ]; then
  mapfile -t files < <(printf '%s\n' "$FILES" | grep -v '^ *$')
else
  if [ -n "$base" ]; then
    list=(git diff -z --name-only --diff-filter=ACMR "$base" HEAD)
  else
    echo "envdoctor: what changed is not known here; all files are judged"
    list=(git ls-files -z)
  fi
  mapfile -d '' -t files < <("${list[@]}" | grep -zE "$pattern" | grep -zvE "$apart")
fi
if [ ${#files[@]} = 0 ]; then
  echo "envdoctor: no requirement, lock, configuration or Docker file changed"
  exit 0
fi
cards=()
while IFS= read -r card; do [ -z "$card" ] || cards+=(--gpu "$card"); done <<< "${GPU:-}"
status=0
"${ENVDOCTOR:-envdoctor}" diagnose --format github --fail-on "${FAIL_ON:-error}" ${cards[@]+"${cards[@]}"} --each "${files[@]}" || status=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  "${ENVDOCTOR:-envdoctor}" diagnose --format markdown ${cards[@]+"${cards[@]}"} --each "${files[@]}" >> "$GITHUB_STEP_SUMMARY" || true
fi
exit "$status"
