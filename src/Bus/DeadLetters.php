<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The messages of one queue that could not be handled. */
final class DeadLetters
{
    private readonly string $queue;

    /** @internal see {@see Bus::deadLetters()} */
    public function __construct(
        private readonly Transport $transport,
        string $queue,
    ) {
        $this->queue = self::queueOf($queue);
    }

    public static function queueOf(string $queue): string
    {
        return "{$queue}.dead";
    }

    public function count(): int
    {
        return $this->transport->depth($this->queue);
    }

    /**
     * Looks at the oldest dead letters and leaves them where they are.
     *
     * @param positive-int $limit
     * @return list<DeadLetter>
     */
    public function peek(int $limit = 10): array
    {
        $consumer = $this->transport->consume($this->queue, $limit);
        try {
            $letters = [];
            while (\count($letters) < $limit && ($batch = $consumer->next($limit - \count($letters), wait: 0.2)) !== []) {
                foreach ($batch as $delivery) {
                    $letters[] = new DeadLetter($delivery->type, $delivery->body, $delivery->headers);
                }
            }

            return $letters;
        } finally {
            $consumer->close();
        }
    }
}
