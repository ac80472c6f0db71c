<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\CloudEvents\CloudEvent;
use Weft\CloudEvents\InvalidCloudEventException;
use Weft\Http\Fault;
use Weft\Http\HttpException;
use Weft\Http\Request;

/**
 * The request as a CloudEvent, in binary or structured mode.
 *
 * @internal
 */
final class CloudEventArgument implements Argument
{
    private const TYPES = 'application/cloudevents+json';

    public function isRequired(): bool
    {
        return true;
    }

    public function value(Request $request): CloudEvent
    {
        $headers = $request->headers();
        $type = \strtolower($headers['content-type'][0] ?? '');
        if (!isset($headers['ce-specversion']) && !\str_starts_with($type, self::TYPES)) {
            // Also keeps forms of other sites out, whose requests browsers send without asking.
            throw new HttpException(415, 'The request must be a CloudEvent: ' . self::TYPES . ', or binary mode with ce-specversion', ['accept-post' => self::TYPES]);
        }
        try {
            return CloudEvent::fromHttp($headers, $request->body());
        } catch (InvalidCloudEventException $invalid) {
            throw new FaultsException(400, [Fault::inBody('', $invalid->getMessage())]);
        }
    }
}
