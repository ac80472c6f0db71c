<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks a public method as the handler of a query: a message without effects that is sent with {@see Bus::request()} and answered with
 * the value that the method returns. Parameters are resolved as for a {@see CommandHandler}.
 *
 * Queries have no inbox row. A failed query is answered with the error and is not stored; the sender decides whether to repeat it. Only
 * immediate retries of {@see Retry} apply.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class QueryHandler {}
