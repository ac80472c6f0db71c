<?php

declare(strict_types=1);

use App\Http\Controllers\CustomerController;
use App\Http\Controllers\HomeController;
use App\Http\Controllers\LoginController;
use Illuminate\Support\Facades\Route;

Route::get('/', [HomeController::class, 'home']);
Route::get('/login', [LoginController::class, 'form'])->name('login');
Route::post('/login', [LoginController::class, 'logIn']);
Route::post('/logout', [LoginController::class, 'logOut']);
Route::middleware('auth')->group(static function (): void {
    Route::get('/quote', [HomeController::class, 'quote']);
    Route::resource('customers', CustomerController::class)->except('show');
});
