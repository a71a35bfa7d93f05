# shellcheck shell=bash
# What the checks of the examples share. They run after the commands of a page, in the same shell: the variables of the
# page are theirs, too.

# Each background job is a process group, which is killed as a whole.
set -m
pause() { read -rt 0.05 <> <(:) || true; }
# Waits until a command succeeds, for a minute.
until_true() {
  local left
  for left in $(seq 1200); do
    if "$@"; then return; fi
    pause
  done
  echo "gave up after ${left} attempts: $*" >&2
  return 1
}
is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; }
wait_for_port() { until_true is_open; }
start() { # start LOG COMMAND...: in the background; its id is in $started
  local log=$1
  shift
  "$@" >"$log" 2>&1 &
  started=$!
  echo "$started" >>pids
}
kill_hard() { kill -9 -- "-$1" && { wait "$1" 2>/dev/null || true; }; }
equals() { # equals WHAT FOUND EXPECTED
  [ "$2" = "$3" ] || { printf '%s: found %s, expected %s\n' "$1" "$2" "$3" >&2; return 1; }
}
ask() { # ask PATH [CURL ARGUMENT]...
  local path=$1
  shift
  curl -sf --max-time 30 -H "X-API-Key: $FORETELL_API_KEY" "$FORETELL_BASE_URL$path" "$@"
}
# The names and statuses of the user's trades whose names begin with a text, oldest first.
trades_named() {
  ask "/v1/trades?limit=100" | jq -c --arg prefix "$1" \
    '[.data[] | select(.clientRequestId // "" | startswith($prefix)) | [.clientRequestId, .status]] | reverse'
}
count_trades() { ask "/v1/trades?limit=100&marketId=$1" | jq '.data | length'; }

# A proxy in front of the service, which stores a request's trade and never answers it.
proxy() {
  # The proxy lives as long as its standard input.
  node "$ROOT/clients/behaviors/proxy.mjs" "$FORETELL_BASE_URL" < <(tail -f /dev/null --pid=$$) >proxy.json &
  echo $! >>pids
  until_true test -s proxy.json
}
hang_at_create() { # hang_at_create NUMBER: the n-th creation from now on
  curl -sf -X PUT "$(jq -r .control proxy.json)/rules" -d "[{\"method\": \"POST\", \"path\": \"/v1/trades\", \"skip\": $(($1 - 1)),
    \"action\": \"answer\", \"forward\": true, \"status\": 201, \"chunks\": [\" \"], \"end\": \"hang\"}]" >/dev/null
}
has_hung() {
  curl -sf "$(jq -r .control proxy.json)/log" | jq -e 'any(.[]; .action == "answer" and .status == 201)' >/dev/null
}
