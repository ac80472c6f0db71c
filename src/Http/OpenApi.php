<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * Title, version and other metadata of an OpenAPI document, see {@see Router::openApi()}.
 */
final class OpenApi
{
    /**
     * @param string $version of the API, such as `1.4.0`
     * @param string $description Markdown
     * @param list<string> $servers URLs; by default clients call the server that has the document
     */
    public function __construct(
        public readonly string $title,
        public readonly string $version = '1.0.0',
        public readonly string $description = '',
        public readonly array $servers = [],
    ) {
    }
}
