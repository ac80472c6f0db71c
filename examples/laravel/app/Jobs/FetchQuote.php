<?php

declare(strict_types=1);

namespace App\Jobs;

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Http;

/** Asks the slow API for a quote and keeps it. */
final class FetchQuote implements ShouldQueue
{
    use Dispatchable;
    use InteractsWithQueue;
    use Queueable;

    public function __construct(private readonly string $tag)
    {
    }

    public function handle(): void
    {
        $quote = Http::get(config('app.api') . '/quote', ['tag' => $this->tag])->throw()->json('quote');
        DB::table('quotes')->insert(['text' => $quote]);
    }
}
