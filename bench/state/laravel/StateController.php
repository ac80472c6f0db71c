<?php

declare(strict_types=1);

namespace Weft\Bench\State\Laravel;

use Illuminate\Database\Connection;
use Illuminate\Http\JsonResponse;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\DB;
use Weft\Bench\State\Points;

/** Waits at five points, and says what is not the request's own after any of them. */
final class StateController
{
    public function __invoke(Request $request): JsonResponse
    {
        $number = (int) $request->query('n');
        $user = (string) $request->getUser();
        $expected = Points::expected($number, $user);
        app()->setLocale($expected['locale']);
        config(['app.request' => $expected['request id']]);
        app()->instance('state.request', $expected['request id']);
        \date_default_timezone_set($expected['time zone']);
        \header($expected['headers']);
        session(['user' => $user]);
        $connection = DB::connection();
        $mismatches = [];
        try {
            $connection->beginTransaction();
            $visit = Visit::create(['request' => $expected['request id'], 'user' => $user]);
            $mismatches = Points::mismatches($expected, self::seen(...), static fn(): array => self::database($connection, $visit));
        } catch (\Exception $thrown) {
            // In an application that others use as well, their statements are in the same transaction.
            $mismatches['transaction'] = $thrown::class;
        }
        try {
            $connection->rollBack();
        } catch (\Exception $thrown) {
            $mismatches['transaction'] ??= $thrown::class;
        }

        return new JsonResponse(['request' => $number, 'mismatches' => $mismatches]);
    }

    /** @return array<string, string> what facades, helpers and PHP say now */
    private static function seen(): array
    {
        $identity = (string) Auth::id();
        $service = app()->bound('state.request') ? (string) app('state.request') : '';

        return [
            'identity' => (string) request()->user()?->getAuthIdentifier() === $identity ? $identity : '',
            'request id' => config('app.request') === $service ? $service : '',
            'locale' => app('translator')->getLocale() === app()->getLocale() ? app()->getLocale() : '',
            'time zone' => \date_default_timezone_get(),
            'session' => (string) session('user'),
            'superglobals' => (string) request('n') === (string) ($_GET['n'] ?? '') ? (string) request('n') : '',
            'headers' => Points::headers(),
        ];
    }

    /** @return array<string, string> by what is wrong */
    private static function database(Connection $connection, Visit $visit): array
    {
        $wrong = [];
        if (DB::connection() !== $connection || $visit->getConnection() !== $connection) {
            $wrong['connection'] = 'it is another';
        }
        if ($connection->transactionLevel() !== 1) {
            $wrong['transaction'] = "level {$connection->transactionLevel()}";
        }
        // Nobody else's rows are committed, so the transaction sees its own alone.
        try {
            $rows = Visit::query()->pluck('request')->all();
        } catch (\Exception $thrown) {
            return $wrong + ['transaction' => $thrown::class];
        }
        if ($rows !== [$visit->request]) {
            $wrong['transaction'] = 'it sees ' . \implode(', ', $rows);
        }

        return $wrong;
    }
}
