<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Http\Request;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Type;

/** @internal */
final class HeaderArgument implements Argument
{
    public function __construct(
        public readonly string $name,
        public readonly Type $type,
        public readonly bool $isRequired,
        public readonly mixed $default,
    ) {
    }

    public function value(Request $request): mixed
    {
        $text = $request->header($this->name);
        if ($text === null) {
            return $this->isRequired ? throw $this->fault('the field is missing') : $this->default;
        }
        try {
            return TextValue::decode($this->type, $text);
        } catch (MismatchException $mismatch) {
            throw $this->fault(FaultDetail::of($mismatch, $this->type));
        }
    }

    private function fault(string $detail): FaultsException
    {
        return new FaultsException(400, [Fault::inHeader($this->name, $detail)]);
    }
}
