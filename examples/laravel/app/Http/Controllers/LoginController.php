<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use Illuminate\Contracts\View\View;
use Illuminate\Http\RedirectResponse;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Auth;

final class LoginController
{
    public function form(): View
    {
        return view('login');
    }

    public function logIn(Request $request): RedirectResponse
    {
        $given = $request->validate(['name' => 'required', 'password' => 'required']);
        if (!Auth::attempt($given)) {
            return back()->withErrors(['name' => 'Name or password are wrong.'])->withInput();
        }
        $request->session()->regenerate();
        $request->session()->put('seen', $given['name']);

        return redirect()->intended('/');
    }

    public function logOut(Request $request): RedirectResponse
    {
        Auth::logout();
        $request->session()->invalidate();
        $request->session()->regenerateToken();

        return redirect('/');
    }
}
