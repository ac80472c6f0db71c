<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\BodyWriter;
use Weft\Http\BorrowedApplication;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Native\Realm;

/**
 * A body that an application makes while it is sent, in its realm.
 *
 * @internal
 */
final class RealmBody implements Body
{
    /**
     * @param BorrowedApplication<object> $borrowed
     * @param iterable<string>|\Closure(BodyWriter): mixed|Body $body
     */
    public function __construct(private readonly BorrowedApplication $borrowed, private readonly iterable|\Closure|Body $body)
    {
    }

    public function send(Request $request, Response $response): void
    {
        $isComplete = false;
        $hasExited = false;
        try {
            $this->borrowed->run(function () use ($request, $response, &$hasExited): void {
                if ($this->body instanceof Body) {
                    $this->body->send($request, $response);
                } else {
                    StreamedBody::write($request->stream($response->status, $response->headers), $this->untilExit($this->body, $hasExited));
                }
            });
            if ($hasExited) {
                $this->borrowed->run(static fn(object $application, Realm $realm): bool => RealmRequest::terminate($realm, $application, null));
                $this->borrowed->exited();
            }
            $isComplete = true;
        } finally {
            $isComplete || $this->borrowed->discard();
        }
    }

    /**
     * `exit()` ends the body, and what was written is the whole of it.
     *
     * @param iterable<string>|\Closure(BodyWriter): mixed $body
     *
     * @return \Closure(BodyWriter): mixed
     */
    private function untilExit(iterable|\Closure $body, bool &$hasExited): \Closure
    {
        $slowClients = $this->borrowed->slowClients();

        return static function (BodyWriter $writer) use ($body, $slowClients, &$hasExited): void {
            $writer->slowClients = $slowClients;
            $hasExited = Realm::untilExit(static fn() => StreamedBody::copy($body, $writer));
        };
    }
}
