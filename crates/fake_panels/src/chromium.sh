# Starts a browser for tests, waits for its end or for the end of standard input, and clears up.
# usage: sh chromium.sh PROGRAM FOLDER PORT [ARGUMENT...]
# The folder becomes its home and is removed at the end. Port 0 picks a free one, which is then the
# first line of FOLDER/data/DevToolsActivePort.
# Whoever stops the tests (Ctrl-C, say) stops this too: it clears up first.
trap : HUP INT TERM
program=$1; folder=$2; port=$3; shift 3
HOME=$folder "$program" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
  --disable-background-networking --disable-component-update --disable-sync \
  --disable-dev-shm-usage --site-per-process --window-size=1200,900 \
  --remote-debugging-address=127.0.0.1 "--remote-debugging-port=$port" \
  "--user-data-dir=$folder/data" "$@" about:blank >"$folder/browser.log" 2>&1 &
browser=$!
read -r _
kill -9 "$browser" 2>/dev/null
wait "$browser" 2>/dev/null
for _ in 1 2 3 4 5; do rm -rf -- "$folder" 2>/dev/null && break; sleep 0.2; done
