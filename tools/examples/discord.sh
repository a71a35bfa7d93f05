# shellcheck shell=bash disable=SC2154 # Variables of the page, whose commands ran before in this shell.
receiver=$(tail -n 1 pids)
messages() { jq -r '.body | @base64d | fromjson | .content' channel; }
has_messages() { [ "$(wc -l <channel)" -ge "$1" ]; }
send_test() { ask /v1/webhooks/test -X POST | jq -r .event.id; }
until_true has_messages 2
equals 'the first message' "$(messages | head -n 1)" '**webhook.test**'
messages | sed -n 2p | grep -q '^\*\*trade.completed\*\*: buy 5.00 USDC of “Albatross” of “Who wins the cup?”, [0-9.]* tokens$'
equals 'mentions' "$(jq -c '.body | @base64d | fromjson | .allowed_mentions' channel | sort -u)" '{"parse":[]}'

# What does not verify is rejected.
post() { curl -s -o /dev/null -w '%{http_code}' --max-time 30 "http://127.0.0.1:$PORT/foretell" "$@"; }
equals 'no signature' "$(post -d '{}')" 400
equals 'a wrong signature' "$(post -d '{}' -H "X-Service-Signature: t=$(date +%s000),v1=$(printf '0%.0s' {1..64})")" 400
equals 'another method' "$(post -X GET)" 405
head -c 2000000 /dev/zero >large
equals 'a large body' "$(post --data-binary @large)" 413

# A repeated delivery is posted once: the next event comes after it.
event=$(send_test)
until_true has_messages 3
ask "/v1/webhooks/events/$event/redeliver" -X POST >/dev/null
send_test >/dev/null
until_true has_messages 4
equals 'messages after a repeated delivery' "$(wc -l <channel)" 4

# The receiver answers although the channel is down, and is killed before the channel has the event. A kill in the
# middle of a line leaves half of one.
WEBHOOK_SECRETS=$(jq -r .webhookSecret discord-key.json)
export WEBHOOK_SECRETS
kill_hard "$receiver"
DISCORD_URL=http://127.0.0.1:1/ start receiver.log node examples/discord/dist/receiver.js
wait_for_port
event=$(send_test)
is_delivered() { ask "/v1/webhooks/events/$event" | jq -e '.event.status == "delivered"' >/dev/null; }
until_true is_delivered
kill_hard "$started"
equals 'messages of a channel that is down' "$(wc -l <channel)" 4
printf '{"event": {"id": "half' >>events.jsonl
DISCORD_URL=$(cat discord-url) start receiver.log node examples/discord/dist/receiver.js
until_true has_messages 5
wait_for_port
send_test >/dev/null
until_true has_messages 6
equals 'messages after a restart' "$(wc -l <channel)" 6
