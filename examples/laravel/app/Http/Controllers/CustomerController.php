<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use App\Jobs\Welcome;
use App\Models\Customer;
use Illuminate\Contracts\View\View;
use Illuminate\Http\RedirectResponse;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\DB;

final class CustomerController
{
    private const RULES = ['name' => 'required|max:100', 'email' => 'required|email:filter'];

    public function index(): View
    {
        return view('customers.index', ['customers' => Customer::orderBy('name')->paginate(10)]);
    }

    public function create(): View
    {
        return view('customers.form', ['customer' => new Customer()]);
    }

    public function store(Request $request): RedirectResponse
    {
        $given = $request->validate(self::RULES);
        $customer = DB::transaction(static fn(): Customer => Customer::create($given));
        Welcome::dispatch($customer->id);

        return redirect('/customers')->with('status', "$customer->name was added.");
    }

    public function edit(Customer $customer): View
    {
        return view('customers.form', ['customer' => $customer]);
    }

    public function update(Request $request, Customer $customer): RedirectResponse
    {
        $customer->update($request->validate(self::RULES));

        return redirect('/customers')->with('status', "$customer->name was changed.");
    }

    public function destroy(Customer $customer): RedirectResponse
    {
        $customer->delete();

        return redirect('/customers');
    }
}
