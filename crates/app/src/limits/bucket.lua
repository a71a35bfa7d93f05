-- A bucket that holds a minute's requests and refills evenly.
-- KEYS[1]: a hash: t what is taken and not refilled, in 1/60,000 of a request; r the limit of who took last, which refills it;
-- a the latest instant seen (ms).
-- ARGV: the limit, now (ms). Answers: allowed, remaining, when that is the whole limit again (ms), how long to wait (ms).
local WINDOW = 60000
local key, limit, now = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local kept = redis.call('HMGET', key, 't', 'r', 'a')
local taken, rate, at = tonumber(kept[1] or 0), tonumber(kept[2] or 0), tonumber(kept[3] or now)
if at > now then now = at end
taken = math.max(taken - math.min(now - at, WINDOW) * rate, 0)

-- Whole numbers far below 2^53, so that the division is exact where it comes out even, and never a whole one off.
local function refilled_in(part)
  if rate == 0 then return 0 end
  return math.ceil(part / rate)
end

local capacity = limit * WINDOW
local allowed, wait = 0, 0
if taken + WINDOW <= capacity then
  allowed, taken, rate = 1, taken + WINDOW, limit
else
  local missing = taken + WINDOW - capacity
  wait = missing > taken and WINDOW or refilled_in(missing)
end
redis.call('HSET', key, 't', taken, 'r', rate, 'a', now)
redis.call('PEXPIRE', key, 2 * WINDOW)
return { allowed, math.floor(math.max(capacity - taken, 0) / WINDOW), now + refilled_in(taken), wait }
