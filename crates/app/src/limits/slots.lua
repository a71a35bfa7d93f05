-- Uses an amount of a budget in several scopes, in all or in none.
-- KEYS: a hash for each scope, by number of slot what was used in it.
-- ARGV: now (ms), the period (ms), the amount, then the limit of each scope.
-- Answers: the scope (from 1) that has no room, or 0, and how long to wait (ms).
local SLOTS = 12
local now, period, amount = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local slot_ms = math.max(math.floor(period / SLOTS), 1)
local current = {}

for i, key in ipairs(KEYS) do
  local kept = redis.call('HGETALL', key)
  local latest = math.floor(now / slot_ms)
  for j = 1, #kept, 2 do latest = math.max(latest, tonumber(kept[j])) end
  local used, slots = 0, {}
  for j = 1, #kept, 2 do
    local slot, sum = tonumber(kept[j]), tonumber(kept[j + 1])
    if slot + SLOTS + 1 <= latest then
      redis.call('HDEL', key, kept[j])
    else
      used = used + sum
      slots[#slots + 1] = { slot, sum }
    end
  end
  current[i] = latest
  local limit = tonumber(ARGV[3 + i])
  if used + amount > limit then
    table.sort(slots, function(a, b) return a[1] < b[1] end)
    local wait = period
    for _, slot in ipairs(slots) do
      used = used - slot[2]
      if used + amount <= limit then
        wait = (slot[1] + SLOTS + 1) * slot_ms - math.max(now, latest * slot_ms)
        break
      end
    end
    return { i, wait }
  end
end

for i, key in ipairs(KEYS) do
  redis.call('HINCRBY', key, string.format('%.0f', current[i]), ARGV[3])
  redis.call('PEXPIRE', key, 2 * period)
end
return { 0, 0 }
