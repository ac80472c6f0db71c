@extends('layout')
@section('title', 'Customers')
@section('content')
<ul>
@forelse ($customers as $customer)
<li><a href="{{ route('customers.edit', $customer) }}">{{ $customer->name }}</a> &lt;{{ $customer->email }}&gt;{{ $customer->welcomed ? ', welcomed' : '' }}
<form method="post" action="{{ route('customers.destroy', $customer) }}">@csrf @method('DELETE')<button>Delete</button></form></li>
@empty
<li>Nobody yet.</li>
@endforelse
</ul>
<p>Page {{ $customers->currentPage() }} of {{ $customers->lastPage() }}, <a href="{{ $customers->url(1) }}">first</a></p>
<a href="{{ route('customers.create') }}">New</a>
@endsection
