-- The action sends a copy of a request to a socket of this HAProxy. The request itself goes on at once: a task of its own sends the copy, and ignores
-- the answer. Copies beyond a number in flight, and of requests whose whole content is not here, are left out.
local most = 256
local longest = 8192 -- bytes of content
local patience = 10 -- seconds

local flying = 0

-- Headers of one connection (RFC 9110, 7.6.1), and of the content, which is sent as a whole.
local dropped = {
  ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["keep-alive"] = true, ["proxy-connection"] = true, ["te"] = true,
  ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
}

local function send(to, text)
  local socket = core.tcp()
  socket:settimeout(patience)
  if socket:connect(to) and socket:send(text) then
    socket:receive("*l")
  end
  socket:close()
end

local function content(txn, headers)
  if headers["upgrade"] or headers["transfer-encoding"] then
    return nil
  end
  local stated = headers["content-length"]
  if not stated then
    return ""
  end
  local length = tonumber(stated[0])
  if not length or length > longest then
    return nil
  end
  local body = ""
  if length > 0 then
    body = txn.f:req_body()
  end
  if #body ~= length then
    return nil
  end
  return body
end

core.register_action("burano-mirror", { "http-req" }, function(txn, to)
  if flying >= most then
    return
  end
  local headers = txn.http:req_get_headers()
  local body = content(txn, headers)
  local method = txn.f:method()
  if not body or not headers["content-length"] and (method == "POST" or method == "PUT" or method == "PATCH") then
    return
  end
  local lines = { method .. " " .. txn.f:pathq() .. " HTTP/1.1" }
  for name, values in pairs(headers) do
    if not dropped[name] then
      for i = 0, #values do
        lines[#lines + 1] = name .. ": " .. values[i]
      end
    end
  end
  lines[#lines + 1] = "content-length: " .. #body
  lines[#lines + 1] = "connection: close"
  local text = table.concat(lines, "\r\n") .. "\r\n\r\n" .. body
  flying = flying + 1
  core.register_task(function()
    pcall(send, to, text)
    flying = flying - 1
  end)
end, 1)
