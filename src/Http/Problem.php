<?php

declare(strict_types=1);

namespace Weft\Http;

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

    public function response(): Response
    {
        return Response::json($this, $this->status)->withHeader('content-type', self::MEDIA_TYPE);
    }

    /** @return array<string, mixed> */
    public function jsonSerialize(): array
    {
        $title = $this->title ?? Internal\ErrorPage::reason($this->status);

        return ['type' => $this->type, 'title' => $title, 'status' => $this->status] + ($this->detail === '' ? [] : ['detail' => $this->detail]) + $this->extensions;
    }
}
