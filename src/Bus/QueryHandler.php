<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks a public method as the one handler of a query: a message that is asked with {@see Bus::request()} for what the method
 * returns, and has no effects. Its parameters are those of a {@see CommandHandler}.
 *
 * Nothing is noted of queries. One that fails is answered with the error and not kept: who asks decides whether to ask again;
 * only a rule of {@see Retry} for immediate retries counts.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class QueryHandler {}
