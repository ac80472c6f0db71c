<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks\Laravel;

use Illuminate\Contracts\View\View;
use Illuminate\Http\JsonResponse;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Http;

/** What is measured. */
final class PageController
{
    /** A call that takes 50 ms, two queries of the ORM, a template. `?id=` says who is shown. */
    public function page(Request $request): View
    {
        $quote = Http::get(\getenv('FRAMEWORKS_API') . '/wait?seconds=0.05')->body();
        $person = Person::find($request->query('id') ?? \mt_rand(1, 10_000));
        $team = Person::where('team', $person?->team)->orderBy('id')->limit(10)->get();

        return view('page', ['quote' => \trim($quote), 'person' => $person, 'team' => $team]);
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
