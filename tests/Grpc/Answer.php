<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

/** What curl got for a call. */
final class Answer
{
    /** @param string $head status line, fields and trailers */
    public function __construct(public readonly int $exit, public readonly string $head, public readonly string $body, public readonly string $errors)
    {
    }

    public function field(string $name): ?string
    {
        return preg_match('/^' . preg_quote($name, '/') . ': *(.*?)\r?$/mi', $this->head, $match) === 1 ? $match[1] : null;
    }

    public function httpStatus(): int
    {
        return preg_match('~^HTTP/\S+ (\d+)~', $this->head, $match) === 1 ? (int) $match[1] : 0;
    }

    public function status(): ?int
    {
        $status = $this->field('grpc-status');

        return $status === null ? null : (int) $status;
    }

    /** @return list<string> */
    public function messages(): array
    {
        $messages = [];
        for ($at = 0; $at < \strlen($this->body); $at += 5 + $length) {
            $length = unpack('N', $this->body, $at + 1)[1];
            $messages[] = substr($this->body, $at + 5, $length);
        }

        return $messages;
    }
}
