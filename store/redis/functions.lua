#!lua name=LIBRARY

-- A record is one string. Times are microseconds of the server's clock as doubles, which are exact until the year 2255; 0 means none.
--    1 token(13): state(1) attempt(4) owner(8)
--   14 due(8) expire(8) created(8) changed(8)
--   46 flags(1)
--   47 priority + 128 (1)
--   48 operation, scope, key, fingerprint and input, each after its length(4), and the outcome
-- KEYS[1] begins every key of the shard and has the hash tag:
--   :r:<id> record    :i ids, by their bytes    :p Pending and :l InProgress by due    :e by expire
--   :q:<priority>:<operation> Pending by due    :o:<owner><operation> current claims of Dequeue    :n:<id> notes
-- A function collects its writes and makes them at its end: it adds to indexes, then writes the records, then removes from indexes. If
-- the server stops it between them (a slot that moves to another node), an index may have too many entries, which the readers skip,
-- and never too few. One command for many records costs a third of as many commands.

local PENDING, IN_PROGRESS, IN_DOUBT = 1, 2, 3
local TAINTED, DEQUEUED = 1, 2                                     -- flags of a record
local IF_DUE, EXPIRES, TO_TAINTED, INPUT, OUTCOME = 1, 2, 4, 8, 16 -- flags of a change
local ARGS = 6                                                     -- of a change: id, if, head, identity, input, outcome
local PAGE, BYTES = 1000, 4194304                                  -- bounds of one call's work

local function has(flags, flag) return bit.band(flags, flag) ~= 0 end

local function now()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

local function token(v) return string.sub(v, 1, 13) end

local function operation(v) return (struct.unpack('>I4c0', v, 48)) end

local function queue(p, priority, op) return p .. ':q:' .. priority .. ':' .. op end

local function claims(p, owner, op) return p .. ':o:' .. owner .. op end

-- writes collects what is written: lists of arguments, by key for the sorted sets and the sets.
local function writes() return {add = {}, records = {}, times = {}, delete = {}, remove = {}, unclaim = {}} end

local function append(lists, key, ...)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  for i = 1, select('#', ...) do list[#list + 1] = select(i, ...) end
end

local function commit(w)
  for key, list in pairs(w.add) do redis.call('ZADD', key, unpack(list)) end
  if #w.records > 0 then redis.call('MSET', unpack(w.records)) end
  for key, times in pairs(w.times) do redis.call('SETRANGE', key, 13, times) end
  if #w.delete > 0 then redis.call('DEL', unpack(w.delete)) end
  for key, list in pairs(w.remove) do redis.call('ZREM', key, unpack(list)) end
  for key, list in pairs(w.unclaim) do redis.call('SREM', key, unpack(list)) end
end

local function set(w, key, v)
  w.records[#w.records + 1] = key
  w.records[#w.records + 1] = v
end

local function index(w, p, id, state, due, expire, priority, op)
  if state == PENDING then
    append(w.add, p .. ':p', due, id)
    append(w.add, queue(p, priority, op), due, id)
  elseif state == IN_PROGRESS then
    append(w.add, p .. ':l', due, id)
  end
  if expire ~= 0 then append(w.add, p .. ':e', expire, id) end
end

-- unindex removes the record v, as it was, from the indexes that its new state and expire do not have.
local function unindex(w, p, id, v, op, state, expire)
  local was = string.byte(v, 1)
  if was == PENDING and state ~= PENDING then
    append(w.remove, p .. ':p', id)
    append(w.remove, queue(p, string.byte(v, 47), op), id)
  elseif was == IN_PROGRESS and state ~= IN_PROGRESS then
    append(w.remove, p .. ':l', id)
  end
  if struct.unpack('>d', v, 22) ~= 0 and expire == 0 then append(w.remove, p .. ':e', id) end
end

-- change applies the change whose first argument is A[a] to the current record v. It returns true, or the current record, or false if
-- there is none. It returns true also if the change was applied before.
local function change(w, p, t, A, a, v)
  local id, from, head, identity = A[a], A[a + 1], A[a + 2], A[a + 3]
  local to = token(head)
  local due, expire, flags = struct.unpack('>ddB', head, 14)
  local state = string.byte(to, 1)
  due = (state == PENDING or state == IN_PROGRESS) and t + due or 0
  expire = has(flags, EXPIRES) and t + expire or 0
  local tainted = string.char(has(flags, TO_TAINTED) and TAINTED or 0)
  local key = p .. ':r:' .. id
  if from == '' and not v then
    append(w.add, p .. ':i', 0, id)
    index(w, p, id, state, due, expire, string.byte(identity, 1), (struct.unpack('>I4c0', identity, 2)))
    local input = A[a + 4]
    set(w, key, to .. struct.pack('>dddd', due, expire, t, t) .. tainted .. identity .. struct.pack('>I4', #input) .. input .. A[a + 5])
    return true
  end
  if not v or token(v) ~= from or has(flags, IF_DUE) and struct.unpack('>d', v, 14) > t then
    return v and token(v) == to or v
  end
  local op = operation(v)
  index(w, p, id, state, due, expire, string.byte(v, 47), op)
  if from == to then -- a heartbeat
    w.times[key] = struct.pack('>dd', due, expire)
  else
    local at = 48
    for _ = 1, 4 do at = at + 4 + struct.unpack('>I4', v, at) end
    local n = struct.unpack('>I4', v, at)
    local input = has(flags, INPUT) and A[a + 4] or string.sub(v, at + 4, at + 3 + n)
    local outcome = has(flags, OUTCOME) and A[a + 5] or string.sub(v, at + 4 + n)
    set(w, key, to .. struct.pack('>dd', due, expire) .. string.sub(v, 30, 37) .. struct.pack('>d', t) .. tainted ..
      string.sub(v, 47, at - 1) .. struct.pack('>I4', #input) .. input .. outcome)
    if has(string.byte(v, 46), DEQUEUED) then append(w.unclaim, claims(p, string.sub(v, 6, 13), op), id) end
  end
  unindex(w, p, id, v, op, state, expire)
  return true
end

-- changes makes the changes in A[1] to A[last], and appends to out what change returns for each.
local function changes(out, p, t, A, last)
  local keys = {}
  for a = 1, last, ARGS do keys[#keys + 1] = p .. ':r:' .. A[a] end
  local current = redis.call('MGET', unpack(keys))
  local w = writes()
  for i = 1, #keys do out[#out + 1] = change(w, p, t, A, (i - 1) * ARGS + 1, current[i]) end
  commit(w)
  return out
end

-- swap answers the time and the results of the changes.
local function swap(K, A)
  local t = now()
  return changes({t}, K[1], t, A, #A)
end

-- note is swap of one change with a note: the token before and after it, and the operator's words.
local function note(K, A)
  local t = now()
  local out = changes({t}, K[1], t, A, ARGS)
  if out[2] == true then
    local key, words = K[1] .. ':n:' .. A[1], A[ARGS + 1]
    local known = false
    for _, n in ipairs(redis.call('LRANGE', key, 0, -1)) do known = known or string.sub(n, 22, 34) == string.sub(words, 14, 26) end
    if not known then redis.call('RPUSH', key, struct.pack('>d', t) .. words) end
  end
  return out
end

local function notes(K, A)
  local out = redis.call('LRANGE', K[1] .. ':n:' .. A[1], 0, -1)
  table.insert(out, 1, now())
  return out
end

local function get(K, A)
  local keys = {}
  for i = 1, #A do keys[i] = K[1] .. ':r:' .. A[i] end
  local out = redis.call('MGET', unpack(keys))
  table.insert(out, 1, now())
  return out
end

-- scan lists a part of an index: by id after an id, or what is due behind an offset. It answers the time, where the next part begins
-- (nil: this is the last one), and ids and records.
local function scan(K, A)
  local p, t = K[1], now()
  local which, after, state, op, limit = A[1], A[2], tonumber(A[3]), A[4], tonumber(A[5])
  local ids
  if which == ':i' then
    ids = redis.call('ZRANGEBYLEX', p .. which, '(' .. after, '+', 'LIMIT', 0, PAGE)
  else
    ids = redis.call('ZRANGEBYSCORE', p .. which, '-inf', t, 'LIMIT', after, PAGE)
  end
  local out, size, seen = {t, false}, 0, 0
  for _, id in ipairs(ids) do
    if #out >= 2 * limit + 2 or size > BYTES then break end
    seen = seen + 1
    local v = redis.call('GET', p .. ':r:' .. id)
    if v and (state == 0 or string.byte(v, 1) == state) and (op == '' or operation(v) == op) then
      out[#out + 1], out[#out + 2] = id, v
      size = size + #v
    end
  end
  if seen < #ids or #ids == PAGE then out[2] = which == ':i' and ids[seen] or string.format('%d', after + seen) end
  return out
end

-- purge answers how many records it has removed, and how many entries of the index it has looked at.
local function purge(K, A)
  local p, t, w = K[1], now(), writes()
  local ids = redis.call('ZRANGEBYSCORE', p .. ':e', '-inf', t, 'LIMIT', 0, A[1])
  for _, id in ipairs(ids) do
    local key = p .. ':r:' .. id
    local v = redis.call('GET', key)
    local state, expire = v and string.byte(v, 1), v and struct.unpack('>d', v, 22)
    if v and state ~= IN_PROGRESS and state ~= IN_DOUBT and expire ~= 0 and expire <= t then
      w.delete[#w.delete + 1] = key
      append(w.remove, p .. ':i', id)
      unindex(w, p, id, v, operation(v), 0, 0)
    else
      append(w.remove, p .. ':e', id)
    end
  end
  commit(w)
  return {#w.delete, #ids}
end

-- is_claim reports whether v is a current claim that Dequeue has made for the owner.
local function is_claim(v, owner)
  return v and string.byte(v, 1) == IN_PROGRESS and string.sub(v, 6, 13) == owner and has(string.byte(v, 46), DEQUEUED)
end

-- claimed answers the time, and ids and records of the current claims that Dequeue has made for an operation and an owner.
local function claimed(K, A)
  local p, out = K[1], {now()}
  for _, id in ipairs(redis.call('SMEMBERS', claims(p, A[2], A[1]))) do
    local v = redis.call('GET', p .. ':r:' .. id)
    if is_claim(v, A[2]) then out[#out + 1], out[#out + 2] = id, v end
  end
  return out
end

-- claim claims the record v, if it is Pending and due, and appends it to out. It returns the number of bytes.
local function claim(w, p, t, out, op, owner, lease, id, v)
  if not v or string.byte(v, 1) ~= PENDING or struct.unpack('>d', v, 14) > t then return 0 end
  redis.call('SADD', claims(p, owner, op), id)
  index(w, p, id, IN_PROGRESS, t + lease, 0)
  local to = struct.pack('>BI4', IN_PROGRESS, struct.unpack('>I4', v, 2) + 1) .. owner .. struct.pack('>dd', t + lease, 0) .. string.sub(v, 30, 37) .. struct.pack('>d', t) ..
    string.char((has(string.byte(v, 46), TAINTED) and TAINTED or 0) + DEQUEUED) .. string.sub(v, 47)
  set(w, p .. ':r:' .. id, to)
  unindex(w, p, id, v, op, IN_PROGRESS, 0)
  out[#out + 1], out[#out + 2] = id, to
  return #to
end

-- waiting calls visit with the ids of due records and their queue, the highest priority and the longest wait first, until it returns
-- false. Entries without a Pending record do not count for the limit.
local function waiting(p, t, op, limit, visit)
  for priority = 132, 124, -1 do
    local key = queue(p, priority, op)
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', t, 'LIMIT', 0, limit + 100)) do
      if not visit(id, key) then return end
    end
  end
end

-- dequeue is claimed, and if there are no such claims, it makes some.
local function dequeue(K, A)
  local out = claimed(K, A)
  if #out > 1 then return out end
  local p, t, op, owner, lease, limit = K[1], out[1], A[1], A[2], tonumber(A[3]), tonumber(A[4])
  local size, w = 0, writes()
  waiting(p, t, op, limit, function(id, key)
    local v = redis.call('GET', p .. ':r:' .. id)
    if not v or string.byte(v, 1) ~= PENDING then append(w.remove, key, id) end
    size = size + claim(w, p, t, out, op, owner, lease, id, v)
    return #out < 2 * limit and size <= BYTES
  end)
  commit(w)
  return out
end

-- peek answers the time, and ids and heads of the records that dequeue would claim.
local function peek(K, A)
  local p, t, limit = K[1], now(), tonumber(A[2])
  local out = {t}
  waiting(p, t, A[1], limit, function(id)
    local head = redis.call('GETRANGE', p .. ':r:' .. id, 0, 46)
    if string.byte(head, 1) == PENDING then out[#out + 1], out[#out + 2] = id, head end
    return #out < 2 * limit
  end)
  return out
end

-- take claims the records with these ids and tokens, and answers these claims also if it is repeated.
local function take(K, A)
  local t, w = now(), writes()
  local out, size = {t}, 0
  for a = 4, #A, 2 do
    local v = redis.call('GET', K[1] .. ':r:' .. A[a])
    if is_claim(v, A[2]) then
      out[#out + 1], out[#out + 2] = A[a], v
    elseif v and token(v) == A[a + 1] and size <= BYTES then
      size = size + claim(w, K[1], t, out, A[1], A[2], tonumber(A[3]), A[a], v)
    end
  end
  commit(w)
  return out
end

-- lock answers something if the caller has the lock of a Dequeue: also if it asks again.
local function lock(K, A)
  local key = K[1] .. A[1]
  if redis.call('SET', key, A[2], 'NX', 'PX', A[3]) or redis.call('GET', key) == A[2] then return {1} end
  return {}
end

-- unlock ends the lock of a Dequeue, unless another call has it by now.
local function unlock(K, A)
  local key = K[1] .. A[1]
  if redis.call('GET', key) == A[2] then redis.call('DEL', key) end
  return {}
end

-- shards answers the number of shards, and sets it if there is none.
local function shards(K, A)
  local key = K[1] .. ':shards'
  redis.call('SET', key, A[1], 'NX')
  return {redis.call('GET', key)}
end

-- The libraries of Lua are not there yet while Redis loads this text.
local function register(name, f, flags) redis.register_function{function_name = 'LIBRARY_' .. name, callback = f, flags = flags} end

register('shards', shards, {})
register('swap', swap, {})
register('note', note, {})
register('purge', purge, {})
register('dequeue', dequeue, {})
register('take', take, {})
register('lock', lock, {})
register('unlock', unlock, {})
register('get', get, {'no-writes'})
register('notes', notes, {'no-writes'})
register('scan', scan, {'no-writes'})
register('claimed', claimed, {'no-writes'})
register('peek', peek, {'no-writes'})
