<?php

declare(strict_types=1);

namespace App\Message;

use App\Entities;
use App\Entity\Customer;
use Symfony\Component\Mailer\MailerInterface;
use Symfony\Component\Messenger\Attribute\AsMessageHandler;
use Symfony\Component\Mime\Email;

/** Sends a mail to a new customer. */
#[AsMessageHandler]
final class WelcomeHandler
{
    public function __construct(private readonly Entities $entities, private readonly MailerInterface $mailer)
    {
    }

    public function __invoke(Welcome $message): void
    {
        $customer = $this->entities->manager()->find(Customer::class, $message->customer);
        if ($customer !== null) {
            $this->mailer->send((new Email())->from('Shop <shop@example.org>')->to($customer->email)->subject('Welcome')->text("Hello $customer->name,\n\nwelcome.\n"));
            $customer->welcomed = true;
            $this->entities->manager()->flush();
        }
    }
}
