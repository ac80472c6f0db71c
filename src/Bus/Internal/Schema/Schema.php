<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Schema;

use Weft\Bus\Internal\Codec\Codec;

/**
 * All message classes of a bus with their versions and fields, as stored in a lock file.
 *
 * @internal
 */
final class Schema
{
    /** @param array<string, array{class: string, version: int, upcasts: list<int>, fields: array<string, array{type: mixed, optional: bool}>}> $messages by type */
    private function __construct(public readonly array $messages) {}

    public static function of(Codec $codec, Upcasters $upcasters): self
    {
        $messages = [];
        foreach ($codec->known() as $class) {
            $messages[$class->type] = [
                'class' => $class->class,
                'version' => $class->version,
                'upcasts' => $upcasters->of($class->type),
                'fields' => $class->fields(),
            ];
        }
        \ksort($messages);

        /** @var array<string, array{class: string, version: int, upcasts: list<int>, fields: array<string, array{type: mixed, optional: bool}>}> $messages */
        return new self($messages);
    }

    /** @throws \ValueError when it is no lock file */
    public static function parse(string $json): self
    {
        $data = \json_decode($json, true);
        if (!\is_array($data) || ($data['weft-schema'] ?? null) !== 1 || !\is_array($data['messages'] ?? null)) {
            throw new \ValueError('it was not written by weft schema:check');
        }

        /** @var array<string, array{class: string, version: int, fields: array<string, array{type: mixed, optional: bool}>, upcasts: list<int>}> $messages */
        $messages = $data['messages'];

        return new self($messages);
    }

    public function json(): string
    {
        return \json_encode(
            ['weft-schema' => 1, 'messages' => (object) $this->messages],
            \JSON_THROW_ON_ERROR | \JSON_PRETTY_PRINT | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE,
        ) . "\n";
    }
}
