<!doctype html>
<title>{{ $person->name }}</title>
<h1>{{ $person->name }}, {{ $quote }}</h1>
<ul>
@foreach ($team as $member)
    <li>{{ $member->id }}: {{ $member->name }} of {{ $member->team }}</li>
@endforeach
</ul>
