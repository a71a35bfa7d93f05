# shellcheck shell=bash
# A channel that writes down what is posted to it.
: >channel
node "$ROOT/tools/webhooks/receiver.mjs" channel >discord-url &
echo $! >>pids
until_true test -s discord-url
