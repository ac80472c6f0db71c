<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\CloudEvents\InvalidCloudEventException;
use Weft\Http\Fault;
use Weft\Http\InvalidRequestException;
use Weft\Http\InvalidRouteError;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Internal\Codec\Mismatches;
use Weft\Validation\Internal\SymfonyValidator;
use Weft\Validation\Validator;

/**
 * A handler and what its signature asks for, compiled when its route is added.
 *
 * @internal
 */
final class HandlerPlan
{
    /**
     * @param string $name as errors and `weft routes` show it
     * @param string $source its name and where it is, for errors
     * @param string $path of its route, for errors
     * @param list<Argument> $arguments
     * @param array<int, ValidationRule> $validations by the index of the argument
     * @param bool $isTyped its signature describes the request or the response
     */
    public function __construct(
        public readonly \Closure $handler,
        public readonly string $name,
        public readonly string $source,
        public readonly string $path,
        public readonly array $arguments,
        public readonly ReturnValue $result,
        public readonly array $validations,
        public readonly bool $isTyped,
    ) {
    }

    /**
     * @param bool $isRaw data that the handler returns stays as it is: no middleware sees it before the server does
     *
     * @return \Closure(Request): mixed
     */
    public function closure(?Validator $validator, bool $isRaw): \Closure
    {
        $arguments = $this->arguments;
        if ($this->isTyped || $this->validations !== []) {
            return $this->typed($this->validator($validator));
        }
        $takesRequest = \count($arguments) === 1 && $arguments[0] instanceof RequestArgument;
        if ($isRaw && ($takesRequest || $arguments === [])) {
            return $this->handler;
        }
        [$handler, $result, $failure] = [$this->handler, $this->result, $this->failure(...)];

        return static function (Request $request) use ($handler, $arguments, $result, $failure): Response {
            $values = [];
            foreach ($arguments as $argument) {
                $values[] = $argument->value($request);
            }
            $returned = $handler(...$values);
            try {
                return $returned instanceof Response ? $returned : $result->response($returned);
            } catch (UnusableResultException $unusable) {
                throw $failure($unusable);
            }
        };
    }

    /** @return \Closure(Request): Response */
    private function typed(?Validator $validator): \Closure
    {
        $handler = $this->handler();

        return function (Request $request) use ($handler, $validator): Response {
            $request->answersProblems = true;
            $returned = $handler(...$this->values($request, $validator));
            try {
                return $returned instanceof Response ? $returned : $this->result->response($returned);
            } catch (UnusableResultException $unusable) {
                throw $this->failure($unusable);
            }
        };
    }

    /**
     * @param Validator|null $validator null for a handler without #[Validate]
     *
     * @return list<mixed> of all arguments
     *
     * @throws InvalidRequestException
     */
    public function values(Request $request, ?Validator $validator): array
    {
        $values = [];
        try {
            foreach ($this->arguments as $argument) {
                $values[] = $argument->value($request);
            }
        } catch (FaultsException $first) {
            throw $this->refuse($request, $first);
        }
        if ($validator !== null && ($faults = ValidationRule::check($this->validations, $validator, $values)) !== []) {
            throw new InvalidRequestException(422, $faults);
        }

        return $values;
    }

    /** The handler. One of CloudEvents decodes their data itself, and its faults are those of the request. */
    private function handler(): \Closure
    {
        $handler = $this->handler;
        if (\array_filter($this->arguments, static fn(Argument $argument): bool => $argument instanceof CloudEventArgument) === []) {
            return $handler;
        }

        return static function (mixed ...$values) use ($handler): mixed {
            try {
                return $handler(...$values);
            } catch (InvalidCloudEventException $invalid) {
                throw $invalid->event !== null && \in_array($invalid->event, $values, true)
                    ? new InvalidRequestException(422, [Fault::inBody('', $invalid->getMessage())], $invalid)
                    : $invalid;
            }
        };
    }

    /** The argument that is the body of the request. */
    public function body(): BodyArgument|CloudEventArgument|null
    {
        foreach ($this->arguments as $argument) {
            if ($argument instanceof BodyArgument || $argument instanceof CloudEventArgument) {
                return $argument;
            }
        }

        return null;
    }

    private function failure(UnusableResultException $unusable): \TypeError
    {
        return $unusable->error($this);
    }

    /** Collects the faults of all arguments, at most 100. */
    private function refuse(Request $request, FaultsException $first): InvalidRequestException
    {
        $status = 422;
        /** @var list<Fault> $faults */
        $faults = [];
        foreach ($this->arguments as $argument) {
            try {
                $argument->value($request);
            } catch (FaultsException $found) {
                $status = \min($status, $found->status);
                $faults = [...$faults, ...$found->faults];
            }
        }

        if ($faults === []) {
            return new InvalidRequestException($first->status, $first->faults);
        }
        /** @var non-empty-list<Fault> $reported */
        $reported = \array_slice($faults, 0, Mismatches::MAX_COUNT);

        return new InvalidRequestException($status, $reported);
    }

    /**
     * @param Validator|null $validator of the router
     *
     * @return Validator|null null if there is nothing to validate
     *
     * @throws InvalidRouteError none is available
     */
    public function validator(?Validator $validator): ?Validator
    {
        if ($this->validations === []) {
            return null;
        }

        return $validator ?? (SymfonyValidator::isInstalled() ? new SymfonyValidator() : throw new InvalidRouteError(
            "The handler {$this->source} has #[Validate], but no validator is available: install symfony/validator, or pass a Validator to Router::validator()",
        ));
    }
}
