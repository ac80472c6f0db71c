<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * The parameter of a handler that gets the body: JSON, decoded as a message of the bus is. A class, or an array whose elements `@param`
 * documents (`list<T>`, `array<string, T>`).
 *
 * ```
 * $routes->post('/orders', fn (#[Body] PlaceOrder $order): Order => $orders->place($order));
 * ```
 *
 * A parameter of the class {@see \Weft\CloudEvents\CloudEvent} gets the event of the request, in binary or structured mode.
 *
 * A parameter with a default, or of a type with null, is optional: a request without a body gets the default, or null. Routes of GET and POST need
 * it to be optional.
 *
 * A body of another content type is answered 415, one that is no JSON 400, one that does not match the type 422, with the JSON pointer of
 * each fault, and one that would take too much memory ({@see Request::json()}) 413. Fields that the class does not have are ignored.
 */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Body
{
}
