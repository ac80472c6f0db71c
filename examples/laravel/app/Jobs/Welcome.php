<?php

declare(strict_types=1);

namespace App\Jobs;

use App\Mail\Welcomed;
use App\Models\Customer;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Queue\SerializesModels;
use Illuminate\Support\Facades\Mail;

/** Sends a mail to a new customer. */
final class Welcome implements ShouldQueue
{
    use Dispatchable;
    use InteractsWithQueue;
    use Queueable;
    use SerializesModels;

    public function __construct(private readonly int $customer)
    {
    }

    public function handle(): void
    {
        $customer = Customer::find($this->customer);
        if ($customer !== null) {
            Mail::to($customer->email)->send(new Welcomed($customer->name));
            $customer->welcomed = true;
            $customer->save();
        }
    }
}
