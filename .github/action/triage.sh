#!/usr/bin/env bash
# Judges the issue of this event; writes one comment, and posts it or writes over its own where a token is given.
set -euo pipefail
comment="${RUNNER_TEMP:-/tmp}/envdoctor-comment.md"
status=0
"${ENVDOCTOR:-envdoctor}" diagnose --from "$GITHUB_EVENT_PATH" --format comment --output "$comment" || status=$?
case $status in
  0 | 1) ;;
  3) [ -s "$comment" ] || { echo "envdoctor: nothing in the issue was recognised"; exit 0; } ;;
  *) exit "$status" ;;
esac
findings=$(sed -n '1s/.*findings=\([0-9]*\).*/\1/p' "$comment")
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  { echo "comment=$comment"; echo "findings=$findings"; } >> "$GITHUB_OUTPUT"
fi
echo "envdoctor: $findings certain"
[ -n "${GH_TOKEN:-}" ] || exit 0
comments="repos/$GITHUB_REPOSITORY/issues/$ISSUE_NUMBER/comments"
mine=$(gh api --paginate "$comments" --jq '.[] | select(.user.type == "Bot" and (.body | startswith("<!-- envdoctor:triage"))) | .id' | head -n 1)
if [ -n "$mine" ]; then
  gh api --silent -X PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$mine" -F "body=@$comment"
elif [ "$findings" != 0 ]; then
  gh api --silent -X POST "$comments" -F "body=@$comment"
fi
