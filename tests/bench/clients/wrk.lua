-- What to ask for, and the figures of a run as one line of JSON, since wrk's own summary rounds them.
--
-- With a file named after "--" each of its lines is a request: a path, a tab, and a User-Agent. They are asked for in
-- turn, again and again. Without one every request is the same.
local prepared = {}
local turn = 0

init = function(args)
    if not args[1] then return end
    for line in io.lines(args[1]) do
        local path, agent = line:match("^(%S+)\t(.+)$")
        local headers = {}
        for name, value in pairs(wrk.headers) do headers[name] = value end
        headers["User-Agent"] = agent
        prepared[#prepared + 1] = wrk.format("GET", path, headers)
    end
    request = function()
        turn = turn % #prepared + 1
        return prepared[turn]
    end
end

done = function(summary, latency, requests)
    local e = summary.errors
    io.write(string.format(
        '\n{"requests":%d,"duration_us":%d,"bytes":%d,"failed":%d,"refused":%d,"p50_us":%d,"p99_us":%d}\n',
        summary.requests, summary.duration, summary.bytes,
        e.connect + e.read + e.write + e.timeout, e.status,
        latency:percentile(50), latency:percentile(99)))
end
