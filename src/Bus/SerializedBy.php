<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Sets the format of a message class, instead of the bus's JSON.
 *
 * ```php
 * #[SerializedBy(new CloudEvents('/shop'))]
 * #[MessageType('shop.order.placed')]
 * final class OrderPlaced
 * ```
 *
 * Messages of the class without a content type, which are in the bus's JSON, can still be read: deploy the attribute at any time.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class SerializedBy
{
    public function __construct(public readonly Serializer $serializer) {}
}
