<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\TestCase;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\EventListener;
use Weft\Bus\MessageType;
use Weft\Bus\Retry;
use Weft\Bus\Transport\Memory;

use function Weft\run;

/** Events that come back for a listener which a release has renamed. */
final class RenamedListenerTest extends TestCase
{
    public function testTheOthersAreNotCalledAgainHoweverOftenTheMessageIsRetried(): void
    {
        run(static function (): void {
            $transport = new Memory();
            $mailer = new RegistrationMailer();
            $before = Bus::connect($transport)->handlers($mailer, new Failing());
            $before->queue('mails')->declare();
            $before->publish(new Registered(1));
            $before->consume('mails', options: new ConsumeOptions(stopWhenEmpty: true));
            $after = Bus::connect($transport)->handlers($mailer, new Renamed());
            $letters = $after->queue('mails')->deadLetters();

            foreach ([1, 2] as $_) {
                $letters->retry();
                $after->consume('mails', options: new ConsumeOptions(stopWhenEmpty: true));
            }

            self::assertSame(1, $mailer->mails);
            self::assertStringContainsString(
                'is retried for ' . Failing::class . '::on, which no longer handles "registered"; its listeners are ' . RegistrationMailer::class . '::on, ' . Renamed::class . '::on.',
                $letters->peek(1)[0]->errorMessage(),
            );
        });
    }
}

#[MessageType('registered')]
final class Registered
{
    public function __construct(public readonly int $id)
    {
    }
}

final class RegistrationMailer
{
    public int $mails = 0;

    #[EventListener]
    public function on(Registered $event): void
    {
        $this->mails++;
    }
}

final class Failing
{
    #[EventListener]
    #[Retry]
    public function on(Registered $event): void
    {
        throw new \RuntimeException('boom');
    }
}

final class Renamed
{
    #[EventListener]
    public function on(Registered $event): void
    {
    }
}
