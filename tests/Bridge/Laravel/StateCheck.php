<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use App\Models\Customer;
use Carbon\Carbon;
use Illuminate\Auth\GenericUser;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\URL;
use Illuminate\Support\Facades\View;

/** Sets what belongs to its request, and checks at five points where it waits, while others run, that it is still there. */
final class StateCheck
{
    private const LOCALES = ['de', 'en', 'fr', 'it', 'nl'];

    public function __invoke(Request $request): string
    {
        try {
            return $this->check($request);
        } catch (\PDOException $thrown) {
            // In an application that others use as well, their statements are in the same transaction.
            return 'mismatch: transaction: ' . $thrown->getMessage();
        }
    }

    private function check(Request $request): string
    {
        [$user, $number] = [(string) $request->query('user'), (int) $request->query('n')];
        $locale = self::LOCALES[$number % 5];
        $left = \implode(' ', \array_keys(\array_filter([
            'user' => Auth::id() !== null,
            'session' => session('user') !== null,
            'locale' => app()->getLocale() !== 'en',
            'dates' => Carbon::getLocale() !== 'en',
            'service' => app()->bound('tag'),
            'configuration' => config('app.tag') !== null,
            'view' => View::shared('tag') !== null,
            'transaction' => DB::transactionLevel() !== 0,
            'setting' => \preg_match('/^n\d/', DB::selectOne('show application_name')->application_name) === 1,
        ])));
        if ($left !== '') {
            return "left by another request: $left";
        }
        Auth::setUser(new GenericUser(['id' => $user]));
        session(['user' => $user]);
        app()->setLocale($locale);
        Carbon::setLocale($locale);
        app()->instance('tag', $number);
        config(['app.tag' => $number]);
        View::share('tag', $number);
        URL::defaults(['tag' => $number]);
        DB::statement("set application_name = 'n$number'");
        DB::beginTransaction();
        Customer::create(['name' => "n$number", 'email' => 'x']);
        $matched = 0;
        for ($point = 0; $point < 5; ++$point) {
            \usleep(1_000);
            $seen = [
                'user' => Auth::id() === $user && $request->user()?->id === $user,
                'session' => session('user') === $user,
                'request' => (int) request('n') === $number && (int) ($_GET['n'] ?? -1) === $number,
                'address' => \str_contains(URL::full(), "?n=$number&"),
                'locale' => app()->getLocale() === $locale,
                'dates' => Carbon::getLocale() === $locale,
                'service' => app('tag') === $number,
                'configuration' => config('app.tag') === $number,
                'view' => View::shared('tag') === $number,
                'rows' => Customer::pluck('name')->all() === ["n$number"],
                'transaction' => DB::transactionLevel() === 1,
                'setting' => DB::selectOne('show application_name')->application_name === "n$number",
            ];
            if (\in_array(false, $seen, true)) {
                DB::rollBack();

                return 'mismatch: ' . \implode(' ', \array_keys($seen, false, true));
            }
            ++$matched;
        }
        // Half of them leave the transaction open.
        $number % 2 === 0 && DB::rollBack();

        return "matched $user $number $matched";
    }
}
