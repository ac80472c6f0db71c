<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

/** One program in the comparison and how to start it. */
final class Contender
{
    /** Why it cannot run at all; each of its runs then counts as failed with this reason. */
    public ?string $unavailable = null;

    /**
     * @param string $name unique; the name for --only
     * @param string $system the product, shared by its modes
     * @param list<string> $command program and arguments
     * @param list<string> $files must exist before it can start
     * @param bool $persistent whether its messages are to survive a restart of the broker
     * @param array<string, string> $environment variables of its own
     * @param bool $canConfirm whether it can wait for publisher confirms
     */
    public function __construct(
        public readonly string $name,
        public readonly string $system,
        public readonly Mode $mode,
        public readonly Transport $transport,
        public readonly array $command,
        public readonly array $files,
        private readonly bool $persistent = false,
        public readonly array $environment = [],
        public readonly bool $canConfirm = true,
    ) {
    }

    /** The same program, told otherwise. */
    public function with(bool $persistent, ?string $name = null, ?Mode $mode = null): self
    {
        return new self(
            $name ?? $this->name,
            $this->system,
            $mode ?? $this->mode,
            $this->transport,
            $this->command,
            $this->files,
            $persistent,
            $this->environment,
            $this->canConfirm,
        );
    }

    /** @param list<string> $names none means everyone */
    public function isAmong(array $names): bool
    {
        return $names === [] || in_array($this->name, $names, true) || in_array($this->system, $names, true);
    }

    /** Some modes always use persistent messages. */
    public function isPersistent(): bool
    {
        return $this->persistent || $this->mode->isDurable() || $this->transport !== Transport::RabbitMq;
    }

    /** @return list<string> */
    public function missingFiles(): array
    {
        return array_values(array_filter($this->files, static fn (string $file): bool => !is_file($file)));
    }
}
