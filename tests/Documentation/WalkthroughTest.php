<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\AssertionFailedError;

final class WalkthroughTest extends PagesTestCase
{
    private string $file;

    protected function setUp(): void
    {
        $this->file = \sys_get_temp_dir() . '/weft-page-' . \bin2hex(\random_bytes(6)) . '.md';
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        \unlink($this->file);
    }

    public function testAPageThatIsTruePasses(): void
    {
        $this->walk(<<<'MD'
            ```php title="src/Answer.php"
            <?php

            namespace App;

            final class Answer { public const VALUE = 42; }
            ```

            ```php title="answer.php"
            <?php

            require __DIR__ . '/vendor/autoload.php';

            echo App\Answer::VALUE, " in ", __DIR__, "\n";
            ```

            ```sh
            php answer.php
            ```

            ```text
            4… in /srv/app
            ```

            <!-- server: begun -->
            ```sh
            ANSWER=43 bash -c 'trap exit INT; echo begun; echo $ANSWER; while sleep 0.05; do :; done'
            ```

            <!-- log -->
            ```text
            begun
            43
            ```

            <!-- until -->
            ```sh
            echo x >> lines && wc -l < lines
            ```

            ```text
            3
            ```
            MD);
        $this->addToAssertionCount(1);
    }

    /** @return iterable<string, array{string, string}> page, and what the test says of it */
    public static function untruePages(): iterable
    {
        yield 'other output' => ["```sh\necho one\n```\n\n```text\ntwo\n```\n", '--- it printed'];
        yield 'more output' => ["```sh\necho one; echo two\n```\n\n```text\none\n```\n", '--- it printed'];
        yield 'a command that fails' => ["```sh\nfalse\n```\n", 'exit code 1'];
        yield 'output of no command' => ["```text\none\n```\n", 'no command prints this'];
        yield 'a file with a syntax error' => ["```php title=\"a.php\"\n<?php echo ;\n```\n", 'syntax error'];
        yield 'code for Weft that is not run' => ["```php\nnew Weft\\App();\n```\n", 'has a title and is run'];
        yield 'Go with a syntax error' => ["```go\nfunc {\n```\n", 'expected'];
        yield 'a server that ends' => ["<!-- server -->\n```sh\ntrue\n```\n", 'is not ready'];
        yield 'a server that ends with a failure' => ["<!-- server: up -->\n```sh\nbash -c 'trap \"exit 3\" INT; echo up; while sleep 0.05; do :; done'\n```\n", '3'];
    }

    /** @dataProvider untruePages */
    #[DataProvider('untruePages')]
    public function testAPageThatIsNotTrueFails(string $page, string $message): void
    {
        try {
            $this->walk($page);
        } catch (AssertionFailedError $failure) {
            self::assertStringContainsString($message, $failure->getMessage());

            return;
        }
        self::fail('the page passed');
    }

    private function walk(string $page): void
    {
        \file_put_contents($this->file, $page);
        $this->runPages(Page::read($this->file));
    }
}
