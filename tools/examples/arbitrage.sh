# shellcheck shell=bash disable=SC2154 # Variables of the page, whose commands ran before in this shell.
equals 'the journal at the end' "$(cat arbitrage.json)" null
legs() { ask "/v1/trades?limit=100" | jq -c '[.data[] | select(.clientRequestId // "" | startswith("arbitrage-"))]'; }
equals 'legs' "$(legs | jq -c 'map(.status)')" '["completed","completed"]'
watch() { python3 examples/arbitrage/watch.py "$FIRST:0+$SECOND:1" --journal arbitrage.json --once --trade; }
watch | tee watch.log
grep -q 'nothing to gain' watch.log

# Another user moves a price. The watcher is killed while the service has the second leg, and it has no answer.
move() { # move OUTCOME USDC
  foretell buy "$FIRST" "$1" "$2" --yes --max-slippage-bps 10000 --url "$FORETELL_BASE_URL" \
    --key-file <(jq -r '.users[4].keys[0].key' .foretell/dev.json) >/dev/null
}
move 1 60
proxy
hang_at_create 2
FORETELL_BASE_URL=$(jq -r .proxy proxy.json) start watch.log python3 examples/arbitrage/watch.py "$FIRST:0+$SECOND:1" \
  --journal arbitrage.json --once --trade
until_true has_hung
kill_hard "$started"
name=$(jq -r .name arbitrage.json)
watch
equals 'legs after the kill' "$(trades_named "$name")" "[[\"$name:buy:0\",\"completed\"],[\"$name:buy:1\",\"completed\"]]"
equals 'all legs' "$(legs | jq length)" 4

# A leg that cannot be executed: the other one is sold again.
jq -n --arg first "$FIRST" --arg second "$SECOND" '{name: "arbitrage-gives-up", least: "10", legs: [
  {market: $first, outcome: 0, usdc: "10"}, {market: $second, outcome: 1, usdc: "1"}]}' >arbitrage.json
watch
equals 'a plan that was given up' "$(trades_named arbitrage-gives-up | jq -c 'map(.[0])')" \
  '["arbitrage-gives-up:buy:0","arbitrage-gives-up:sell:0"]'
equals 'the journal after it' "$(cat arbitrage.json)" null
