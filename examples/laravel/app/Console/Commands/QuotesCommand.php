<?php

declare(strict_types=1);

namespace App\Console\Commands;

use App\Jobs\FetchQuote;
use Illuminate\Console\Command;
use Illuminate\Support\Facades\DB;

/** `artisan queue:quotes 6` has six quotes fetched by jobs; without a number it prints those that are there. */
final class QuotesCommand extends Command
{
    /** @var string */
    protected $signature = 'queue:quotes {number?}';

    /** @var string */
    protected $description = 'Have quotes fetched by jobs, or print them';

    public function handle(): int
    {
        $number = (int) $this->argument('number');
        if ($number === 0) {
            $this->line((string) DB::table('quotes')->orderBy('text')->pluck('text')->toJson());
        }
        for ($i = 1; $i <= $number; ++$i) {
            FetchQuote::dispatch("$number-$i");
        }

        return self::SUCCESS;
    }
}
