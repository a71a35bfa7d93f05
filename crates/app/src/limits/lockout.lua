-- Counts a failed authentication of an address, a network or a credential.
-- KEYS[1]: a list: the end of the last lockout (ms), the latest instant seen (ms), how often in a row it was shut out, then
-- when it failed within the last five minutes, oldest first.
-- ARGV: now (ms), how many failures shut it out. Answers: until when it is shut out (ms), or 0.
local WITHIN, FIRST, DAY = 300000, 900000, 86400000
local key, now, FAILURES = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local kept = redis.call('LRANGE', key, 0, -1)
local ends, times = tonumber(kept[1] or 0), tonumber(kept[3] or 0)
now = math.max(now, tonumber(kept[2] or 0))
local failures = {}
local said

if now < ends then
  said = ends
  for i = 4, #kept do failures[#failures + 1] = kept[i] end
else
  if now - ends >= DAY then times = 0 end
  for i = 4, #kept do
    if tonumber(kept[i]) > now - WITHIN then failures[#failures + 1] = kept[i] end
  end
  failures[#failures + 1] = now
  said = 0
  if #failures >= FAILURES then
    failures = {}
    ends = now + math.min(FIRST * 2 ^ math.min(times, 7), DAY)
    times = times + 1
    said = ends
  end
end

redis.call('DEL', key)
redis.call('RPUSH', key, ends, now, times, unpack(failures))
-- Until everything is forgotten, and as long as the failures count once more, for clocks that differ.
local idle = times > 0 and ends + DAY - now or WITHIN
redis.call('PEXPIRE', key, math.max(idle, WITHIN) + WITHIN)
return said
