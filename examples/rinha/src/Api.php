<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\Router;

/** The four endpoints. */
final class Api
{
    public function __construct(private readonly People $people)
    {
    }

    public function addTo(Router $router): void
    {
        $router
            ->post('/pessoas', $this->create(...))
            ->get('/pessoas', $this->search(...))
            ->get('/pessoas/{id}', $this->find(...))
            ->get('/contagem-pessoas', $this->count(...));
    }

    private function create(Request $request): Response
    {
        try {
            $id = $this->people->add(Person::fromJson($request->body()));
        } catch (Malformed $error) {
            return Response::text("{$error->getMessage()}\n", 400);
        } catch (Unacceptable $error) {
            return Response::text("{$error->getMessage()}\n", 422);
        }

        return Response::created("/pessoas/{$id}");
    }

    private function find(string $id): Response
    {
        $person = $this->people->find($id);

        return $person === null ? Response::notFound() : self::json($person);
    }

    private function search(Request $request): Response
    {
        $term = $request->queryParameter('t') ?? '';

        return $term === '' ? Response::text("The parameter t is missing\n", 400) : self::json($this->people->search($term));
    }

    private function count(): Response
    {
        return Response::text((string) $this->people->count());
    }

    private static function json(string $json): Response
    {
        return new Response(200, ['content-type' => 'application/json'], $json);
    }
}
