@extends('layout')
@section('title', 'Home')
@section('content')
<h1>Hello{{ auth()->check() ? ', ' . auth()->user()->name : '' }}</h1>
@endsection
