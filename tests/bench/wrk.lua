-- Figures of a wrk run as one line of JSON, since wrk's own summary rounds them.
done = function(summary, latency, requests)
    local e = summary.errors
    io.write(string.format(
        '\n{"requests":%d,"duration_us":%d,"bytes":%d,"failed":%d,"refused":%d,"p50_us":%d,"p99_us":%d}\n',
        summary.requests, summary.duration, summary.bytes,
        e.connect + e.read + e.write + e.timeout, e.status,
        latency:percentile(50), latency:percentile(99)))
end
