<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\BodyWriter;
use Weft\Http\BorrowedApplication;
use Weft\Http\Request;
use Weft\Http\Response;

/**
 * A body that an application makes while it is sent, in its realm.
 *
 * @internal
 */
final class RealmBody implements Body
{
    /**
     * @param BorrowedApplication<object> $borrowed
     * @param iterable<string>|\Closure(BodyWriter): void|Body $body
     */
    public function __construct(private readonly BorrowedApplication $borrowed, private readonly iterable|\Closure|Body $body)
    {
    }

    public function send(Request $request, Response $response): void
    {
        $isComplete = false;
        try {
            $this->borrowed->run(function () use ($request, $response): void {
                if ($this->body instanceof Body) {
                    $this->body->send($request, $response);
                } else {
                    StreamedBody::write($request->stream($response->status, $response->headers), $this->body);
                }
            });
            $isComplete = true;
        } finally {
            $isComplete || $this->borrowed->discard();
        }
    }
}
