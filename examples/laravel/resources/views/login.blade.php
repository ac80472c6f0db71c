@extends('layout')
@section('title', 'Log in')
@section('content')
<form method="post" action="/login">
@csrf
<label>Name <input name="name" value="{{ old('name') }}"></label>
<label>Password <input type="password" name="password"></label>
@foreach ($errors->all() as $error)<p class="error">{{ $error }}</p>@endforeach
<button>Log in</button>
</form>
@endsection
