-- Prints the numbers of a run of wrk as one line of JSON; wrk's own summary rounds them to be read by people.
function done(summary, latency)
    local errors = summary.errors
    io.write(string.format(
        'report {"requests":%d,"us":%d,"p50_us":%d,"p99_us":%d,"errors":%d}\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        errors.connect + errors.read + errors.write + errors.status + errors.timeout
    ))
end
