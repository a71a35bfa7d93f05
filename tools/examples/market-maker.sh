# shellcheck shell=bash disable=SC2154 # Variables of the page, whose commands ran before in this shell.
equals 'trades' "$(jq -c '[.completed, .order]' maker.json)" '[3,null]'

# Killed while the service has its second order, and it has no answer.
bot() { python3 examples/market-maker/bot.py "$MARKET=0.9" --max-position 1000 --pause 0.1 --state killed.json "$@"; }
proxy
hang_at_create 2
before=$(count_trades "$MARKET")
FORETELL_BASE_URL=$(jq -r .proxy proxy.json) start bot.log python3 examples/market-maker/bot.py "$MARKET=0.9" \
  --max-position 1000 --pause 0.1 --state killed.json --trades 5
until_true has_hung
kill_hard "$started"
equals 'orders before the kill' "$(jq -c '[.number, .completed, .order != null]' killed.json)" '[2,1,true]'
bot --trades 5
name=$(jq -r .bot killed.json)
equals 'orders after the kill' "$(trades_named "$name" | jq -c --arg name "$name:" 'map(.[0] | ltrimstr($name))')" \
  '["1","2","3","4","5"]'
equals 'trades of the killed bot' "$(($(count_trades "$MARKET") - before))" 5

# An order that is too old, and that the service never got, is not traded.
jq '.number += 1 | .order = {market: $market, outcome: 0, side: "buy", usdc: "10", tokens: "1", deadline: "2026-01-01T00:00:00Z"}' \
  --arg market "$MARKET" killed.json >old.json
bot --state old.json --trades 6 >bot.log
grep -q ':6: not traded, VALIDATION_FAILED' bot.log

# The inventory limit holds, although the price invites to buy.
FORETELL_API_KEY=$(jq -r '.users[3].keys[0].key' .foretell/dev.json)
export FORETELL_API_KEY
bot --max-position 45 --state limit.json --minutes 0.05 >bot.log
inventory() { ask "/v1/portfolio/positions?marketId=$MARKET" | jq '[.data[] | .tokens | tonumber / 1e18] | add'; }
equals 'inventory within the limit' "$(jq -n "$(inventory) > 0 and $(inventory) <= 45")" true
# It sells when its estimate falls.
python3 examples/market-maker/bot.py "$MARKET=0.2" --state limit.json --pause 0.1 --trades $(($(jq .completed limit.json) + 1)) >bot.log
grep -q 'completed sell of outcome 0' bot.log
