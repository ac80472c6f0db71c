<!DOCTYPE html>
<html lang="{{ app()->getLocale() }}">
<head><meta charset="utf-8"><title>@yield('title')</title><link rel="stylesheet" href="/style.css"></head>
<body>
<nav><a href="/">Home</a> <a href="/customers">Customers</a>
@auth
<form method="post" action="/logout">@csrf<button>Log out {{ auth()->user()->name }}</button></form>
@endauth
</nav>
@if (session('status'))<p class="status">{{ session('status') }}</p>@endif
@yield('content')
</body>
</html>
