<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks\Symfony;

use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Contracts\HttpClient\HttpClientInterface;
use Twig\Environment;

/** What is measured. */
final class PageController
{
    public function __construct(private readonly HttpClientInterface $http, private readonly Entities $entities, private readonly Environment $twig) {}

    /** A call that takes 50 ms, two queries of the ORM, a template. `?id=` says who is shown. */
    public function page(Request $request): Response
    {
        $quote = $this->http->request('GET', \getenv('FRAMEWORKS_API') . '/wait?seconds=0.05')->getContent();
        $people = $this->entities->manager()->getRepository(Person::class);
        $person = $people->find($request->query->get('id') ?? \mt_rand(1, 10_000));
        $team = $people->findBy(['team' => $person?->team], ['id' => 'ASC'], 10);

        return new Response($this->twig->render('page.html.twig', ['quote' => \trim($quote), 'person' => $person, 'team' => $team]));
    }

    /** Nothing but work of the processor. */
    public function compute(): JsonResponse
    {
        $words = [];
        for ($number = 0; $number < 500; $number++) {
            $words[\hash('crc32b', (string) $number)] = $number;
        }
        \ksort($words);

        return new JsonResponse(['sum' => \array_sum($words), 'first' => \array_key_first($words)]);
    }
}
