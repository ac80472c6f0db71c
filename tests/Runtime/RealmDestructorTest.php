<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\TestCase;

/** A destructor that waits, in a realm: applications that were not written for tasks have such. */
final class RealmDestructorTest extends TestCase
{
    public function testADestructorInARealmMayWaitWithTheProcessAndOtherTasksGoOnAfterwards(): void
    {
        $program = Subprocess::run(<<<'PHP'
            final class Late { public function __destruct() { delay(0.01); echo "waited\n"; } }
            run(function () {
                $other = async(function () { delay(0.001); echo "other\n"; });
                (new \Weft\Runtime\Realm())->run(function () {
                    $late = new Late();
                    unset($late);
                    delay(0.01);
                    echo "goes on\n";
                });
                $other->await();
            });
            PHP);

        self::assertSame('', $program->errors);
        $lines = \explode("\n", \trim($program->output));
        self::assertContains('other', $lines);
        self::assertSame(['waited', 'goes on'], \array_values(\array_diff($lines, ['other'])));
    }
}
