<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\Handlers\JsonFault;

/**
 * Problem details (RFC 9457): a failure that programs can read.
 *
 * ```
 * return (new Problem(409, 'The name is taken', type: 'https://example.org/problems/name-taken'))->response();
 * ```
 *
 * A handler throws an {@see HttpException} rather: it becomes problem details if the handler is typed, or if the client accepts JSON.
 */
final class Problem implements \JsonSerializable
{
    public const MEDIA_TYPE = 'application/problem+json';

    /**
     * @param int $status 400 to 599
     * @param string $detail what happened this time, for a person to read
     * @param string $type a URI that identifies the kind of problem; `about:blank` says no more than the status
     * @param string|null $title what the kind of problem is; by default the reason phrase of the status
     * @param array<string, mixed> $extensions further members
     */
    public function __construct(
        public readonly int $status,
        public readonly string $detail = '',
        public readonly string $type = 'about:blank',
        public readonly ?string $title = null,
        public readonly array $extensions = [],
    ) {
    }

    /**
     * Bytes that are not UTF-8 become U+FFFD: a detail may repeat what a client has sent.
     *
     * @throws \JsonException an extension cannot be written as JSON
     */
    public function response(): Response
    {
        $flags = \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION;
        try {
            $json = \json_encode($this, $flags);
        } catch (\JsonException $fault) {
            throw JsonFault::located($fault, $this);
        }

        return new Response($this->status, ['content-type' => self::MEDIA_TYPE], $json);
    }

    /** @return array<string, mixed> */
    public function jsonSerialize(): array
    {
        $title = $this->title ?? Internal\ErrorPage::reason($this->status);

        return ['type' => $this->type, 'title' => $title, 'status' => $this->status] + ($this->detail === '' ? [] : ['detail' => $this->detail]) + $this->extensions;
    }
}
