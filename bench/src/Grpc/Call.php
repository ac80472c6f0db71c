<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

/** The two methods that are compared. */
enum Call: string
{
    case Get = 'Get';
    /** Streams ten users. */
    case List = 'List';

    public function path(): string
    {
        return "/api.Users/{$this->value}";
    }

    /** The request as JSON. */
    public function data(): string
    {
        return $this === self::Get ? '{"id":228}' : '{}';
    }

    /** The request in protobuf, framed: no compression, four bytes of length. */
    public function frame(): string
    {
        $message = $this === self::Get ? "\x08\xE4\x01" : '';

        return "\0" . pack('N', strlen($message)) . $message;
    }
}
