<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** Handlers that receive and answer with CloudEvents. */
final class CloudEventTest extends HttpTestCase
{
    private const ROUTES = <<<'PHP'
        final class Placed { public function __construct(public readonly int $id) {} }
        $routes->post("/events", static function (#[Weft\Http\Body] Weft\CloudEvents\CloudEvent $event): Response {
            $reply = new Weft\CloudEvents\CloudEvent("shop.order.seen", "/seen", ["id" => $event->decode(Placed::class)->id, "of" => "$event->source $event->id"], "r-1");
            return new Response(200, $reply->headers(), $reply->body());
        });
        $routes->openApi("/openapi.json", new Weft\Http\OpenApi("Events", "1"));
        PHP;
    private const BINARY = ['-H', 'ce-specversion: 1.0', '-H', 'ce-id: 1', '-H', 'ce-source: /shop', '-H', 'ce-type: shop.order.placed', '-H', 'content-type: application/json'];

    public function testAHandlerReceivesEventsInBothModesAndAnswersWithOne(): void
    {
        $server = $this->serve(self::ROUTES);

        $binary = $server->get('/events', '--data-binary', '{"id":7}', ...self::BINARY);
        $structured = $server->get('/events', '--data-binary', '{"specversion":"1.0","id":"2","source":"/shop","type":"shop.order.placed","data":{"id":8}}', '-H', 'content-type: application/cloudevents+json');

        self::assertSame('{"id":7,"of":"/shop 1"}', self::bodyOf($binary));
        self::assertSame(['1.0', 'r-1', '/seen', 'shop.order.seen', 'application/json'], \array_map(static fn(string $name): ?string => self::field($binary, $name), ['ce-specversion', 'ce-id', 'ce-source', 'ce-type', 'content-type']));
        self::assertSame('{"id":8,"of":"/shop 2"}', self::bodyOf($structured));
    }

    public function testRequestsThatAreNoEventsAreRefused(): void
    {
        $server = $this->serve(self::ROUTES);

        self::assertStatus(415, $server->get('/events', '--data-binary', '{"id":7}', '-H', 'content-type: application/json'));
        $malformed = $server->get('/events', '--data-binary', '{"specversion":"1.0"}', '-H', 'content-type: application/cloudevents+json');
        self::assertStatus(400, $malformed);
        self::assertStringContainsString('The CloudEvent has no id', self::bodyOf($malformed));
        $mismatch = $server->get('/events', '--data-binary', '{"id":"seven"}', ...self::BINARY);
        self::assertStatus(422, $mismatch);
        self::assertSame('application/problem+json', self::field($mismatch, 'content-type'));
        self::assertStringContainsString('The data of the CloudEvent shop.order.placed is invalid', self::bodyOf($mismatch));
    }

    public function testTheOpenApiDocumentDescribesTheEvent(): void
    {
        $document = \json_decode(self::bodyOf($this->serve(self::ROUTES)->get('/openapi.json')), true);

        $operation = $document['paths']['/events']['post'];
        self::assertSame(['specversion', 'id', 'source', 'type'], $operation['requestBody']['content']['application/cloudevents+json']['schema']['required']);
        self::assertSame([400, 415], \array_slice(\array_keys($operation['responses']), 1, 2));
    }
}
