@extends('layout')
@section('title', $customer->exists ? $customer->name : 'New customer')
@section('content')
<form method="post" action="{{ $customer->exists ? route('customers.update', $customer) : route('customers.store') }}">
@csrf
@if ($customer->exists) @method('PUT') @endif
<label>Name <input name="name" value="{{ old('name', $customer->name) }}"></label>
@error('name')<p class="error">{{ $message }}</p>@enderror
<label>E-mail <input name="email" value="{{ old('email', $customer->email) }}"></label>
@error('email')<p class="error">{{ $message }}</p>@enderror
<button>Save</button>
</form>
@endsection
