-- At most so many requests in any 60 seconds.
-- KEYS[1]: a list: how many requests it holds, the latest instant seen, then instants (ms) and their counts, oldest first.
-- ARGV: the limit, now (ms). Answers: allowed, remaining, when that is the whole limit again (ms), how long to wait (ms).
local WINDOW = 60000
local key, limit, now = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local total = tonumber(redis.call('LPOP', key) or 0)
local latest = tonumber(redis.call('LPOP', key) or now)
if latest > now then now = latest end

while true do
  local at = redis.call('LINDEX', key, 0)
  if not at or tonumber(at) > now - WINDOW then break end
  redis.call('LPOP', key)
  total = total - tonumber(redis.call('LPOP', key))
end

local allowed, wait = 0, 0
if total < limit then
  allowed = 1
  total = total + 1
  local last = redis.call('LINDEX', key, -2)
  if last and tonumber(last) == now then
    redis.call('LSET', key, -1, tonumber(redis.call('LINDEX', key, -1)) + 1)
  else
    redis.call('RPUSH', key, now, 1)
  end
else
  wait = WINDOW
  local left = total
  -- Each instant counts at least one request, so this many are enough.
  local oldest = limit > 0 and redis.call('LRANGE', key, 0, 2 * (total - limit) + 1) or {}
  for i = 1, #oldest, 2 do
    left = left - tonumber(oldest[i + 1])
    if left < limit then
      wait = tonumber(oldest[i]) + WINDOW - now
      break
    end
  end
end

local last = tonumber(redis.call('LINDEX', key, -2) or now - WINDOW)
redis.call('LPUSH', key, now, total)
redis.call('PEXPIRE', key, 2 * WINDOW)
return { allowed, math.max(limit - total, 0), last + WINDOW, wait }
