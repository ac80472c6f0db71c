<?php

declare(strict_types=1);

namespace App\Mail;

use Illuminate\Mail\Mailable;

final class Welcomed extends Mailable
{
    public function __construct(public readonly string $customer)
    {
    }

    public function build(): self
    {
        return $this->subject("Welcome, $this->customer")->text('mail.welcomed');
    }
}
