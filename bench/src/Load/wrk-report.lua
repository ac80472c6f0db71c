-- Prints the numbers of a run of wrk as one line of JSON; wrk's own summary rounds them to be read by people.
function done(summary, latency)
    local errors = summary.errors
    local percentiles = {}
    for _, percentile in ipairs({ 10, 25, 50, 75, 90, 95, 99, 99.9 }) do
        percentiles[#percentiles + 1] = string.format('"%g":%d', percentile, latency:percentile(percentile))
    end
    percentiles[#percentiles + 1] = string.format('"100":%d', latency.max)
    io.write(string.format(
        'report {"requests":%d,"us":%d,"us_by_percentile":{%s},"mean_us":%.1f,"deviation_us":%.1f,"errors":%d}\n',
        summary.requests, summary.duration, table.concat(percentiles, ","), latency.mean, latency.stdev,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout
    ))
end
