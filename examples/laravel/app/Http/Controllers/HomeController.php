<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use Illuminate\Contracts\View\View;
use Illuminate\Http\JsonResponse;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\Http;

final class HomeController
{
    public function home(): View
    {
        return view('home');
    }

    /** Waits for a slow API, and tells what it knows of its request before and after. */
    public function quote(Request $request): JsonResponse
    {
        $tag = $request->query('tag');
        $before = [$request->user()?->name, $tag];
        $quote = Http::get(config('app.api') . '/quote', ['tag' => $tag])->json('quote');

        return response()->json([
            'quote' => $quote,
            'before' => $before,
            'after' => [Auth::user()?->name, request('tag')],
            'session' => session('seen'),
        ]);
    }
}
