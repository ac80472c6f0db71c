<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A registered handler and the rules that apply to it; see {@see Admin::handlers()}. */
final class HandlerInfo
{
    /**
     * @param string      $message       type name
     * @param string      $kind          `command`, `event` or `query`
     * @param string      $handler       `Class::method`
     * @param list<Retry> $retries       the rules of the handler in the order in which they are tried, then that of the bus unless one
     *                                   matches every exception
     * @param float|null  $timeout       seconds; null for no limit
     * @param bool        $transactional whether it runs in a transaction
     */
    public function __construct(
        public readonly string $message,
        public readonly string $kind,
        public readonly string $handler,
        public readonly array $retries,
        public readonly ?float $timeout,
        public readonly bool $transactional,
    ) {}

    /**
     * The values that `App` logs when it starts, which are the columns of the table that `weft handlers` prints.
     *
     * @return array{message: string, handler: string, retries: string, timeout: string, transaction: string}
     */
    public function columns(): array
    {
        return [
            'message' => "{$this->kind} {$this->message}",
            // An anonymous class is named by its file, behind a NUL.
            'handler' => (string) \preg_replace('/\0.*(?=::)/s', '', $this->handler),
            'retries' => \implode(', else ', \array_map(self::rule(...), $this->retries)),
            'timeout' => $this->timeout === null ? 'none' : "{$this->timeout} s",
            'transaction' => $this->transactional ? 'yes' : 'no',
        ];
    }

    private static function rule(Retry $retry): string
    {
        $times = \implode(' + ', \array_filter([
            $retry->immediate > 0 ? "{$retry->immediate} immediate" : '',
            $retry->delayed > 0 ? "{$retry->delayed} delayed" : '',
        ]));
        $names = \array_map(static fn(string $class): string => \substr((string) \strrchr("\\{$class}", '\\'), 1), $retry->on);

        return ($times === '' ? 'none' : $times) . ($names === [] ? '' : ' on ' . \implode(', ', $names));
    }
}
