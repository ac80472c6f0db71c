<?php

declare(strict_types=1);

namespace Weft\Bench\State\Symfony;

use Doctrine\ORM\EntityManager;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\RequestStack;
use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorageInterface;
use Symfony\Contracts\Translation\LocaleAwareInterface;
use Symfony\Contracts\Translation\TranslatorInterface;
use Weft\Bench\State\Points;

/** Waits at five points, and says what is not the request's own after any of them. */
final class StateController
{
    public function __construct(
        private readonly RequestStack $requests,
        private readonly TokenStorageInterface $tokens,
        private readonly TranslatorInterface $translator,
        private readonly Entities $entities,
    ) {
    }

    public function __invoke(Request $request): JsonResponse
    {
        $number = $request->query->getInt('n');
        $user = (string) $request->headers->get('php-auth-user');
        $expected = Points::expected($number, $user);
        $request->setLocale($expected['locale']);
        $this->translator instanceof LocaleAwareInterface && $this->translator->setLocale($expected['locale']);
        \date_default_timezone_set($expected['time zone']);
        \header($expected['headers']);
        $request->attributes->set('state_id', $expected['request id']);
        $request->getSession()->set('user', $user);
        $manager = $this->entities->manager();
        $connection = $manager->getConnection();
        $visit = new Visit($expected['request id'], $user);
        $mismatches = [];
        try {
            $connection->beginTransaction();
            $manager->persist($visit);
            $manager->flush();
        } catch (\Exception $thrown) {
            // In a kernel that others use as well, their statements are in the same transaction.
            $mismatches['transaction'] = $thrown::class;
        }
        $mismatches += Points::mismatches($expected, $this->seen(...), fn(): array => $this->database($manager, $visit, $expected['request id']));
        try {
            $connection->rollBack();
        } catch (\Exception $thrown) {
            $mismatches['transaction'] ??= $thrown::class;
        }

        return new JsonResponse(['request' => $number, 'mismatches' => $mismatches]);
    }

    /** @return array<string, string> what the services and PHP say now */
    private function seen(): array
    {
        $current = $this->requests->getCurrentRequest();

        return [
            'identity' => $this->tokens->getToken()?->getUserIdentifier() ?? '',
            'request id' => (string) $current?->attributes->get('state_id'),
            'locale' => $this->translator instanceof LocaleAwareInterface && $this->translator->getLocale() === \Locale::getDefault() && $current?->getLocale() === \Locale::getDefault() ? \Locale::getDefault() : '',
            'time zone' => \date_default_timezone_get(),
            'session' => (string) $this->requests->getSession()->get('user') . ((($_SESSION['_sf2_attributes'] ?? [])['user'] ?? '') === $this->requests->getSession()->get('user') ? '' : ' of another'),
            'superglobals' => (string) ($_GET['n'] ?? ''),
            'headers' => Points::headers(),
        ];
    }

    /**
     * The services are asked again at each point: with a shared kernel they may have been reset or replaced.
     *
     * @return array<string, string> by what is wrong
     */
    private function database(EntityManager $manager, Visit $visit, string $id): array
    {
        $wrong = [];
        if ($this->entities->manager() !== $manager || !$manager->contains($visit)) {
            $wrong['entity manager'] = 'it is another, or has lost the entity';
        }
        if (!$manager->getConnection()->isTransactionActive() || $manager->getConnection()->getTransactionNestingLevel() !== 1) {
            $wrong['transaction'] = "level {$manager->getConnection()->getTransactionNestingLevel()}";
        }
        // Nobody else's rows are committed, so the transaction sees its own alone.
        try {
            $rows = $manager->getConnection()->fetchFirstColumn('SELECT request FROM state_visits');
        } catch (\Exception $thrown) {
            return $wrong + ['transaction' => $thrown::class];
        }
        if ($rows !== [$id]) {
            $wrong['transaction'] = 'it sees ' . \implode(', ', $rows);
        }

        return $wrong;
    }
}
